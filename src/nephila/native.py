"""The optional extension: hot loops in C, where it was built; `None` where it was not, or is switched off.

Whoever uses it asks for `native` once, at import, and has a twin in Python ready. NEPHILA_NATIVE=0 in the environment
switches it off, which is how the tests run both; the results are the same.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import nephila_native as native
else:
    native = None
    if os.environ.get("NEPHILA_NATIVE", "1") != "0":
        try:
            import nephila_native as native
        except ImportError:
            native = None

AVAILABLE: bool = native is not None
"""Whether calls go to C."""

__all__ = ["AVAILABLE", "native"]
