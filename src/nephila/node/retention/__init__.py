"""Retention: captures that need not be kept any longer are taken out of the archive, or moved elsewhere (W5).

`ordering` is what the command asks for and is told; `carrying_out` does it, on what takedowns stand on.
docs/retention.md tells what goes, what stays and what it frees.
"""

from .carrying_out import Retained, Retention, RetentionParts

__all__ = ["Retained", "Retention", "RetentionParts"]
