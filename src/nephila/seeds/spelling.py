"""From what people write to a URL to ask for: full URLs, bare domains, host:port, addresses, and their mistakes.

People write ``example.org``, ``localhost:8000/x``, ``[::1]:8080``, ``http//typo`` and ``mailto:me@example.org``. A URL
parser reads the second as scheme ``localhost`` and the fourth as a relative path, so the decision what was *meant* is
made here, before any parser; whether the result is a good URL is for `nephila.urls` to say afterwards.

- With ``http://`` or ``https://`` in front, the text is taken as it is.
- A host, perhaps with port and path, is *bare*: https first, http to fall back on. An explicit port 80 or 443 already
  says which of the two is meant.
- A single word is a host only when it says so: ``localhost``, or a port after it. ``foo`` is more often a slip.
- Everything else is refused with a sentence that names the likely mistake. Nothing is repaired by guessing.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from dataclasses import dataclass
from enum import StrEnum

from .twin import http_twin


class SeedFault(StrEnum):
    """Why a text is no seed. What a URL parser finds wrong later has reasons of its own (`UrlRefused`)."""

    MALFORMED = "malformed"
    SCHEME = "scheme"
    """Another one than http and https; the same word as in `UrlRefused`."""


@dataclass(frozen=True, slots=True)
class SeedUrl:
    """What to ask for, and what to ask for when nobody answers there."""

    address_url: str
    fallback: str | None


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The text means no URL that can be crawled."""

    fault: SeedFault
    detail: str
    """One sentence for people."""


_FULL = re.compile(r"https?://[^/]", re.IGNORECASE)
_SLIP = re.compile(r"(https?)(?:[:;.,]*[/\\]+|:)(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):(?P<slashes>//)?(?P<rest>.*)", re.DOTALL)
_BARE = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]\\]+)(?::(?P<port>[0-9]{1,5}))?(?P<rest>[/?#].*)?", re.DOTALL
)
_LABEL = re.compile(r"[A-Za-z0-9_\x80-\U0010ffff-]{1,63}")
_USUAL_TOP = re.compile(r"[a-z]{2,63}|xn--[a-z0-9-]{1,59}", re.IGNORECASE)
_USUAL_DOMAIN = re.compile(rf"(?:[a-z0-9_-]{{1,63}}\.)+(?:{_USUAL_TOP.pattern})", re.IGNORECASE | re.ASCII)
_QUOTES = "\"'`\u201c\u201e\u00ab"
_UNSAFE = re.compile(r"[\x00-\x20\x7f\x85\u2028\u2029]")

_WITHOUT_SLASHES = frozenset(
    {"about", "blob", "callto", "cid", "data", "facetime", "file", "geo", "intent", "jar", "javascript", "magnet"}
    | {
        "mailto",
        "market",
        "mid",
        "news",
        "sip",
        "sips",
        "skype",
        "sms",
        "tel",
        "urn",
        "view-source",
        "whatsapp",
        "xmpp",
    }
)
"""Schemes that go without ``//`` (IANA's registry and what links on the web carry), so that ``tel:5550123`` is not
taken for port 5550123 of a host named tel."""

_LIST_ENDINGS = frozenset({"csv", "gz", "json", "jsonl", "list", "lst", "opml", "tsv", "txt", "xml"})
"""Endings of files that hold seeds. None of them is a top-level domain."""


def spell(text: str) -> SeedUrl | Unreadable:
    """What `text` asks for; white space around it must be off already."""
    if not text:
        return _malformed("it is empty")
    if _UNSAFE.search(text):
        return _malformed("it holds white space or control characters; write one URL or domain a line")
    if _FULL.match(text):
        return SeedUrl(text, None)
    text = text.removeprefix("//")
    if not text:
        return _malformed("it names no host")
    return _spell_bare(text) or _explain(text)


def is_site(text: str) -> bool:
    """Whether `text` names a web site by itself: a full URL, or a domain or address with or without port and path."""
    if _UNSAFE.search(text):
        return False
    if _FULL.match(text):
        return True
    match = _BARE.fullmatch(text)
    return match is not None and _is_host(match["host"])


def _spell_bare(text: str) -> SeedUrl | Unreadable | None:
    """The two URLs of a bare host, a refusal where the host is no host, None when the text has another shape."""
    match = _BARE.fullmatch(text)
    if match is None:
        return _with_scheme(f"[{text}]", None) if _is_ipv6(text) else None
    host, port, rest = match["host"], match["port"], match["rest"]
    lowered = host.lower()
    if port is not None and lowered in _WITHOUT_SLASHES:
        return None
    if rest is None and port is None and lowered.rpartition(".")[2] in _LIST_ENDINGS and "." in lowered:
        return _malformed(f'"{text}" looks like the name of a file; give a list of seeds with --seeds {text}')
    single_word = _LABEL.fullmatch(host) is not None and not host.isdigit()
    if not (_is_host(host) or lowered == "localhost" or (port is not None and single_word)):
        return None
    return _with_scheme(text, port)


def _with_scheme(text: str, port: str | None) -> SeedUrl:
    """First https, http to fall back on, unless the port has decided it."""
    match int(port or 0):
        case 80:
            return SeedUrl(f"http://{text}", None)
        case 443:
            return SeedUrl(f"https://{text}", None)
        case _:
            url = f"https://{text}"
            return SeedUrl(url, http_twin(url))


def _explain(text: str) -> Unreadable:  # noqa: PLR0911 - one return for each kind of mistake
    """The most helpful refusal of a text that is neither URL nor bare host."""
    if (slip := _SLIP.fullmatch(text)) is not None:
        if not slip["rest"].strip("/\\"):
            return _malformed("it names no host")
        return _malformed(f'did you mean "{slip[1].lower()}://{slip["rest"].lstrip("/")}"?')
    if text[0] in "/.\\":
        return _malformed("it looks like a path; seeds are URLs or domains, and files of seeds are given with --seeds")
    if text[0] == "<":
        return _malformed("it looks like markup; write one URL or domain a line")
    if text[0] in _QUOTES:
        return _malformed("it stands in quotation marks; write it without them")
    if (match := _SCHEME.fullmatch(text)) is not None:
        return _explain_scheme(match["scheme"], match["slashes"] is not None, match["rest"])
    if "@" in text.partition("/")[0]:
        return _malformed("it looks like a mail address")
    if text.startswith("*."):
        return _malformed(f'wildcards are no addresses; give "{text[2:]}" and --scope domain')
    if _LABEL.fullmatch(text) is None or text.strip("-_") == "":
        return _malformed("it is neither a URL nor a domain")
    return _malformed(f'it is neither a URL nor a domain; write "http://{text}" if that is the name of a host')


def _explain_scheme(scheme: str, slashes: bool, rest: str) -> Unreadable:
    lowered = scheme.lower()
    if not slashes and "@" in rest and lowered not in _WITHOUT_SLASHES:
        return _malformed("it holds a user name or password; write the URL without them")
    if not slashes and ("." in scheme or lowered == "localhost"):
        port = re.split(r"[/?#]", rest, maxsplit=1)[0]
        return _malformed(f'"{port}" is no port number')
    meant = difflib.get_close_matches(lowered, ("https", "http"), n=1, cutoff=0.7) if slashes else []
    hint = f'; did you mean "{meant[0]}://{rest}"?' if meant else ""
    return Unreadable(SeedFault.SCHEME, f'only http and https are crawled, not "{lowered}"{hint}')


def _malformed(detail: str) -> Unreadable:
    return Unreadable(SeedFault.MALFORMED, detail)


def _is_host(host: str) -> bool:
    """A domain of at least two labels whose last is no number, or an address in its usual spelling."""
    if _USUAL_DOMAIN.fullmatch(host):
        return True
    if host.startswith("["):
        return _is_ipv6(host[1:-1])
    labels = host.removesuffix(".").replace("\u3002", ".").split(".")
    if len(labels) < 2 or not all(_is_label(label) for label in labels):
        return False
    top = labels[-1]
    return not top.isascii() or _USUAL_TOP.fullmatch(top) is not None or _is_ipv4(host)


def _is_label(label: str) -> bool:
    # Which of the other scripts' characters may stand in a name is for IDNA to say, in the URL parser.
    return _LABEL.fullmatch(label) is not None


def _is_ipv4(text: str) -> bool:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return False
    return True


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text
