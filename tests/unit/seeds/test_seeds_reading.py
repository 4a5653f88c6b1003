"""Verdicts over seeds, and the report on them."""

from __future__ import annotations

import time

from nephila.interfaces.frontier import Admission
from nephila.model.task import Level
from nephila.seeds import (
    ArgumentSeeds,
    SeedAccepted,
    SeedRefused,
    SeedReport,
    SeedTally,
    SeedVerdict,
    read_seeds,
)
from nephila.urls import Identifier, NormalRules, UrlLimits

IDENTIFIER = Identifier(7, NormalRules(), UrlLimits())


def verdicts(*texts: str) -> list[SeedVerdict]:
    return list(read_seeds([ArgumentSeeds(texts)], IDENTIFIER.identify))


def test_a_bare_seed_is_accepted_as_https_and_marked() -> None:
    """S1: https first; the mark says that http may follow."""
    bare, full, port = verdicts("Bücher.example", "http://a.org/x#y", "localhost:8000/x")
    assert isinstance(bare, SeedAccepted)
    assert (bare.address.url, bare.bare) == ("https://xn--bcher-kva.example/", True)
    assert isinstance(full, SeedAccepted)
    assert (full.address.url, full.bare, full.origin, full.level) == ("http://a.org/x", False, "argument", Level.HIGH)
    assert isinstance(port, SeedAccepted)
    assert (port.address.url, port.address.host, port.bare) == ("https://localhost:8000/x", "localhost", True)


def test_every_seed_of_every_source_has_its_verdict_in_order() -> None:
    """S1: none is passed over."""
    sources = [ArgumentSeeds(["a.org", "foo"], "first"), ArgumentSeeds(["b.org"], "second")]
    assert [verdict.origin for verdict in read_seeds(sources, IDENTIFIER.identify)] == ["first", "first", "second"]


def test_refusals_have_clear_reasons() -> None:
    """S1, U4: by spelling, and by what the URL parser and the limits say."""
    long = "https://a.org/" + "x" * 3000
    texts = ["foo", "ftp://a.org/", long, "https://a.org/" + "y/" * 20, "https://exa%00mple.org/", "a.org:99999"]
    found = verdicts(*texts)
    assert [v.reason for v in found if isinstance(v, SeedRefused)] == [
        "malformed",
        "scheme",
        "too_long",
        "too_many_segments",
        "malformed",
        "malformed",
    ]
    assert all(isinstance(v, SeedRefused) and v.detail and v.text == text for v, text in zip(found, texts, strict=True))


def test_sources_are_read_lazily() -> None:
    """S1, F8: a verdict does not wait for the last seed."""

    def texts() -> object:
        yield "a.org"
        raise AssertionError("read too far")

    source = ArgumentSeeds(texts())  # type: ignore[arg-type] # a generator of str
    assert isinstance(next(read_seeds([source], IDENTIFIER.identify)), SeedAccepted)


def test_the_report_says_how_many_were_added_known_and_refused_and_why() -> None:
    """S1: the answer to whoever gave the seeds."""
    tally = SeedTally()
    tally.admit(Admission(added=1200, known=3, cooling=1))
    tally.admit(Admission(added=1))
    for verdict in verdicts("foo", "ftp://a.org/", "bar"):
        assert isinstance(verdict, SeedRefused)
        tally.refuse(verdict)
    report = tally.report()
    assert (report.added, report.known, report.refused) == (1201, 3, {"malformed": 2, "scheme": 1})
    assert [example.text for example in report.examples] == ["foo", "ftp://a.org/", "bar"]
    assert report.sentence() == "1,201 added, 3 already known, 3 refused (2 malformed, 1 unsupported scheme)"
    assert SeedReport(1, 0, {}, ()).sentence() == "1 added, 0 already known, 0 refused"


def test_examples_are_few_short_printable_and_hold_no_secrets() -> None:
    """S1, K4: a report is shown and logged."""
    tally = SeedTally()
    shown = [
        "http//me:hunter2@a.org/",
        "me:hunter2@a.org",
        "https://a.org:bad/?token=hunter2",
        "\x1b[31mfoo",
        "x" * 9999,
    ]
    for verdict in verdicts(*shown):
        assert isinstance(verdict, SeedRefused)
        one = SeedTally()
        one.refuse(verdict)
        tally.refuse(verdict)
        (example,) = one.report().examples
        assert "hunter2" not in example.text + example.detail
        assert (example.text + example.detail).isprintable()
        assert len(example.text) < 200
    assert tally.report().refused == {"malformed": 5}
    assert len(tally.report().examples) == 3


def test_a_line_of_quotes_and_colons_is_told_in_a_moment() -> None:
    """S1, Q5: as long as lines may be, from a list that somebody else has made."""
    tally, started = SeedTally(), time.process_time()
    tally.refuse(SeedRefused('"a:' * 43_000, "malformed", "it stands in quotation marks", "list.txt:1"))
    assert time.process_time() - started < 1
    assert tally.report().examples[0].text.startswith('"a:"a:')
