"""A crawl's frontier taken out of its directory as a file, or put into one (N2): `nephila frontier export|import`.

The directory is held meanwhile, so no crawl runs on it. What is put in comes from a file that was read to its end
before; the frontier cannot be opened until all of it is there, and an import that was cut off begins anew.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from msgspec import structs

from nephila.config import PASSWORD, declarations, dump_toml, load, read_stored, value_of, write_stored
from nephila.frontier.embedded import LmdbFrontierView
from nephila.frontier.embedded.exporting import LmdbExport
from nephila.frontier.embedded.importing import import_into
from nephila.frontier.embedded.tables import is_half_imported
from nephila.frontier.moving import (
    AskedFor,
    CaptureRow,
    CrawlRow,
    EndRow,
    HostRow,
    MarkRow,
    OriginRow,
    OrphanRow,
    PolicyRow,
    RobotsRow,
    Row,
    ScopeRow,
    UrlRow,
    check_stream,
    read_stream,
    write_stream,
)
from nephila.frontier.scope import ScopeSeeds
from nephila.interfaces.clock import Clock
from nephila.model.errors import CrawlDirectoryError, FrontierError, UsageError
from nephila.model.outcome import RulesKind
from nephila.model.policy import DomainPolicy
from nephila.model.settings import Settings
from nephila.urls import host_of

from .addressing import identifier_of, identify_with
from .directory import CrawlDirectory
from .engines import policy_of
from .operating import check_policy

_DOMAIN = re.compile(r"[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\]")
_NUMBER = "it is a hexadecimal number"
_PLAIN = re.compile(r"[\x21-\x7e]+")
_HEADER_VALUE = re.compile(r"[^\x00\r\n\u0100-\U0010ffff]*")
_FINGERPRINT, _SECRET = re.compile(r"[0-9a-fA-F]{32}"), re.compile(r"[0-9a-fA-F]{1,16}")
_RULES = frozenset({RulesKind.RULES, RulesKind.ALLOW_ALL})
SCOPE_LINES = 5_000
"""Lines of the scope in one row."""
NEEDS_TRUST = frozenset(
    {
        *(
            "alerts.webhook",
            "dns.resolvers",
            "plugins",
            "render.executable",
            "robots.obey",
            "robots.permissive",
            "stream",
        ),
        *("fetch.allow_addresses", "fetch.authorities", "fetch.bad_certificates", "fetch.proxy", "fetch.proxy_tunnel"),
        "fetch.source_addresses",
    }
)
"""Settings, and groups of them, that open addresses, switch off rules, or name servers, files or programs: with those
a file could have this machine read what is not public, tell it to somebody, or start what it likes."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What was exported or imported."""

    rows: dict[str, int]
    unnamed: int = 0
    """Refusals that were left out."""
    dropped: int = 0
    """URLs that a crawl of that name had been given, which had asked for nothing yet and gave way."""

    @property
    def sentence(self) -> str:
        """For people."""
        told = [(self.rows.get(kind, 0), kind) for kind in ("url", "host", "domain")]
        urls, hosts, domains = (f"{count:,} {_plural(kind, count)}" for count, kind in told)
        return f"{urls} of {hosts} in {domains}"


def _plural(kind: str, count: int) -> str:
    word = "URL" if kind == "url" else kind
    return word if count == 1 else f"{word}s"


def asked_for(settings: Settings) -> AskedFor:
    """What of the settings travels with a frontier: no password, for the file is handed on."""
    return AskedFor(asdict(settings.urls), PASSWORD.sub(_without_password, dump_toml(settings)))


def _without_password(found: re.Match[str]) -> str:
    return f"{found[1].removesuffix(':')}@"


def check_normal_form(head: CrawlRow, settings: Settings, target: str) -> None:
    """Fingerprints are made of the normal form: under another one every page would be taken for a new one."""
    wanted = asdict(settings.urls)
    differing = sorted(name for name, value in wanted.items() if _plain(value) != _plain(head.urls.get(name, value)))
    if differing:
        names = ", ".join(f"urls.{name}" for name in differing)
        raise UsageError(
            f"the settings {names} of {target} are not those that the frontier was made with",
            "set them as the exported crawl had them",
        )


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


# Out of a directory


def export_directory(out: Path, to: Path, clock: Clock) -> Moved:
    """Write the frontier of a crawl directory to a file."""
    directory = CrawlDirectory(out)
    directory.check()
    with directory.held():
        settings = load(stored=read_stored(out)).settings
        if not directory.has_frontier:
            raise CrawlDirectoryError(f"{out} has no frontier of its own", "see `nephila frontier rebuild`")
        scope = directory.saved_scope()
        ScopeSeeds.from_bytes(scope)  # one that cannot be read is told, and not carried on
        with closing(LmdbFrontierView.open(directory.frontier, clock, settings.frontier.map_bytes)) as view:
            identify = identify_with(identifier_of(settings, view.secret))
            export = LmdbExport(view, policy_of(settings), identify, asked_for(settings))
            end = write_stream(to, with_scope(export.rows(), scope))
        return Moved(end.rows, export.unnamed)


def with_scope(rows: Iterator[Row], scope: bytes) -> Iterator[Row]:
    """Rows, and after the first of them what the seeds allow."""
    yield next(rows)
    lines = scope.decode().splitlines(keepends=True)
    for first in range(0, len(lines), SCOPE_LINES):
        yield ScopeRow("".join(lines[first : first + SCOPE_LINES]))
    yield from rows


# Into a directory


def check_file(file: Path) -> tuple[CrawlRow, EndRow]:
    """Read all of a file before anything is written: its first and last row.

    Raises `FrontierError` where it is not whole, and for what no frontier could have told: other programs write such
    files, too.
    """
    return check_stream(file, _RowCheck(file))


class _RowCheck:
    """Raises `FrontierError` for rows that no frontier could have told. Remembers the host whose rows come."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._host = ""

    def __call__(self, row: Row) -> None:
        """One more."""
        match row:
            case UrlRow(fp=number) if not _FINGERPRINT.fullmatch(number):
                raise self._misplaced("the fingerprint", number, _NUMBER)
            case UrlRow(url=url, capture=capture):
                self._check_url(url)
                if capture is not None:
                    self._check_capture(capture)
            case HostRow(name):
                self._host = name
            case RobotsRow(url=url):
                self._check_url(url)
            case MarkRow(segment) | OrphanRow(segment):
                self._check_segment(segment)
            case PolicyRow(domain, policy):
                self._check_policy(domain, policy)
            case CrawlRow(secret=number) if not _SECRET.fullmatch(number):
                raise self._misplaced("the secret", number, _NUMBER)
            case _:
                pass

    def _check_url(self, url: str) -> None:
        """A host is asked under its own lease, by its own rules: one URL of another host's would go round both."""
        if not url.startswith(("http://", "https://")) or not _PLAIN.fullmatch(url) or host_of(url) != self._host:
            raise self._misplaced(f"a URL of {self._host[:80]!r}", url, "it stands behind its host, as it is asked for")

    def _check_capture(self, capture: CaptureRow) -> None:
        if capture.pending:  # else it may lie wherever a worker outside has put it
            self._check_segment(capture.segment)
        for value in (capture.etag, capture.last_modified):
            if not _HEADER_VALUE.fullmatch(value):
                raise self._misplaced("a validator", value, "it is sent as a header, in one line")

    def _check_segment(self, segment: str) -> None:
        if not _PLAIN.fullmatch(segment) or segment.startswith("/") or ".." in segment.split("/"):
            raise self._misplaced("an archive file", segment, "it has a name below its archive")

    def _check_policy(self, domain: str, policy: DomainPolicy) -> None:
        if not _DOMAIN.fullmatch(domain):
            raise FrontierError(
                f"{self._file} holds a policy for {domain[:80]!r}, which is no domain",
                "write it like example.org, in the letters that URLs have",
            )
        try:
            check_policy(policy)
        except UsageError as error:
            raise FrontierError(f"{self._file} holds a policy for {domain}: {error}", error.hint) from error

    def _misplaced(self, what: str, text: str, hint: str) -> FrontierError:
        return FrontierError(
            f"{self._file} has {text[:40]!r} where {what} belongs",
            f"{hint}; export it again, or mend the program that wrote it",
        )


def import_directory(file: Path, out: Path, clock: Clock, *, trusted: bool = False) -> Moved:
    """Put a frontier into a crawl directory that has none; one that is not there is made.

    `trusted`: whoever made the file may say which addresses are open, and the like. Raises `UsageError` where he does,
    and is not.
    """
    head, end = check_file(file)
    if not trusted and read_stored(out) is None:
        check_settings(file, head)
    directory = CrawlDirectory(out)
    with directory.held():
        settings = _settings_of(out, head)
        check_normal_form(head, settings, str(out))
        _refuse_a_frontier(directory, settings, clock)
        rows = with_rules_due(_scope_into(directory, read_stream(file)))
        import_into(
            directory.frontier,
            head,
            rows,
            policy_of(settings),
            clock,
            identify_with(identifier_of(settings, int(head.secret, 16))),
        )
        if read_stored(out) is None:
            write_stored(out, settings)
    return Moved(end.rows)


def with_rules_due(rows: Iterator[Row]) -> Iterator[Row]:
    """Rows as they are, but that every robots.txt is to be asked for anew before the next page of its origin.

    The answer that brought the rules lies in the archive that stays behind, and an audit of what is fetched from now on
    finds no other (K1). They hold on where robots.txt cannot be had.
    """
    for row in rows:
        if isinstance(row, OriginRow) and RulesKind(row.rules) in _RULES:
            yield structs.replace(row, fresh_until_at=min(row.fresh_until_at, row.stored_at))
        else:
            yield row


def check_settings(file: Path, head: CrawlRow) -> None:
    """Raise `UsageError` where settings come along that only somebody who is trusted may make."""
    came = _settings_in(head)
    differing = sorted(
        key
        for key, one in declarations().items()
        if (key in NEEDS_TRUST or one.group in NEEDS_TRUST) and value_of(came, one) != one.default
    )
    if differing:
        raise UsageError(
            f"{file} brings settings for which its maker must be trusted: {', '.join(differing)}",
            "look at them in its first line (zcat FILE | head -n 1), and say --trust-settings if they are meant",
        )


def _settings_of(out: Path, head: CrawlRow) -> Settings:
    """Those of the directory; for a new one those that came along."""
    stored = read_stored(out)
    return _settings_in(head) if stored is None else load(stored=stored).settings


def _settings_in(head: CrawlRow) -> Settings:
    """The settings that came along, but for places elsewhere."""
    came, here = load(stored=head.config).settings, Settings()
    archive = replace(came.archive, url=here.archive.url)
    return replace(came, archive=archive, catalogue=here.catalogue, s3=here.s3, fleet=here.fleet)


def _refuse_a_frontier(directory: CrawlDirectory, settings: Settings, clock: Clock) -> None:
    if not directory.has_frontier or is_half_imported(directory.frontier, settings.frontier.map_bytes):
        return
    with closing(LmdbFrontierView.open(directory.frontier, clock, settings.frontier.map_bytes)) as view:
        known = view.totals().urls
    if known:
        raise FrontierError(
            f"{directory.root} has a frontier already, which knows {known:,} URLs",
            "choose another directory: nothing is overwritten",
        )
    shutil.rmtree(directory.frontier)


def _scope_into(directory: CrawlDirectory, rows: Iterator[Row]) -> Iterator[Row]:
    """Keep the scope, unless the directory has one; the other rows go on."""
    keep = not directory.scope_size()
    for row in rows:
        if isinstance(row, ScopeRow):
            if keep:
                lines = row.lines.encode()
                directory.add_to_scope(lambda lines=lines: lines)  # type: ignore[misc]  # mypy: default of a lambda
        else:
            yield row
