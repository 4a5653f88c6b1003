from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephila.parse import readable_markdown, readable_text

PROSE = "<p>Orb weavers build wheels of silk between two stems, take them down at dawn, and build them anew.</p>" * 9


def test_the_content_is_kept_and_the_furniture_is_not() -> None:
    """X5: headings and lists are part of it, menus, footers and scripts are not."""
    text = readable_text(
        "<nav><a href=/>Home</a></nav><div><h1>Silk</h1>" + PROSE + "<ul><li>one<li>two</ul></div>"
        "<script>alert(1)</script><style>b{}</style><footer>Imprint</footer>"
    )
    assert text.startswith("Silk\n\nOrb weavers")
    assert "* one\n* two" in text
    assert not [word for word in ("Home", "alert", "b{}", "Imprint") if word in text]


def test_markdown_keeps_what_is_structure() -> None:
    """X5, W6: headings, emphasis, links (absolute), lists, code with its language, tables."""
    found = readable_markdown(
        "<base href='https://b.example/dir/'><main><h2>Parts</h2>" + PROSE + "<p>a <b>bold</b> <a href='x?a=1&amp;b'>"
        "link</a> <a href='javascript:alert(1)'>script</a></p><ol><li>one</ol>"
        "<pre><code class=language-c>int a;\n</code></pre>"
        "<table><tr><th>part<th>mm<tr><td>leg<td>3|0</table><img src=i.png alt=web></main>",
        "https://a.example/",
    )
    for part in (
        "## Parts",
        "**bold** [link](https://b.example/dir/x?a=1&b)",
        "1. one",
        "```c\nint a;\n```",
        "| part | mm |\n| --- | --- |\n| leg | 3\\|0 |",
        "![web](https://b.example/dir/i.png)",
    ):
        assert part in found
    assert "javascript" not in found
    assert "script" in found


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("", ""),
        ("just text", "just text"),
        ("<nav><a href=/>Home</a></nav><h1>T</h1><p>short</p><footer>f</footer>", "T\n\nshort"),
        ("<ul>" + "".join(f"<li><a href=/{n}>Thread {n}</a>" for n in range(30)) + "</ul>", "* Thread 0"),
        ("<header><h1>All</h1><p>in a header</p></header>", "All\n\nin a header"),
        ("<template>never</template><p hidden>nor this</p>shown", "shown"),
    ],
)
def test_pages_that_are_no_articles_are_taken_as_they_are(page: str, text: str) -> None:
    """X5: a list, a handful of words, a page that is all furniture."""
    assert readable_text(page).startswith(text)
    assert bool(readable_text(page)) == bool(text)


@given(st.text(alphabet="<>/ab nmavpretdliu='\"&;!-", max_size=400))
def test_any_text_gives_an_answer(text: str) -> None:
    """X5, Q5: whatever a page holds."""
    assert isinstance(readable_text(text), str)
    assert isinstance(readable_markdown(text, "https://a.example/"), str)
