"""Plugins (E1): found, called with a deadline, isolated, counted.

`loading` finds them by name, `points` tells where they may stand, `calling` calls them (here, awaited, or in a process
of their own: `offspring` and its other end, `child`), `answers` checks what they return, `keeping` counts their
failures and switches them off, `couriers` carry to sinks what they need not be waited for, and `extensions` is all of
them as the sentence sees them.

What must stay true: nothing that a plugin does (raise, hang, block, die, answer nonsense) is more than an event and a
count; each call ends within its deadline, each series of bad ones with the plugin switched off; and nothing is decoded
from a plugin's process but plain values, because what runs there may have read a hostile document.
"""

from .extensions import PluginExtensions
from .keeping import Kept, Patience
from .loading import load_plugins
from .offspring import Child

__all__ = ["Child", "Kept", "Patience", "PluginExtensions", "load_plugins"]
