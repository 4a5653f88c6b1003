from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from nephila.export.target import check_target, draft_file, draft_folder
from nephila.export.tree import PageTree, html_file, markdown_file, text_file
from nephila.model.errors import NephilaError, UsageError

from .conftest import MakeDocument


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    """W6: under its name, with ordinary permissions, and nothing beside it."""
    target = tmp_path / "pages.jsonl"
    with draft_file(target) as draft:
        draft.write_text("all of it")
        assert not target.exists()
    assert target.read_text() == "all of it"
    assert list(tmp_path.iterdir()) == [target]
    assert target.stat().st_mode & 0o400


@pytest.mark.parametrize("trouble", [KeyboardInterrupt(), SystemExit(1), RuntimeError("a bug")])
def test_what_was_cut_off_leaves_nothing(tmp_path: Path, trouble: BaseException) -> None:
    """W6: neither a file nor a folder, and what was there before stays."""
    target = tmp_path / "old"
    target.write_text("before")
    for make in (draft_file, draft_folder):
        for place in (tmp_path / "new", target):
            with pytest.raises(type(trouble)), make(place) as draft:
                _write_half(draft, trouble)
    assert list(tmp_path.iterdir()) == [target]
    assert target.read_text() == "before"


@pytest.mark.parametrize("make", [draft_file, draft_folder])
def test_an_interrupt_in_the_moment_in_which_it_is_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], AbstractContextManager[Path]]
) -> None:
    """W6, C4: it is there, and nobody has been told of it yet."""
    target = tmp_path / ("long" * 60)
    for name in ("touch", "mkdir"):
        made = getattr(Path, name)

        def interrupted(self: Path, *given: Any, made: Callable[..., None] = made, **named: Any) -> None:
            made(self, *given, **named)
            raise KeyboardInterrupt

        monkeypatch.setattr(Path, name, interrupted)
    with pytest.raises(KeyboardInterrupt), make(target):
        pytest.fail("nothing is to be written any more")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_moved_away_in_vain_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """W6: interrupted between the two moves."""
    target, replace = tmp_path / "pages", Path.replace
    target.mkdir()
    (target / "old").touch()

    def interrupted(self: Path, other: Path) -> Path:
        if self.suffix == ".part":
            raise KeyboardInterrupt
        return replace(self, other)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt), draft_folder(target) as draft:
        (draft / "new").touch()
    assert [path.name for path in target.iterdir()] == ["old"]
    assert list(tmp_path.iterdir()) == [target]


def _write_half(draft: Path, trouble: BaseException) -> None:
    (draft / "x" if draft.is_dir() else draft).write_text("half")
    raise trouble


def test_a_disk_that_refuses_is_told_in_a_sentence(tmp_path: Path) -> None:
    """W6: with what to do, and nothing is left."""
    with pytest.raises(NephilaError, match="cannot be written: No space left") as told, draft_file(tmp_path / "x"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert "Make room" in told.value.hint
    with pytest.raises(NephilaError, match="cannot be written"), draft_folder(tmp_path / "no" / "x"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_left_alone_unless_it_is_asked_for(tmp_path: Path) -> None:
    """W6: and a folder is replaced only where it is an earlier export."""
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("x")
    folder.mkdir()
    for target, is_folder in ((file, False), (folder, True)):
        with pytest.raises(UsageError, match="is there already"):
            check_target(target, folder=is_folder, replace=False)
    check_target(file, folder=False, replace=True)
    with pytest.raises(UsageError, match="not an earlier export"):
        check_target(folder, folder=True, replace=True)
    with pytest.raises(UsageError, match="not an earlier export"):
        check_target(file, folder=True, replace=True)
    with pytest.raises(UsageError, match="not a file"):
        check_target(folder, folder=False, replace=True)
    (folder / "index.jsonl").touch()
    check_target(folder, folder=True, replace=True)
    with pytest.raises(UsageError, match="There is no folder"):
        check_target(tmp_path / "none" / "x", folder=False, replace=False)


def test_an_earlier_export_is_replaced_as_a_whole(tmp_path: Path) -> None:
    """W6: nothing of the old one is left."""
    target = tmp_path / "pages"
    for name in ("old", "new"):
        with draft_folder(target) as draft:
            (draft / name).touch()
    assert [path.name for path in target.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [target]


def test_pages_are_files_with_an_index(tmp_path: Path, document: MakeDocument) -> None:
    """W6: two URLs of one name are two files, and the index says which is which."""
    tree = PageTree(tmp_path, ".html", html_file)
    urls = ["https://a.example/Page", "https://a.example/page", "https://a.example/page/deeper"]
    for number, url in enumerate(urls):
        tree.add(document(url, body=str(number).encode()))
    tree.close()
    lines = [json.loads(line) for line in (tmp_path / "index.jsonl").read_text().splitlines()]
    assert [line["url"] for line in lines] == urls
    assert [(tmp_path / line["file"]).read_text() for line in lines] == ["0", "1", "2"]
    assert lines[0]["file"] == "a.example/page.html"


def test_captures_of_one_page_are_told_apart_by_their_time(tmp_path: Path, document: MakeDocument) -> None:
    """W6: where all of them are asked for."""
    tree = PageTree(tmp_path, ".txt", text_file, dated=True)
    tree.add(document())
    tree.close()
    assert (tmp_path / "spiders.example" / "a@20260101000000.txt").read_text() == "Silk.\n"


def test_markdown_says_what_it_is_of(document: MakeDocument) -> None:
    """W6: a title cannot end the lines that it stands in."""
    text = markdown_file(document(title='a"\n---\nb')).decode()
    assert text == (
        '---\nurl: "https://spiders.example/a"\ntitle: "a\\"\\n---\\nb"\nlanguage: "en"\n'
        'fetched_at: "2026-01-01T00:00:00.001Z"\n---\n\n**Silk.**\n'
    )
