"""TLS as it is spoken to the public web: verified by the certifi store, 1.2 or newer, reasons told in words.

Where the settings allow bad certificates a server is still verified first; only when that fails is it asked again
without, and the reason of the refusal stays with every answer that came that way (H1).
"""

from __future__ import annotations

import ssl

import certifi

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
        """Accepts any certificate; for use after `verified` has refused, and with the user's consent."""
        if self._unverified is None:
            context = _context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            self._unverified = context
        return self._unverified


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def tell(error: ssl.SSLError) -> str:
    """What went wrong, in a few words for people."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _REASONS.get(error.verify_code) or f"certificate refused: {error.verify_message}"
    reason = getattr(error, "reason", None)  # set by the ssl module alone, not on errors that loops raise themselves
    return f"TLS handshake failed: {reason.lower().replace('_', ' ') if reason else error}"
