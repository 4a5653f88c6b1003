"""Keeping a browser off every network: what it needs is given to it through the pipe that it is driven by (J3).

Three locks, one behind the other, for none of them alone is worth trusting a million pages to. Where the system allows
it, the browser is started in a network namespace of its own, in which there is nothing. It is told to use a proxy that
does not answer, for all addresses, this machine's included, and to find no name. What would go round a proxy (WebRTC,
QUIC, WebTransport, reports, updates) is off.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import socket
import subprocess
from functools import cache
from pathlib import Path

_FEATURES = (
    *("WebTransport", "DnsOverHttps", "AsyncDns", "OptimizationHints", "MediaRouter", "Translate", "PaintHolding"),
    *("CertificateTransparencyComponentUpdater", "AutofillServerCommunication", "InterestFeedContentSuggestions"),
)
FLAGS = (
    "--disable-quic",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-gpu",
    "--disable-notifications",
    "--disable-speech-api",
    "--disable-sync",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--metrics-recording-only",
    "--mute-audio",
    "--no-first-run",
    "--no-pings",
    "--blink-settings=imagesEnabled=false",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    f"--disable-features={','.join(_FEATURES)}",
)

NO_DETOURS = """
for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "WebTransport", "EventSource", "WebSocket"]) {
  try { delete window[name]; } catch (error) { /* a page may not care */ }
}
try { delete Navigator.prototype.sendBeacon; } catch (error) { /* likewise */ }
"""
"""Run in every document before its own scripts: what is not there is not tried."""


class ClosedPort:
    """A port of this machine that nobody listens at, and that nobody else can take while it is held."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.bind(("127.0.0.1", 0))

    @property
    def flags(self) -> tuple[str, ...]:
        """What sends a browser there with everything."""
        return (f"--proxy-server=http://127.0.0.1:{self._socket.getsockname()[1]}", "--proxy-bypass-list=<-loopback>")

    def close(self) -> None:
        """Let it go."""
        self._socket.close()


@cache
def _alone() -> tuple[str, ...]:
    """The command that starts another one without a network; empty where the system does not allow it."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return ()
    root = os.geteuid() == 0
    command = (unshare, "--net") if root else (unshare, "--user", "--map-current-user", "--net")
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run([*command, "true"], check=False, capture_output=True, timeout=10)  # noqa: S603 - our own
        if done.returncode == 0:
            return command
    return ()


def secluded(executable: str, folder: Path) -> str:
    """A program that starts the browser in a network of its own, made in `folder`; the browser itself if need be."""
    command = _alone()
    if not command:
        return executable
    script = folder / "browser"
    words = " ".join(shlex.quote(word) for word in (*command, "--", executable))
    script.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return str(script)
