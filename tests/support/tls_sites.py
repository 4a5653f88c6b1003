"""Sites on loopback whose TLS is wrong in one way each, and a name server that leads to them."""

from __future__ import annotations

import datetime as dt
import socketserver
import ssl
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from dnslib import QTYPE, RR, A, DNSRecord
from dnslib.server import BaseResolver, DNSLogger, DNSServer

PAGE = b"<html><title>%s</title><p>%s is here</p></html>"
NOW = dt.datetime.now(dt.UTC)
DAY = dt.timedelta(days=1)


class Sites(NamedTuple):
    """Where the sites are, and what a crawler must be told to reach them."""

    ports: dict[str, int]
    authority: Path
    """A PEM file with the certificate of the one authority that is to be trusted."""
    flags: tuple[str, ...]

    def url(self, name: str, path: str = "/") -> str:
        """Of a page; the name is the first word of the host."""
        return f"https://{name}.test:{self.ports[name]}{path}"


class _Handler(socketserver.BaseRequestHandler):
    """One connection: TLS, a request, a page."""

    server: _Site

    def handle(self) -> None:
        # A refused certificate is told by an alert, and the client is gone before anything is asked.
        with suppress(OSError), self.server.context.wrap_socket(self.request, server_side=True) as wire:
            request = b""
            while b"\r\n\r\n" not in request and (data := wire.recv(65_536)):
                request += data
            if not request:
                return
            missing = request.startswith(b"GET /robots.txt ")
            body = b"" if missing else PAGE % (self.server.name, self.server.name)
            status = b"404 Not Found" if missing else b"200 OK"
            head = b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
            wire.sendall(head % (status, len(body)) + body)


class _Ancient(socketserver.BaseRequestHandler):
    """A server from before TLS 1.2: whatever it is offered, it answers with the hello of TLS 1.0."""

    def handle(self) -> None:
        with suppress(OSError):
            self.request.recv(65_536)
            hello = b"\x03\x01" + bytes(32) + b"\x00" + b"\x00\x2f" + b"\x00"  # no session, AES128-SHA, no compression
            message = b"\x02" + len(hello).to_bytes(3) + hello
            self.request.sendall(b"\x16\x03\x01" + len(message).to_bytes(2) + message)
            self.request.recv(65_536)


class _Site(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def __init__(self, name: str, context: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), _Ancient if context is None else _Handler)
        self.name = name.encode()
        self.context = context or ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)


class _Loopback(BaseResolver):  # type: ignore[misc]  # dnslib has no types
    """Every name under ``.test`` is this machine."""

    def resolve(self, request: DNSRecord, handler: object) -> DNSRecord:
        reply = request.reply()
        if QTYPE[request.q.qtype] == "A" and str(request.q.qname).endswith(".test."):
            reply.add_answer(RR(request.q.qname, QTYPE.A, rdata=A("127.0.0.1"), ttl=60))
        return reply


@contextmanager
def tls_sites(folder: Path) -> Iterator[Sites]:
    """Serve all of them while the block runs."""
    trusted, unknown = trustme.CA(), trustme.CA()
    authority = folder / "authority.pem"
    trusted.cert_pem.write_to_path(str(authority))
    contexts = {
        "good": _context(trusted.issue_cert("good.test")),
        "expired": _context(trusted.issue_cert("expired.test", not_before=NOW - 9 * DAY, not_after=NOW - DAY)),
        "future": _context(trusted.issue_cert("future.test", not_before=NOW + DAY, not_after=NOW + 9 * DAY)),
        "misnamed": _context(trusted.issue_cert("somebody-else.test")),
        "unknown": _context(unknown.issue_cert("unknown.test")),
        "self-signed": _self_signed("self-signed.test", folder),
        "tls10": _context(trusted.issue_cert("tls10.test"), "TLSv1"),
        "tls11": _context(trusted.issue_cert("tls11.test"), "TLSv1_1"),
        "ancient": None,
    }
    with ExitStack() as stack:
        ports = {name: _serve(stack, _Site(name, context)) for name, context in contexts.items()}
        names = DNSServer(_Loopback(), address="127.0.0.1", port=0, logger=DNSLogger(logf=lambda _: None))
        resolver = names.server.server_address[1]
        names.start_thread()
        stack.callback(names.server.server_close)
        stack.callback(names.stop)
        yield Sites(ports, authority, ("--resolver", f"127.0.0.1:{resolver}", "--allow-address", "127.0.0.0/8"))


def _serve(stack: ExitStack, site: _Site) -> int:
    thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    stack.callback(thread.join)
    stack.callback(site.server_close)
    stack.callback(site.shutdown)
    return int(site.server_address[1])


def _context(certificate: trustme.LeafCert, version: str = "") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    if version:
        context.set_ciphers("ALL:@SECLEVEL=0")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that they are outdated is the point
            context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    return context


def _self_signed(name: str, folder: Path) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), 1, NOW - DAY, NOW + DAY)
    certificate = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False).sign(
        key, hashes.SHA256()
    )
    pem, how = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    path = folder / "self-signed.pem"
    path.write_bytes(
        key.private_bytes(pem, how, serialization.NoEncryption()) + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context
