"""The programs in examples/ and the one in the README do what they say, run as a reader would run them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from served import plain_web, served

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
PAGES = 60


@dataclass(frozen=True)
class Reader:
    """Somebody who tries an example in a directory of their own, on a web that is served beside them."""

    folder: Path
    seed: str

    def runs(self, program: Path, *arguments: str) -> str:
        """Run a program to its end; what it prints."""
        command = [sys.executable, str(program), *arguments]
        ended = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)
        assert ended.returncode == 0, ended.stderr
        assert not ended.stderr
        return ended.stdout


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    """A web of articles, and the settings that lead to it as a file."""
    spec, arguments = plain_web(11, hosts=6, pages=PAGES)
    with served(tmp_path / "web", spec, *arguments, "--base-delay-ms", "20") as web:
        settings = (
            '[scope]\nmode = "all"\n[limits]\nmax_wait_s = 1\n[politeness]\ndelay_s = 0.02\n'
            f'[fetch]\nallow_addresses = ["{web.told["allow_address"]}"]\n'
            f'[dns]\nresolvers = ["{web.told["resolver"]}"]\n'
        )
        (tmp_path / "web.toml").write_text(settings)
        yield Reader(tmp_path, web.seeds[0])
        assert not web.audit().violations


def test_every_example_is_run_here() -> None:
    """E2: none is left to rot."""
    text = Path(__file__).read_text(encoding="utf-8")
    assert all(f'"{path.name}"' in text for path in EXAMPLES.glob("*.py"))


def test_a_first_crawl_prints_every_page(reader: Reader) -> None:
    """E2: pages with url, status, title and links, in ten lines."""
    told = reader.runs(EXAMPLES / "first_crawl.py", reader.seed, "site", "web.toml").splitlines()
    urls = [line.split()[1] for line in told]
    assert len(urls) == len(set(urls)) == PAGES
    assert all(re.fullmatch(r"200 http://\S+ .+ \(\d+ links\)", line) for line in told)


def test_the_program_of_the_readme_runs(reader: Reader) -> None:
    """E2: what the first page shows is no promise but a program of at most ten lines."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [program] = re.findall(r"^```python\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    assert len(program.splitlines()) <= 10
    ast.parse(program)
    here = program.replace('"https://example.org"', f'"{reader.seed}", config="web.toml"')
    assert here != program
    (reader.folder / "program.py").write_text(here)
    assert len(reader.runs(reader.folder / "program.py").splitlines()) == PAGES


def test_a_listener_hears_what_happens(reader: Reader) -> None:
    """O1, E2: one fetch_ok for each page, from the crawl's beginning to its end."""
    told = reader.runs(EXAMPLES / "follow_events.py", reader.seed, "site", "web.toml")
    assert re.match(rf"{PAGES} pages in [\d.]+ s, ended by: done\n", told)
    kinds = {kind: int(count) for count, kind in re.findall(r"^ +(\d+)  (\w+)$", told, re.MULTILINE)}
    assert (kinds["fetch_ok"], kinds["crawl_start"], kinds["crawl_end"]) == (PAGES, 1, 1)
    assert len(re.findall(r"^ *\d+ ms  http://", told, re.MULTILINE)) == 5


def test_a_stopped_crawl_goes_on_where_it_was(reader: Reader) -> None:
    """E2, F10: stop from code; the directory alone is enough to go on, and no page comes twice."""
    told = reader.runs(EXAMPLES / "stop_and_resume.py", reader.seed, "site", "web.toml")
    first, second = told.splitlines()
    stopped = re.fullmatch(r"stopped by interrupt: (\d+) pages, (\d+) URLs queued", first)
    went_on = re.fullmatch(r"went on: (\d+) more pages, 0 of them twice", second)
    assert stopped is not None, told
    assert went_on is not None, told
    assert 10 <= int(stopped[1]) < PAGES
    assert int(stopped[1]) + int(went_on[1]) == PAGES


def test_a_crawl_can_be_looked_into(reader: Reader) -> None:
    """E2, T8: status, pages and the story of each."""
    reader.runs(EXAMPLES / "first_crawl.py", reader.seed, "site", "web.toml")
    told = reader.runs(EXAMPLES / "inspect_crawl.py", "site")
    assert told.startswith(f"{PAGES} pages of 6 hosts, cycle 1, running: False\nqueued: 0")
    assert told.count("verdict      fetched and stored") == 3
    assert told.count("robots.txt") == 3
