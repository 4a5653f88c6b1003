from __future__ import annotations

import os
import re
import string
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.config import CONFIG_NAME, Declared, declarations, dump_toml, load, value_of, write_stored
from nephila.config.reference import reference
from nephila.config.values import LARGEST_INT, LONGEST_S, from_toml
from nephila.model.settings import Settings

ROOT = Path(__file__).parents[3]


def values(one: Declared) -> st.SearchStrategy[Any]:
    """Anything that a setting may hold."""
    low = one.low if one.low is not None else (0 if one.many else None)
    if one.choices:
        scalar: st.SearchStrategy[Any] = st.sampled_from(one.choices)
    elif one.type is bool:
        scalar = st.booleans()
    elif one.type is int:
        scalar = st.integers(int(low or 0), int(one.high) if one.high is not None else LARGEST_INT)
    elif one.type is float:
        scalar = st.floats(low, one.high if one.high is not None else LONGEST_S, allow_nan=False)
        if one.endless:
            scalar |= st.just(float("inf"))
    else:
        plain = st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])
        scalar = st.text(plain | st.sampled_from(string.punctuation + '"\\#'), min_size=int(one.many), max_size=20)
    return st.lists(scalar, max_size=3).map(tuple) if one.many else scalar


@st.composite
def any_settings(draw: st.DrawFn) -> Settings:
    """Settings with a handful of values that differ from the defaults."""
    chosen = draw(st.lists(st.sampled_from(list(declarations().values())), max_size=12, unique_by=lambda one: one.key))
    changed = Settings()
    for one in chosen:
        value = draw(values(one))
        if one.group:
            group = replace(getattr(changed, one.group), **{one.name: value})
            changed = replace(changed, **{one.group: group})
        else:
            changed = replace(changed, **{one.name: value})
    return changed


def read_back(text: str) -> Settings:
    """Every value of a document, fitted one by one (settings that cannot work together are no matter of TOML)."""
    document = tomllib.loads(text)
    back = Settings()
    for one in declarations().values():
        table = document.get(one.group, {}) if one.group else document
        if one.name in table:
            change = {one.name: from_toml(one, table[one.name])}
            back = replace(back, **({one.group: replace(getattr(back, one.group), **change)} if one.group else change))
    return back


@settings(max_examples=200, deadline=None)
@given(any_settings())
def test_settings_survive_the_way_through_toml_exactly(wanted: Settings) -> None:
    """C4: what is stored in a crawl directory is what goes on, to the last bit."""
    for full in (False, True):
        back = read_back(dump_toml(wanted, full=full))
        assert back == wanted
        assert [type(value_of(back, one)) for one in declarations().values()] == [
            type(value_of(wanted, one)) for one in declarations().values()
        ]


def test_only_differences_are_written() -> None:
    """C4: the stored configuration is short; the full one has everything with its meaning."""
    assert dump_toml(Settings()) == ""
    assert dump_toml(load(assignments=["fetch.timeout_s=5", "random_seed=2"]).settings) == (
        "random_seed = 2\n\n[fetch]\ntimeout_s = 5.0\n"
    )
    full = dump_toml(Settings(), full=True)
    assert all(one.help in full for one in declarations().values())
    assert full.count("\n[") == len(
        [member for member in fields(Settings) if member.name not in {"random_seed", "processes"}]
    )


def test_a_full_dump_is_a_configuration_file_that_loads(tmp_path: Path) -> None:
    """C4: `config show` can be saved and used."""
    path = tmp_path / "all.toml"
    path.write_text(dump_toml(Settings(), full=True), encoding="utf-8")
    configured = load(file=path)
    assert configured.settings == Settings()
    assert configured.sources["random_seed"] == f"file {path} line 2"


def test_the_settings_page_is_current() -> None:
    """C4: docs/settings.md is what `nephila config reference` prints."""
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == reference()


def test_the_settings_page_names_every_setting_once() -> None:
    """C4: a setting that is not documented does not exist."""
    page = reference()
    assert all(page.count(f"| `{one.key}` |") == 1 for one in declarations().values())
    assert all(one.flag in page for one in declarations().values())


def test_the_settings_page_is_written_for_people() -> None:
    """C4: no 1.04858e+06, and no ids of requirements, which nobody knows who sets something."""
    assert not re.search(r"[0-9]e[+][0-9]|[(][A-Z][0-9]+[-,)]", reference())


@pytest.mark.parametrize("login", ["ann:secret", "ann@corp.test:secret", 'ann:se"cret', '"ann":secret'])
def test_a_configuration_with_a_password_is_for_its_owner(tmp_path: Path, login: str) -> None:
    """K4: a proxy's, whatever stands in it; without one it is readable as other files are."""
    quiet = replace(Settings(), fetch=replace(Settings().fetch, proxy=f"http://{login}@127.0.0.1:8080"))
    old = os.umask(0o022)
    try:
        for kept, mode in ((Settings(), 0o644), (quiet, 0o600), (Settings(), 0o644)):
            write_stored(tmp_path, kept)
            assert (tmp_path / CONFIG_NAME).stat().st_mode & 0o777 == mode
    finally:
        os.umask(old)
