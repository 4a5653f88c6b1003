"""The log of changes, read from its end."""

from __future__ import annotations

from pathlib import Path

from nephila.control.changes import STEP_BYTES, Changes
from nephila.testing.clock import VirtualClock


def test_a_change_that_takes_much_room_hides_none_before_it(tmp_path: Path) -> None:
    """C1, C3: an order may have a megabyte, and stands there twice; lines that were torn are passed over."""
    path = tmp_path / "changes.jsonl"
    changes = Changes(path, VirtualClock())
    for number in range(3):
        changes.end(changes.begin("ann", "pause", f"{number}.test", None, {"paused": True}), {"paused": True})
    with path.open("ab") as stream:
        stream.write(b'{"at":1,"who":"a\n')
    many = {"urls": ["https://a.test/" + "x" * 900] * 1000}
    for number in range(2):
        changes.end(changes.begin("ann", "takedown", "", None, many), {**many, "id": str(number)})
    begun = changes.begin("ann", "block", "b.test", None, None)
    assert path.stat().st_size > 3 * STEP_BYTES
    found = changes.last(100)
    assert [(one.what, one.target, one.state) for one in found] == [
        ("block", "b.test", "begun"),
        ("takedown", "", "done"),
        ("takedown", "", "done"),
        *(("pause", f"{number}.test", "done") for number in (2, 1, 0)),
    ]
    assert [one.after["id"] for one in found[1:3]] == ["1", "0"]
    assert [one.what for one in changes.last(2)] == ["block", "takedown"]
    changes.end(begun, None)
    assert changes.last(1)[0].state == "done"


def test_a_log_that_is_empty_or_not_there_has_no_changes(tmp_path: Path) -> None:
    """C1: nobody has changed anything yet."""
    changes = Changes(tmp_path / "changes.jsonl", VirtualClock())
    assert changes.last(10) == []
    (tmp_path / "changes.jsonl").touch()
    assert changes.last(10) == []
