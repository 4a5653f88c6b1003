"""What `nephila check` says of the engines of a fleet: one finding a line, and what to change where one is bad.

The rules are here and pure; who asks the servers is `checking`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from nephila.engines.valkey_facts import NodeFacts

LEAST_VERSION = (7, 0)
"""Functions came with Redis 7."""
ALL_SLOTS = 16_384
SKEW_MS = 2_000
"""Times are the engine's; but after a fail-over another node's clock goes on, and delays must not shrink by more."""


class Verdict(StrEnum):
    """How it is."""

    OK = "ok"
    WARNING = "warning"
    """It works, and could be better."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line."""

    engine: str
    """frontier, catalogue, archive, stream or worker."""
    subject: str
    verdict: Verdict
    text: str
    advice: str = ""
    """What to change."""


def good(engine: str, subject: str, text: str) -> Finding:
    """Something is as it should be."""
    return Finding(engine, subject, Verdict.OK, text)


def bad(engine: str, subject: str, text: str, advice: str) -> Finding:
    """Something is not, and a worker could not do its work."""
    return Finding(engine, subject, Verdict.FAILED, text, advice)


def doubtful(engine: str, subject: str, text: str, advice: str) -> Finding:
    """Something could be better, or could not be found out."""
    return Finding(engine, subject, Verdict.WARNING, text, advice)


def judge_nodes(nodes: Sequence[NodeFacts], wait_replicas: int) -> list[Finding]:
    """The servers of the frontier."""
    known = [node for node in nodes if not node.trouble]
    is_whole = any(node.takes_writes and node.slots == ALL_SLOTS for node in known if node.cluster)
    away = [node for node in nodes if node.away and node.spare and is_whole]
    findings = [one for node in nodes if node not in away for one in _node(node, wait_replicas, thin=bool(away))]
    findings += [
        doubtful("frontier", f"server {node.place}", f"is away: {node.trouble}", "its cluster goes on without it")
        for node in away
    ]
    if any(node.cluster for node in known):
        findings += _cluster(known)
    elif len(known) > 1:
        findings.append(
            bad("frontier", "servers", "several servers are named that are no cluster", "name one, or make them one")
        )
    return findings


def _node(node: NodeFacts, wait_replicas: int, *, thin: bool) -> Iterator[Finding]:
    """`thin`: a replica may be missing because it is away."""
    where = f"server {node.place}"
    if node.trouble:
        yield bad("frontier", where, f"does not answer as it should: {node.trouble}", node.advice)
        return
    version = ".".join(map(str, node.version))
    if node.version < LEAST_VERSION:
        yield bad("frontier", where, f"{node.product} {version} is too old", "use Valkey, or Redis 7 or newer")
        return
    if not node.primary and not node.cluster:
        yield bad("frontier", where, "is a replica, and read-only", "name its primary in fleet.servers")
        return
    role = "primary" if node.primary else "replica"
    yield good("frontier", where, f"{node.product} {version}, {role}, connected and let in")
    if node.loading:
        yield doubtful("frontier", where, "is still reading its data", "workers wait for it; look again")
    if not node.functions:
        yield bad("frontier", where, "its functions may not be used", "let the user run FUNCTION LOAD and FCALL (ACL)")
    if node.append_only:
        yield _synced(where, node.sync)
    else:
        yield bad(
            "frontier",
            where,
            "appendonly is off: a restart would lose the frontier",
            "set appendonly yes in its configuration",
        )
    if node.eviction == "noeviction":
        yield good("frontier", where, "maxmemory-policy is noeviction")
    else:
        yield bad(
            "frontier",
            where,
            f"maxmemory-policy is {node.eviction}: under pressure it would drop URLs",
            "set maxmemory-policy noeviction",
        )
    if abs(node.skew_ms) > SKEW_MS:
        yield bad(
            "frontier", where, f"its clock is {node.skew_ms / 1000:+.1f} s from the one here", "let both follow NTP"
        )
    else:
        yield good("frontier", where, f"its clock is within {max(1, abs(node.skew_ms))} ms of the one here")
    if node.primary and node.replicas < wait_replicas:
        yield (doubtful if thin else bad)(
            "frontier",
            where,
            f"fleet.wait_replicas is {wait_replicas}, and {node.replicas} follow it: what workers say counts without",
            "add replicas, or lower the setting",
        )


def _synced(where: str, sync: str | None) -> Finding:
    if sync == "no":
        return bad(
            "frontier", where, "appendfsync is no: a crash loses what the system had not written", "set everysec"
        )
    if sync is None:
        return doubtful(
            "frontier", where, "appendonly is on; how it syncs may not be read", "see to appendfsync everysec"
        )
    return good("frontier", where, f"appendonly is on, synced {sync}")


def _cluster(nodes: Iterable[NodeFacts]) -> Iterator[Finding]:
    members = [node for node in nodes if node.cluster]
    for node in members:
        if node.cluster_state != "ok" or node.slots != ALL_SLOTS:
            yield bad(
                "frontier",
                f"server {node.place}",
                f"sees the cluster as {node.cluster_state or 'unknown'} with {node.slots} of {ALL_SLOTS} slots",
                "mend it: CLUSTER INFO and CLUSTER SHARDS tell what is missing",
            )
            return
    primaries = [node for node in members if node.primary]
    yield good("frontier", "cluster", f"is whole: {len(primaries)} primaries, {len(members) - len(primaries)} replicas")
    bare = [node.place for node in primaries if not node.replicas]
    if bare:
        yield doubtful(
            "frontier", "cluster", f"no replica follows {', '.join(bare)}", "a machine that dies takes its shards along"
        )


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """What a PostgreSQL server says of itself."""

    version: str
    creates: bool
    temporary: bool
    standby: bool
    fsync: bool
    encoding: str
    skew_ms: int
    """Its clock minus ours."""
    newest: int | None
    """The version of the crawl's tables; None where there are none yet."""
    database: str = "DATABASE"
    user: str = "USER"
    """Both as SQL writes them."""
    owner: str = ""
    """Whose the crawl's schema is, where it is there and not the user's."""


def judge_database(place: str, schema: str, facts: DatabaseFacts, known: int) -> Iterator[Finding]:
    """The server of the catalogue; `known` is the version of tables that this program makes."""
    yield good("catalogue", place, f"PostgreSQL {facts.version}, connected and let in")
    missing = [word for word, has in (("CREATE", facts.creates), ("TEMPORARY", facts.temporary)) if not has]
    if missing:
        grant = f"GRANT {', '.join(missing)} ON DATABASE {facts.database} TO {facts.user}"
        yield bad("catalogue", "rights", f"{' and '.join(missing)} not granted", grant)
    for wrong, text, advice in (
        (facts.standby, "is a standby, and read-only", "name the primary in catalogue.url"),
        (not facts.fsync, "fsync is off: a crash may destroy it", "set fsync = on"),
        (facts.encoding != "UTF8", f"its encoding is {facts.encoding}", "make the database with ENCODING 'UTF8'"),
        (abs(facts.skew_ms) > SKEW_MS, f"its clock is {facts.skew_ms / 1000:+.1f} s from ours", "let both follow NTP"),
    ):
        if wrong:
            yield bad("catalogue", "server", text, advice)
    if facts.owner:
        yield bad(
            "catalogue",
            schema,
            f"is there and belongs to {facts.owner}, not to {facts.user}",
            "let all workers come as its owner (catalogue.url), or choose another fleet.crawl",
        )
    elif facts.newest is None:
        yield good("catalogue", schema, "is not there yet: the first worker makes it")
    elif facts.newest > known:
        yield bad("catalogue", schema, f"is of version {facts.newest}, this program knows {known}", "use a newer one")
    else:
        older = "" if facts.newest == known else f", which the next worker brings to {known}"
        yield good("catalogue", schema, f"is of version {facts.newest}{older}")
