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
    """The two contexts, each made once, when first needed: loading the store takes tens of milliseconds."""

    def __init__(self, authorities: bytes = b"") -> None:
        """`authorities`: further PEM certificates to trust, beside the store."""
        self._authorities = authorities
        self._verified: ssl.SSLContext | None = None
        self._unverified: ssl.SSLContext | None = None

    def verified(self) -> ssl.SSLContext:
        """Checks the certificate and its name."""
        if self._verified is None:
            context = _context()
            context.load_verify_locations(certifi.where())
            if self._authorities:
                context.load_verify_locations(cadata=self._authorities.decode("ascii"))
            self._verified = context
        return self._verified

    def unverified(self) -> ssl.SSLContext:
        """Accepts any certificate and any version; for use after `verified` has refused, with the user's consent."""
        if self._unverified is None:
            context = _context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
            context.set_ciphers("DEFAULT:@SECLEVEL=0")  # the digests of TLS 1.0 and 1.1 are below OpenSSL's level 1
            self._unverified = context
        return self._unverified


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def may_be_forgiven(error: ssl.SSLError) -> bool:
    """Whether the server can be talked to all the same by a user who asks for it: `unverified` may succeed."""
    return isinstance(error, ssl.SSLCertVerificationError) or _reason(error) in _OUTDATED


def tell(error: ssl.SSLError) -> str:
    """What went wrong, in a few words for people."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _REASONS.get(error.verify_code) or f"certificate refused: {error.verify_message}"
    reason = _reason(error)
    if reason in _OUTDATED:
        return "protocol is outdated: the server speaks nothing newer than TLS 1.1"
    return f"TLS handshake failed: {reason.lower().replace('_', ' ') if reason else error}"


def _reason(error: ssl.SSLError) -> str:
    """Set by the ssl module alone, not on errors that loops raise themselves."""
    return getattr(error, "reason", None) or ""
