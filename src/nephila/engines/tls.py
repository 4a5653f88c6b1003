"""How a line to a server of the fleet is secured."""

from __future__ import annotations

import ssl

import certifi

from nephila.model.errors import UsageError


def client_context(authorities: str = "", *, verify: bool = True) -> ssl.SSLContext:
    """TLS 1.2 or newer; the server's certificate and name are verified by the usual authorities and by these."""
    context = ssl.create_default_context(cafile=certifi.where())
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if authorities:
        try:
            context.load_verify_locations(authorities)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(
                f"the authorities in {authorities} cannot be read: {error}", hint="it is to be a PEM file"
            ) from error
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
