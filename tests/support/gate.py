"""A door in front of a server: open it passes everything on, shut it refuses connections and breaks those there are."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path


class Gate:
    """Listens on a loopback port of its own for a server on another one."""

    def __init__(self, behind: int) -> None:
        self._behind = behind
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self._flow = threading.Event()
        self._flow.set()
        self.delay_s = 0.0
        """What passes takes so long, packet by packet: a slow server."""
        self.only: int | None = None
        """The process that alone is held and slowed, by its id; None for everybody."""
        self.passed = 0
        """Connections so far."""
        self.port = 0
        self.open()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def open(self) -> None:
        """Let everybody in."""
        listener = socket.create_server(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def shut(self) -> None:
        """Nobody gets in, and whoever is in is thrown out."""
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        with self._lock:
            thrown, self._open = self._open, set()
        for one in thrown:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def hold(self) -> None:
        """Nothing passes any more, and nobody is told: as when a network has swallowed a server."""
        self._flow.clear()

    def let_go(self) -> None:
        """What was held passes."""
        self._flow.set()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, (_, port) = listener.accept()
                server = socket.create_connection(("127.0.0.1", self._behind))
            except OSError:
                return
            self.passed += 1
            with self._lock:
                self._open |= {client, server}
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._carry, args=(source, target, port), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, port: int) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if self.only is None or has_connected(self.only, port):
                    self._flow.wait()
                    if self.delay_s:
                        time.sleep(self.delay_s)
                target.sendall(data)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            with self._lock:
                self._open.discard(one)
            one.close()


def has_connected(pid: int, port: int) -> bool:
    """Whether a process has a connection from this loopback port."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(f":{port:04X}")}
    for opened in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            if str(opened.readlink()) in sockets:
                return True
    return False


@contextlib.contextmanager
def gate(behind: int) -> Iterator[Gate]:
    """A gate that is open at first, and gone at the end."""
    made = Gate(behind)
    try:
        yield made
    finally:
        made.let_go()
        made.shut()
