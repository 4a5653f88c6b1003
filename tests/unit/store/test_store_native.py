"""What the archive does in C against the same in Python."""

from __future__ import annotations

from base64 import b32encode

from hypothesis import given
from hypothesis import strategies as st

from nephila.model.page import Link
from nephila.native import native
from nephila.pipeline.outlinks import plain_outlinks
from nephila.store.warc import plain_base32

texts = st.sampled_from(("", "https://a.test/", "a", "nofollow", "é", "x ", " ", "next prev", "\t"))


@given(st.binary(min_size=20, max_size=20))
def test_digests_are_written_alike(digest: bytes) -> None:
    """W1: base 32 as RFC 4648 has it."""
    assert native.base32(digest) == plain_base32(digest) == b32encode(digest).decode()


@given(st.lists(st.builds(Link, texts, texts, texts, texts), max_size=5).map(tuple))
def test_links_are_told_alike(links: tuple[Link, ...]) -> None:
    """W1, W4: the lines of the metadata record do not depend on who made them."""
    assert native.outlinks(links) == plain_outlinks(links)
