from __future__ import annotations

import pytest

from nephila.config.declared import Unit, declarations, groups
from nephila.config.values import BadValueError, from_items, from_text, from_toml

KNOWN = declarations()


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("fetch.timeout_s", "20", 20.0),
        ("fetch.timeout_s", "1.5", 1.5),
        ("fetch.timeout_s", "90s", 90.0),
        ("fetch.timeout_s", "250ms", 0.25),
        ("limits.max_time_s", "5m", 300.0),
        ("limits.max_time_s", "2h", 7200.0),
        ("limits.max_time_s", "1d", 86_400.0),
        ("limits.max_time_s", "1.5 H", 5400.0),
        ("limits.max_wait_s", "inf", float("inf")),
        ("archive.sync_ms", "2s", 2000.0),
        ("frontier.look_ahead_ms", "50ms", 50),
        ("fetch.max_bytes", "10MB", 10_000_000),
        ("fetch.max_bytes", "512KiB", 524_288),
        ("fetch.max_bytes", "1.5 gb", 1_500_000_000),
        ("fetch.max_bytes", "77", 77),
        ("limits.max_pages", "100_000", 100_000),
        ("robots.obey", "off", False),
        ("robots.obey", "YES", True),
        ("scope.domains", "a.org, b.org,", ("a.org", "b.org")),
        ("scope.domains", "", ()),
        ("scope.include", r'["a{1,2}", "b"]', ("a{1,2}", "b")),
        ("scope.include", "[0-9]+", ("[0-9]+",)),
        ("scope.include", "[5]", ("[5]",)),
        ("frontier.retry_waits_s", '[5.0, 30, "3m"]', (5.0, 30.0, 180.0)),
        ("frontier.retry_waits_s", "5, 30s, 3m", (5.0, 30.0, 180.0)),
        ("fetch.user_agent", " Bot/1 ", " Bot/1 "),
    ],
)
def test_text_is_read_by_the_type_and_unit_of_its_setting(key: str, text: str, value: object) -> None:
    """C4: durations, sizes, lists and switches as people write them."""
    read = from_text(KNOWN[key], text)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("key", "text", "complaint"),
    [
        ("fetch.timeout_s", "soon", "must be a duration"),
        ("fetch.timeout_s", "10MB", "must be a duration"),
        ("fetch.timeout_s", "inf", "finite"),
        ("fetch.timeout_s", "nan", "finite"),
        ("fetch.timeout_s", "0", "at least 0.1"),
        ("limits.max_wait_s", "-inf", "finite"),
        ("fetch.max_bytes", "90s", "must be a size"),
        ("fetch.max_bytes", "-1", "at least 1"),
        ("limits.max_pages", "10MB", "must be a whole number"),
        ("limits.max_pages", "1.5", "must be a whole number"),
        ("limits.max_pages", "9" * 25, "at most 9,223,372,036,854,775,807, not"),
        ("limits.max_pages", "9" * 5000, "must be a whole number"),
        ("limits.max_time_s", "1e300", "at most"),
        ("limits.max_depth", "251", "at most 250"),
        ("robots.obey", "perhaps", "must be true or false"),
        ("scope.mode", "everything", "must be one of all, domain, host, prefix, list"),
        ("fetch.user_agent", "Bot\r\nX-Evil: 1", "without control characters"),
        ("fetch.user_agent", "Bot\udc80", "without control characters"),
        ("frontier.retry_waits_s", "5, later", "must be a duration"),
        ("frontier.retry_waits_s", "-5", "negative"),
    ],
)
def test_text_that_does_not_fit_is_refused_with_what_was_expected(key: str, text: str, complaint: str) -> None:
    """C4: wrong type, out of range, not one of the choices."""
    with pytest.raises(BadValueError, match=complaint):
        from_text(KNOWN[key], text)


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("limits.max_pages", "100", "must be a whole number, not '100'"),
        ("limits.max_pages", 100.0, "must be a whole number"),
        ("limits.max_pages", True, "must be a whole number"),
        ("fetch.timeout_s", True, "must be a duration"),
        ("fetch.timeout_s", 10**30, "at most"),
        ("robots.obey", 1, "must be true or false"),
        ("fetch.proxy", 5, "must be a string"),
        ("scope.domains", "a.org", "must be an array of strings"),
        ("scope.domains", [1], "must be a string"),
        ("scope.domains", [""], "empty item"),
        ("scope.domains", {"a": 1}, "must be an array"),
    ],
)
def test_toml_keeps_its_types(key: str, value: object, complaint: str) -> None:
    """C4: a string stands for a number only where it has a unit."""
    with pytest.raises(BadValueError, match=complaint):
        from_toml(KNOWN[key], value)


def test_toml_numbers_and_units_are_read() -> None:
    """C4: TOML numbers, and strings with units."""
    assert from_toml(KNOWN["fetch.timeout_s"], 5) == 5.0
    assert isinstance(from_toml(KNOWN["fetch.timeout_s"], 5), float)
    assert from_toml(KNOWN["fetch.timeout_s"], "5m") == 300.0
    assert from_toml(KNOWN["fetch.max_bytes"], "1GiB") == 1 << 30
    assert from_toml(KNOWN["scope.domains"], ["a", "b"]) == ("a", "b")


def test_items_of_a_repeated_flag_are_not_split() -> None:
    """S2, C4: a regex given by flag may hold commas and brackets."""
    assert from_items(KNOWN["scope.include"], ["a{1,2}", '["x"]']) == ("a{1,2}", '["x"]')


def test_every_setting_has_a_key_a_variable_and_a_meaning_of_its_own() -> None:
    """C4: the declarations are complete, and no two settings collide in the environment or among the flags."""
    assert len({one.variable for one in KNOWN.values()}) == len(KNOWN)
    flags = [one.flag for one in KNOWN.values() if one.flag]
    assert len(set(flags)) == len(flags)
    assert all(one.help for one in KNOWN.values())
    assert {one.group for one in KNOWN.values()} == {"", *groups()}
    assert next(iter(KNOWN.values())).group == ""


def test_units_follow_from_names() -> None:
    """C4: `_s`, `_ms` and `_bytes` say what a number counts."""
    units = {key: KNOWN[key].unit for key in ("fetch.timeout_s", "archive.sync_ms", "fetch.max_bytes", "dns.tries")}
    assert units == {
        "fetch.timeout_s": Unit.SECONDS,
        "archive.sync_ms": Unit.MILLISECONDS,
        "fetch.max_bytes": Unit.BYTES,
        "dns.tries": Unit.PLAIN,
    }


def test_so_many_a_second_are_no_seconds() -> None:
    """C4: a rate has the unit of what it counts."""
    assert KNOWN["alerts.min_pages_per_s"].unit is Unit.PLAIN
    assert KNOWN["fleet.events_per_s"].unit is Unit.PLAIN
    assert KNOWN["s3.max_bytes_per_s"].unit is Unit.BYTES
    assert from_text(KNOWN["alerts.max_bytes_per_day"], "4TB") == 4_000_000_000_000
    with pytest.raises(BadValueError, match="must be a number"):
        from_text(KNOWN["alerts.min_pages_per_s"], "5m")
