"""Content codings undone within limits."""

from __future__ import annotations

import gzip
import time
import zlib
from collections.abc import Callable

import brotlicffi as brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.fetch.coding import Decoded, Undecodable, codings_of, decode

PAGE = b"<html><body>" + b"".join(b"<p>Paragraph %d of many.</p>\n" % n for n in range(3000)) + b"</body></html>"
ROOM = 10_000_000


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda data: brotli.compress(data, quality=3),
    "zstd": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("name", ENCODERS)
def test_each_coding_is_undone(name: str) -> None:
    """H1: gzip, deflate, br and zstd."""
    assert decode([name], ENCODERS[name](PAGE), ROOM) == Decoded(PAGE)


def test_deflate_without_its_header_is_undone_too() -> None:
    """H1: half of those who say deflate send it raw."""
    assert decode(["deflate"], raw_deflate(PAGE), ROOM) == Decoded(PAGE)


def test_stacked_codings_are_undone_from_the_last_to_the_first() -> None:
    """H1: Content-Encoding lists them in the order they were applied."""
    data = zstandard.ZstdCompressor().compress(brotli.compress(gzip.compress(PAGE)))
    assert decode(codings_of(["gzip, br", "zstd"]), data, ROOM) == Decoded(PAGE)


def test_identity_is_no_coding() -> None:
    """H1: names in any case, identity and empty ones left out."""
    assert codings_of(["Identity, GZip", "", "none"]) == ["gzip"]
    assert decode([], PAGE, ROOM) == Decoded(PAGE)


@pytest.mark.parametrize("name", ENCODERS)
def test_a_bomb_is_cut_at_the_limit(name: str) -> None:
    """H2, Q5: the decoded size is bounded, and the cut is told."""
    bomb = ENCODERS[name](bytes(30_000_000))
    assert decode([name], bomb, 1_000_000) == Decoded(bytes(1_000_000), cut=True)


@pytest.mark.parametrize("name", ENCODERS)
def test_a_body_of_exactly_the_limit_is_not_cut(name: str) -> None:
    """H2: the limit itself is within the limit."""
    assert decode([name], ENCODERS[name](PAGE), len(PAGE)) == Decoded(PAGE)
    assert decode([name], ENCODERS[name](PAGE), len(PAGE) - 1) == Decoded(PAGE[:-1], cut=True)


def test_an_inner_bomb_is_cut_before_it_is_undone_further() -> None:
    """H2, Q5: every stage of stacked codings is bounded."""
    bomb = gzip.compress(gzip.compress(bytes(50_000_000)))
    decoded = decode(["gzip", "gzip"], bomb, 1000)
    assert isinstance(decoded, Decoded)
    assert decoded.cut
    assert len(decoded.body) <= 1000


@pytest.mark.parametrize("name", ENCODERS)
def test_a_stream_that_ends_early_gives_what_there_is(name: str) -> None:
    """H1, Q5: a cut transfer is still worth reading."""
    data = ENCODERS[name](bytes(range(256)) * 40 + PAGE)
    decoded = decode([name], data[: len(data) * 3 // 4], ROOM)
    assert isinstance(decoded, Decoded)
    assert (bytes(range(256)) * 40 + PAGE).startswith(decoded.body)


@pytest.mark.parametrize("name", ENCODERS)
def test_rubbish_after_the_stream_is_ignored(name: str) -> None:
    """H1: servers append line ends, comments, whole pages."""
    assert decode([name], ENCODERS[name](PAGE) + b"\r\n<!-- cached -->", ROOM) == Decoded(PAGE)


@pytest.mark.parametrize("name", ["gzip", "deflate", "br"])
def test_what_precedes_a_break_in_the_stream_is_kept(name: str) -> None:
    """H1, Q5: damage in the middle does not take the beginning away."""
    data = bytearray(ENCODERS[name](PAGE))
    middle = len(data) // 2
    data[middle : middle + 24] = b"\xff" * 24
    decoded = decode([name], bytes(data), ROOM)
    assert isinstance(decoded, Decoded)
    assert PAGE.startswith(decoded.body[:10_000])
    assert len(decoded.body) > 10_000


def test_a_wrong_checksum_is_not_held_against_a_page() -> None:
    """H1: browsers show such pages."""
    data = bytearray(gzip.compress(PAGE))
    data[-6] ^= 0xFF
    assert decode(["gzip"], bytes(data), ROOM) == Decoded(PAGE)


def test_gzip_members_in_a_row_are_one_body() -> None:
    """H1: RFC 1952 allows them."""
    assert decode(["gzip"], gzip.compress(b"one ") + gzip.compress(b"two"), ROOM) == Decoded(b"one two")


def test_a_gzip_header_with_all_its_fields_is_skipped() -> None:
    """H1: extra field, name, comment and header checksum."""
    header = b"\x1f\x8b\x08\x1e" + bytes(6) + b"\x03\x00abc" + b"name\0" + b"comment\0" + b"\x00\x00"
    assert decode(["gzip"], header + raw_deflate(PAGE) + bytes(8), ROOM) == Decoded(PAGE)


@pytest.mark.parametrize("name", ["gzip", "br", "zstd"])
def test_a_body_that_is_not_coded_at_all_is_undecodable(name: str) -> None:
    """H5: the header lies, and nothing can be read."""
    assert isinstance(decode([name], b"<html>plain text</html>" * 50, ROOM), Undecodable)


def test_an_unknown_coding_is_undecodable() -> None:
    """H5: and the coding is named."""
    undecodable = decode(["compress"], b"\x1f\x9d...", ROOM)
    assert isinstance(undecodable, Undecodable)
    assert "compress" in undecodable.detail


@pytest.mark.parametrize(
    "name",
    ["UTF-8", "utf8", "iso-8859-1", "Windows-1251", "us-ascii", "8bit", "binary", "aws-chunked", "text/html", ""],
)
def test_what_is_no_coding_is_passed_over(name: str) -> None:
    """H1: a charset, a media type or an upload's framing in the wrong header: browsers show the page."""
    assert codings_of([name]) == []
    assert codings_of([f"{name},gzip"]) == codings_of(["gzip", name]) == ["gzip"]


def test_more_codings_than_anybody_needs_are_refused() -> None:
    """Q5: a hundred codings are an attack."""
    assert isinstance(decode(["gzip"] * 6, gzip.compress(b""), ROOM), Undecodable)


@pytest.mark.parametrize("name", ENCODERS)
def test_an_empty_body_needs_no_decoding(name: str) -> None:
    """H1: many servers name a coding on an answer without a body."""
    assert decode([name], b"", ROOM) == Decoded(b"")


def test_a_zstd_window_beyond_the_standard_is_refused() -> None:
    """Q5: RFC 9659 allows 8 MB; more is a claim on our memory."""
    settings_ = zstandard.ZstdCompressionParameters(window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=settings_).compressobj()
    data = packer.compress(bytes(1000)) + packer.flush()
    assert isinstance(decode(["zstd"], data, ROOM), Undecodable)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(ENCODERS)), st.binary(max_size=300), st.integers(0, 400), st.binary(max_size=8))
def test_no_bytes_whatsoever_break_the_decoder(name: str, content: bytes, at: int, damage: bytes) -> None:
    """Q5: any bytes end in a body within the limit or in a reason."""
    data = bytearray(ENCODERS[name](content))
    data[at : at + len(damage)] = damage
    decoded = decode([name], bytes(data), 200)
    assert isinstance(decoded, Undecodable) or len(decoded.body) <= 200


def test_members_of_a_gzip_stream_cost_what_they_hold() -> None:
    """Q5: half a million empty ones in ten megabytes are cut after ten thousand, without copying the rest each time."""
    begun = time.process_time()
    assert decode(["gzip"], gzip.compress(b"", mtime=0) * 500_000, ROOM) == Decoded(b"", cut=True)
    assert decode(["gzip"], gzip.compress(b"a", mtime=0) * 200_000, ROOM) == Decoded(b"a" * 10_000, cut=True)
    assert time.process_time() - begun < 5
    pages = [PAGE[: 7 * number] for number in range(200)]
    assert decode(["gzip"], b"".join(map(gzip.compress, pages)), ROOM) == Decoded(b"".join(pages))
    broken = gzip.compress(PAGE) + gzip.compress(PAGE)[:10] + b"\xff" * 50
    assert decode(["gzip"], broken, ROOM) == Decoded(PAGE)


def test_a_brotli_stream_costs_what_it_holds_and_not_what_it_may_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Q5: the library fills the room that it is given with zeros at every call; a broken stream is fed byte by byte."""
    rooms: list[int] = []
    process = brotli.Decompressor.process

    def counted(self: brotli.Decompressor, data: bytes, output_buffer_limit: int) -> bytes:
        rooms.append(output_buffer_limit)
        return bytes(process(self, data, output_buffer_limit=output_buffer_limit))

    monkeypatch.setattr(brotli.Decompressor, "process", counted)
    packed = ENCODERS["br"](PAGE)
    assert decode(["br"], packed, ROOM) == Decoded(PAGE)
    assert sum(rooms) < 4 * len(PAGE)
    rooms.clear()
    assert decode(["br"], packed + b"rubbish" * 1000, ROOM) == Decoded(PAGE)
    assert max(rooms) < 4 * len(PAGE)
    assert sum(rooms) < 20 * ROOM  # thousands of calls
    rooms.clear()
    assert decode(["br"], brotli.compress(bytes(3 * ROOM)), ROOM) == Decoded(bytes(ROOM), cut=True)
    assert len(rooms) < 15
