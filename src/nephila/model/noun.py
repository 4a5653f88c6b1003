"""How nouns are declared that are made several times a page.

A frozen dataclass sets its fields through a call each, which makes it five times as dear to make as a plain one: twenty
microseconds a page, of eight hundred. So these are plain, slotted dataclasses that only the type checker treats as
frozen; whoever changes one is told by it, and by nothing else.

With the extension they are made in C, without a frame of Python (`native/nouns.c`): a fifth of the time, for the same
arguments and the same complaints. `quick` does that for named tuples.
"""

from __future__ import annotations

import sys
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, NamedTuple, TypeVar, dataclass_transform

from nephila.native import AVAILABLE, native

T = TypeVar("T")
N = TypeVar("N", bound=NamedTuple)

_REQUIRED, _DEFAULT, _FACTORY = range(3)
"""Where a field that is not given comes from."""


@dataclass_transform(frozen_default=True)
def noun(cls: type[T]) -> type[T]:
    """A dataclass with slots, equality and a hash, frozen to the type checker."""
    made = dataclass(slots=True, unsafe_hash=True)(cls)
    if AVAILABLE and not hasattr(made, "__post_init__"):
        native.quicken(made, tuple(_plan_of(field) for field in fields(made)))  # type: ignore[arg-type]  # it is one
    return made


def quick(cls: type[N]) -> type[N]:
    """A named tuple that is made several times a page."""
    if AVAILABLE:
        defaults = cls._field_defaults
        plan = ((name, _DEFAULT if name in defaults else _REQUIRED, defaults.get(name), True) for name in cls._fields)
        native.quicken(cls, tuple((sys.intern(name), *rest) for name, *rest in plan))  # type: ignore[misc]
    return cls


def _plan_of(field: Field[Any]) -> tuple[str, int, object, bool]:
    """Name, where it comes from if it is not given, that, and whether it can be given."""
    if field.default is not MISSING:
        return sys.intern(field.name), _DEFAULT, field.default, field.init
    if field.default_factory is not MISSING:
        return sys.intern(field.name), _FACTORY, field.default_factory, field.init
    return sys.intern(field.name), _REQUIRED, None, field.init
