"""DNS messages, as much of RFC 1035 as addresses need: a question for A or AAAA out, its answer in.

Every answer is compared with its question (id, name, type), and only records that the question leads to, along the
chain of CNAMEs, are believed: a message cannot bring addresses for a name that was not asked for. Without EDNS: an
answer that does not fit into 512 bytes says so, and is asked for again over TCP.
"""

from __future__ import annotations

import socket
import struct
from enum import IntEnum
from typing import NamedTuple

from nephila.model.errors import NephilaError


class RecordType(IntEnum):
    """The types that matter here."""

    A = 1
    CNAME = 5
    SOA = 6
    AAAA = 28


class ReplyCode(IntEnum):
    """The codes that are told apart; all others are failures of the server."""

    OK = 0
    NO_SUCH_NAME = 3


_RECURSION_DESIRED = 0x0100
_IS_ANSWER = 0x8000
_IS_TRUNCATED = 0x0200
_INTERNET = 1
_HEADER = struct.Struct("!HHHHHH")
_QUESTION = struct.Struct("!HH")
_RECORD = struct.Struct("!HHIH")
_MINIMUM = struct.Struct("!I")
_MAX_NAME = 255
_MAX_LABELS = 128
_SHORTEST_SOA = 22
"""Two names and five numbers (RFC 1035 3.3.13)."""
_MAX_RECORDS = 256
"""Records of a section that are read: more than any name has addresses, and few enough whatever their names cost."""
_MAX_CHAIN = 16
"""CNAMEs followed within one answer; resolvers give up at about as many."""


class Reply(NamedTuple):
    """What a name server says to one question."""

    code: int
    truncated: bool
    addresses: tuple[str, ...]
    ttl_s: int
    """The shortest of the records that led to the addresses."""
    negative_ttl_s: int = 0
    """How long the zone says that there is nothing (RFC 2308 5); 0 where it does not say."""


class UnsendableNameError(NephilaError):
    """The name cannot be put into a question: an empty or overlong label."""


def ask(message_id: int, name: str, kind: RecordType) -> bytes:
    """The question for the addresses of a name."""
    labels = name.rstrip(".").encode("ascii", "strict" if name.isascii() else "replace").split(b".")
    if any(not 0 < len(label) < 64 for label in labels) or len(name) > _MAX_NAME - 2:
        raise UnsendableNameError(f"{name!r} cannot be looked up")
    wire = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    return _HEADER.pack(message_id, _RECURSION_DESIRED, 1, 0, 0, 0) + wire + _QUESTION.pack(kind, _INTERNET)


def read_reply(data: bytes, question: bytes) -> Reply | None:
    """The reply if it belongs to the question; None for anything else, rubbish included."""
    try:
        return _read(data, question)
    except (struct.error, IndexError, _BadNameError, OSError):
        return None


class _BadNameError(Exception):
    """A name that never ends."""


def _read(data: bytes, question: bytes) -> Reply | None:
    message_id, flags, questions, answers, authorities, _ = _HEADER.unpack_from(data)
    asked_id = _HEADER.unpack_from(question)[0]
    code, truncated = flags & 15, bool(flags & _IS_TRUNCATED)
    if message_id != asked_id or not flags & _IS_ANSWER or questions > 1:
        return None
    if not questions:  # some servers leave it out of refusals and cut answers, and those bring nothing to believe
        harmless = truncated or code not in {ReplyCode.OK, ReplyCode.NO_SUCH_NAME}
        return Reply(code, truncated, (), 0) if harmless else None
    asked, _ = _name(question, _HEADER.size)
    name, at = _name(data, _HEADER.size)
    kind, family = _QUESTION.unpack_from(data, at)
    if name != asked or (kind, family) != _QUESTION.unpack(question[-4:]):
        return None
    if truncated or code not in {ReplyCode.OK, ReplyCode.NO_SUCH_NAME}:
        return Reply(code, truncated, (), 0)
    aliases, found, at = _records(data, at + _QUESTION.size, answers, kind)
    if code == ReplyCode.NO_SUCH_NAME:
        return Reply(code, truncated, (), 0, _nothing_for(data, at, authorities, asked))
    reply = _follow(asked, aliases, found)
    return reply if reply.addresses else reply._replace(negative_ttl_s=_nothing_for(data, at, authorities, asked))


_Aliases = dict[bytes, tuple[bytes, int]]
_Found = dict[bytes, list[tuple[str, int]]]


def _records(data: bytes, at: int, count: int, kind: int) -> tuple[_Aliases, _Found, int]:
    """CNAMEs and addresses of the answer section, by owner name, each with its TTL; and where the section ends."""
    aliases: _Aliases = {}
    found: _Found = {}
    for _ in range(min(count, _MAX_RECORDS)):
        owner, at = _name(data, at)
        record, family, ttl, size = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        ttl = _sensible(ttl)
        if family == _INTERNET and record == RecordType.CNAME:
            aliases.setdefault(owner, (_name(data, at)[0], ttl))
        elif family == _INTERNET and record == kind:
            packed = data[at : at + size]
            if len(packed) != (4 if kind == RecordType.A else 16):
                raise _BadNameError
            address = socket.inet_ntop(socket.AF_INET if kind == RecordType.A else socket.AF_INET6, packed)
            found.setdefault(owner, []).append((address, ttl))
        at += size
    return aliases, found, at


def _sensible(ttl: int) -> int:
    return 0 if ttl > 0x7FFF_FFFF else ttl  # RFC 2181 8: the top bit set means nought


def _is_above(zone: bytes, name: bytes) -> bool:
    return not zone or name == zone or name.endswith(b"." + zone)


def _nothing_for(data: bytes, at: int, count: int, asked: bytes) -> int:
    """The seconds of the SOA record among the authorities (RFC 2308 5): its own, or its last field where that is less.

    A message may end or be rubbish here without harm: that there is nothing was said before.
    """
    try:
        for _ in range(min(count, _MAX_RECORDS)):
            owner, at = _name(data, at)
            record, family, ttl, size = _RECORD.unpack_from(data, at)
            at += _RECORD.size
            is_soa = family == _INTERNET and record == RecordType.SOA and size >= _SHORTEST_SOA
            if is_soa and _is_above(owner, asked):
                (least,) = _MINIMUM.unpack_from(data, at + size - _MINIMUM.size)
                return min(_sensible(ttl), _sensible(least))
            at += size
    except (struct.error, IndexError, _BadNameError):
        return 0
    return 0


def _follow(name: bytes, aliases: _Aliases, found: _Found) -> Reply:
    shortest = 0x7FFF_FFFF
    for _ in range(_MAX_CHAIN):
        if name in found or name not in aliases:
            break
        name, ttl = aliases[name]
        shortest = min(shortest, ttl)
    records = found.get(name, [])
    for _, ttl in records:
        shortest = min(shortest, ttl)
    addresses = tuple(dict.fromkeys(address for address, _ in records))
    return Reply(ReplyCode.OK, truncated=False, addresses=addresses, ttl_s=shortest if addresses else 0)


def _name(data: bytes, at: int) -> tuple[bytes, int]:
    """A name in lower case, and where the message goes on after it. Pointers lead backwards only, or it is rubbish."""
    labels: list[bytes] = []
    after = -1
    limit = at
    while len(labels) < _MAX_LABELS:
        size = data[at]
        if size >= 0xC0:
            pointer = (size & 0x3F) << 8 | data[at + 1]
            after = at + 2 if after < 0 else after
            if pointer >= limit:
                raise _BadNameError
            at = limit = pointer
        elif size == 0:
            return b".".join(labels), after if after >= 0 else at + 1
        elif size > 63 or at + 1 + size > len(data):
            raise _BadNameError
        else:
            labels.append(data[at + 1 : at + 1 + size].lower())
            at += 1 + size
    raise _BadNameError
