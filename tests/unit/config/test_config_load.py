from __future__ import annotations

from pathlib import Path

import pytest

from nephila.config import Given, declarations, given_by_flag, load, read_stored, write_stored
from nephila.config.lines import key_lines
from nephila.model.errors import CrawlDirectoryError, UsageError
from nephila.model.settings import FetchSettings, Settings


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "crawl.toml"
    path.write_text(text, encoding="utf-8")
    return path


def complaint(**layers: object) -> tuple[str, str]:
    with pytest.raises(UsageError) as caught:
        load(**layers)  # type: ignore[arg-type]  # the tests pass what load takes
    return str(caught.value), caught.value.hint


def test_nothing_given_means_the_defaults() -> None:
    """C4: every value comes from somewhere, at least from its default."""
    configured = load()
    assert configured.settings == Settings()
    assert set(configured.sources) == set(declarations())
    assert set(configured.sources.values()) == {"default"}


def test_the_later_layer_wins_and_every_value_remembers_its_source(tmp_path: Path) -> None:
    """C4: defaults, crawl directory, file, environment, --set, flags, in rising order."""
    names = ["timeout_s", "connect_timeout_s", "max_bytes", "max_hops", "concurrency"]
    layers = [
        "\n".join(f"{name} = 11" for name in names[:5]),
        "\n".join(f"{name} = 12" for name in names[:4]),
    ]
    file = written(tmp_path, "# a comment\n[fetch]\n" + layers[1])
    configured = load(
        stored="[fetch]\n" + layers[0],
        file=file,
        environ={f"NEPHILA_FETCH_{name.upper()}": "13" for name in names[:3]},
        assignments=[f"fetch.{name}=14" for name in names[:2]],
        flags=[given_by_flag(declarations()["fetch.timeout_s"], "--timeout", "15")],
    )
    fetch, sources = configured.settings.fetch, configured.sources
    assert (fetch.timeout_s, fetch.connect_timeout_s, fetch.max_bytes) == (15.0, 14.0, 13)
    assert (fetch.max_hops, fetch.concurrency) == (12, 11)
    assert sources["fetch.timeout_s"] == "--timeout"
    assert sources["fetch.connect_timeout_s"] == "--set"
    assert sources["fetch.max_bytes"] == "environment NEPHILA_FETCH_MAX_BYTES"
    assert sources["fetch.max_hops"] == f"file {file} line 6"
    assert sources["fetch.concurrency"] == "crawl directory"
    assert sources["fetch.proxy"] == "default"


def test_a_setting_of_no_group_is_set_everywhere_too(tmp_path: Path) -> None:
    """C4: random_seed has no group."""
    assert load(file=written(tmp_path, "random_seed = 7")).settings.random_seed == 7
    assert load(environ={"NEPHILA_RANDOM_SEED": "8"}).settings.random_seed == 8
    assert load(assignments=["random_seed=9"]).settings.random_seed == 9


def test_a_list_is_replaced_and_not_merged() -> None:
    """C4: what is in force is readable in one place."""
    configured = load(stored='[scope]\ndomains = ["a.org"]', environ={"NEPHILA_SCOPE_DOMAINS": "b.org,c.org"})
    assert configured.settings.scope.domains == ("b.org", "c.org")


def test_what_was_remembered_for_a_layout_goes_with_it() -> None:
    """C4, W1: `--warc-layout rolling` must do, on a directory that was begun with a key of its own."""
    stored = '[archive]\nlayout = "key"\nkey = "{host}/{date}.warc.gz"'
    archive = load(stored=stored, assignments=["archive.layout=rolling"]).settings.archive
    assert (archive.layout, archive.key) == ("rolling", Settings().archive.key)
    assert load(stored=stored, assignments=["archive.layout=key"]).settings.archive.key == "{host}/{date}.warc.gz"
    asked = load(stored=stored, assignments=["archive.layout=rolling", "archive.key={date}/x.warc.gz"])
    assert asked.settings.archive.key == "{date}/x.warc.gz"  # somebody says both now: that is told, elsewhere


def test_options_of_a_plugin_that_is_switched_off_go_with_it() -> None:
    """C4, E1: what the directory remembers of it; what is given now is not dropped in silence."""
    stored = '[plugins]\nenabled = ["one", "a.two"]\noptions = ["one.x=1", "a.two.y=2", "a.two.z=3"]'
    assert load(stored=stored).settings.plugins.options == ("one.x=1", "a.two.y=2", "a.two.z=3")
    assert load(stored=stored, assignments=["plugins.enabled="]).settings.plugins.options == ()
    assert load(stored=stored, assignments=["plugins.enabled=a.two"]).settings.plugins.options == (
        "a.two.y=2",
        "a.two.z=3",
    )
    asked = load(stored=stored, assignments=["plugins.enabled=a.two", "plugins.options=one.x=5"])
    assert asked.settings.plugins.options == ("one.x=5",)


def test_an_unknown_key_of_a_file_is_named_with_its_line_and_the_nearest_name(tmp_path: Path) -> None:
    """C4: a slip of the pen is found, not ignored."""
    message, hint = complaint(file=written(tmp_path, "[fetch]\n\ntimeout = 5\n"))
    assert "'fetch.timeout'" in message
    assert "crawl.toml line 3" in message
    assert "fetch.timeout_s" in hint


def test_a_key_in_the_wrong_group_is_found_by_its_name(tmp_path: Path) -> None:
    """C4: the group is what people forget."""
    assert complaint(assignments=["delay_s=1"])[1] == "Did you mean politeness.delay_s?"
    assert "politeness.delay_s" in complaint(file=written(tmp_path, "[fetch]\ndelay_s = 2"))[1]


@pytest.mark.parametrize("text", ["[fetsch]\ntimeout_s = 1", "[fetsch]", "fetch = 3", "[fetch.inner]\na = 1"])
def test_tables_that_do_not_exist_are_refused(tmp_path: Path, text: str) -> None:
    """C4: a misspelt table is no table without effect."""
    assert "There is no setting" in complaint(file=written(tmp_path, text))[0]


def test_a_wrong_type_in_a_file_is_named_with_its_line(tmp_path: Path) -> None:
    """C4: line and key, what was expected, what was found."""
    message, hint = complaint(file=written(tmp_path, "[limits]\n# pages\nmax_pages = 'many'\n"))
    assert message.startswith("limits.max_pages must be a whole number, not 'many' (file ")
    assert message.endswith("line 3).")
    assert "pages in all" in hint


def test_broken_toml_is_told_with_its_line(tmp_path: Path) -> None:
    """C4: broken TOML."""
    message, _ = complaint(file=written(tmp_path, "[fetch]\ntimeout_s = = 3\n"))
    assert "not valid TOML" in message
    assert "line 2" in message
    assert "not valid TOML" in complaint(file=written(tmp_path, "random_seed = " + "9" * 5000))[0]


def test_a_file_that_cannot_be_read_is_a_sentence(tmp_path: Path) -> None:
    """C4: no traceback for a missing file."""
    assert "cannot be read" in complaint(file=tmp_path / "none.toml")[0]
    (tmp_path / "latin.toml").write_bytes(b"# \xe9\n")
    assert "not UTF-8" in complaint(file=tmp_path / "latin.toml")[0]


def test_an_environment_variable_that_is_almost_a_setting_is_refused() -> None:
    """C4: others' variables are left alone, slips are not."""
    assert load(environ={"NEPHILA_DEBUG": "1", "NEPHILA_MATERIAL": "x", "NEPHILA_PYTHON": "y", "PATH": "z"})
    message, hint = complaint(environ={"NEPHILA_FETCH_TIMEOUT": "3"})
    assert "NEPHILA_FETCH_TIMEOUT " in message
    assert "NEPHILA_FETCH_TIMEOUT_S" in hint
    assert "NEPHILA_FETCH_TIMEOUT_S" in complaint(environ={"NEPHILA_FECTH_TIMEOUT_S": "3"})[1]


def test_bad_values_name_the_variable_the_assignment_or_the_flag() -> None:
    """C4: the user sees what he wrote."""
    assert complaint(environ={"NEPHILA_ROBOTS_OBEY": "eh"})[0].startswith("NEPHILA_ROBOTS_OBEY must be true or false")
    assert complaint(assignments=["robots.obey=eh"])[0].startswith("--set robots.obey must be true or false")
    assert "group.name=value" in complaint(assignments=["robots.obey"])[0]
    with pytest.raises(UsageError, match=r"^--delay must be a duration"):
        given_by_flag(declarations()["politeness.delay_s"], "--delay", "x")


def test_flags_give_switches_strings_and_lists() -> None:
    """C4: what the command line hands over."""
    known = declarations()
    assert given_by_flag(known["robots.obey"], "--robots", False) == Given("robots.obey", False, "--robots")
    assert given_by_flag(known["scope.exclude"], "--exclude", ("a,b", "c")).value == ("a,b", "c")
    with pytest.raises(TypeError):
        given_by_flag(known["robots.obey"], "--robots", 3.5)


def test_settings_that_cannot_work_together_are_refused() -> None:
    """C4, F3: with a lease no longer than a fetch nothing could ever be sent."""
    message, hint = complaint(assignments=["fetch.timeout_s=400"])
    assert "frontier.lease_s (300, default)" in message
    assert "--set frontier.lease_s=800" in hint
    assert "dns.max_ttl_s" in complaint(assignments=["dns.max_ttl_s=1"])[0]
    assert load(assignments=["dns.max_ttl_s=5"])


@pytest.mark.parametrize("given", ["html", "text/", "*/html", "text/html; charset=utf-8"])
def test_what_is_no_media_type_is_refused(given: str) -> None:
    """C4: nothing would ever be stored of it; where a crawl was begun so, it can still be looked at."""
    message, hint = complaint(flags=[Given("fetch.types", ("text/html", given), "--type")])
    assert message == f"{given!r} (fetch.types, --type) is no media type."
    assert "text/*" in hint
    assert load(stored=f'[fetch]\ntypes = ["{given}"]').settings.fetch.types == (given,)
    assert load(assignments=["fetch.types=Text/HTML"]).settings.fetch.types == ("text/html",)
    assert load(assignments=["fetch.types=text/*,application/vnd.ms-excel,*/*,image/svg+xml"])


def test_what_a_crawl_directory_keeps_is_what_goes_on(tmp_path: Path) -> None:
    """C4: stored and read again."""
    assert read_stored(tmp_path) is None
    assert read_stored(tmp_path / "none") is None
    settings = Settings(fetch=FetchSettings(timeout_s=12.5, user_agent='Bot "x" \\ é'), random_seed=3)
    write_stored(tmp_path, settings)
    assert load(stored=read_stored(tmp_path)).settings == settings
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]
    with pytest.raises(CrawlDirectoryError, match="cannot be written"):
        write_stored(tmp_path / "none", settings)


def test_lines_are_found_past_strings_comments_and_arrays() -> None:
    """C4: the line that is named is the key's own."""
    text = (
        'random_seed = 1 # [x]\n"a b".c = """\n[no]\nk = 1\n"""\n\n[fetch] # = here\n'
        "types = [ # one\n  'a=b', # two\n]\r\nproxy = '''x\n'''\nuser_agent = \"\\\"[\"\n[[t]]\nz = {q = 1}\n"
    )
    assert key_lines(text) == {
        ("random_seed",): 1,
        ("a b",): 2,
        ("a b", "c"): 2,
        ("fetch",): 7,
        ("fetch", "types"): 8,
        ("fetch", "proxy"): 11,
        ("fetch", "user_agent"): 13,
        ("t",): 14,
        ("t", "z"): 15,
    }


def test_the_line_of_an_inline_table_is_that_of_its_statement(tmp_path: Path) -> None:
    """C4: inline and dotted spellings of the same key."""
    assert "line 2)" in complaint(file=written(tmp_path, "\nfetch = {timeout_s = true}"))[0]
    assert "line 1)" in complaint(file=written(tmp_path, "fetch.timeout_s = true"))[0]


def test_the_number_of_processes_may_be_left_to_the_machine(tmp_path: Path) -> None:
    """C4: auto is a word for 0, in every way in; another word is told what was expected."""
    assert load(file=written(tmp_path, 'processes = "auto"')).settings.processes == 0
    assert load(environ={"NEPHILA_PROCESSES": "AUTO"}).settings.processes == 0
    assert load(assignments=["processes=3"]).settings.processes == 3
    message, hint = complaint(assignments=["processes=many"])
    assert "a whole number or auto, not 'many'" in message
    assert "auto" in hint
    assert "at most 64" in complaint(assignments=["processes=65"])[0]
    assert "a whole number or auto" in complaint(file=written(tmp_path, 'processes = "2"'))[0]


def test_a_table_of_a_plugin_is_its_options(tmp_path: Path) -> None:
    """E1: [plugins.NAME] becomes NAME.OPTION=VALUE, beside those that are listed, and reads back the same."""
    text = '[plugins]\nenabled = ["a", "b-c"]\noptions = ["a.x=1"]\n'
    text += '[plugins.b-c]\nwords = ["one", "two"]\ndeep = {k = 2.5}\n'
    settings = load(file=written(tmp_path, text)).settings
    assert settings.plugins.enabled == ("a", "b-c")
    assert settings.plugins.options == ("a.x=1", 'b-c.words=["one", "two"]', 'b-c.deep={"k": 2.5}')
    write_stored(tmp_path, settings)
    assert load(stored=read_stored(tmp_path)).settings == settings
    message, _ = complaint(file=written(tmp_path, '[plugins]\noptions = "a.x=1"\n[plugins.a]\ny = 1\n'))
    assert "plugins.options is a list" in message
