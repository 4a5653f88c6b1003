"""Rows on their way into PostgreSQL: in bounded batches, copied to a table of the connection's, merged set by set.

A batch is one transaction, so that a crash leaves all of it or nothing. Batches are cut in the order of segments and
offsets: the mark of a segment never passes a row that is not there. What was recorded before is found by the mark of
its segment, whose row is held meanwhile, and is left out: so the same rows may be written again after a crash, by
whomever, and count once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from importlib import resources
from itertools import chain
from operator import attrgetter
from typing import Any, TypeVar

from nephila.engines.postgres import Session
from nephila.interfaces.catalogue import CaptureRow, ErrorRow
from nephila.store.statements import CAPTURE_COLUMNS, CAPTURE_FIELDS, KEPT_ELSEWHERE

from . import statements as sql
from .migrating import lock_of

MOST_ROBOTS = 16_000_000
"""Characters of robots.txt in one batch: each may be half a megabyte."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

STAGED_COLUMNS = (*CAPTURE_COLUMNS, *KEPT_ELSEWHERE)
ERROR_COLUMNS = ("url_hash", "at", "kind", "url", "host", "detail", "retries", "dead")
_SEGMENT_INDEX = CAPTURE_FIELDS.index("segment")
_capture_values = attrgetter(*CAPTURE_FIELDS, *KEPT_ELSEWHERE)
_error_values = attrgetter("fingerprint", "at", "kind", "url", "host", "detail", "retries", "dead")

_capture_texts = attrgetter(*(one.name for one in fields(CaptureRow) if one.type in {"str", "SegmentId"}))
_error_texts = attrgetter(*(one.name for one in fields(ErrorRow) if one.type == "str"))

_script = resources.files(__package__).joinpath("merge.sql").read_text(encoding="utf-8")
MERGE = _script.replace("{columns}", sql.QUOTED_COLUMNS)
PREPARE = resources.files(__package__).joinpath("staging.sql").read_text(encoding="utf-8")

Either = TypeVar("Either", CaptureRow, ErrorRow)
Batch = tuple[Sequence[CaptureRow], Sequence[ErrorRow]]


def batches(captures: Sequence[CaptureRow], errors: Sequence[ErrorRow], most: int) -> Iterator[Batch]:
    """Cut into transactions of bounded size, in the order that keeps marks true. No place comes twice."""
    unique = {(row.segment, row.offset): row for row in reversed(captures)}
    ordered = sorted(unique.values(), key=lambda row: (row.segment, row.offset))
    batch: list[CaptureRow] = []
    robots = 0
    for row in ordered:
        if batch and (len(batch) >= most or robots + len(row.robots_txt) > MOST_ROBOTS):
            yield batch, ()
            batch, robots = [], 0
        batch.append(row)
        robots += len(row.robots_txt)
    first = errors[: max(0, most - len(batch))]
    if batch or first:
        yield batch, first
    for start in range(len(first), len(errors), most):
        yield (), errors[start : start + most]


async def write(session: Session, batch: Batch) -> None:
    """Merge a batch. To be run in a transaction, after its partitions were made."""
    captures, errors = batch
    if await session.value("SELECT to_regclass('pg_temp.staged') IS NULL"):
        await session.run(PREPARE)
    names = sorted({row.segment for row in captures})
    if names:
        await session.rows(sql.MAKE_SEGMENTS, names)
        held = {name: (number, upto) for name, number, upto in await session.rows(sql.HOLD_SEGMENTS, names)}
        numbers = {name: number for name, (number, _) in held.items()}
        await session.copy("staged", STAGED_COLUMNS, _captures(captures, numbers))
        if any(row.offset <= held[row.segment][1] for row in captures):
            await session.run(sql.FORGET_RECORDED)
    if errors:
        await session.copy("staged_errors", ERROR_COLUMNS, map(_error_values, errors))
    await session.run(MERGE)


def _captures(rows: Iterable[CaptureRow], numbers: dict[str, int]) -> Iterator[list[object]]:
    for row in rows:
        values = list(_capture_values(row))
        values[_SEGMENT_INDEX] = numbers[row.segment]
        yield values


def cleaned(batch: Batch) -> Batch:
    """The same without what PostgreSQL does not keep in texts: zero bytes, and halves of surrogate pairs."""
    captures, errors = batch
    texts = chain(map(_capture_texts, captures), map(_error_texts, errors))
    text = "".join(chain.from_iterable(texts))
    if "\0" not in text and _is_encodable(text):
        return batch
    return [_clean(row) for row in captures], [_clean(row) for row in errors]


def _clean(row: Either) -> Either:
    texts = {one.name: getattr(row, one.name) for one in fields(row)}
    changes: dict[str, Any] = {
        name: text.replace("\0", REPLACEMENT).encode("utf-8", "replace").decode()
        for name, text in texts.items()
        if isinstance(text, str)
    }
    return replace(row, **changes)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def month_of(at: int) -> tuple[str, int, int]:
    """The month of an instant: its name, where it begins, and where the next one does."""
    moment = datetime.fromtimestamp(at / 1000, UTC)
    first = datetime(moment.year, moment.month, 1, tzinfo=UTC)
    following = datetime(moment.year + moment.month // 12, moment.month % 12 + 1, 1, tzinfo=UTC)
    return f"{first:%Y_%m}", int(first.timestamp() * 1000), int(following.timestamp() * 1000)


def partitions_of(batch: Batch) -> dict[str, tuple[str, int, int]]:
    """The partitions that a batch needs: name, and the table and the instants that it is for."""
    captures, errors = batch
    needed: dict[str, tuple[str, int, int]] = {}
    for table, instants in (("captures", {row.at for row in captures}), ("errors", {row.at for row in errors})):
        begins, ends = 0, 0
        for at in sorted(instants):
            if not begins <= at < ends:
                month, begins, ends = month_of(at)
                needed[f"{table}_{month}"] = (table, begins, ends)
    return needed


async def make_partitions(session: Session, schema: str, needed: dict[str, tuple[str, int, int]]) -> None:
    """Make those that are not there. To be run in a transaction of its own.

    They are made apart and attached: that way the table can be read and written meanwhile.
    """
    await session.run(lock_of(schema))
    for name, (table, begins, ends) in sorted(needed.items()):
        if await session.value("SELECT to_regclass($1) IS NULL", f'"{name}"'):
            await session.run(
                f'CREATE TABLE "{name}" (LIKE {table} INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES);'
                f'ALTER TABLE {table} ATTACH PARTITION "{name}" FOR VALUES FROM ({begins}) TO ({ends})'
            )
