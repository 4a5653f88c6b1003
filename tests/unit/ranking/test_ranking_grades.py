"""`domains.grades`: what is found in it, mapped or from afar, and what is no such file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from link_graphs import write_some_grades

from nephila.ranking import GRADES, DamagedFileError, DomainGrades, GradesAfar, grades

ME = "0" * 32


class Afar:
    """A file that is read in stretches, and counts them."""

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        self.asked = Counter[str]()

    def read_at(self, offset: int, size: int) -> bytes:
        self.asked["times"] += 1
        self.asked["bytes"] += size
        return self.data[offset : offset + size]

    def opened(self, identity: str = ME) -> GradesAfar:
        return GradesAfar(self.read_at, len(self.data), identity)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(st.integers(0, 10**6).map("{}.test".format), st.integers(0, 64), max_size=300),
    st.sampled_from([1, 3, 64, 8192]),
)
def test_what_was_written_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: dict[str, int], at_once: int
) -> None:
    """R3: every domain with its grade, and no other, whether the file is mapped or read a few names at a time."""
    monkeypatch.setattr(grades, "_AT_ONCE", at_once)
    path = write_some_grades(tmp_path / GRADES, ME, known)
    afar = Afar(path).opened()
    with DomainGrades(path, ME) as here:
        for domain in [*known, "other.test", "", "a.test"]:
            assert here.grade_of(domain) == afar.grade_of(domain) == known.get(domain)


def test_one_domain_of_many_costs_a_few_kilobytes(tmp_path: Path) -> None:
    """R3: names are spread evenly, so that it is known about where each of them is."""
    known = {f"site{number}.test": number % 65 for number in range(100_000)}
    path = write_some_grades(tmp_path / GRADES, ME, known)
    assert path.stat().st_size < 9.1 * len(known)
    afar = Afar(path)
    found = afar.opened()
    for domain in list(known)[::5000]:
        afar.asked.clear()
        assert found.grade_of(domain) == known[domain]
        assert afar.asked["times"] <= 3
        assert afar.asked["bytes"] < 150_000


def test_without_a_page_no_domain_has_a_grade(tmp_path: Path) -> None:
    """R3: a file all the same, that takes the place of an older one."""
    write_some_grades(tmp_path / GRADES, ME, {})
    assert Afar(tmp_path / GRADES).opened().grade_of("a.test") is None
    with DomainGrades(tmp_path / GRADES, ME) as here:
        assert here.grade_of("a.test") is None


@pytest.mark.parametrize("keep", [0, 10, 100, -1])
def test_what_is_no_such_file_is_not_read(tmp_path: Path, keep: int) -> None:
    """R3: one that was cut, or of another crawl."""
    path = write_some_grades(tmp_path / GRADES, ME, {"a.test": 3})
    for kind in (lambda: DomainGrades(path, "1" * 32), lambda: Afar(path).opened("1" * 32)):
        with pytest.raises(DamagedFileError):
            kind()
    path.write_bytes(path.read_bytes()[:keep])
    for kind in (lambda: DomainGrades(path, ME), lambda: Afar(path).opened()):
        with pytest.raises(DamagedFileError):
            kind()
