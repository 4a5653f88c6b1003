"""What the project says of itself is true and its own: commands in the docs exist, no machine shines through."""

from __future__ import annotations

import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import nephila
from nephila.cli.main import cli

ROOT = Path(__file__).parents[2]

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

SOMEBODYS_MACHINE = re.compile(
    r"(?<![\w.~-])/(?:work/(?:main|shared)|root/[.]pyenv|opt/(?:pypi|wheels)|home/(?!user\b|you\b)\w+/)"
    r"|files[.]pythonhosted[.]|pypi[.]org/simple"
)
"""Directories of one machine, and the addresses that a lock or a log would bring along."""


def code_lines(page: Path) -> Iterator[str]:
    """Lines of fenced code blocks, continued ones joined."""
    for block in re.findall(r"^```\w*\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        yield from block.replace("\\\n", " ").splitlines()


def commands() -> Iterator[tuple[str, str]]:
    """Every call of nephila that the documentation shows, with the page it stands on."""
    for page in PAGES:
        for line in code_lines(page):
            if match := re.match(r"\s*(?:\$ )?(?:\w+=\S+ )*(?:\./)?nephila +(.+)", line):
                yield page.relative_to(ROOT).as_posix(), re.split(r" [|>&;]| #", match[1])[0].strip()


def resolve(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that the words name, and what follows it."""
    command: click.Command = cli
    context = click.Context(cli)
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        assert found is not None, f"there is no command {words[0]!r}"
        command, words = found, words[1:]
    return command, words


@pytest.mark.parametrize(("page", "line"), sorted(set(commands())))
def test_commands_that_the_docs_show_exist_with_their_flags(page: str, line: str) -> None:
    """C4: a command that is shown can be typed."""
    command, words = resolve(shlex.split(line))
    if command.name in {"test", "bench"}:
        return  # hands its arguments on
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    known |= {"--help", "-h"}
    shown = {re.match(r"--?[\w-]+", word)[0] for word in words if re.match(r"--?[a-zA-Z]", word)}  # type: ignore[index]
    assert shown <= known


def tracked_files() -> list[Path]:
    """What is or would be in the repository, or without git all that lies here and is text."""
    listing = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=False
    )
    if listing.returncode == 0 and listing.stdout:
        return [path for name in listing.stdout.decode().split("\0") if name and (path := ROOT / name).is_file()]
    folders = ("src", "tests", "tools", "docs", "requirements", "bench", "examples", ".ci")
    return [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]


def test_no_file_tells_of_somebodys_machine() -> None:
    found = []
    for path in tracked_files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # samples of the web in other encodings
        found += [(path.relative_to(ROOT).as_posix(), match[0]) for match in SOMEBODYS_MACHINE.finditer(text)]
    assert not found


def test_the_changelog_has_a_place_for_what_comes_next() -> None:
    assert re.search(r"^## Unreleased$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)


def test_there_is_one_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == nephila.VERSION


def test_the_licence_is_the_one_that_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "Apache-2.0"
    assert "Version 2.0, January 2004" in (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_scripts_can_be_run() -> None:
    for name in ("nephila", "tools/lock", ".ci/run"):
        assert (ROOT / name).stat().st_mode & 0o111, name
