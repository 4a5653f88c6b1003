from __future__ import annotations

import hashlib
import io
import json
from dataclasses import replace

from nephila.export.columns import COLUMNS, EDGE_COLUMNS, moment
from nephila.export.lines import EdgeLines, PageLines

from .conftest import MakeDocument


def test_a_page_is_one_object_with_every_field(document: MakeDocument) -> None:
    """W6: in the order that is documented, hashes in hexadecimal, times in UTC."""
    stream = io.BytesIO()
    writer = PageLines(stream)
    writer.add(document())
    writer.add(document("https://spiders.example/z"))
    writer.close()
    first, second = map(json.loads, stream.getvalue().decode().splitlines())
    assert list(first) == [column.name for column in COLUMNS]
    assert (first["fetched_at"], first["last_seen_at"]) == ("2026-01-01T00:00:00.001Z", "2026-01-01T00:01:40.000Z")
    assert first["sha256"] == hashlib.sha256(b"<p>Silk.").hexdigest()
    assert first["simhash"] == "fffffffffffffffe"
    assert first["headers"][1:] == [["x", "1"], ["x", "2"]]
    assert first["links"][0] == {
        "url": "https://spiders.example/b",
        "tag": "a",
        "rel": "nofollow ugc",
        "text": "the other",
    }
    assert first["title"] == "Silk \U0001f577"
    assert (first["noindex"], first["noarchive"], first["extracted"]) == (False, True, [["shop.price", "3"]])
    assert second["url"] == "https://spiders.example/z"


def test_text_that_is_none_does_not_stop_an_export(document: MakeDocument) -> None:
    """W6, Q5: lone surrogates are replaced."""
    stream = io.BytesIO()
    PageLines(stream).add(document(title="a\ud800b"))
    assert json.loads(stream.getvalue())["title"] == "a?b"


def test_a_link_is_one_object(document: MakeDocument) -> None:
    """W4: source, target, anchor text, rel and the time of discovery; a page's own nofollow counts for each."""
    stream = io.BytesIO()
    EdgeLines(stream).add(document())
    edges = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [list(edge) for edge in edges] == [[name for name, _, _ in EDGE_COLUMNS]] * 2
    assert edges[0] == {
        "source": "https://spiders.example/a",
        "target": "https://spiders.example/b",
        "text": "the other",
        "rel": "nofollow ugc",
        "tag": "a",
        "nofollow": True,
        "discovered_at": "2026-01-01T00:00:00.001Z",
    }
    assert edges[1]["nofollow"] is False
    stream = io.BytesIO()
    EdgeLines(stream).add(document(nofollow=True))
    assert all(json.loads(line)["nofollow"] for line in stream.getvalue().splitlines())


def test_moments_are_whole_milliseconds(document: MakeDocument) -> None:
    """W6: as in the archive."""
    assert moment(1_767_225_600_999) == "2026-01-01T00:00:00.999Z"
    assert replace(document().row).at == 1_767_225_600_001
