"""Which file a capture goes to, and what that is called."""

from dataclasses import replace
from hashlib import sha256

import pytest

from nephila.model.errors import UsageError
from nephila.model.record import Capture
from nephila.model.settings import ArchiveSettings
from nephila.model.task import RobotsTask
from nephila.store.layout import DAY_MS, ROLLING, check_layout, first_characters, in_a_name, layout_of
from nephila.store.rotation import HOUR_MS, writer_of
from nephila.testing.contracts.archive import fetched_sample, page_capture
from nephila.urls import fingerprint, registrable_domain

NOON = 1_767_268_800_000


def _of(url: str, number: int = 1) -> Capture:
    return page_capture(number, fetched_sample(url))


def _name(settings: ArchiveSettings, url: str, at: int = NOON, serial: int = 0, writer: int = 0) -> str:
    layout = layout_of(settings, 7, lambda host: ".".join(host.split(".")[-2:]))
    return layout.name_of(layout.key_of(_of(url), at), at, serial, writer)


def test_rolling_names_sort_by_time_then_serial() -> None:
    """W1: a listing is a timeline; several processes never share a name."""
    url = "https://a.example/"
    names = [_name(ArchiveSettings(), url, NOON + more, serial) for more, serial in ((0, 9), (0, 10), (1_000, 3))]
    assert names == sorted(names)
    assert names[0] == "nephila-20260101120000-00009-w0.warc.gz"
    assert _name(ArchiveSettings(), url, writer=1) != _name(ArchiveSettings(), url)


def test_the_domain_and_its_hour_are_in_the_name() -> None:
    """W1: one file per domain and hour, found by its name."""
    settings = ArchiveSettings(layout="domain-hour", prefix="x")
    name = _name(settings, "https://www.spiders.example/web", NOON + 1_234_567, 0, 2)
    assert name == "x-20260101120000-00000-w2-spiders.example.warc.gz"


def test_a_dot_at_the_end_of_a_name_makes_no_other_domain() -> None:
    """W1, W3: files are by the domain that the catalogue has: of a name with a dot, and of an address."""
    settings = ArchiveSettings(layout="key", key="{domain}/{host}/{date}.warc.gz")
    layout = layout_of(settings, 7, registrable_domain)
    stems = [
        layout.key_of(_of(url), NOON).stem
        for url in ("https://www.spiders.example./web", "http://www.spiders.example.:8080/", "http://[2001:db8::1]:81/")
    ]
    assert stems[0] == stems[1]
    assert stems[0].startswith("spiders.example/www.spiders.example/")
    assert stems[2].startswith("_2001_db8__1_/_2001_db8__1_/")


def test_the_preset_has_a_folder_a_day_and_domain_and_a_file_an_answer() -> None:
    """W1: {date}/{domain_hash}/{url_hash}; whatever is stored under the key is found by listing what begins so."""
    settings = ArchiveSettings(layout="key")
    name = _name(settings, "https://www.spiders.example/web", serial=42)
    assert name.split("/")[0] == "2026-01-01"
    assert name.split("/")[2] == f"{1:032x}-20260101120000-00042-w0.warc.gz"
    other = _name(settings, "https://other.spiders.example/", serial=43)
    assert name.rpartition("/")[0] == other.rpartition("/")[0], "one folder for all hosts of a domain"
    assert name.split("/")[1] == sha256(b"spiders.example").hexdigest()[:16]
    layout = layout_of(settings, 7, str)
    assert layout.single
    assert layout.period_ms == DAY_MS


def test_what_is_no_page_has_a_hash_too() -> None:
    """W1, P1: the robots.txt of an origin lies under the hash of its URL."""
    layout = layout_of(ArchiveSettings(layout="key"), 7, str)
    url = "https://spiders.example/robots.txt"
    capture = replace(_of(url), task=RobotsTask("https://spiders.example", url))
    assert fingerprint(url, 7).hex() in layout.key_of(capture, NOON).stem


@pytest.mark.parametrize(
    ("key", "expected", "period_ms"),
    [
        ("{date}/{hour}/{domain}.warc.gz", "2026-01-01/12/spiders.example", HOUR_MS),
        ("{host}/{date}.warc.gz", "www.spiders.example/2026-01-01", DAY_MS),
        ("date={date}/all.warc.gz", "date=2026-01-01/all", DAY_MS),
        ("by-host/{host}.warc.gz", "by-host/www.spiders.example", 0),
    ],
)
def test_other_keys_share_files(key: str, expected: str, period_ms: int) -> None:
    """W1: whatever has the same key lies together, until the hour or the day that it names is over."""
    settings = ArchiveSettings(layout="key", key=key)
    layout = layout_of(settings, 7, lambda host: ".".join(host.split(".")[-2:]))
    first, second = (layout.key_of(_of(f"https://www.spiders.example/{n}", n), NOON + n) for n in (1, 2))
    assert first == second
    assert first.stem == expected
    assert (layout.single, layout.period_ms) == (False, period_ms)
    if period_ms:
        assert layout.key_of(_of("https://www.spiders.example/1"), NOON + period_ms).period == first.period + 1


@pytest.mark.parametrize("host", ["[2001:db8::1]", "a" * 400, "..", "a/../../b", "con", "aux.example", "x\x00y", ""])
@pytest.mark.parametrize("layout", ["domain-hour", "key"])
def test_hostile_hosts_make_harmless_names(host: str, layout: str) -> None:
    """Q5, W1: nothing in a host leaves the directory, overflows a name, hides a file or names a device."""
    name = in_a_name(host)
    assert not set(name) & set("/\\:\x00")
    assert name == name.strip(".")
    assert 0 < len(name) <= 100
    assert name not in {"con", "aux.example"}
    by_key = ArchiveSettings(layout="key", key="{host}/{domain}.warc.gz")
    made = layout_of(by_key if layout == "key" else ArchiveSettings(layout=layout), 7, lambda _: host)
    path = made.name_of(made.key_of(_of("https://a.example/"), NOON), NOON, 0, 5)
    assert len(path) < 255
    assert path.count("/") == (layout == "key")
    assert writer_of(path) == 5


def test_rolling_has_one_key_for_all() -> None:
    """W1: the default."""
    layout = layout_of(ArchiveSettings(), 7, str)
    assert layout.key_of(_of("https://a.example/"), NOON) == ROLLING
    assert layout.key_of(_of("https://b.example/"), NOON + DAY_MS) == ROLLING


def test_a_key_that_nothing_would_use_is_refused() -> None:
    """C4: who writes a template and forgets the layout is told so, and not ignored."""
    with pytest.raises(UsageError, match="the layout is rolling") as caught:
        check_layout(ArchiveSettings(key="{host}/{date}.warc.gz"))
    assert "--warc-layout key" in caught.value.hint
    check_layout(ArchiveSettings(layout="key", key="{host}/{date}.warc.gz"))
    check_layout(ArchiveSettings())


@pytest.mark.parametrize(
    "prefix", ["../elsewhere", "/srv/x", "a/b", "", ".hidden", "-x", "a b", "a\N{BULLET}", "x" * 101]
)
def test_a_prefix_leads_nowhere_else(prefix: str) -> None:
    """W1: it is a word, and no path out of the archive, nor into a folder that other layouts do not know."""
    with pytest.raises(UsageError, match="cannot begin the names of files"):
        check_layout(ArchiveSettings(prefix=prefix))


def test_what_all_names_begin_with() -> None:
    """W2: half-made uploads are looked for under that, and nowhere where names begin differently."""
    assert first_characters(ArchiveSettings(prefix="x")) == "x-"
    assert first_characters(ArchiveSettings(layout="key")) == ""
    assert first_characters(ArchiveSettings(layout="key", key="pages/{date}.warc.gz")) == "pages/"
