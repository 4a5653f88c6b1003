"""Crawls of sites that scripts make, with a real Chromium: a program for `namespace.run_alone`.

    python rendered_crawls.py FOLDER

The pages want data of an address that is not public, so all of it happens inside a network namespace with nothing but
loopback, which has that address with a listener that counts. FOLDER/evidence.json then says, of each crawl, what its
summary was, what the servers' auditor saw, and what arrived at the bait.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from browser import chromium
from namespace import bound, enter
from served import crawl_json, served

from nephila.testing.serve import bundle_spec, script_spec

BAIT = "10.1.2.3"
PAGES = 6
DELAY_MS = 200
SPECS = {"scripts": script_spec, "bundles": bundle_spec}


def listen(arrived: list[str]) -> None:
    """Count who connects to the bait."""
    listener = bound(BAIT, 80)
    listener.listen()

    def serve() -> None:
        while True:
            connection, caller = listener.accept()
            arrived.append(str(caller[0]))
            connection.close()

    threading.Thread(target=serve, daemon=True).start()


def crawl(folder: Path, kind: str) -> dict[str, Any]:
    """One crawl."""
    arguments = ("--kind", kind, "--pages", str(PAGES), "--base-delay-ms", str(DELAY_MS))
    with served(folder / f"web-{kind}", SPECS[kind](1, PAGES), *arguments) as web:
        flags = ("--delay", str(DELAY_MS / 1000), "--max-wait", "30", "--scope", "all")
        summary = crawl_json(web, folder / kind, *flags, "--set", f"render.executable={chromium()}")
        return {"summary": summary, "audit": web.audit().to_json()}


def main(folder: Path) -> None:
    """Both crawls, and what came to the bait."""
    arrived: list[str] = []
    listen(arrived)
    evidence: dict[str, Any] = {kind: crawl(folder, kind) for kind in SPECS}
    evidence["arrived"] = list(arrived)
    with socket.create_connection((BAIT, 80)):
        pass
    while not arrived:
        pass
    evidence["knocked"] = len(arrived) - len(evidence["arrived"])
    (folder / "evidence.json").write_text(json.dumps(evidence))


if __name__ == "__main__":
    enter([BAIT])
    main(Path(sys.argv[1]))
