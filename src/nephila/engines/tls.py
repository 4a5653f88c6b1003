"""How a line to a server of the fleet is secured."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Sequence

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


def is_this_machine(host: str) -> bool:
    """Whether a server is reached without leaving the machine."""
    if host.startswith("/") or host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_secured(tls: str, hosts: Sequence[str]) -> bool:
    """Whether a setting of TLS (auto, verified, unverified, off) has lines to these hosts secured."""
    return tls != "off" and not (tls == "auto" and all(map(is_this_machine, hosts)))


def context_for(tls: str, authorities: str, host: str) -> ssl.SSLContext | None:
    """What such a setting asks for, on a line to a host; None for nothing."""
    return client_context(authorities, verify=tls != "unverified") if is_secured(tls, [host]) else None
