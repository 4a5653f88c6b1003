"""What users give: lists of seeds, tables of domains, settings."""

from __future__ import annotations

import io

from nephila.config.declared import declarations
from nephila.config.layers import given_by_assignments, given_in_environment, given_in_toml
from nephila.config.load import load
from nephila.config.toml import dump_toml
from nephila.fetch.dns_system import read_name_server
from nephila.fetch.proxy import read_proxy
from nephila.model.errors import NephilaError, UsageError
from nephila.seeds.domains import DomainSeeds
from nephila.seeds.lines import MAX_LINE_BYTES, StreamLines
from nephila.seeds.reading import SeedAccepted, read_seeds
from nephila.seeds.spelling import SeedUrl, spell
from nephila.seeds.textlist import TextSeeds
from nephila.urls import Identifier, NormalRules, UrlLimits

from .target import Choices, Target, text_of

_identifier = Identifier(0xC0FFEE, NormalRules(), UrlLimits())


def check_seeds(data: bytes) -> None:
    """Every line is accepted or refused with a sentence; what cannot be a list at all is the user's mistake."""
    choices = Choices(data)
    kind = DomainSeeds if choices.number(2) else TextSeeds
    body = choices.rest()
    lines = StreamLines(io.BufferedReader(io.BytesIO(body)))  # type: ignore[arg-type]  # a raw stream is all it needs
    try:
        verdicts = list(read_seeds([kind(lines)], _identifier.identify))
    except UsageError as error:
        assert str(error)
        return
    assert len(verdicts) <= len(body.splitlines())
    for verdict in verdicts:
        if isinstance(verdict, SeedAccepted):
            assert verdict.address.url.startswith(("http://", "https://"))
        else:
            assert verdict.reason
            assert verdict.detail
            assert len(verdict.text) <= MAX_LINE_BYTES + 100


def check_spelling(data: bytes) -> None:
    """What a text means is decided once: the URL that comes out means itself."""
    text = text_of(data).strip()
    spelled = spell(text)
    if isinstance(spelled, SeedUrl):
        again = spell(spelled.address_url)
        assert isinstance(again, SeedUrl)
        assert again.address_url == spelled.address_url
    for read in (read_name_server, read_proxy):
        try:
            read(text)
        except NephilaError as error:
            assert str(error)


_KEYS = tuple(declarations())


def check_settings(data: bytes) -> None:
    """Any text for any setting is taken or refused with a sentence; what is in force reads back the same."""
    choices = Choices(data)
    one = declarations()[_KEYS[(choices.number(256) * 256 + choices.number(256)) % len(_KEYS)]]
    text = text_of(choices.rest())
    for configured in (
        lambda: load(stored=text),
        lambda: load(assignments=[f"{one.key}={text}"]),
        lambda: load(environ={one.variable: text}),
    ):
        try:
            settings = configured().settings
        except UsageError as error:
            assert str(error)
            continue
        assert load(stored=dump_toml(settings)).settings == settings
        assert load(stored=dump_toml(settings, full=True)).settings == settings
    for read in (lambda: given_in_toml(text, "x"), lambda: given_by_assignments([text]), lambda: given_in_environment({f"NEPHILA_{text}": "1"})):  # fmt: skip
        try:
            read()
        except UsageError as error:
            assert str(error)


TARGETS = (
    Target(
        "seeds",
        check_seeds,
        (
            b"\x00http://a.test/\n# x\nexample.org\n\nfoo\nmailto:a@b.c\n", b'\x01rank,domain\n1,example.org\n2,"a.test"\n',
            b'\x01"a\nb.test",x\n;c.test;d', b"\x00\xef\xbb\xbfa.test\r\nb.test:80/x\r\n[::1]:8080\r\n",
        ),
        (b"http://", b"example.org", b",", b'"', b"\n", b"\r", b"\t", b";", b"|", b"\0", b"#", b"localhost:8000"),
    ),
    Target(
        "spelling",
        check_spelling,
        (b"example.org", b"http//typo", b"localhost:8000/x", b"[::1]:8080", b"socks5://u:p@h:1080", b"9.9.9.9:53", b"*.a.test", b"tel:55501"),
        (b"http://", b"https", b":", b"//", b"[", b"]", b"@", b".", b"socks5://", b"%", b"\xe3\x80\x82"),
        300,
    ),
    Target(
        "settings",
        check_settings,
        (
            b'\x00\x00[fetch]\ntimeout_s = 20\nproxy = "x"\n', b"\x00\x11" + b"90s", b"\x00\x05" + b"1,2,3", b"\x00\x03[\"a,b\", 'c']",
            b"\x00\x00random_seed = 1\n[scope]\ninclude = ['a']\n[[x]]\ny={z=1}\n", b"\x00\x20" + b"1e400", b"\x00\x30inf",
        ),
        (b"[fetch]\n", b" = ", b"timeout_s", b"MB", b"ms", b"true", b"auto", b"[", b"]", b'"', b"'''", b"inf", b"nan", b"_", b"\\u0000"),
        400,
    ),
)  # fmt: skip
