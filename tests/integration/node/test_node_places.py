"""What is left of a crawl that came to nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from nephila.model.errors import CrawlDirectoryError
from nephila.node.directory import CrawlDirectory


def test_a_crawl_that_came_to_nothing_is_taken_back_and_nothing_else(tmp_path: Path) -> None:
    """C4: directories that were made for it go too; an older directory and a stranger's file stay."""
    directory = CrawlDirectory(tmp_path / "a" / "b")
    (tmp_path / "a").mkdir()
    with directory.held():
        directory.frontier.mkdir()
        directory.discard()
    assert list(tmp_path.iterdir()) == [tmp_path / "a"]
    assert not list((tmp_path / "a").iterdir())
    with directory.held():
        (directory.root / "mine.txt").write_text("mine")
        directory.discard()
    assert [path.name for path in directory.root.iterdir()] == ["mine.txt"]


def test_a_directory_that_is_taken_back_meanwhile_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F10: whoever was about to lock it would hold a marker that is not there any more."""
    directory = CrawlDirectory(tmp_path / "crawl")
    with directory.held():
        pass

    def lock_too_late(_descriptor: int, _operation: int) -> None:
        directory.discard()

    monkeypatch.setattr("fcntl.flock", lock_too_late)
    with pytest.raises(CrawlDirectoryError, match="another crawl"), directory.held():
        pass
