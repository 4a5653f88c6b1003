"""TLS as it is spoken to the public web: verified by the certifi store, 1.2 or newer, reasons told in words.

Authorities of the user's own are trusted beside the store. Where the settings allow bad certificates a server is still
verified first; only when that fails, or when it speaks nothing newer than TLS 1.1, is it asked again without, and the
reason of the refusal stays with every answer that came that way (H1).
"""

from __future__ import annotations

import re
import ssl
from pathlib import Path

import certifi

from nephila.model.errors import UsageError

HTTP1 = "http/1.1"
HTTP2 = "h2"
"""As the handshake names them (ALPN)."""

_REASONS = {
    9: "certificate is not valid yet",
    10: "certificate has expired",
    18: "certificate is self-signed",
    19: "certificate chain ends in an unknown self-signed authority",
    20: "certificate comes from an unknown authority",
    21: "certificate chain is incomplete",
    23: "certificate was revoked",
    62: "certificate is for another name",
    64: "certificate is for another address",
}
"""OpenSSL's X509_V_ERR codes (x509_vfy.h)."""

_OUTDATED = frozenset({"UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION"})
"""OpenSSL's reasons when the two sides share no version: the server's choice refused by us, or ours by the server."""

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")


def read_authorities(path: str) -> bytes:
    """The certificates of a PEM file, whatever stands between them; none for an empty path. Raises `UsageError`."""
    if not path:
        return b""
    hint = "give a PEM file: one or more blocks that begin with -----BEGIN CERTIFICATE-----"
    try:
        found = b"\n".join(_CERTIFICATE.findall(Path(path).read_bytes()))
    except OSError as error:
        raise UsageError(f"the authorities in {path!r} cannot be read: {error.strerror}", hint) from error
    if not found:
        raise UsageError(f"there is no certificate in {path!r}", hint)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=found.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise UsageError(f"{path!r} holds something that is no certificate: {error}", hint) from error
    return found


class TlsContexts:
    """The contexts, each made once, when first needed: loading the store takes tens of milliseconds."""

    def __init__(self, authorities: bytes = b"") -> None:
        """`authorities`: further PEM certificates to trust, beside the store."""
        self._authorities = authorities
        self._verified: dict[bool, ssl.SSLContext] = {}
        self._unverified: dict[bool, ssl.SSLContext] = {}

    def verified(self, *, http2: bool = False) -> ssl.SSLContext:
        """Checks the certificate and its name. `http2`: the server may choose that instead of HTTP/1.1."""
        if http2 not in self._verified:
            context = _context(http2=http2)
            context.load_verify_locations(certifi.where())
            if self._authorities:
                context.load_verify_locations(cadata=self._authorities.decode("ascii"))
            self._verified[http2] = context
        return self._verified[http2]

    def unverified(self, *, http2: bool = False) -> ssl.SSLContext:
        """Accepts any certificate and any version; for use after `verified` has refused, with the user's consent."""
        if http2 not in self._unverified:
            context = _context(http2=http2)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
            context.set_ciphers("DEFAULT:@SECLEVEL=0")  # the digests of TLS 1.0 and 1.1 are below OpenSSL's level 1
            self._unverified[http2] = context
        return self._unverified[http2]


def _context(*, http2: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols([HTTP2, HTTP1] if http2 else [HTTP1])
    return context


def may_be_forgiven(error: ssl.SSLError) -> bool:
    """Whether the server can be talked to all the same by a user who asks for it: `unverified` may succeed."""
    return isinstance(error, ssl.SSLCertVerificationError) or _reason(error) in _OUTDATED


def wants_another_protocol(error: ssl.SSLError) -> bool:
    """Whether the server speaks nothing that it was offered (RFC 7301, 3.2). The ssl module has no name for it."""
    return "no application protocol" in str(error)


def tell(error: ssl.SSLError) -> str:
    """What went wrong, in a few words for people."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _REASONS.get(error.verify_code) or f"certificate refused: {error.verify_message}"
    reason = _reason(error)
    if reason in _OUTDATED:
        return "protocol is outdated: the server speaks nothing newer than TLS 1.1"
    if wants_another_protocol(error):
        return "the server speaks no HTTP that it was offered"
    return f"TLS handshake failed: {reason.lower().replace('_', ' ') if reason else error}"


def _reason(error: ssl.SSLError) -> str:
    """Set by the ssl module alone, not on errors that loops raise themselves."""
    return getattr(error, "reason", None) or ""
