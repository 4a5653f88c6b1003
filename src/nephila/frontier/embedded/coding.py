"""The records of the store as bytes, and back."""

from __future__ import annotations

import msgspec

from nephila.frontier.timeline import Anchor
from nephila.frontier.traps import SkeletonTally
from nephila.model.policy import Block, DomainPolicy

from .records import (
    DomainState,
    HostState,
    LeaseRecord,
    OriginNote,
    RefusalNote,
    RobotsEntry,
    Spelling,
    Totals,
    UrlRecord,
)

pack = msgspec.msgpack.Encoder().encode
read_url = msgspec.msgpack.Decoder(UrlRecord).decode
read_spelling = msgspec.msgpack.Decoder(Spelling).decode
read_host = msgspec.msgpack.Decoder(HostState).decode
read_domain = msgspec.msgpack.Decoder(DomainState).decode
read_lease = msgspec.msgpack.Decoder(LeaseRecord).decode
read_robots = msgspec.msgpack.Decoder(RobotsEntry).decode
read_origin = msgspec.msgpack.Decoder(OriginNote).decode
read_refusal = msgspec.msgpack.Decoder(RefusalNote).decode
read_totals = msgspec.msgpack.Decoder(Totals).decode
read_ages = msgspec.msgpack.Decoder(dict[int, list[int]]).decode
read_tally = msgspec.msgpack.Decoder(SkeletonTally).decode
read_anchor = msgspec.msgpack.Decoder(Anchor).decode
read_policy = msgspec.msgpack.Decoder(DomainPolicy).decode
read_block = msgspec.msgpack.Decoder(Block).decode
