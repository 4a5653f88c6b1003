"""The scanner, which builds no tree, against the tree."""

from __future__ import annotations

from itertools import product

import pytest
from heaps_of_html import documents, heaps
from hypothesis import example, given, settings

from nephila.parse.scan import MAX_TAGS, Scan, plain_scan
from nephila.parse.tree import elements
from nephila.parse.walk import DOCUMENT_TAGS, IMAGE_TAGS, MAX_REFERENCES, Findings, walk


def by_tree(html: str) -> Findings:
    return walk(elements(html, DOCUMENT_TAGS + IMAGE_TAGS))


def scanned(html: str) -> Scan:
    return plain_scan(html.encode(), images=True)


def assert_same(html: str) -> None:
    found, expected = scanned(html).findings, by_tree(html)
    assert found == expected
    assert list(found.references) == list(expected.references)


@pytest.mark.parametrize(
    "html",
    [
        "<p><a href=1>one</p><p>two</a>",
        "<ul><li><a href=1>one<li>two</ul>three",
        "<a href=1>one<a href=2>two</a>three",
        "<span><a href=1>one</span>two</a>",
        "<a href=1><b>one</b> <i>two</i></a>three",
        "<b><a href=1>one</a></b>two</b>",
        "<table><tr><td><a href=1>one<td>two<table><tr><td><a href=2>three</table>four</table>five",
        "<object><a href=1>one<object><a href=2>two</object>three</a>",
        "<form action=1><form action=2></form><form action=3>",
        "<table><form action=1><tr><td></table><form action=2>",
        "<div><a href=1>x</div>y<div>z</a>",
        "<div><a href=1></div><label><a href=2></label>x",
        "<div><b>x</div><span>y</b><a href=1>z</span>w",
        "<p><a name=x></p><div><span><p><a href=1>one</span>two</a>",
        "<svg><a href=1>one<title>t</title></a></svg><a href=2>two<svg/>three</a>",
        "<svg><style><a></style></svg><math><mi>x</mi><a href=1>y</a></math>",
        "<svg><![CDATA[<a href=1>]]></svg><![CDATA[<a href=2>]]>",
        "<button><a href=1>one<button>two</a>",
        "<dl><dt><a href=1>one<dd>two</dl>",
        "<h1><a href=1>one</h2>two",
        "<select><option>a<option><b>b</select><a href=1>c</a>",
        "<a href=1>x<template><a href=2>y</a></template>z</a>",
        "<template><svg><title>x</title><style>a</style></svg></template><a href=1>y</a>",
        "<noscript><a href=1>x</a></noscript>y<div><noscript><a href=2>z</noscript>",
        "<a href=1>x<template><table><tr><td>y</td></tr></table><object></object></template>z</a>",
        "<html lang=en><p><html xml:lang=de lang=fr><title>one</title><title>two</title>",
        "<noscript><a href=1>one</a><img src=2></noscript>",
        "<a href=1>x<script>'</a>'</script>y<textarea>\n</b></textarea>z</a>",
        "<a href='x&notit;y&copy=1&copy;&copy'>&notit;&#x80;&#0;</a>",
        "<a href=1 href=2 HREF=3>x</a><a href>y</a>",
        "<a href='1\r\n2\r3'>x\r\ny</a>",
        "<a href=1>x</body></html>y</a>",
        "<a href=1>w<pre>\nx</pre></a>",
        "<base href=1><base href=2><svg></svg><link rel=canonical href=3><link rel=canonical href=4>",
        "<a href=1 rel=nofollow>x</a><a href=1>y</a><link href=2><a href=2>z</a><area href=2 alt=w>",
    ],
)
def test_nesting_is_read_as_the_tree_has_it(html: str) -> None:
    """X1: where an anchor ends, which form counts, what is raw: without a tree, and without doubt."""
    assert not scanned(html).doubtful
    assert_same(html)


@pytest.mark.parametrize(
    "html",
    [
        "<a href=1>x<div>y</a>z</div>",
        "<b><a href=1>x</b>y</a>",
        "<table><tr><a href=1>x</a><td>y</table>",
        "<table><tr><td><a href=1>x</td></tr><tr><a href=2>y</table>",
        "<table><tr><td><a href=1><object>x</tr><font>",
        "<svg><foreignObject><a href=1>",
        "<svg><div><a href=1>",
        "<svg><link href=1></svg>",
        "<select><a href=1>x</a></select>",
        "<frameset><frame src=1></frameset>",
        "<plaintext><a href=1>",
        "<template shadowrootmode=open><a href=1></template>",
        "<template><a href=1><object></template>x",
        "<p><a href=1>x<template><object></template></p>y",
        "<template><a href=1><object><table></object></table></template>x",
        "<template><a href=1><object><svg></object></template>x",
        "<template><a href=1><object><template></object></template></template>x",
        "<template><a href=1><td></th></template>x",
        "<template><svg><title></template><a href=1>",
        "<template><svg><template><p></template><a href=1>",
        "<template><svg><![CDATA[> </template>]]><a href=1></svg></template>",
        "<noscript><a href=1>x</noscript>y",
        "<noscript><math></noscript><title>x",
        "<div>" * 300 + "<a href=1>",
        "<a href=1>\0</a>",
        "".join(f"<a href={number}><object>" for number in range(9)),
        "<a href=1 rel=nofollow><object><a href=1>x",
        "".join(f"<a href={number}>" for number in range(MAX_REFERENCES)),
        "<a href=1>" + "x" * 1_000_001,
        "<p>" * (MAX_TAGS + 1),
    ],
    ids=lambda html: html[:40],
)
def test_what_tags_alone_do_not_tell_is_a_doubt(html: str) -> None:
    """X1: then there are no findings at all, and the tree is asked."""
    result = scanned(html)
    assert result.doubtful
    assert result.findings == Findings()


@given(heaps)
@settings(max_examples=400, deadline=None)
@example("<a rel=nofollow href=1><object><a href=1>x</object>y</a>")
@example("<p><table><a href=1>x</table></p>y")
def test_what_is_no_doubt_is_what_the_tree_says(html: str) -> None:
    """X1, X2: on any heap of tags."""
    if not scanned(html).doubtful:
        assert_same(html)


@given(documents)
@settings(max_examples=200, deadline=None)
def test_documents_that_are_nested_well_are_read_as_the_tree_has_them(html: str) -> None:
    """X1, X2: elements in elements, all closed."""
    if not scanned(html).doubtful:
        assert_same(html)


NAMES = ["amp", "notit", "copy", "lt", "frac12x", "nGt", "x", "AMP"]


@pytest.mark.parametrize(("name", "end", "hash_sign"), list(product(NAMES, [";", "", "=", " ", "1"], ["", "#", "#x"])))
def test_character_references_are_those_of_the_tree(name: str, end: str, hash_sign: str) -> None:
    """X1: in attributes and in text, with and without a semicolon."""
    assert_same(f"<a href='&{hash_sign}{name}{end}'>&{hash_sign}{name}{end}</a>")


@pytest.mark.parametrize("number", [0, 9, 13, 0x7F, 0x80, 0x81, 0x9F, 0xD800, 0xFFFF, 0x10FFFF, 0x110000, 10**30])
def test_numbered_characters_are_those_of_the_tree(number: int) -> None:
    """X1: what windows-1252 has, what no text may hold, what is no character."""
    assert_same(f"<a href='&#{number};'>x&#{number}y&#x{number:X};</a>")
