"""What is changed by a command of this machine, in the same log and form as what is changed over HTTP (C2)."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nephila.model.policy import Block, DomainPolicy
from nephila.node.clock import SystemClock
from nephila.node.directory import CrawlDirectory
from nephila.node.noting import Changing, Noting

from .changes import Changes
from .shown import block_given, policy_given


def noting_in(out: Path) -> Noting:
    """What notes the changes to the crawl in a directory."""
    changes, who = Changes(CrawlDirectory(out).changes, SystemClock()), f"command line ({_user()})"

    @contextmanager
    def noting(what: str, target: str, before: object = None, wanted: object = None) -> Iterator[Changing]:
        begun = changes.begin(who, what, target, _shown(target, before), _shown(target, wanted))
        change = Changing(wanted)
        try:
            yield change
        except BaseException as error:
            changes.end(begun, str(error), failed=True)
            raise
        changes.end(begun, _shown(target, change.after))

    return noting


def _shown(target: str, what: object) -> object:
    match what:
        case DomainPolicy():
            return policy_given(target, what)
        case Block():
            return block_given(what)
        case _:
            return what


def _user() -> str:
    """Who runs this, as the system knows; a number where that has no name."""
    number = os.getuid()
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)
