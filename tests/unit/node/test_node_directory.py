"""The crawl directory: what is one, who holds it, and what is told about those that are none."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from nephila.model.errors import CrawlDirectoryError, StorageError
from nephila.node.directory import FORMAT, CrawlDirectory, file_size, file_system_of, plain_file_size
from nephila.node.fleet.identity import WorkerDirectory


def hold(root: Path, **more: Path) -> None:
    with CrawlDirectory(root, **more).held():
        """Made, and held for a moment."""


def test_a_new_directory_is_made_with_its_parents_and_held_again(tmp_path: Path) -> None:
    """F10: the same command goes on."""
    root = tmp_path / "some" / "where"
    hold(root)
    assert (root / "nephila-crawl").read_text() == FORMAT
    CrawlDirectory(root).check()
    hold(root)


def test_one_crawl_at_a_time(tmp_path: Path) -> None:
    """F10: told with what to do; afterwards it is free."""
    root = tmp_path / "crawl"
    with CrawlDirectory(root).held(), pytest.raises(CrawlDirectoryError, match="another crawl is running") as told:
        hold(root)
    assert "Ctrl-C" in told.value.hint
    hold(root)


@pytest.mark.parametrize("moment", ["iterdir", "mkdir"])
def test_of_two_that_begin_in_one_directory_at_once_one_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """F10, P2: the other one saw no marker, and must not put its own in the place of one that is held."""
    root = tmp_path / "crawl"
    root.mkdir()
    first, holding = CrawlDirectory(root), ExitStack()
    plain = getattr(Path, moment)

    def begun_meanwhile(path: Path, **how: Any) -> Any:
        if moment == "iterdir" or path.name == "warc":
            monkeypatch.undo()
            holding.enter_context(first.held())
        return plain(path, **how)

    with holding:
        monkeypatch.setattr(Path, moment, begun_meanwhile)
        second = CrawlDirectory(root)
        with pytest.raises(CrawlDirectoryError, match="another crawl is running"), second.held():
            """Both would ask the same hosts."""
        assert (first.is_new, second.is_new) == (True, False)
        first.watch()()
        assert sorted(path.name for path in root.iterdir()) == ["nephila-crawl", "warc"]
    hold(root)


def test_the_names_of_a_new_directory_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Q4: what lies in it is as durable as its own name, and those above it."""
    synced: list[str] = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    root = tmp_path / "some" / "where"
    hold(root)
    assert {str(folder) for folder in (root, root.parent, tmp_path)} <= set(synced)
    synced.clear()
    hold(root)
    assert synced == []


@pytest.mark.parametrize("leftover", ["warc", "nephila-crawl.new"])
def test_one_that_a_crash_left_half_made_is_begun_anew(tmp_path: Path, leftover: str) -> None:
    """F10: the marker is written last, and nothing before it is in the way."""
    root = tmp_path / "crawl"
    root.mkdir()
    if leftover == "warc":
        (root / leftover).mkdir()
    else:
        (root / leftover).write_text("neph")
    hold(root)
    CrawlDirectory(root).check()


def test_a_directory_with_something_else_in_it_is_left_alone(tmp_path: Path) -> None:
    """F10: a crawl is never mixed into somebody's files."""
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(CrawlDirectoryError, match="something else"):
        hold(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    """C4: the file is named, whether it is the directory itself or above it."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(CrawlDirectoryError, match="file is a file"):
        hold(tmp_path / "file")
    with pytest.raises(CrawlDirectoryError):
        hold(tmp_path / "file" / "crawl")


def test_one_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """C4: the system's own words, and what to do. Not even root can make a directory there."""
    with pytest.raises(CrawlDirectoryError, match="cannot be written") as told:
        hold(Path("/proc/self/nephila"))
    assert "choose another directory" in told.value.hint


def test_looking_at_what_is_no_crawl_makes_nothing(tmp_path: Path) -> None:
    """C4: neither there, nor a crawl."""
    with pytest.raises(CrawlDirectoryError, match="no crawl at"):
        CrawlDirectory(tmp_path / "none").check()
    with pytest.raises(CrawlDirectoryError, match="not a crawl directory"):
        CrawlDirectory(tmp_path).check()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("marker", [b"nephila crawl directory, format 99\n", b"", b"\xff\xfe\x00"])
def test_another_version_is_refused_with_its_name(tmp_path: Path, marker: bytes) -> None:
    """F10: nothing of it is touched."""
    (tmp_path / "nephila-crawl").write_bytes(marker)
    with pytest.raises(CrawlDirectoryError, match=r"another version|cannot be read"):
        hold(tmp_path)
    assert (tmp_path / "nephila-crawl").read_bytes() == marker


# File systems

MOUNTS = """\
overlay / overlay rw 0 0
tmpfs /srv tmpfs rw 0 0
server:/x /srv/shared nfs4 rw 0 0
/dev/sdb /srv/shared/local ext4 rw 0 0
host:/y /srv/with\\040space fuse.sshfs rw 0 0
broken line
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/srv", "tmpfs"),
        ("/srv/crawl", "tmpfs"),
        ("/srv/shared", "nfs4"),
        ("/srv/shared/a/b", "nfs4"),
        ("/srv/sharedish", "tmpfs"),
        ("/srv/shared/local/crawl", "ext4"),
        ("/srv/with space/crawl", "fuse.sshfs"),
        ("/elsewhere", "overlay"),
    ],
)
def test_the_file_system_is_that_of_the_longest_mount_point(tmp_path: Path, path: str, kind: str) -> None:
    """F8: as the system's table of mounts says."""
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    assert file_system_of(Path(path), mounts) == kind


def test_a_network_file_system_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    """F8: the frontier's locks cannot be trusted there."""
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/x / ext4 rw 0 0\nserver:/x {tmp_path}/net nfs rw 0 0\n")
    with pytest.raises(CrawlDirectoryError, match=r"network file system \(nfs\)"):
        hold(tmp_path / "net" / "crawl", mounts=mounts)
    assert not (tmp_path / "net").exists()
    hold(tmp_path / "local", mounts=mounts)


def test_an_unknown_table_of_mounts_refuses_nothing(tmp_path: Path) -> None:
    """F8: better to crawl than to guess."""
    assert file_system_of(tmp_path, tmp_path / "none") == ""
    hold(tmp_path / "crawl", mounts=tmp_path / "none")


# The scope


def test_the_scope_is_appended_to_and_a_torn_line_cut_off(tmp_path: Path) -> None:
    """S2, F10: what a kill left half written is not glued to what comes after it."""
    directory = CrawlDirectory(tmp_path / "crawl")
    with directory.held():
        assert directory.saved_scope() == b""
        directory.add_to_scope(lambda: b"domain a.test\n")
        with directory.scope.open("ab") as stream:
            stream.write(b"domain b.te")
        directory.add_to_scope(lambda: b"domain c.test\n")
        directory.add_to_scope(lambda: b"")
    assert directory.saved_scope() == b"domain a.test\ndomain c.test\n"


def test_a_scope_that_cannot_be_saved_is_told(tmp_path: Path) -> None:
    """W2: before the seed that it stands for is admitted."""
    directory = CrawlDirectory(tmp_path / "none")
    with pytest.raises(StorageError, match="scope"):
        directory.add_to_scope(lambda: b"domain a.test\n")


def test_a_file_is_as_long_in_c_as_in_python(tmp_path: Path) -> None:
    """Q1, S2: the size of the scope is told the same; a file that is not there has none."""
    file = tmp_path / "scope"
    for text in (None, b"", b"a line\n"):
        if text is not None:
            file.write_bytes(text)
        assert file_size(os.fsencode(file)) == plain_file_size(os.fsencode(file)) == len(text or b"")
    for ask in (file_size, plain_file_size):
        with pytest.raises(NotADirectoryError):
            ask(os.fsencode(file / "below"))


def test_a_second_worker_in_a_directory_is_told_to_take_its_own(tmp_path: Path) -> None:
    """N3: workers that share a volume find out which setting tells them apart."""
    with (
        WorkerDirectory(tmp_path).held(),
        pytest.raises(CrawlDirectoryError, match="another worker is at work") as told,
        WorkerDirectory(tmp_path).held(),
    ):
        """Not reached."""
    assert "--dir DIR, or fleet.directory" in told.value.hint


def test_who_a_worker_is_is_durable_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """N3, Q4: a power loss leaves no empty file, for which the worker with all of its spool would be refused."""
    synced: list[tuple[str, bytes, bool]] = []
    fsync = os.fsync
    directory = WorkerDirectory(tmp_path)

    def noted(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        data = path.read_bytes() if path.is_file() else b""
        synced.append((path.name, data, directory.identity_file.exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    known = directory.identity("crawl")
    assert [(name, known.id.encode() in data, named) for name, data, named in synced] == [
        ("worker.new", True, False),
        (tmp_path.name, False, True),
    ]
    assert directory.identity("crawl") == known


def test_a_worker_s_directory_is_no_crawl_s_and_a_crawl_s_is_no_worker_s(tmp_path: Path) -> None:
    """N3, F10: neither is begun, or looked for, in the other's; what to give instead is told."""
    worker, crawl = tmp_path / "worker", tmp_path / "crawl"
    with WorkerDirectory(worker).held():
        WorkerDirectory(worker).identity("web")
    for act in (CrawlDirectory(worker).check, lambda: hold(worker)):
        with pytest.raises(CrawlDirectoryError, match="of a fleet's worker") as told:
            act()
        assert "--config FILE" in told.value.hint
    hold(crawl)
    (crawl / "frontier").mkdir()
    with pytest.raises(CrawlDirectoryError, match="and no worker's"), WorkerDirectory(crawl).held():
        """Not reached."""


def test_a_new_volume_with_nothing_but_what_its_file_system_keeps_there_is_empty(tmp_path: Path) -> None:
    """N3: such as containers mount."""
    (tmp_path / "lost+found").mkdir()
    with WorkerDirectory(tmp_path).held():
        assert WorkerDirectory(tmp_path).identity("web").crawl == "web"
