"""`nephila rank`: what is asked, and how the answer is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from nephila.cli.backend import Backend
from nephila.cli.main import cli
from nephila.config import Configured
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
    assert ranks.asked == [(Path("d"), {"pages": 2, "domains": 0, "anew": False})]
    assert result.stdout.splitlines() == [
        "     12.34  https://example.org/a",
        "      1.23  https://example.org/\N{REPLACEMENT CHARACTER}[31m",
    ]
    assert result.stderr == ("1,234 pages, 5,678 links between them, 2023-11-14 22:13:20 (UTC); 1.00 is the mean.\n")


def test_domains_are_listed_with_pages_and_referring_domains() -> None:
    """R3, C4: under a line that names the columns."""
    ranks = Ranks(replace(FOUND, top_pages=[]))
    result = ranks.invoke("--domains", "--anew")
    assert ranks.asked == [(Path("d"), {"pages": 0, "domains": 20, "anew": True})]
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
    assert wanted == {"pages": 20, "domains": 0, "anew": False}
    for arguments, place in ((("--work", "ranks"), ("d",)), ((), ("d", *fleet)), ((), ())):
        assert ranks.invoke(*arguments, crawl=place).exit_code != 0
    assert len(ranks.asked) == 1


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
