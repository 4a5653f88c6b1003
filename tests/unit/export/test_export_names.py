from __future__ import annotations

import re
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephila.export.names import another, path_of, safe_name


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("https://a.example/", "a.example/index.html"),
        ("https://a.example/docs/", "a.example/docs/index.html"),
        ("https://a.example/docs", "a.example/docs.html"),
        ("https://a.example/docs/Page.HTM", "a.example/docs/page.html"),
        ("https://a.example/list.php", "a.example/list.php.html"),
        ("http://a.example:8080/x", "a.example_8080/x.html"),
        ("http://[::1]/x", "__1/x.html"),
        ("https://a.example/%C3%BCber", "a.example/über.html"),
        ("https://a.example/%2e%2e/%2e%2e/etc", "a.example/_/_/etc.html"),
        ("https://a.example/..%2f..%2fetc", "a.example/_.._.._etc.html"),
        ("https://a.example/a//b", "a.example/a/_/b.html"),
        ("https://a.example/CON", "a.example/_con.html"),
        ("https://a.example/nul.html/x", "a.example/_nul.html_/x.html"),
        ("https://a.example/page.html/x", "a.example/page.html_/x.html"),
        ("https://a.example/.hidden", "a.example/_.hidden.html"),
        ("https://a.example/a%00b%0ac%3ad", "a.example/a_b_c_d.html"),
        ("https://a.example/trailing.%20", "a.example/trailing.html"),
        ("https://a.example/%ff", "a.example/%ff.html"),
        ("https://index.jsonl/x", "index.jsonl_/x.html"),
    ],
)
def test_names_can_be_read_and_do_no_harm(url: str, path: str) -> None:
    """W6: by host and path, whatever the URL says."""
    assert "/".join(path_of(url, ".html")) == path


def test_other_forms_have_their_own_ending() -> None:
    """W6: instead of that of a page."""
    assert path_of("https://a.example/x.html", ".md")[-1] == "x.md"
    assert path_of("https://a.example/x.php", ".txt")[-1] == "x.txt"


def test_a_query_is_told_by_its_hash() -> None:
    """W6: two queries are two files."""
    names = {path_of(f"https://a.example/item?id={number}", ".html")[-1] for number in range(9)}
    assert len(names) == 9
    assert all(re.fullmatch(r"item~[0-9a-f]{12}\.html", name) for name in names)


def test_case_does_not_tell_two_files_apart() -> None:
    """W6: who comes second gets another name, on any file system."""
    one, two = ("https://a.example/Page", "https://a.example/page")
    assert path_of(one, ".html") == path_of(two, ".html")
    assert another(path_of(two, ".html"), two, 7, ".html") != path_of(two, ".html")


def test_long_names_and_paths_are_cut_and_stay_apart() -> None:
    """W6: a hash takes the place of what is cut."""
    long = [f"https://a.example/{'ä' * 300}{end}" for end in "ab"]
    first, second = (path_of(url, ".html") for url in long)
    assert first != second
    assert len(first[-1].encode()) <= 80
    deep = [f"https://a.example/{'segment-of-a-path/' * 60}{end}" for end in "ab"]
    assert len({path_of(url, ".html") for url in deep}) == 2
    assert all(len("/".join(path_of(url, ".html")).encode()) <= 280 for url in deep)


@given(st.text(max_size=200))
def test_any_text_is_a_safe_name(text: str) -> None:
    """W6, Q5: one name, on every file system."""
    name = safe_name(text)
    assert name
    assert len(name.encode()) <= 80
    assert name not in {".", ".."}
    assert not name.startswith(".")
    assert name == name.rstrip(". ")
    assert not re.search(r'[\x00-\x1f<>:"/\\|?*]', name)


@given(st.text(max_size=300), st.sampled_from([".html", ".md", ".txt", "@20260101T000000.html"]))
def test_no_url_leads_out_of_the_folder(text: str, ending: str) -> None:
    """W6, Q5: files have the ending, folders do not."""
    for url in (f"https://a.example/{text}", text):
        *folders, name = path_of(url, ending)
        assert name.endswith(ending)
        assert not [one for one in folders if one.endswith(ending)]
        path = PurePosixPath("/root").joinpath(*folders, name)
        assert path.parts[:2] == ("/", "root")
        assert ".." not in path.parts
        assert len(path.parts) == 2 + len(folders) + 1
