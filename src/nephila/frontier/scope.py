"""Which of the links that were found may be queued at all (S2), and how deep (S3).

Pure and synchronous: a `Scope` is asked about every link, eighty a page, before anything else is done with it. The
rules, in this order; the first that speaks decides:

1. ``depth``: more hops from a seed than `max_depth` (0: the seeds alone). A limit, so nothing overrides it.
2. An *include* pattern that matches lets the URL in, whatever the rules below would say.
3. ``scope``: the mode. ``all`` follows everything; ``domain``, ``host`` and ``prefix`` stay on the registrable domains,
   host names or paths of the seeds; ``list`` stays on the domains of the settings, or on those of the seeds where the
   settings name none.
4. ``excluded``: an *exclude* pattern matches; the detail is the pattern.
5. ``excluded_builtin``: a whole path segment that leads to forms, sessions or shopping carts.
6. ``extension``: the path ends like a file that is no page.
7. ``repeated_segments``: one path segment, or a short sequence of them, stands so often in a row that the path can only
   have come of relative links that nest for ever (T1).

What a page of the scope is shown with (`scope.requisites`) is another matter (`judge_requisite`): it may be on any host
and be called what it likes, and only what a person excluded keeps it out.

Robots rules and the limits on a URL's own shape (U4) are other people's and are not overridden by an include.

Patterns are Python regular expressions, searched for (not anchored) in the URL as it is fetched, not in its normal
form: what people see in a browser is what they write patterns for. Python's engine backtracks; a pattern such as
``(a+)+$`` can take exponential time. URLs are at most 2,048 characters long by default, which bounds the usual
quadratic pattern to milliseconds and does not save a nested one: patterns come from whoever runs the crawl, never from
the web.

A seed that redirects takes its scope along: ``example.com`` answering with ``www.example.com`` would otherwise end a
crawl in host mode at its first page. The rule (`widen`): the target of a redirect chain that began at a seed, without a
page in between (depth 0) and at most `MAX_SEED_HOPS` long, counts as a seed for the modes domain, host and prefix. A
list is closed and never grows by itself.

What the seeds allow is kept as `ScopeSeeds`, plain strings that a crawl directory can hold: a resumed crawl begins with
what was saved, and more seeds only ever widen it. Only what the mode asks for is remembered, so that ten million
seeds of one domain cost one entry. What a wider mode allows follows from it; for a narrower one the seeds have to be
given again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from nephila.model.errors import CrawlDirectoryError, UsageError
from nephila.model.settings import ScopeSettings
from nephila.urls import Address, Fingerprint, origin_of, registrable_domain, resolve

from .scope_excludes import BUILTIN_EXCLUDES
from .scope_extensions import PACKAGES, PDF, SKIPPED_EXTENSIONS

MAX_SEED_HOPS = 10
"""Redirects through which a seed takes its scope along (H2: ten hops)."""

REQUISITE_HOPS = 3
"""How far beyond the deepest page what it is shown with may lie: a style sheet, one that it imports, and its font."""

_FORMAT = "nephila-scope 1\n"

Refused = tuple[str, str]
"""Reason and detail: the last two fields of a `Refusal`."""

MEANINGFUL_WORDS = (*BUILTIN_EXCLUDES, *(name for names in SKIPPED_EXTENSIONS.values() for name in names.split()))
"""Segments and endings that mean something to a rule about paths, this one's or that of `score.bonus_of`."""

_LONGEST_BLOCK = 4
"""Segments of a sequence that is looked for in a row; our own choice, the parts of a site that nest are short."""

_UNKNOWN: Refused = ("", "")
_MAX_KNOWN = 16_384
"""Verdicts remembered, by URL: the pages of a site link to each other, so that most of their links are repeats."""


@dataclass(frozen=True, slots=True)
class ScopeSeeds:
    """What the seeds allow."""

    domains: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    prefixes: frozenset[str] = frozenset()
    """Host, port where there is one, and path in the normal form, without scheme and trailing slash."""

    def to_bytes(self) -> bytes:
        """A text of one entry a line, the same for the same seeds."""
        lines: list[str] = []
        for word, entries in (("domain", self.domains), ("host", self.hosts), ("prefix", self.prefixes)):
            lines.extend(f"{word} {entry}\n" for entry in sorted(entries))
        return (_FORMAT + "".join(lines)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> ScopeSeeds:
        """Read what `to_bytes` and `Scope.unsaved` wrote, one after the other; CrawlDirectoryError for something else.

        A last line without its end was torn by a crash, before the seed that it stands for was admitted: left out.
        """
        found: dict[str, set[str]] = {"domain": set(), "host": set(), "prefix": set()}
        try:
            text = data.decode()
            for line in text.removeprefix(_FORMAT).split("\n")[:-1]:
                word, entry = line.split(" ", 1)
                found[word].add(entry)
        except (ValueError, KeyError) as error:
            raise CrawlDirectoryError(
                "the saved scope of this crawl cannot be read",
                "give its seeds again; they are known, and widen it anew",
            ) from error
        return cls(frozenset(found["domain"]), frozenset(found["host"]), frozenset(found["prefix"]))

    def for_mode(self, mode: str) -> ScopeSeeds:
        """With what follows from them for a wider mode: a prefix is on a host, and a host in a domain."""
        hosts, domains = set(self.hosts), set(self.domains)
        if mode != "prefix":
            hosts.update(_host_of_prefix(prefix) for prefix in self.prefixes)
        if mode in {"domain", "list"}:
            domains.update(map(registrable_domain, hosts))
        return ScopeSeeds(frozenset(domains), frozenset(hosts), self.prefixes)


_NO_SEEDS = ScopeSeeds()

ANY_DEPTH = 1 << 30
"""For scopes that are asked about no depth; a crawl has `limits.max_depth`."""


class Scope:
    """Judges links. Not shared between threads or processes: each has its own, and they exchange `ScopeSeeds`."""

    def __init__(
        self,
        settings: ScopeSettings,
        max_depth: int = ANY_DEPTH,
        seeds: ScopeSeeds = _NO_SEEDS,
        repeated_segments: int = 3,
        *,
        documents: frozenset[str] = frozenset(),
    ) -> None:
        """`documents`: endings that are wanted, too (`document_endings`).

        UsageError for a bad pattern, an unknown mode or a domain that is none.
        """
        self.repeats = repeated_segments
        self._max_depth = max_depth
        self._include = tuple(pattern.search for pattern in _compiled(settings.include, "include"))
        self._exclude = _compiled(settings.exclude, "exclude")
        self._segments = frozenset(BUILTIN_EXCLUDES) if settings.builtin_excludes else frozenset()
        self._extensions = _skipped_extensions(settings, documents)
        self._listed = frozenset(_listed_domain(entry) for entry in settings.domains)
        seeds = seeds.for_mode(settings.mode)
        self._domains = set(seeds.domains)
        self._hosts = set(seeds.hosts)
        self._prefixes = set(seeds.prefixes)
        self._mode = settings.mode
        self._allows = self._rule(settings.mode)
        self._out_of_scope: Refused = ("scope", settings.mode)
        self._known: dict[str, Refused | None] = {}
        self.version = 0
        """Counts what was let in: verdicts that were remembered under another count may be wrong."""
        self._unsaved: list[str] = []

    def judge(self, address: Address, depth: int) -> Refused | None:
        """None when a link may be queued at `depth`, else the rule that says no."""
        if depth > self._max_depth:
            return self.too_deep(depth)
        verdict = self._known.get(address.url, _UNKNOWN)
        return self._learned(address) if verdict is _UNKNOWN else verdict

    @property
    def by_host(self) -> bool:
        """Whether all that is asked of a plain path's URL is its host."""
        return not (self._include or self._exclude) and self._mode != "prefix"

    def admits_host(self, host: str) -> bool:
        """Whether the mode lets a host in; only where `by_host` holds."""
        return self._allows(Address("", host, "", Fingerprint(b"")))

    @property
    def outside(self) -> Refused:
        """The verdict on what the mode does not let in."""
        return self._out_of_scope

    def reaches(self, depth: int) -> bool:
        """Whether links may be queued at that depth."""
        return depth <= self._max_depth

    def too_deep(self, depth: int) -> Refused:
        """The verdict on all links that are."""
        return "depth", f"{depth} hops from a seed, at most {self._max_depth}"

    def _learned(self, address: Address) -> Refused | None:
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        verdict = self._known[address.url] = self._judge(address)
        return verdict

    def judge_new(self, address: Address) -> Refused | None:
        """The verdict on an address, depth apart, without memory: for whoever remembers it himself."""
        return self._judge(address)

    def _judge(self, address: Address) -> Refused | None:
        url = address.url
        for search in self._include:
            if search(url):
                return None
        if not self._allows(address):
            return self._out_of_scope
        for pattern in self._exclude:
            if pattern.search(url):
                return "excluded", pattern.pattern
        return self._judge_path(url)

    def judge_list(self, address: Address, depth: int) -> Refused | None:
        """The verdict on a sitemap or feed: a path means nothing but what a person has excluded."""
        if depth > self._max_depth:
            return self.too_deep(depth)
        if any(search(address.url) for search in self._include):
            return None
        if not self._allows(address):
            return self._out_of_scope
        return next((("excluded", one.pattern) for one in self._exclude if one.search(address.url)), None)

    def judge_requisite(self, address: Address, depth: int) -> Refused | None:
        """The verdict on what a page, or something that it is shown with, is shown with."""
        if depth > self._max_depth + REQUISITE_HOPS:
            return self.too_deep(depth)
        pattern = self.excluded(address.url)
        return ("excluded", pattern) if pattern else None

    def contains(self, address: Address) -> bool:
        """Whether the mode, or an include, lets an address in, whatever the rules about paths say."""
        return self._allows(address) or any(search(address.url) for search in self._include)

    def judge_seed(self, address: Address) -> Refused | None:
        """Like `judge` for what somebody gave by hand: only what they excluded by hand keeps it out.

        That is an exclude pattern, or a list of domains in the settings. The built-in rules guess what a link is worth;
        a seed needs no guess.
        """
        if any(search(address.url) for search in self._include):
            return None
        if self._listed and self._mode == "list" and not self._allows(address):
            return self._out_of_scope
        for pattern in self._exclude:
            if pattern.search(address.url):
                return "excluded", pattern.pattern
        return None

    def excluded(self, url: str) -> str:
        """The exclude pattern that keeps a URL out, empty where none does: for what was queued under other patterns."""
        if not self._exclude or any(search(url) for search in self._include):
            return ""
        return next((one.pattern for one in self._exclude if one.search(url)), "")

    def add_seed(self, address: Address) -> bool:
        """Let in what a seed stands for; whether that is more than before. Known seeds are to be given as well."""
        match self._mode:
            case "host":
                word, entries, entry = "host", self._hosts, address.host
            case "prefix":
                word, entries, entry = "prefix", self._prefixes, _prefix_of(address)
            case "domain" | "list":
                word, entries, entry = "domain", self._domains, registrable_domain(address.host)
            case _:
                return False
        if entry in entries:
            return False
        entries.add(entry)
        self._unsaved.append(f"{word} {entry}\n")
        self._forget()
        return True

    def widen(self, target: Address, depth: int, hops: int) -> bool:
        """Take a redirect's target for a seed where the rule above allows it; whether the scope grew.

        `depth` and `hops` are those of the candidate that the target becomes.
        """
        if depth != 0 or not 0 < hops <= MAX_SEED_HOPS or self._mode == "list":
            return False
        return self.add_seed(target)

    def learn(self, seeds: ScopeSeeds) -> None:
        """Let in what another worker, or an earlier run, has learned."""
        seeds = seeds.for_mode(self._mode)
        if seeds.domains <= self._domains and seeds.hosts <= self._hosts and seeds.prefixes <= self._prefixes:
            return  # what was judged before stays true
        self._domains |= seeds.domains
        self._hosts |= seeds.hosts
        self._prefixes |= seeds.prefixes
        self._forget()

    def _forget(self) -> None:
        self._known.clear()
        self.version += 1

    def unsaved(self) -> bytes:
        """What was let in since the last call, to be appended to what was saved before."""
        lines, self._unsaved = self._unsaved, []
        return "".join(lines).encode()

    def seeds(self) -> ScopeSeeds:
        """What is let in, to be saved."""
        return ScopeSeeds(frozenset(self._domains), frozenset(self._hosts), frozenset(self._prefixes))

    @property
    def is_lost(self) -> bool:
        """Whether seeds are known, and nothing of what they allow in this mode: they were given under a wider one."""
        own = {"host": self._hosts, "prefix": self._prefixes}.get(self._mode)
        return own is not None and not own and bool(self._domains or self._hosts) and not self._include

    def _rule(self, mode: str) -> Callable[[Address], bool]:
        match mode:
            case "all":
                return lambda _address: True
            case "domain":
                domains = self._domains
                return lambda address: registrable_domain(address.host) in domains
            case "host":
                hosts = self._hosts
                return lambda address: address.host in hosts
            case "prefix":
                return self._under_prefix
            case "list":
                return self._in_list
            case _:
                raise UsageError(f'"{mode}" is no scope', "choose one of all, domain, host, prefix, list")

    def _in_list(self, address: Address) -> bool:
        """Whether the host, or a domain that it is under, is listed: ``news.example.org`` may stand in a list too."""
        host = address.host
        if not self._listed:
            return registrable_domain(host) in self._domains
        while host not in self._listed:
            _, dot, host = host.partition(".")
            if not dot:
                return False
        return True

    def _under_prefix(self, address: Address) -> bool:
        """Whether the path or a directory above it is a prefix: whole segments, so /docs-old is not under /docs."""
        path = address.key.partition("://")[2].partition("?")[0]
        while path:
            if path in self._prefixes:
                return True
            path = path.rpartition("/")[0]
        return False

    def _judge_path(self, url: str) -> Refused | None:
        path = url.lower()
        if "?" in path:
            path = path.partition("?")[0]
        if ";" in path:
            path = re.sub(r";[^/]*", "", path)
        segments = path.split("/")
        repeated = len(segments) - len(set(segments)) + 1 >= self.repeats and _repeated(segments[3:], self.repeats)
        if "." in segments[-1]:
            stem, _, extension = segments[-1].rpartition(".")
            if extension in self._extensions and not _is_wiki_title(segments):
                return "extension", f".{extension} ({self._extensions[extension]})"
            segments[-1] = stem
        if not self._segments.isdisjoint(segments):
            # The first three parts are the scheme, nothing, and the host, which may be called what it likes.
            segment = next((segment for segment in segments[3:] if segment in self._segments), None)
            if segment is not None:
                return "excluded_builtin", f"/{segment} ({BUILTIN_EXCLUDES[segment]})"
        return ("repeated_segments", f"/{repeated} {self.repeats} times in a row") if repeated else None


def _repeated(segments: list[str], times: int) -> str:
    """The shortest sequence of segments that stands so often in a row, or nothing; empty segments do not count."""
    found = [segment for segment in segments if segment]
    for size in range(1, min(_LONGEST_BLOCK, len(found) // times) + 1):
        run = 0
        for at in range(size, len(found)):
            run = run + 1 if found[at] == found[at - size] else 0
            if run == size * (times - 1):
                return "/".join(found[at - size + 1 : at + 1])
    return ""


def _prefix_of(address: Address) -> str:
    """What a seed's path stands for: itself as a directory, or the directory that its file is in.

    ``/docs/`` and ``/docs`` stand for all under /docs; ``/docs/index.html`` too, because its last segment has a dot.
    """
    rest = address.key.partition("://")[2].partition("?")[0]
    directory, slash, last = rest.rpartition("/")
    if slash and "." in last and not address.url.partition("?")[0].endswith("/"):
        rest = directory
    return rest.rstrip("/")


def _host_of_prefix(prefix: str) -> str:
    """The host that a prefix begins with, without its port."""
    host = prefix.partition("/")[0]
    return host[: host.index("]") + 1] if host.startswith("[") and "]" in host else host.partition(":")[0]


def _listed_domain(entry: str) -> str:
    """The ASCII spelling of a domain in the settings, as `Address.host` has it; ``*.`` in front says nothing more."""
    url = resolve(None, f"https://{entry.strip().removeprefix('*').strip('.')}/")
    host = "" if url is None else origin_of(url).removeprefix("https://")
    if not host or url != f"https://{host}/" or re.search(r":[0-9]+$", host):
        raise UsageError(f'"{entry}" in the list of domains is no domain', "write it like example.org")
    return host


def _compiled(patterns: Iterable[str], setting: str) -> tuple[re.Pattern[str], ...]:
    return tuple(_compile(pattern, setting) for pattern in patterns)


def _compile(pattern: str, setting: str) -> re.Pattern[str]:
    if not pattern:
        raise UsageError(f"the {setting} pattern is empty and would match every URL", f"leave --{setting} away")
    try:
        return re.compile(pattern)
    except re.error as error:
        where = "" if error.pos is None else f" at position {error.pos}"
        hint = "patterns are Python regular expressions, searched for in the URL; put a backslash before . ? + * ( [ "
        hint += "where the character itself is meant"
        if pattern.startswith("*"):
            hint = f'patterns are regular expressions, not file globs: write ".{pattern}" for "anything, then ..."'
        raise UsageError(f'the {setting} pattern "{pattern}" is wrong{where}: {error.msg}', hint) from error
    except (OverflowError, RecursionError) as error:
        raise UsageError(f'the {setting} pattern "{pattern}" is too large', "make it shorter") from error


def _skipped_extensions(settings: ScopeSettings, documents: frozenset[str]) -> dict[str, str]:
    if not settings.skip_extensions:
        return {}
    return {
        name: kind
        for kind, names in SKIPPED_EXTENSIONS.items()
        if not (settings.images and kind == "image")
        for name in names.split()
        if name not in documents
    }


def document_endings(*, pdf: bool, office: bool) -> frozenset[str]:
    """The endings of documents out of which links are taken (X4)."""
    return frozenset((SKIPPED_EXTENSIONS[PDF] if pdf else "").split() + (PACKAGES if office else "").split())


def _is_wiki_title(segments: list[str]) -> bool:
    """``/wiki/Node.js`` and ``/wiki/File:Map.png`` are pages about a thing, not the thing."""
    last = segments[-1]
    return ":" in last or "%3a" in last or "wiki" in segments[:-1]
