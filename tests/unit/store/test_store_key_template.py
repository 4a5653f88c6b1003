"""Templates of names, judged before anything is fetched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephila.model.errors import UsageError
from nephila.store.key_template import FIELDS, KeyTemplate
from nephila.store.rotation import MAX_NAME_BYTES, MAX_PART_BYTES, longest_tail


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{date}/{url_hash}", "does not end with .warc.gz"),
        ("{date}/{url_hash}.warc", "does not end with .warc.gz"),
        ("{url_hash}.warc.gz", "has no folder"),
        ("/{date}/{url_hash}.warc.gz", "begins with a slash"),
        ("{date}//{url_hash}.warc.gz", "two in a row"),
        ("{date}/.warc.gz", "without anything in it"),
        ("../{url_hash}.warc.gz", "leads out of the archive"),
        ("{date}/../../{url_hash}.warc.gz", "leads out of the archive"),
        ("./{url_hash}.warc.gz", "leads out of the archive or nowhere"),
        (".{date}/{url_hash}.warc.gz", "would be hidden"),
        ("{host}./{date}.warc.gz", "ends with a dot"),
        ("aux/{date}.warc.gz", "name of a device"),
        ("trail/{date}.warc.gz", "is taken"),
        ("nephila-crawl/{date}.warc.gz", "is taken"),
        ("{date}\\{url_hash}/x.warc.gz", "letters, digits"),
        ("{date}/ü{url_hash}.warc.gz", "letters, digits"),
        ("{date}/a b.warc.gz", "letters, digits"),
        ("{date}/{{x}}.warc.gz", "letters, digits"),
        ("{date}/{path}.warc.gz", "{path} is no field of it; there are date, hour"),
        ("{date}/{host:>9}.warc.gz", "{host:>9} is no field"),
        ("{date}/{host!r}.warc.gz", "{host!r} is no field"),
        ("{date}/{host.upper}.warc.gz", "is no field"),
        ("{date}/{}.warc.gz", "{} is no field"),
        ("{date}/{0}.warc.gz", "is no field"),
        ("{date}/{host.warc.gz", "braces do not match"),
        ("{date}/host}.warc.gz", "braces do not match"),
        ("{domain}/{host}/{domain}.warc.gz", "320 are the most"),
        ("a/{domain}-{host}.warc.gz", "more than 255 characters"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused_in_a_sentence(text: str, said: str) -> None:
    """C4, Q5, W1: what is wrong, and how to write it."""
    with pytest.raises(UsageError) as caught:
        KeyTemplate.parse(text)
    assert said in str(caught.value)
    assert "archive.key" in caught.value.hint


def test_the_preset_is_a_good_one() -> None:
    """W1: and names what it names."""
    template = KeyTemplate.parse("{date}/{domain_hash}/{url_hash}.warc.gz")
    assert template.fields == {"date", "domain_hash", "url_hash"}
    assert template.beginning == ""
    assert template.filled({name: name for name in FIELDS}) == "date/domain_hash/url_hash"


@given(
    st.lists(st.sampled_from([*(f"{{{name}}}" for name in FIELDS), "/", "a", ".", "-", "=", "..", "{x}"]), max_size=9)
)
def test_whatever_is_accepted_stays_inside_and_short_enough(parts: list[str]) -> None:
    """Q5, W1: of any template the names are relative, without a way up, and within what file systems take."""
    try:
        template = KeyTemplate.parse("".join(parts) + ".warc.gz")
    except UsageError:
        return
    made = template.filled({name: "x" * longest for name, longest in FIELDS.items()})
    assert not made.startswith("/")
    assert all(part.strip(".") and not part.startswith(".") for part in made.split("/"))
    assert len(made) + longest_tail() <= MAX_NAME_BYTES
    assert len(made.rpartition("/")[2]) + longest_tail() <= MAX_PART_BYTES
