"""The wire: one question asked of one server, within limits, at an address that we may connect to.

`HttpFetcher` is the way in. `client` tells the story of an exchange; `connect` finds and judges the address and opens
the connection (through `proxy` and `tls` where asked); `connection` and `pool` hold it; `answer`, `head` and `framing`
read what comes, without I/O; `coding` undoes its codings. `dns` answers names, `guard` judges addresses, `dialer` owns
sockets, with TLS over them by `secured` and `sessions`.
"""

from .client import HttpFetcher
from .descriptors import Granted, archive_files, raise_descriptor_limit
from .dialer import SocketDialer
from .dns import DnsResolver
from .guard import AddressGuard
from .replay import decode_payload
from .tls import TlsContexts, read_authorities

__all__ = [
    "AddressGuard",
    "DnsResolver",
    "Granted",
    "HttpFetcher",
    "SocketDialer",
    "TlsContexts",
    "archive_files",
    "decode_payload",
    "raise_descriptor_limit",
    "read_authorities",
]
