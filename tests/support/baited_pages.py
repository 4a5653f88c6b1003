"""A page that tries every way out of a browser: a program for `namespace.run_alone`, which writes down what left it.

    python baited_pages.py FOLDER CHROMIUM

Inside a network namespace with nothing but loopback, which has the bait addresses with a listener each, for streams and
for datagrams. The page is shown in a browser with a network namespace of its own; in one without, so that the flags
alone are put to the proof; and in one that nothing is kept from, where it must get out. FOLDER/evidence.json then says
what was asked of our own side, what arrived at the bait, and that the listeners would have told.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections import Counter
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

from namespace import bound, enter

BAITS = ("127.0.0.1", "10.0.0.5", "169.254.169.254", "93.184.216.34", "192.168.1.1")
STREAM_PORTS = (80, 443, 8080)
DATAGRAM_PORTS = (53, 443, 3478)

PAGE = """<!doctype html><html><head><title>Ways out</title>
<link rel="dns-prefetch" href="//ADDRESS"><link rel="preconnect" href="http://ADDRESS">
<link rel="icon" href="http://ADDRESS/icon">
<link rel="prefetch" href="http://ADDRESS/prefetch"><link rel="preload" as="script" href="http://ADDRESS/preload.js">
<link rel="prerender" href="http://ADDRESS/prerender"><link rel="stylesheet" href="http://ADDRESS/style.css">
<link rel="manifest" href="http://ADDRESS/manifest"><script type="speculationrules">
{"prerender": [{"urls": ["http://ADDRESS/speculated"], "eagerness": "immediate"}]}</script>
<style>@font-face { font-family: x; src: url(http://ADDRESS/font); }
body { font-family: x; background: url(http://ADDRESS/bg) }
</style></head><body><a id="ping" href="#x" ping="http://ADDRESS/ping">x</a>
<img src="http://ADDRESS/picture"><iframe src="http://ADDRESS/frame"></iframe><video src="http://ADDRESS/film"></video>
<object data="http://ADDRESS/object"></object><embed src="http://ADDRESS/embed">
<form id="form" action="http://ADDRESS/form" method="post" target="_blank"></form>
<script src="http://ADDRESS/script.js"></script>
<script>
const quietly = (act) => { try { const made = act(); if (made && made.catch) made.catch(() => {}); } catch (error) {} };
quietly(() => fetch("http://ADDRESS/fetch"));
quietly(() => fetch("https://ADDRESS/fetch"));
quietly(() => fetch("http://ADDRESS/post", { method: "POST", body: "x", keepalive: true }));
quietly(() => fetch("http://localhost:8080/local"));
quietly(() => new WebSocket("ws://ADDRESS/socket"));
quietly(() => new EventSource("http://ADDRESS/events"));
quietly(() => navigator.sendBeacon("http://ADDRESS/beacon", "x"));
quietly(() => { new Image().src = "http://ADDRESS/image"; });
quietly(() => {
  const urls = ["stun:ADDRESS:3478", "turn:ADDRESS:3478"];
  const peer = new RTCPeerConnection({ iceServers: [{ urls, username: "u", credential: "c" }] });
  peer.createDataChannel("x");
  return peer.createOffer().then((offer) => peer.setLocalDescription(offer));
});
quietly(() => new WebTransport("https://ADDRESS/transport"));
const code = `
  try { fetch("http://ADDRESS/from-worker").catch(() => {}); } catch (error) {}
  try { new WebSocket("ws://ADDRESS/worker-socket"); } catch (error) {}
  try { new WebTransport("https://ADDRESS/worker-transport"); } catch (error) {}
  try { importScripts("http://ADDRESS/imported.js"); } catch (error) {}`;
quietly(() => new Worker(URL.createObjectURL(new Blob([code], { type: "text/javascript" }))));
quietly(() => new SharedWorker("data:text/javascript," + encodeURIComponent(code)));
quietly(() => navigator.serviceWorker.register("/worker.js"));
quietly(() => window.open("http://ADDRESS/window"));
quietly(() => document.getElementById("form").submit());
quietly(() => document.getElementById("ping").click());
setTimeout(() => { document.title = "Tried"; location.href = "http://ADDRESS/elsewhere"; }, 300);
</script></body></html>"""


class Datagrams(asyncio.DatagramProtocol):
    """Counts what arrives."""

    def __init__(self, name: str, arrived: Counter[str]) -> None:
        self._name = name
        self._arrived = arrived

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._arrived[self._name] += 1


async def listen(stack: AsyncExitStack, arrived: Counter[str]) -> None:
    """Listen at every bait."""
    loop = asyncio.get_running_loop()
    for address in BAITS:
        for port in STREAM_PORTS:
            name = f"{address}:{port}/tcp"

            async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str = name) -> None:
                arrived[name] += 1
                writer.close()

            server = await asyncio.start_server(serve, sock=bound(address, port))
            stack.callback(server.close)
        for port in DATAGRAM_PORTS:
            made = Datagrams(f"{address}:{port}/udp", arrived)
            transport, _ = await loop.create_datagram_endpoint(lambda made=made: made, (address, port))
            stack.callback(transport.close)


async def show(way: str, chromium: str) -> tuple[list[dict[str, str]], list[str]]:
    """Show the page for every bait; what was asked of us, and what the page was called in the end."""
    from nephila.model.rendering import Rendered, RenderOrder, Wanted, Withheld  # noqa: PLC0415
    from nephila.model.settings import RenderSettings  # noqa: PLC0415
    from nephila.render import ChromiumPool, seclusion  # noqa: PLC0415

    if way != "secluded":
        seclusion._alone = tuple
    if way == "open":  # nothing is kept from it: shows that there is something to keep
        from nephila.render import browser, page  # noqa: PLC0415

        seclusion.ClosedPort.flags = ()
        browser.FLAGS = ("--disable-gpu",)
        page.NO_DETOURS = ""
    asked: list[dict[str, str]] = []

    async def supply(wanted: Wanted) -> Withheld:
        asked.append({"url": wanted.url, "kind": wanted.kind, "method": wanted.method})
        return Withheld("test")

    async def one(address: str) -> str:
        body = PAGE.replace("ADDRESS", address).encode()
        order = RenderOrder("http://site.test/", 200, (("content-type", "text/html"),), body)
        rendered = await pool.render(order, supply)
        html = rendered.html.decode() if isinstance(rendered, Rendered) else str(rendered)
        return "Tried" if "<title>Tried</title>" in html else html[:300]

    settings = RenderSettings(rest_s=1.5, time_s=30.0, pages_at_once=5)
    pool = ChromiumPool(settings, chromium, "Nephila/0.1 (+https://nephila.invalid/bot)", 1)
    try:
        titles = await asyncio.gather(*map(one, BAITS))
    finally:
        await pool.close()
    return asked, titles


async def knock(arrived: Counter[str]) -> None:
    """Reach every bait once: proves that the listeners would have told."""
    for address in BAITS:
        for port in STREAM_PORTS:
            with suppress(OSError):
                _, writer = await asyncio.open_connection(address, port)
                writer.close()
                await writer.wait_closed()
        for port in DATAGRAM_PORTS:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller:
                caller.sendto(b"x", (address, port))
    await asyncio.sleep(0.2)


async def main(folder: Path, chromium: str) -> None:
    """Show the page in that browser, all ways, and write down what left."""
    arrived: Counter[str] = Counter()
    evidence: dict[str, Any] = {}
    async with AsyncExitStack() as stack:
        await listen(stack, arrived)
        for way in ("secluded", "flags", "open"):
            asked, titles = await show(way, chromium)
            await asyncio.sleep(1.0)
            evidence[way] = {"asked": asked, "titles": titles, "arrived": dict(arrived)}
            arrived.clear()
        await knock(arrived)
        evidence["knocked"] = dict(arrived)
    (folder / "evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    enter(address for address in BAITS if address != "127.0.0.1")
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
