"""What the machine itself says about names: its name servers, and the names in its hosts file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nephila.model.errors import UsageError

from .guard import is_address

DNS_PORT = 53

_MAX_SERVERS = 8
_LOCAL = ("127.0.0.1", "::1")

NameServer = tuple[str, int]
"""Address and port."""


@dataclass(frozen=True, slots=True)
class SystemNames:
    """Read once, at start."""

    servers: tuple[NameServer, ...] = ()
    hosts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def find(self, name: str) -> tuple[str, ...]:
        """The addresses that the machine itself has for a name; ``localhost`` always is here (RFC 6761 6.3)."""
        known = self.hosts.get(name)
        if known:
            return known
        return _LOCAL if name == "localhost" or name.endswith(".localhost") else ()


def read_system_names(resolv_conf: Path = Path("/etc/resolv.conf"), hosts: Path = Path("/etc/hosts")) -> SystemNames:
    """What the two files say; a file that is not there says nothing. IPv4 comes first in a name's addresses."""
    servers = []
    for words in _lines(resolv_conf):
        address = words[1].partition("%")[0] if words[0] == "nameserver" and len(words) > 1 else ""
        if is_address(address):
            servers.append((address, DNS_PORT))
    names: dict[str, tuple[str, ...]] = {}
    for address, *aliases in _lines(hosts):
        if is_address(address):
            for alias in aliases:
                known = names.get(alias.lower(), ())
                names[alias.lower()] = tuple(sorted({*known, address}, key=lambda text: (":" in text, text)))
    return SystemNames(tuple(servers[:_MAX_SERVERS]), names)


def _lines(path: Path) -> list[list[str]]:
    try:
        text = path.read_text("utf-8", "replace")
    except OSError:
        return []
    lines = (line.partition("#")[0].partition(";")[0].split() for line in text.splitlines())
    return [words for words in lines if words]


def read_name_server(text: str) -> NameServer:
    """``HOST:PORT``, ``[HOST]:PORT`` or ``HOST`` with an address for host. Raises `UsageError`."""
    host, port = text, str(DNS_PORT)
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":") or port
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    if not is_address(host) or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65_536:
        raise UsageError(f"{text!r} is no name server", "write it as 9.9.9.9, 127.0.0.1:5353 or [2620:fe::fe]:53")
    return host, int(port)
