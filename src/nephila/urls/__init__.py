"""What an address is: parsing, the normal form, the fingerprint, the registrable domain."""

from .address import Address, Fingerprint, origin_of

__all__ = ["Address", "Fingerprint", "origin_of"]
