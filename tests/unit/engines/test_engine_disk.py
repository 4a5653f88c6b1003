"""Files and folders of this machine."""

from pathlib import Path

import pytest

from nephila.engines.disk import LocalDisk, LookingDisk


def test_files_in_folders_are_called_by_their_path(tmp_path: Path) -> None:
    """W1: in order, folders themselves not among them, for those who write and those who only look."""
    disk = LocalDisk()
    for name in ("b", "a/x/2", "a/x/1", "a/y", "c/d"):
        disk.make_folder((tmp_path / name).parent)
        disk.create(tmp_path / name).append(b"12345"[: len(name)])
    (tmp_path / "empty").mkdir()
    assert disk.names(tmp_path) == LookingDisk().names(tmp_path) == ["a/x/1", "a/x/2", "a/y", "b", "c/d"]
    assert disk.sizes(tmp_path) == {"a/x/1": 5, "a/x/2": 5, "a/y": 3, "b": 1, "c/d": 3}
    assert LookingDisk().names(tmp_path / "nowhere") == []


def test_a_link_to_a_folder_is_not_followed(tmp_path: Path) -> None:
    """Q5, W1: what lies elsewhere is no part of an archive; a link in a circle ends."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "round").symlink_to(tmp_path)
    assert LocalDisk().names(tmp_path) == ["a/round"]


def test_folders_are_removed_as_far_as_they_are_empty(tmp_path: Path) -> None:
    """W1, W2: up to the directory itself, which stays."""
    disk = LocalDisk()
    deep = tmp_path / "warc" / "2026" / "ab"
    assert disk.make_folder(deep) == [tmp_path / "warc", tmp_path / "warc" / "2026", deep]
    assert disk.make_folder(deep) == []
    disk.create(deep.parent / "other")
    disk.remove_folders(deep, tmp_path / "warc")
    assert [path.name for path in deep.parent.iterdir()] == ["other"]
    disk.remove(deep.parent / "other")
    disk.remove_folders(deep.parent, tmp_path / "warc")
    disk.remove_folders(tmp_path / "warc", tmp_path / "warc")
    assert list((tmp_path / "warc").iterdir()) == []


def test_a_file_is_not_made_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """W2: a crawl directory that was taken away is missed, and not made anew."""
    with pytest.raises(FileNotFoundError):
        LocalDisk().create(tmp_path / "gone" / "file")
    for look in (LocalDisk().names, LocalDisk().sizes):
        with pytest.raises(FileNotFoundError):
            look(tmp_path / "gone" / "warc")
    with pytest.raises(FileNotFoundError):
        LocalDisk().make_folder(tmp_path / "gone" / "warc" / "2026" / "a.test", tmp_path / "gone" / "warc")
    assert not (tmp_path / "gone").exists()


def test_a_file_in_the_place_of_a_folder_is_told(tmp_path: Path) -> None:
    """W1: and not taken for one."""
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        LocalDisk().make_folder(tmp_path / "file")
    with pytest.raises(NotADirectoryError):
        LocalDisk().make_folder(tmp_path / "file" / "below")


def test_zeros_are_a_hole(tmp_path: Path) -> None:
    """W5: as long as they should be, and with no room taken; what is appended later follows."""
    file = LocalDisk().create(tmp_path / "file")
    file.append(b"begin")
    file.append_zeros(1 << 20)
    file.append(b"end")
    file.sync()
    assert file.read_at(0, 1 << 21) == b"begin" + bytes(1 << 20) + b"end"
    assert (tmp_path / "file").stat().st_blocks * 512 < 1 << 16
    file.close()
