"""Made-up HTML for comparisons: heaps of tags, texts and odd bytes as Hypothesis draws them."""

from __future__ import annotations

from hypothesis import strategies as st

_NAMES = (
    "a b i em font nobr span label p div h1 h2 ul ol li dl dt dd table tr td th tbody thead caption colgroup col form"
    " button object marquee svg math g path title desc select option optgroup textarea script style iframe noscript"
    " template section nav footer pre center hr br img input link meta base area body html head foo x-y ruby rt details"
    " dialog address xmp noframes noembed video source picture figure applet fieldset s u small strong big code"
    " wbr wbr foreignObject mi mtext annotation-xml image embed main listing keygen frame blockquote datalist"
)
TAGS = _NAMES.split()
"""Tags with rules of their own, and a few without."""

COMMON_TAGS = ["a", "p", "wbr", "div", "b", "span", "li", "td", "tr", "table"]

ATTRIBUTES = {
    "a": [
        "",
        " href=1",
        ' href="2" rel=nofollow',
        " HREF='3' rel='NoFollow ugc'",
        " name=x",
        " href='&copy=1&amp;x'",
        " xlink:href=17",
        " xlink:href=18 HREF=19",
        " href=''",
    ],
    "area": [" href=1 alt='an area'", " href=4"],
    "link": [" rel='alternate canonical' hreflang=de href=5", " rel=next href=6", " rel=icon", " rel=canonical href"],
    "base": [" href=/b/", ""],
    "iframe": [" src=7", "", " src=''"],
    "img": [" src=8 alt='a  b'", " srcset='9 1x, 10'", ""],
    "image": [" src=8"],
    "source": [" srcset='11, 12 2x'"],
    "form": [" action=13", " action=14 method=POST", "", " action"],
    "meta": [
        " name=robots content=none",
        " http-equiv=Refresh content='0;url=15'",
        " http-equiv=content-language content=fr",
    ],
    "html": [" lang=de", " xml:lang=fr", ""],
}
ODD_ATTRIBUTES = ["", "", "", " x", " a=b", ' "q"', " '", " =x", "/", ' a="', " /a=/", " a= >", " B='>'"]

start_tags = st.one_of(st.sampled_from(TAGS), st.sampled_from(COMMON_TAGS)).flatmap(
    lambda tag: st.builds(
        "<{}{}{}".format,
        st.just(tag),
        st.sampled_from(ATTRIBUTES.get(tag, ODD_ATTRIBUTES)),
        st.sampled_from([">", ">", ">", " />"]),
    )
)
end_tags = st.one_of(st.sampled_from(TAGS), st.sampled_from(COMMON_TAGS)).map("</{}>".format)
texts = st.sampled_from(
    [
        "word",
        " ",
        "two words",
        "&amp;",
        "&copy",
        "&#65;",
        "&notit;",
        "&#x80;",
        "\r\n",
        "é",
        "日本",
        "x1",
        "Monday",
        "&",
        "\u00a0",
        "co\u00adop",
        "&shy;",
        "e\u0301",
        "\u0301\u0323",
        "&#x301;",
        "\u1112\u1161\u11ab",
        "\u1161\u212b",
        "\u200b\u200d",
    ]
)
oddities = st.sampled_from(
    [
        "<!--", "-->", "<!-- c -->", "<!-->", "<!--->", "--!>", "<", "</", "<?x>", "<!doctype html>", "<![CDATA[",
        "]]>", "</>", "</ >", "<!x>", "<script><!--<script></script>--></script>", "<title>a title</title>",
        "<svg><title>icon</title><a href=16>drawn</a></svg>", "<plaintext>", "<frameset>",
    ]
)  # fmt: skip
pieces = st.one_of(start_tags, start_tags, end_tags, end_tags, texts, texts, oddities)
heaps = st.lists(pieces, max_size=40).map("".join)
"""Heaps of markup, well or badly nested."""


def _element(content: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    names = ["p", "div", "span", "b", "i", "ul", "li", "table", "tr", "td", "a", "a", "h2", "nav", "form", "svg"]
    return st.sampled_from(names).flatmap(
        lambda tag: st.builds(
            "<{0}{1}>{2}</{0}>".format, st.just(tag), st.sampled_from(ATTRIBUTES.get(tag, [""])), content
        )
    )


documents = st.recursive(
    st.one_of(texts, st.sampled_from(["<br>", "<img src=8>", "<hr>", "<!-- c -->"])),
    lambda content: _element(st.lists(content, max_size=5).map("".join)),
    max_leaves=30,
)
"""Elements in elements, all of them closed."""
