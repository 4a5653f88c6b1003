"""What an address is: parsing, the normal form, the fingerprint, the registrable domain."""

from .address import Address, Fingerprint, host_of, is_possible, origin_of
from .domain import registrable_domain
from .fingerprint import SECRET_BITS, fingerprint
from .identity import Identifier, RefusalReason, UrlLimits, UrlRefused
from .mask import TAKEN_DOWN, is_taken_down, mask_secrets
from .normal import NormalForm, NormalRules
from .parse import Base, resolve, resolve_location
from .skeleton import is_open, skeleton

__all__ = [
    "SECRET_BITS",
    "TAKEN_DOWN",
    "Address",
    "Base",
    "Fingerprint",
    "Identifier",
    "NormalForm",
    "NormalRules",
    "RefusalReason",
    "UrlLimits",
    "UrlRefused",
    "fingerprint",
    "host_of",
    "is_open",
    "is_possible",
    "is_taken_down",
    "mask_secrets",
    "origin_of",
    "registrable_domain",
    "resolve",
    "resolve_location",
    "skeleton",
]
