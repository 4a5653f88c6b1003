"""How nouns are declared that are made several times a page.

A frozen dataclass sets its fields through a call each, which makes it five times as dear to make as a plain one: twenty
microseconds a page, of eight hundred. So these are plain, slotted dataclasses that only the type checker treats as
frozen; whoever changes one is told by it, and by nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def noun(cls: type[T]) -> type[T]:
    """A dataclass with slots, equality and a hash, frozen to the type checker."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
