"""Where a plugin may stand, and how an object is known to be one."""

from __future__ import annotations

import inspect
from enum import StrEnum

from nephila.model.errors import UsageError


class Point(StrEnum):
    """The places, each by the method that is called there."""

    FILTER = "filter_links"
    SCORE = "score_links"
    EXTRACT = "extract"
    SEEDS = "more_seeds"
    RECORDS = "write_records"
    EVENTS = "hear_events"
    BEFORE = "before_fetch"
    AFTER = "after_fetch"


CLOSE = "close"
"""Called at the end, where there is such a method."""


def name_of(plugin: object) -> str:
    """What a plugin calls itself, else the name of its class."""
    name = getattr(plugin, "name", "")
    return name if isinstance(name, str) and name else type(plugin).__name__


def points_of(plugin: object) -> frozenset[Point]:
    """Where an object stands. Raises `UsageError` for one that stands nowhere."""
    if isinstance(plugin, type):
        raise UsageError(f"the plugin {plugin.__name__} is a class", hint="give an object of it")
    _look_at(plugin)
    points = frozenset(point for point in Point if callable(getattr(plugin, point, None)))
    if not points:
        methods = ", ".join(Point)
        raise UsageError(f"{name_of(plugin)} is no plugin", hint=f"a plugin has at least one of the methods {methods}")
    if Point.EXTRACT in points and not media_types_of(plugin):
        raise UsageError(
            f"the plugin {name_of(plugin)} does not say what it reads", hint="give it media_types = ('text/html',)"
        )
    return points


def _look_at(plugin: object) -> None:
    """Attributes may be properties, and properties may raise: told once, before the crawl."""
    for name in (*Point, CLOSE, "name", "quick", "media_types", "wants_bodies"):
        try:
            getattr(plugin, name, None)
        except (Exception, SystemExit) as error:
            raised = f"{type(error).__name__}: {error}"
            raise UsageError(
                f"the plugin {type(plugin).__name__} raises when its {name} is looked at: {raised}",
                hint="give it a plain attribute or method of that name, or none",
            ) from error


def media_types_of(plugin: object) -> tuple[str, ...]:
    """The types that a content extractor is given."""
    types = getattr(plugin, "media_types", ())
    return tuple(types) if isinstance(types, list | tuple) and all(isinstance(one, str) for one in types) else ()


def is_awaited(plugin: object, point: Point) -> bool:
    """Whether a method is a coroutine function."""
    return inspect.iscoroutinefunction(getattr(plugin, point, None))


def is_asynchronous(plugin: object) -> bool:
    """Whether any of its methods is one: then it lives on the loop."""
    return any(is_awaited(plugin, point) for point in Point)


def is_quick(plugin: object) -> bool:
    """Whether it says that it may be called on the loop."""
    return getattr(plugin, "quick", False) is True
