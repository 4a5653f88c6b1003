"""`nephila rank`: what is asked, and how the answer is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from nephila.cli.backend import Backend
from nephila.cli.main import cli
from nephila.config import Configured
from nephila.model.errors import StoreAwayError
from nephila.model.record import SegmentId
from nephila.node.importance.reading import Read
from nephila.node.importance.renewing import Importance, RankedName, RankedUrl
from nephila.ranking import Computation

SAID = Computation(1_700_000_000_000, "ab", 1234, 5678, 0.85, 61, 1e-10, 0.0001)
FOUND = Importance(
    SAID,
    replace(SAID, count=1, links=1),
    Read(7, 70),
    [RankedUrl("https://example.org/a", 0.01, 12.34), RankedUrl("https://example.org/\x1b[31m", 0.001, 1.234)],
    [RankedName("example.org", 0.5, 1234.5, 10, 20, 30)],
)


@dataclass
class Ranks:
    """Stands in for the node."""

    found: Importance = FOUND
    unread: int = 0
    busy: bool = False
    asked: list[tuple[Path | Configured, dict[str, Any]]] = field(default_factory=list)

    def __call__(
        self, crawl: Path | Configured, *, waiting: Callable[[], None], reading: Callable[[int], None], **wanted: Any
    ) -> Importance:
        self.asked.append((crawl, wanted))
        if self.busy:
            waiting()
        reading(self.unread)
        return self.found

    def invoke(self, *arguments: str, crawl: Sequence[str] = ("d",)) -> Result:
        return CliRunner().invoke(cli, ["rank", *crawl, *arguments], obj=Backend(rank_crawl=self, environ={}))


def test_pages_are_listed_with_their_ranks() -> None:
    """R3, C4: the whole URL, and nothing that acts on the terminal."""
    ranks = Ranks(replace(FOUND, top_domains=[]))
    result = ranks.invoke("--top", "2")
    assert ranks.asked == [(Path("d"), {"pages": 2, "domains": 0, "anew": False, "publishing": True, "every_s": 0.0})]
    assert result.stdout.splitlines() == [
        "     12.34  https://example.org/a",
        "      1.23  https://example.org/\N{REPLACEMENT CHARACTER}[31m",
    ]
    assert result.stderr == ("1,234 pages, 5,678 links between them, 2023-11-14 22:13:20 (UTC); 1.00 is the mean.\n")


def test_domains_are_listed_with_pages_and_referring_domains() -> None:
    """R3, C4: under a line that names the columns."""
    ranks = Ranks(replace(FOUND, top_pages=[]))
    result = ranks.invoke("--domains", "--anew")
    assert ranks.asked == [(Path("d"), {"pages": 0, "domains": 20, "anew": True, "publishing": True, "every_s": 0.0})]
    assert result.stdout.splitlines() == [
        "      rank      pages  referring  domain",
        "  1,234.50         10         20  example.org",
    ]
    assert result.stderr.startswith("1 domain, 1 link between them")


def test_a_fleet_is_named_by_its_settings(tmp_path: Path) -> None:
    """R3, N6, C4: with its region, and the folder that the work is kept in; a directory has its own."""
    file = tmp_path / "fleet.toml"
    file.write_text('[fleet]\ncrawl = "web"\n')
    ranks, fleet = Ranks(), ("--config", str(file))
    assert ranks.invoke("--work", "ranks", "--group", "eu", crawl=fleet).exit_code == 0
    ((crawl, wanted),) = ranks.asked
    assert isinstance(crawl, Configured)
    assert (crawl.settings.rank.directory, crawl.settings.fleet.group) == ("ranks", "eu")
    assert wanted == {"pages": 20, "domains": 0, "anew": False, "publishing": True, "every_s": 0.0}
    of_fleets = (("--work", "ranks"), ("--every", "60"), ("--no-publish",))
    for arguments, place in (*((one, ("d",)) for one in of_fleets), ((), ("d", *fleet)), ((), ())):
        assert ranks.invoke(*arguments, crawl=place).exit_code != 0
    assert len(ranks.asked) == 1


def test_the_ranks_of_a_fleet_are_computed_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """R3, C4: one beginning every so many seconds, whatever they take; what fails later is told, and tried again."""
    file, now, slept = tmp_path / "fleet.toml", [0.0], list[float]()
    file.write_text('[fleet]\ncrawl = "web"\n')

    class Failing(Ranks):
        def __call__(self, *given: Any, **wanted: Any) -> Importance:
            found = super().__call__(*given, **wanted)
            now[0] += 10.0 if len(self.asked) < 4 else 100.0
            if len(self.asked) == 2:
                raise StoreAwayError("the store is away")
            return found

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds
        if len(slept) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr("nephila.cli.rank.time.monotonic", lambda: now[0])
    monkeypatch.setattr("nephila.cli.rank.time.sleep", sleep)
    ranks = Failing(replace(FOUND, published=True))
    result = ranks.invoke("--every", "60", "--anew", "--no-publish", crawl=("--config", str(file)))
    assert slept == [50.0, 50.0, 50.0, 0.0]
    assert [(wanted["anew"], wanted["publishing"]) for _, wanted in ranks.asked] == [
        (True, False),
        *[(False, False)] * 3,
    ]
    assert result.stderr.count("Not this time, and again in 1 min: the store is away") == 1
    assert result.stderr.count("The workers have them within a minute or two.") == 3
    assert result.stdout.count("https://example.org/a") == 3


def test_what_fails_the_first_time_ends_it(tmp_path: Path) -> None:
    """R3, C4: whoever starts a job hears of a wrong setting at once."""
    file = tmp_path / "fleet.toml"
    file.write_text('[fleet]\ncrawl = "web"\n')

    def rank_crawl(*_: Any, **__: Any) -> Importance:
        raise StoreAwayError("the store is away")

    arguments = ["rank", "--config", str(file), "--every", "60"]
    result = CliRunner().invoke(cli, arguments, obj=Backend(rank_crawl=rank_crawl, environ={}))
    assert isinstance(result.exception, StoreAwayError)


def test_ranks_as_json() -> None:
    """R3, C4: one object."""
    told = json.loads(Ranks().invoke("--json").stdout)
    assert told["pages"][0] == {"url": "https://example.org/a", "rank": 0.01, "times_mean": 12.34}
    assert (told["count"], told["top"], told["read"]) == (2, 20, {"captures": 7, "links": 70})
    assert told["computed"]["steps"] == 61
    told = json.loads(Ranks().invoke("--json", "--domains").stdout)
    assert told["domains"][0]["referring"] == 20


def test_without_a_page_it_says_so() -> None:
    """R3, C4: one sentence, on standard error."""
    result = Ranks(Importance(None, None, Read())).invoke()
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "No page is stored yet: there is nothing to rank.\n"
    assert json.loads(Ranks(Importance(None, None, Read())).invoke("--json").stdout)["computed"] is None


def test_what_takes_long_is_told_before() -> None:
    """R3, C4: much to read, or somebody else at it."""
    assert "Reading" not in Ranks(unread=1_000_000).invoke().stderr
    assert "Reading 2.50 GB of the archive" in Ranks(unread=2_500_000_000).invoke().stderr
    assert "waiting for that" in Ranks(busy=True).invoke().stderr


def test_what_could_not_be_read_is_told() -> None:
    """R3, C4: some by name."""
    missing = [SegmentId(f"{number}.warc.gz") for number in range(5)]
    read = Read(missing=missing, damaged=["x.warc.gz is damaged at byte 7: it is cut."])
    said = Ranks(replace(FOUND, read=read)).invoke().stderr
    assert "Without 5 files that the archive does not have: 0.warc.gz, 1.warc.gz, 2.warc.gz, ..." in said
    assert "damaged at byte 7: it is cut. What comes after that in the file is left out." in said
