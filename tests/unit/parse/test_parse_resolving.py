"""Links resolved in C against the same in Python, which asks a parser of the standard for every one of them."""

from __future__ import annotations

import can_ada
from hypothesis import example, given
from hypothesis import strategies as st

from nephila.model.page import Link
from nephila.native import native
from nephila.parse.html import parse_html, plain_web_url, plainly_resolved, web_url
from nephila.parse.walk import Findings, outranked
from nephila.urls import Identifier, NormalRules, UrlLimits
from nephila.urls.parse import Base

BASES = (
    "https://www.example.org/a/b/c.html?q=1#top",
    "http://127.0.0.1:8080/",
    "https://user:pw@example.org/x",
    "https://xn--mnchen-3ya.de/ä",
    "about:blank",
    "https://example.org:8443/a//b/",
)
PIECES = (
    "/",
    "//",
    "a",
    "B",
    ".",
    "..",
    "./",
    "../",
    "?",
    "#",
    "x=1",
    "&",
    "%2e",
    "%2E%2e",
    "%41",
    "%",
    ":",
    "http:",
    "https://",
    "https://example.org",
    "//cdn.test",
    "//cdn.test:443",
    "//1.2.3.4:81",
    "http://10.0.0.1:80",
    "http://1.2.3.04",
    "http://256.1.1.1",
    "https://a.b:99999",
    "http://a.b:080",
    "http://127.0.0.1:8080",
    "HTTPS://EXAMPLE.org/",
    "http://1.2.3",
    "http://0x7f.1/",
    "www.b.test",
    "xn--",
    "..b",
    "@",
    ";",
    "(",
    "|",
    "^",
    "{",
    "'",
    '"',
    "<",
    " ",
    "\t",
    "\n",
    "\\",
    "é",
    "\ud800",
    "\0",
    "javascript:",
    "mailto:x",
    "~",
    "!$&*+,=",
    "[",
    "]",
    ".html",
    "index",
    "-",
    "_",
)
hrefs = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
references = st.dictionaries(
    hrefs,
    st.tuples(st.sampled_from(("a", "area", "link", "form")), st.sampled_from(("", "nofollow")), st.just("x")),
    max_size=6,
)


@given(references, st.sampled_from(BASES))
@example(
    {"https://www.example.org/a#b": ("link", "", ""), "/a": ("a", "nofollow", ""), "../../a": ("a", "", "")}, BASES[0]
)
def test_links_are_resolved_alike(found: dict[str, tuple[str, str, str]], url: str) -> None:
    """U1, X1: a link in C is what the standard says, whatever was written."""
    base = Base.parse(url)
    assert base is not None
    plain = plainly_resolved(Findings(references=found), base)
    links = native.resolve_references(found, base.url, base.join, outranked, Link)
    assert links == plain
    assert all(type(link) is Link for link in links)


@given(hrefs, st.sampled_from(BASES))
def test_a_link_alone_is_resolved_alike(href: str, url: str) -> None:
    """U1, X2: so are the canonical URL of a page and its translations."""
    base = Base.parse(url)
    assert base is not None
    assert web_url(base, href) == plain_web_url(base, href)


SCHEMES = ("http", "HTTPS", "hTTp", "mailto", "Tel", "javascript", "data", "httpx", "htt", "ftp", "x", "", "h2", "a-b")


@given(st.sampled_from(SCHEMES), st.sampled_from((":", ":/", "://", "", "\n:", " :")), hrefs)
def test_links_to_other_schemes_lead_nowhere(scheme: str, behind: str, rest: str) -> None:
    """U1, X1: what is told without a parser to be no page is none to a parser, whatever scheme it names."""
    if any(mark in rest for mark in '"<>&\0\ud800\r\n\t'):  # the page would have another link
        return
    base = Base("https://example.org/a/")
    page = parse_html(f'<a href="{scheme}{behind}{rest}">x</a>'.encode(), base.url, "text/html", agent="x")
    expected = plain_web_url(base, scheme + behind + rest)
    assert [link.url for link in page.links] == ([expected] if expected else [])


@given(st.sampled_from(("", "https://example.org", "http://10.0.0.1:81/", "http://a.b/")), hrefs)
def test_a_url_that_is_taken_as_it_is_would_be_left_so(origin: str, rest: str) -> None:
    """U1: what is not parsed because it is plain is what a parser of the standard makes of it, fragment and all."""
    url = origin + rest
    if native.is_normal(url):
        assert can_ada.parse(url).href == url
        assert "#" not in url


@given(st.lists(hrefs, max_size=8), st.sampled_from(BASES), st.booleans())
def test_addresses_are_alike(written: list[str], url: str, keep_slash: bool) -> None:
    """U2, U3: normal form and fingerprint from C are those from Python."""
    base = Base.parse(url)
    assert base is not None
    urls = [whole for href in written if (whole := base.join(href)) is not None]
    rules, limits = NormalRules(drop_trailing_slash=not keep_slash), UrlLimits(max_length=60, max_segments=4)
    one, other = Identifier(77, rules, limits), Identifier(77, rules, limits)
    for _ in range(2):  # the second time the sites are known
        assert one.identify_new(urls) == other.identify_plainly(urls)


@given(st.text(alphabet="ab/-.", max_size=400), st.integers(0, 2**64 - 1))
def test_long_and_short_urls_have_the_same_fingerprints(path: str, secret: int) -> None:
    """U3: whatever the length, C and the library agree on the hash."""
    base = Base("https://example.org/")
    urls = [whole for whole in (base.join("/" + path.strip("/.")), "https://example.org/") if whole]
    one = Identifier(secret, NormalRules(), UrlLimits())
    one.identify_plainly(["https://example.org/"])
    assert one.identify_new(urls) == one.identify_plainly(urls)
