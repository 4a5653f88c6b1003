"""Requirements say the truth: what is imported is required, what is required is locked, what is locked is hashed."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path
from typing import cast

import pytest
from packaging.markers import Environment, default_environment
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "requirements"
OLDEST_AND_NEWEST = ("3.11.0", "3.14.0")
NOT_EVERYWHERE = {"atheris"}
"""Asked for under some versions only, as its line says."""
LOCKS = ("run", "render", "parquet", "build", "test", "bench")


def normal(name: str) -> str:
    """One spelling for a package's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def asked_for(path: Path) -> set[str]:
    """The packages of an .in file."""
    lines = (line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return {normal(re.split(r"[\s<>=!~;\[]", line)[0]) for line in lines if line and not line.startswith("-")}


def locked(path: Path) -> dict[str, str]:
    """The packages of a lock with their versions."""
    return {
        normal(name): version
        for name, version in re.findall(r"^([\w.-]+)==(\S+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }


def imported(folder: Path) -> set[str]:
    """Third-party modules that the files of a folder import anywhere, inside functions too."""
    names: set[str] = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Import():
                    names |= {alias.name.split(".")[0] for alias in node.names}
                case ast.ImportFrom(module=str(module), level=0):
                    names.add(module.split(".")[0])
                case _:
                    pass
    return names - set(sys.stdlib_module_names) - {"nephila", "nephila_native"}


def packages_of(modules: set[str]) -> set[str]:
    """The packages that bring these modules; a module that nobody brings stands for itself."""
    distributions = packages_distributions()
    return {normal(distributions.get(name, [name])[0]) for name in modules}


def extras() -> set[str]:
    """Packages that somebody may install beside it, for what he asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (line for extra in project["optional-dependencies"].values() for line in extra)
    return {normal(re.split(r"[<>=!~;\[ ]", line)[0]) for line in lines}


def test_what_is_imported_is_required_and_nothing_else() -> None:
    needed = packages_of(imported(ROOT / "src" / "nephila"))
    assert needed == asked_for(REQUIREMENTS / "run.in") | extras()
    assert extras() <= locked(REQUIREMENTS / "test.txt").keys()


def test_what_the_tests_import_is_locked() -> None:
    folders = ("tools", "tests/support", "bench")
    ours = {path.stem for folder in folders for path in (ROOT / folder).iterdir()}
    needed = packages_of(imported(ROOT / "tests") - ours)
    assert needed <= locked(REQUIREMENTS / "run.txt").keys() | locked(REQUIREMENTS / "test.txt").keys()


def test_an_installed_package_requires_the_same_as_a_checkout() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {normal(re.split(r"[<>=!~;\[ ]", line)[0]) for line in project["dependencies"]}
    assert declared == asked_for(REQUIREMENTS / "run.in")
    for layer in ("render", "parquet"):
        extra = {normal(re.split(r"[<>=!~;\[ ]", line)[0]) for line in project["optional-dependencies"][layer]}
        assert extra == asked_for(REQUIREMENTS / f"{layer}.in")


def test_lower_bounds_are_not_above_what_the_tests_run_with() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = locked(REQUIREMENTS / "run.txt") | locked(REQUIREMENTS / "render.txt")
    versions |= locked(REQUIREMENTS / "parquet.txt")
    optional = project["optional-dependencies"]
    for line in [*project["dependencies"], *optional["render"], *optional["parquet"]]:
        name, bound = line.split(">=")
        assert numbers(bound) <= numbers(versions[normal(name)]), line


def numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


@pytest.mark.parametrize("name", LOCKS)
def test_locks_follow_what_is_asked_for(name: str) -> None:
    assert asked_for(REQUIREMENTS / f"{name}.in") <= set(locked(REQUIREMENTS / f"{name}.txt"))


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_has_hashes(name: str) -> None:
    text = re.sub(r"#.*", "", (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8"))
    entries = re.split(r"\n(?=\w)", text)[1:]
    assert entries
    assert all(
        re.fullmatch(r"\S+==\S+(?: ; [^\\\n]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+\s*", entry) for entry in entries
    )


@pytest.mark.parametrize("name", LOCKS)
def test_locks_name_no_index_and_no_directory(name: str) -> None:
    text = (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8")
    assert not re.search(r"://|--index-url|--find-links|--extra-index|--trusted-host|@ ", text)


def needed_under(version: str, names: set[str]) -> dict[str, str]:
    """All that packages need under a Python, directly or not, each with who needs it, as what is installed says.

    What is not installed here, because this Python does not need it, is taken for a package that needs nothing.
    """
    python = cast("Environment", {"python_version": version.rpartition(".")[0], "python_full_version": version})
    needed = dict.fromkeys(names, "we")
    waiting = [(name, "") for name in names]
    done = set()
    while waiting:
        name, extra = waiting.pop()
        done.add((name, extra))
        try:
            wants = [Requirement(line) for line in requires(name) or ()]
        except PackageNotFoundError:
            continue
        for want in wants:
            if want.marker and not want.marker.evaluate({**default_environment(), **python, "extra": extra}):
                continue
            needed.setdefault(normal(want.name), name)
            waiting += {(normal(want.name), one) for one in ("", *want.extras)} - done
    return needed


def locked_under(version: str, *names: str) -> set[str]:
    """What locks install under a Python."""
    python = cast("Environment", {"python_version": version.rpartition(".")[0], "python_full_version": version})
    lines = re.findall(
        r"^(\S+==.*?) \\$", "\n".join((REQUIREMENTS / f"{name}.txt").read_text("utf-8") for name in names), re.MULTILINE
    )
    entries = [Requirement(line) for line in lines]
    environment = {**default_environment(), **python}
    return {normal(one.name) for one in entries if one.marker is None or one.marker.evaluate(environment)}


@pytest.mark.parametrize("version", OLDEST_AND_NEWEST)
@pytest.mark.parametrize(
    ("name", "locks"),
    [
        ("run", ("run",)),
        ("render", ("run", "render")),
        ("parquet", ("run", "parquet")),
        ("test", ("run", "build", "test")),
    ],
    ids=["run", "render", "parquet", "test"],
)
def test_locks_have_all_that_is_needed_under_any_python_and_not_only_under_the_one_that_locked(
    name: str, locks: tuple[str, ...], version: str
) -> None:
    """What is needed and has no hash is refused, so a package that only 3.11.0 needs would break the set-up there."""
    there = locked_under(version, *locks)
    needed = needed_under(version, asked_for(REQUIREMENTS / f"{name}.in") - NOT_EVERYWHERE)
    assert {package: by for package, by in needed.items() if package not in there} == {}


def test_locks_agree_with_each_other() -> None:
    run = locked(REQUIREMENTS / "run.txt") | locked(REQUIREMENTS / "render.txt")
    run |= locked(REQUIREMENTS / "parquet.txt")
    test = locked(REQUIREMENTS / "test.txt")
    assert {name: run[name] for name in run.keys() & test.keys()} == {
        name: test[name] for name in run.keys() & test.keys()
    }
