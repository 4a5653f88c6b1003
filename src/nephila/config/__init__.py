"""TOML, environment and flags into `Settings`, with good messages.

`load` puts the layers together; `dump_toml` writes settings back; `reference` describes them all. What settings
exist is declared in `model.settings` and read from there.
"""

from .declared import Declared, Unit, Value, declarations, groups, value_of
from .layers import Given, given_by_flag
from .load import Configured, load
from .stored import CONFIG_NAME, PASSWORD, read_stored, write_stored
from .toml import dump_toml

__all__ = [
    "CONFIG_NAME",
    "PASSWORD",
    "Configured",
    "Declared",
    "Given",
    "Unit",
    "Value",
    "declarations",
    "dump_toml",
    "given_by_flag",
    "groups",
    "load",
    "read_stored",
    "value_of",
    "write_stored",
]
