"""`nephila test --ids`: which requirement is proven by which test."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import spec_ids
from spec_ids import Proof

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tests" / "unit").mkdir(parents=True)
    (tmp_path / "bench").mkdir()
    (tmp_path / "tests" / "spec_ids.toml").write_text('[a]\nA1 = "one"\nA2 = "two"\nB10 = "ten"\n', encoding="utf-8")
    (tmp_path / "tests" / "unit" / "test_a.py").write_text(
        "import nothing_that_exists\n"
        'def test_one():\n    """A1, B10: says it."""\n'
        'class TestMore:\n    """A1: for all of them."""\n    async def test_inner(self):\n        """B10: inside."""\n'
        'def helper():\n    """A2: is no test."""\n',
        encoding="utf-8",
    )
    (tmp_path / "bench" / "speed.py").write_text('"""A1: how fast."""\n', encoding="utf-8")
    return tmp_path


def test_proofs_are_found_without_importing(tree: Path) -> None:
    assert spec_ids.proofs_by_id(tree) == {
        "A1": ["tests/unit/test_a.py::test_one", "tests/unit/test_a.py::TestMore", "bench/speed.py"],
        "A2": [],
        "B10": ["tests/unit/test_a.py::test_one", "tests/unit/test_a.py::TestMore::test_inner"],
    }


def test_the_report_says_what_is_missing(tree: Path) -> None:
    report = spec_ids.report_text(tree)
    assert "\nNot proven yet:\nA2   two\n" in report
    assert report.endswith("2 of 3 ids are proven by a test.")


@pytest.mark.parametrize(
    ("docstring", "ids", "malformed"),
    [
        ("U2: one.", ("U2",), False),
        ("U2, F10: two.", ("U2", "F10"), False),
        ("No ids: none.", (), False),
        ("", (), False),
        ("As U2 says. So: it is.", (), False),
        ("U2 F3: without a comma.", (), True),
        ("U2-U4: a range.", (), True),
        ("(U2): in brackets.", (), True),
        ("Proves U2: not at the start.", (), True),
    ],
)
def test_ids_stand_first_with_commas_then_a_colon(docstring: str, ids: tuple[str, ...], malformed: bool) -> None:
    proof = Proof("here", docstring)
    assert proof.ids == ids
    assert proof.malformed is malformed


def test_every_id_that_a_test_names_exists() -> None:
    known = spec_ids.known_ids(ROOT)
    unknown = {(proof.place, name) for proof in spec_ids.collect(ROOT) for name in proof.ids if name not in known}
    assert not unknown


def test_no_test_names_its_ids_in_a_way_that_is_overlooked() -> None:
    assert not [proof.place for proof in spec_ids.collect(ROOT) if proof.malformed]


def test_the_list_of_ids_has_no_gaps() -> None:
    numbers: dict[str, list[int]] = {}
    for spec_id in spec_ids.known_ids(ROOT):
        numbers.setdefault(spec_id[0], []).append(int(spec_id[1:]))
    assert all(found == list(range(1, len(found) + 1)) for found in numbers.values())


def test_the_command_prints_json() -> None:
    command = [sys.executable, str(ROOT / "tools" / "run_tests.py"), "--ids", "--json"]
    printed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert list(printed) == list(spec_ids.known_ids(ROOT))
    assert set(printed["U2"]) == {"title", "tests"}
