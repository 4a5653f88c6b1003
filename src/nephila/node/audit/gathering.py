"""Reading a trail: every request of archives and event log, each once, in the order in which they were sent.

The archive has what was answered, the event log what was not, and both have most. They are read one file after the
other, laid down as lines, sorted by boot and time in bounded memory, and given out merged: a request that both tell of
is one. Times are those of the boot-time clock, which does not jump; each file says of which boot it is. Only archives
of an earlier version have nothing but wall time, and count as one boot of their own.

Torn ends are passed over, as they are everywhere else: the crawl may be running.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import mktime_tz, parsedate_tz
from pathlib import Path
from urllib.parse import urlsplit

from nephila.engines.disk import Disk
from nephila.fetch import decode_payload
from nephila.model.events import Event, EventKind
from nephila.model.terms import Terms
from nephila.observe.line import decode_line
from nephila.store.line_sort import LineSort
from nephila.store.readback import parse_head, units
from nephila.store.reader import DamagedArchiveError, WarcReader, WarcRecord
from nephila.store.rotation import WARC_SUFFIXES, index_name
from nephila.store.tombstone import is_tombstone
from nephila.store.trail import ARCHIVES, EVENTS, SUFFIX, raw_lines
from nephila.urls import origin_of, resolve_location

from .findings import Audit, Finding, FindingKind
from .request import Came, Request, Stretch, sortable
from .rulebook import RuleBook

_OUTLINKS = b"\r\noutlink: "
_TELLS = (b'"sent_ms":', b'"event":"terms"')
_CUT_OFF = frozenset({"time", "disconnect"})
_BUSY = frozenset({429, 503})
_MAX_RULES_BYTES = 64 << 20
_END_OF_TIME_MS = 253_402_300_800_000


@dataclass(frozen=True, slots=True)
class Witness:
    """Whose event files these are: a crawl directory's, or those of one worker of a fleet."""

    root: Path
    disk: Disk
    waits: bool = False
    """Whether archive files of it have not arrived where they can be read."""


class Gathering:
    """Collects requests into a `LineSort`."""

    def __init__(self, audit: Audit, rules: RuleBook, host: str = "") -> None:
        """`host`: only what concerns this one."""
        self._audit = audit
        self._rules = rules
        self._host = host
        self._boots: dict[str, int] = {}
        self.terms: list[Terms] = []
        self._known_terms: dict[Terms, int] = {}
        self.begun_ms: dict[int, int] = {}
        """The earliest time that each boot is known to have been up, on its own clock."""
        self.bounds: dict[int, list[tuple[int, int]]] = {}
        """Of boots that have asked a common clock: when, and by how much that was ahead at least."""
        self.parties = 0
        """Witnesses that have anything to tell: workers, beside whom there are chains of takedowns."""
        self.was_restarted = False
        """Whether a machine has booted while a witness was at work."""
        self.stretches: list[Stretch] = []
        """Each process in each event file."""
        self.taken_out: set[tuple[int, int, int]] = set()
        """Of captures that a takedown took out: boot, when the request left, and how long it took."""

    def gather(self, into: LineSort, witnesses: Iterable[Witness], archives: tuple[Path, Disk]) -> None:
        """Read everything: events first, for their files have the order of the boots."""
        for witness in witnesses:
            for request in self._events(witness):
                into.add(sortable(request))
        known = len(self._boots)
        for request in self._archives(*archives):
            into.add(sortable(request))
        self.was_restarted |= len(self._boots) > max(1, known)  # one that left no event

    # -- events

    def _events(self, witness: Witness) -> Iterator[Request]:
        folder, boots = witness.root / EVENTS, set[int]()
        names = [name for name in witness.disk.names(folder) if name.endswith(SUFFIX)]
        for name in sorted(names, key=lambda name: (len(name), name)):
            boot = terms = stretch = -1
            for _, line in raw_lines(witness.disk, folder / name):
                if not any(tell in line for tell in _TELLS) or (found := decode_line(line)) is None:
                    continue
                event = found[0]
                if event.kind is EventKind.TERMS:
                    counts = dict(event.counts)
                    boot = self._boot(event.reason, counts.get("steady_ms"))
                    boots.add(boot)
                    if "shared_at" in counts and "shared_ms" in counts:
                        bound = (counts["shared_at"], counts["shared_ms"] - counts["shared_at"])
                        self.bounds.setdefault(boot, []).append(bound)
                    terms = self._term(event.detail)
                    self.stretches.append(Stretch(boot, waits=witness.waits))
                    stretch = len(self.stretches) - 1
                elif event.sent_ms is not None and boot >= 0 and min(event.sent_ms, event.elapsed_ms or 0) >= 0:
                    request = _told(event, boot, terms, stretch)
                    self.stretches[stretch].end_ms = max(request.end_ms, self.stretches[stretch].end_ms)
                    if self._wanted(request):
                        yield request
        self.was_restarted |= len(boots) > 1
        self.parties += bool(boots)

    # -- archives

    def _archives(self, root: Path, disk: Disk) -> Iterator[Request]:
        folder = root / ARCHIVES
        names = set(disk.names(folder))
        for name in sorted(names):
            if not name.endswith(WARC_SUFFIXES):
                continue
            file = disk.open(folder / name)
            try:
                yield from self._archive(WarcReader(file, name), name, finished=index_name(name) in names)
            finally:
                file.close()

    def _archive(self, reader: WarcReader, name: str, *, finished: bool) -> Iterator[Request]:
        boot, terms = -1, -1
        try:
            for unit in units(reader):
                if unit[0].kind == "warcinfo":
                    fields = _fields(unit[0].block)
                    boot = self._boot(fields.get("boot-id", ""), _number(fields.get("steady-ms", "")))
                    terms = self._term(fields.get("terms", ""))
                    continue
                if is_tombstone(unit[0]):
                    self._taken_out(unit[0], boot)
                    continue
                try:
                    request = self._exchange(unit, boot, terms if terms >= 0 else self._term(""))
                except (KeyError, ValueError):
                    detail = (
                        f"the metadata record at byte {unit[-1].offset:,} of {name} lacks its times, or has wrong ones"
                    )
                    found = Finding(FindingKind.UNDATED, _host(unit[0].target), unit[0].target, 0, detail)
                    self._audit.blame(found)
                    continue
                if self._wanted(request):
                    yield request
        except DamagedArchiveError as error:
            if finished:
                self._audit.blame(Finding(FindingKind.DAMAGED, "", name, 0, str(error)))
            else:
                self._audit.notes.append(
                    f"{name} ends with a capture that is not whole, from byte {error.offset:,} on."
                )

    def _taken_out(self, record: WarcRecord, boot: int) -> None:
        """A capture that a takedown took out: of its request only the times are left, and what the event log tells."""
        fields = _fields(record.block)
        sent_ms, elapsed_ms = _number(fields.get("sent-steady-ms", "")), _number(fields.get("fetchTimeMs", ""))
        self._audit.taken_out += 1
        if sent_ms is not None and elapsed_ms is not None:
            self.taken_out.add((boot, sent_ms, elapsed_ms))

    def _exchange(self, unit: list[WarcRecord], boot: int, terms: int) -> Request:
        """The request of one capture. KeyError or ValueError where its times are missing or make no sense."""
        kinds = {record.kind: record for record in unit}
        answer = unit[0]
        fields = _fields(kinds["metadata"].block.partition(_OUTLINKS)[0])
        sent_at, ended_at = _whole(fields["sent-at"]), _whole(fields["ended-at"])
        steady, elapsed = _whole(fields.get("sent-steady-ms", "0")), _whole(fields["fetchTimeMs"])
        head_bytes = _whole(fields["head-bytes"])
        if not steady or boot < 0:
            self._audit.wall_only += 1
            boot, steady, elapsed = self._boot("", None), sent_at, max(elapsed, ended_at - sent_at)
        status, headers = parse_head(answer.block[:head_bytes])
        request = Request(
            boot,
            steady,
            elapsed,
            sent_at,
            _host(answer.target),
            fields.get("robots-origin") or origin_of(answer.target),
            answer.target,
            terms,
            address=answer.get("warc-ip-address"),
            status=status,
            agent=_agent(kinds["request"].block) if "request" in kinds else "",
            policy_ms=_whole(fields["note-policyDelayMs"]) if "note-policyDelayMs" in fields else -1,
            ended_at=ended_at,
            claims=_whole(fields.get("note-robotsRules", "0").rpartition(" ")[2]),
            visit=fields.get("note-visit", ""),
            is_part="visited-page" in fields and "note-resource" not in fields,
            again="note-visitAgain" in fields,
            is_resource="note-resource" in fields,
        )
        if status in _BUSY:
            asked = (_retry_after_ms(value, ended_at) for name, value in headers if name == "retry-after")
            request.retry_after_ms = max(asked, default=0)
        if "robots-origin" in fields:
            request.is_robots = True
            self._robots(request, answer, kinds.get("resource"), fields, dict(headers), head_bytes)
        return request

    def _robots(
        self,
        request: Request,
        answer: WarcRecord,
        resource: WarcRecord | None,
        fields: dict[str, str],
        headers: dict[str, str],
        head_bytes: int,
    ) -> None:
        """What the answer to a robots.txt means (RFC 9309, 2.3.1)."""
        status = request.status
        if 200 <= status < 300 and fields.get("truncated", "") not in _CUT_OFF:
            request.came = Came.RULES
            text = resource.block if resource is not None else b""
            served = decode_payload(answer.block[:head_bytes], answer.block[head_bytes:], _MAX_RULES_BYTES)
            if resource is None or not served.startswith(text):
                detail = "the rules on record are not those that the server sent"
                found = Finding(FindingKind.WRONG_RULES, request.host, request.url, request.wall_at, detail)
                self._audit.blame(found)
            request.rules = self._rules.keep(text)
        elif 300 <= status < 400:
            hops = _whole(fields.get("hops", "0"))
            target = resolve_location(request.url, headers.get("location", "")) if headers.get("location") else None
            follows = target is not None and target.startswith(("http://", "https://"))
            request.came = Came.MOVED if follows and hops < self.terms[request.terms].robots_max_hops else Came.OPEN
        elif 400 <= status < 500 and status != 429:
            request.came = Came.OPEN
        else:
            request.came = Came.FAILING

    # -- parts

    def _boot(self, name: str, up_ms: int | None) -> int:
        boot = self._boots.setdefault(name, len(self._boots))
        if up_ms is not None:
            self.begun_ms[boot] = min(up_ms, self.begun_ms.get(boot, up_ms))
        return boot

    def _term(self, text: str) -> int:
        terms = Terms.from_json(text) or Terms()
        if terms not in self._known_terms:
            self._known_terms[terms] = len(self.terms)
            self.terms.append(terms)
        return self._known_terms[terms]

    def _wanted(self, request: Request) -> bool:
        return not self._host or self._host in (request.host, _host(request.origin))


def _told(event: Event, boot: int, terms: int, stretch: int) -> Request:
    """A request that the event log tells of."""
    is_part = event.kind is EventKind.VISIT_PART
    is_robots = not event.fingerprint and not is_part
    counts = dict(event.counts)
    came = Came.NOTHING
    if is_robots and event.kind is EventKind.ROBOTS_FETCHED:
        came = _came(event.status)
    return Request(
        boot,
        event.sent_ms or 0,
        event.elapsed_ms or 0,
        event.at - (event.elapsed_ms or 0),
        _host(event.url) or event.host,
        event.via if is_robots and event.via else origin_of(event.url),
        event.url,
        terms,
        archived=False,
        is_robots=is_robots,
        came=came,
        address=event.address,
        status=event.status or 0,
        policy_ms=counts.get("policy_delay_ms", -1),
        claims=counts.get("rules_at", 0),
        stretch=stretch,
        answered=event.status is not None,
        ended_at=event.at,
        late=event.kind is EventKind.LATE_RESULT,
        visit=f"{counts['visit_token']}-{counts.get('visit_attempt', 0)}" if "visit_token" in counts else "",
        is_part=is_part,
        again="visit_again" in counts,
        is_resource=event.kind is EventKind.RENDER_RESOURCE,
    )


def _came(status: int | None) -> Came:
    """What a robots.txt came to of which only the event log tells."""
    if status is None or status == 429 or status >= 500:
        return Came.FAILING
    if 200 <= status < 300:
        return Came.LOST
    return Came.MOVED if status < 400 else Came.OPEN


def _fields(block: bytes) -> dict[str, str]:
    lines = (line.partition(": ") for line in block.decode("utf-8", "replace").split("\r\n"))
    return {name: value for name, colon, value in lines if colon}


def _whole(text: str) -> int:
    """A number that a time, a length or a count can have: milliseconds up to the year 9999. Raises ValueError."""
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else -1
    if not 0 <= number < _END_OF_TIME_MS:
        raise ValueError(text)
    return number


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 15 else None


def _host(url: str) -> str:
    """Whom politeness is owed to: `example.org.` is the same server as `example.org`."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""


def _agent(request: bytes) -> str:
    for line in request.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"user-agent":
            return value.strip().decode("latin-1")
    return ""


def _retry_after_ms(value: str, ended_at: int) -> int:
    """What Retry-After asks for, in seconds or as a date; 0 where it makes no sense."""
    whole, _, part = value.replace(",", ".").partition(".")
    if (whole + part).isascii() and whole.isdigit() and (part.isdigit() or whole == value):
        return int(float(f"{whole[:9]}.{part[:9]}") * 1000)
    try:
        date = parsedate_tz(value)
        if date is None:
            moment = datetime.fromisoformat(value)
            at = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
        else:
            at = mktime_tz((*date[:9], date[9] or 0)) * 1000
    except (ValueError, OverflowError, IndexError):
        return 0
    return max(0, at - ended_at)
