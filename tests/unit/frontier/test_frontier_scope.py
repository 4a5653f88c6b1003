"""The rules of `frontier/scope.py`."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nephila.frontier.scope import ANY_DEPTH, MAX_SEED_HOPS, Scope, ScopeSeeds
from nephila.model.errors import CrawlDirectoryError, UsageError
from nephila.model.settings import ScopeSettings
from nephila.urls import Address, Identifier, NormalRules, UrlLimits, registrable_domain

IDENTIFIER = Identifier(7, NormalRules(), UrlLimits())
MODES = ("all", "domain", "host", "prefix", "list")

quick = settings(max_examples=100, deadline=None)


def address(url: str) -> Address:
    found = IDENTIFIER.identify(url)
    assert isinstance(found, Address), found
    return found


def scope_of(*seeds: str, max_depth: int = ANY_DEPTH, **changes: object) -> Scope:
    scope = Scope(ScopeSettings(**changes), max_depth)  # type: ignore[arg-type] # changes are fields of the settings
    for seed in seeds:
        scope.add_seed(address(seed))
    return scope


def reason(scope: Scope, url: str, depth: int = 1) -> str | None:
    refused = scope.judge(address(url), depth)
    return None if refused is None else refused[0]


hosts = st.sampled_from(
    [
        "example.org",
        "www.example.org",
        "example.com",
        "example.co.uk",
        "other.co.uk",
        "a.github.io",
        "b.github.io",
        "10.0.0.1",
        "[::1]",
        "localhost",
        "xn--bcher-kva.example",
    ]
)
paths = st.lists(st.sampled_from(["a", "b", "docs", "docs-old", "login", "x.html", "y.jpg", "v1.2"]), max_size=4).map(
    "/".join
)
urls = st.builds(
    "{}://{}{}/{}{}".format,
    st.sampled_from(["http", "https"]),
    hosts,
    st.sampled_from(["", ":8080"]),
    paths,
    st.sampled_from(["", "/", "?q=1", "?u=/login"]),
)


class TestModes:
    def test_mode_all_follows_everything(self) -> None:
        """S2: scope all."""
        assert reason(scope_of(mode="all"), "https://anywhere.example/x") is None

    def test_mode_domain_follows_all_hosts_of_the_seeds_registrable_domains(self) -> None:
        """S2: scope domain, by the Public Suffix List."""
        scope = scope_of("https://www.example.co.uk/start", mode="domain")
        assert reason(scope, "http://blog.example.co.uk:8080/x") is None
        assert reason(scope, "https://other.co.uk/") == "scope"
        assert reason(scope, "https://notexample.co.uk/") == "scope"

    def test_mode_host_follows_the_seeds_hosts_on_any_scheme_and_port(self) -> None:
        """S2: scope host."""
        scope = scope_of("https://www.example.org/", mode="host")
        assert reason(scope, "http://www.example.org:8080/deep/er") is None
        assert reason(scope, "https://example.org/") == "scope"

    @pytest.mark.parametrize("seed", ["/docs", "/docs/", "/docs/index.html", "/docs/index.html?v=1", "/%64ocs/"])
    def test_mode_prefix_stays_under_the_directory_that_the_seed_stands_for(self, seed: str) -> None:
        """S2: scope prefix, whole segments."""
        scope = scope_of("https://example.org" + seed, mode="prefix")
        for inside in ("/docs", "/docs/", "/docs?page=2", "/docs/a/b.html", "/d%6Fcs/x"):
            assert reason(scope, "http://example.org" + inside) is None, inside
        for outside in ("/", "/docs-old", "/docs.html", "/other/docs/"):
            assert reason(scope, "https://example.org" + outside) == "scope", outside
        assert reason(scope, "https://example.org:8080/docs/") == "scope"

    def test_a_directory_with_a_dot_is_no_file_when_its_slash_says_so(self) -> None:
        """S2: /v1.2/ stands for itself, /v1.2 for the directory above."""
        assert reason(scope_of("https://example.org/v1.2/", mode="prefix"), "https://example.org/v1.3/") == "scope"
        assert reason(scope_of("https://example.org/v1.2", mode="prefix"), "https://example.org/v1.3/") is None

    def test_mode_list_follows_the_listed_domains_and_what_is_under_them(self) -> None:
        """S2: a list of domains, IDN included, closed to seeds outside of it."""
        scope = scope_of(
            "https://stranger.org/", mode="list", domains=("example.org", "*.Bücher.example", "news.site.org")
        )
        assert reason(scope, "https://www.example.org/") is None
        assert reason(scope, "https://shop.xn--bcher-kva.example/") is None
        assert reason(scope, "https://eu.news.site.org/") is None
        for outside in ("https://site.org/", "https://stranger.org/", "https://notexample.org/"):
            assert reason(scope, outside) == "scope"

    def test_mode_list_without_a_list_takes_the_domains_of_the_seeds(self) -> None:
        """S2: a CSV of domains is a list too."""
        scope = scope_of("https://www.example.org/", mode="list")
        assert reason(scope, "https://blog.example.org/") is None
        assert reason(scope, "https://example.com/") == "scope"

    @pytest.mark.parametrize("entry", ["", "exa mple.org", "example.org/path", "example.org:80", "https://example.org"])
    def test_a_listed_domain_that_is_none_is_a_usage_error(self, entry: str) -> None:
        """S2: a slip in the list is told."""
        with pytest.raises(UsageError, match="no domain"):
            scope_of(mode="list", domains=(entry,))

    def test_an_unknown_mode_is_a_usage_error(self) -> None:
        """S2: five modes."""
        with pytest.raises(UsageError, match="galaxy"):
            scope_of(mode="galaxy")

    @quick
    @given(st.lists(urls, min_size=1, max_size=4), urls)
    def test_no_mode_lets_in_what_the_seeds_do_not_stand_for(self, seeds: list[str], url: str) -> None:
        """S2: host within hosts, domain within domains, prefix within hosts."""
        link = address(url)
        seed_hosts = {address(seed).host for seed in seeds}
        if reason(scope_of(*seeds, mode="host"), url) != "scope":
            assert link.host in seed_hosts
        if reason(scope_of(*seeds, mode="prefix"), url) != "scope":
            assert link.host in seed_hosts
        if reason(scope_of(*seeds, mode="domain"), url) != "scope":
            assert registrable_domain(link.host) in {registrable_domain(host) for host in seed_hosts}

    @quick
    @given(st.sampled_from(MODES), urls)
    def test_a_seed_is_always_within_its_own_scope(self, mode: str, url: str) -> None:
        """S2: whatever the mode, what was given is in."""
        assert reason(scope_of(url, mode=mode), url) != "scope"


class TestWidening:
    @pytest.mark.parametrize(
        ("mode", "target", "inside"),
        [
            ("host", "https://www.example.org/", "https://www.example.org/a"),
            ("domain", "https://example.com/", "https://blog.example.com/"),
            ("prefix", "https://www.example.org/en/", "https://www.example.org/en/a"),
        ],
    )
    def test_a_seeds_redirect_takes_its_scope_along(self, mode: str, target: str, inside: str) -> None:
        """S2: example.org answering with www.example.org does not end the crawl."""
        scope = scope_of("https://example.org/", mode=mode)
        assert reason(scope, inside) == "scope"
        assert scope.widen(address(target), depth=0, hops=1)
        assert not scope.widen(address(target), depth=0, hops=1)
        assert reason(scope, inside) is None
        assert reason(scope, "https://example.org/a") is None

    @pytest.mark.parametrize(("depth", "hops"), [(1, 1), (0, 0), (0, MAX_SEED_HOPS + 1)])
    def test_other_redirects_widen_nothing(self, depth: int, hops: int) -> None:
        """S2: only a chain that began at a seed, without a page in between, of at most ten hops."""
        scope = scope_of("https://example.org/", mode="host")
        assert not scope.widen(address("https://www.example.org/"), depth, hops)
        assert reason(scope, "https://www.example.org/") == "scope"

    @pytest.mark.parametrize("mode", ["all", "list"])
    def test_a_list_is_closed(self, mode: str) -> None:
        """S2: a list never grows by itself, and all has nothing to grow."""
        scope = scope_of("https://example.org/", mode=mode)
        before = scope.seeds()
        assert not scope.widen(address("https://example.com/"), depth=0, hops=1)
        assert scope.seeds() == before


class TestPatterns:
    def test_an_exclude_names_its_pattern(self) -> None:
        """S2, T8: the refusal says which rule."""
        scope = scope_of(mode="all", exclude=("/tag/", r"[?&]sort="))
        assert scope.judge(address("https://a.org/x?sort=up"), 1) == ("excluded", r"[?&]sort=")
        assert reason(scope, "https://a.org/tags/x") is None

    def test_patterns_see_the_url_as_it_is_fetched(self) -> None:
        """S2: not the normal form, which has sorted the query and dropped the slash."""
        scope = scope_of(mode="all", exclude=(r"/x/\?b=1&a=2$",))
        assert reason(scope, "https://a.org/x/?b=1&a=2") == "excluded"
        assert reason(scope, "https://a.org/x?a=2&b=1") is None

    @quick
    @given(st.sampled_from(MODES), st.lists(urls, max_size=3), urls)
    def test_include_wins_over_every_rule_of_scope(self, mode: str, seeds: list[str], url: str) -> None:
        """S2: include wins."""
        scope = scope_of(*seeds, mode=mode, include=("^http",), exclude=("^http",))
        assert scope.judge(address(url), 1) is None
        assert scope.judge_seed(address(url)) is None

    def test_include_does_not_win_over_depth(self) -> None:
        """S2, S3: a limit is no matter of taste."""
        assert reason(scope_of(mode="all", include=("^http",), max_depth=2), "https://a.org/", depth=3) == "depth"

    @pytest.mark.parametrize(
        ("pattern", "words"),
        [
            ("a(b", ["a(b", "position 1"]),
            ("*.pdf", ["*.pdf", "position 0"]),
            ("x{99999999999}", ["x{9", "large"]),
            ("", ["empty"]),
        ],
    )
    @pytest.mark.parametrize("setting", ["include", "exclude"])
    def test_a_bad_pattern_is_told_with_its_place_and_a_remedy(
        self, setting: str, pattern: str, words: list[str]
    ) -> None:
        """S2: found at construction, not at the first link."""
        with pytest.raises(UsageError) as caught:
            scope_of(**{setting: (pattern,)})
        assert all(word in str(caught.value) for word in [*words, setting])
        assert caught.value.hint

    def test_a_glob_is_recognised(self) -> None:
        """S2: the usual slip gets its own hint."""
        with pytest.raises(UsageError) as caught:
            scope_of(exclude=("*.pdf",))
        assert "glob" in caught.value.hint


class TestBuiltinRules:
    @pytest.mark.parametrize(
        "path",
        [
            "/login",
            "/Login/",
            "/login.php?next=/a",
            "/wp-admin/edit.php",
            "/user/logout",
            "/shop/cart",
            "/admin;x=1/y",
            "/checkout/step/2",
            "/my-account",
            "/index.php/Special:UserLogin",
            "/index.php/Special%3AUserLogin",
        ],
    )
    def test_forms_sessions_and_carts_are_kept_out(self, path: str) -> None:
        """S2: built-in excludes, which can be switched off."""
        assert reason(scope_of(mode="all"), "https://a.org" + path) == "excluded_builtin"
        assert reason(scope_of(mode="all", builtin_excludes=False), "https://a.org" + path) is None

    @pytest.mark.parametrize(
        "url",
        [
            "https://a.org/administration-history",
            "https://a.org/login-help",
            "https://a.org/a?next=/login",
            "https://a.org/cartography",
            "http://login/",
            "http://admin.a.org/",
            "https://a.org/",
        ],
    )
    def test_only_whole_segments_of_the_path_count(self, url: str) -> None:
        """S2: /administration-history passes."""
        assert reason(scope_of(mode="all"), url) is None

    def test_the_refusal_says_what_is_behind(self) -> None:
        """S2, T8: the rule and its reason."""
        assert scope_of(mode="all").judge(address("https://a.org/x/Logout"), 1) == (
            "excluded_builtin",
            "/logout (ends a session)",
        )

    @pytest.mark.parametrize(
        "name", ["a.jpg", "A.PNG", "x.y.zip", "b.css?v=1", "c.js", "d.pdf", "e.woff2", "f.mp4;v=1"]
    )
    def test_files_that_are_no_pages_are_kept_out(self, name: str) -> None:
        """S2: extension filter, which can be switched off."""
        assert reason(scope_of(mode="all"), f"https://a.org/{name}") == "extension"
        assert reason(scope_of(mode="all", skip_extensions=False), f"https://a.org/{name}") is None

    @pytest.mark.parametrize(
        "path",
        [
            "/",
            "/a",
            "/a.html",
            "/a.php",
            "/feed.xml",
            "/a.aspx",
            "/v1.2/",
            "/a?file=x.zip",
            "/whois/example.com",
            "/x.jpg/",
            "/wiki/Node.js",
            "/index.php/File:Map.png",
            "/index.php/File%3AMap.png",
            "/jpg",
        ],
    )
    def test_what_may_be_a_page_passes(self, path: str) -> None:
        """S2: only the end of the last segment counts, and wiki titles are pages."""
        assert reason(scope_of(mode="all"), "https://a.org" + path) is None

    def test_images_pass_when_they_are_asked_for(self) -> None:
        """S2, X1: img and srcset when asked."""
        scope = scope_of(mode="all", images=True)
        assert reason(scope, "https://a.org/a.jpg") is None
        assert scope.judge(address("https://a.org/a.zip"), 1) == ("extension", ".zip (archive)")


class TestDepth:
    def test_depth_counts_hops_from_a_seed(self) -> None:
        """S3: the limit itself is still in."""
        scope = scope_of(mode="all", max_depth=15)
        assert scope.judge(address("https://a.org/"), 15) is None
        assert scope.judge(address("https://a.org/"), 16) == ("depth", "16 hops from a seed, at most 15")

    def test_zero_is_the_seeds_alone(self) -> None:
        """S3: as in a domain's policy; nobody who asks for no hop wants all of them."""
        scope = scope_of(mode="all", max_depth=0)
        assert reason(scope, "https://a.org/", depth=0) is None
        assert scope.judge(address("https://a.org/"), 1) == ("depth", "1 hops from a seed, at most 0")

    @quick
    @given(st.sampled_from(MODES), st.lists(urls, max_size=20), st.integers(0, 3))
    def test_a_second_look_says_what_the_first_said(self, mode: str, links: list[str], depth: int) -> None:
        """S2: what is remembered of a link is what is thought of it alone."""
        seed = "https://example.org/docs/"
        scope = scope_of(seed, mode=mode, max_depth=2)
        addresses = [address(link) for link in links]
        alone = [scope_of(seed, mode=mode, max_depth=2).judge(link, depth) for link in addresses]
        assert [scope.judge(link, depth) for link in addresses] == alone
        assert [scope.judge(link, depth) for link in addresses] == alone


class TestSeeds:
    def test_a_seed_is_only_kept_out_by_what_was_excluded_by_hand(self) -> None:
        """S1, S2: the built-in rules guess; who gives a seed needs no guess."""
        scope = scope_of(mode="list", domains=("a.org",), exclude=("/private",))
        assert scope.judge_seed(address("https://a.org/login")) is None
        assert scope.judge_seed(address("https://a.org/map.pdf")) is None
        assert scope.judge_seed(address("https://a.org/private")) == ("excluded", "/private")
        assert scope.judge_seed(address("https://b.org/")) == ("scope", "list")
        assert scope_of(mode="host").judge_seed(address("https://b.org/")) is None

    @quick
    @given(st.sampled_from(MODES), st.lists(urls, max_size=5), st.lists(urls, max_size=10))
    def test_a_resumed_crawl_keeps_its_scope(self, mode: str, seeds: list[str], links: list[str]) -> None:
        """S2, F10: what was saved judges as before."""
        scope = scope_of(*seeds, mode=mode)
        saved = scope.seeds().to_bytes()
        resumed = Scope(ScopeSettings(mode=mode), ANY_DEPTH, ScopeSeeds.from_bytes(saved))
        learned = scope_of(mode=mode)
        learned.learn(ScopeSeeds.from_bytes(saved))
        for link in map(address, links):
            assert resumed.judge(link, 1) == learned.judge(link, 1) == scope.judge(link, 1)
        assert resumed.seeds().to_bytes() == saved

    @quick
    @given(st.sampled_from(MODES), st.lists(urls, max_size=3), urls, urls)
    def test_more_seeds_only_ever_widen(self, mode: str, seeds: list[str], new: str, link: str) -> None:
        """S2: nothing that was in falls out; verdicts of before are not remembered for too long."""
        scope = scope_of(*seeds, mode=mode)
        before = reason(scope, link)
        scope.add_seed(address(new))
        if before != "scope":
            assert reason(scope, link) == before
        assert reason(scope, new) != "scope"

    def test_ten_thousand_seeds_of_one_domain_are_one_entry(self) -> None:
        """S1: only what the mode asks for is remembered."""
        scope = scope_of(*(f"https://h{n}.example.org/p/{n}" for n in range(10_000)), mode="domain")
        assert scope.seeds() == ScopeSeeds(domains=frozenset({"example.org"}))

    @pytest.mark.parametrize(
        "data", [b"\xff\xfe", b"nephila-scope 2\ndomain a.org\n", b"nephila-scope 1\nplanet earth\n"]
    )
    def test_a_damaged_scope_is_told(self, data: bytes) -> None:
        """F10: never taken for an empty one."""
        with pytest.raises(CrawlDirectoryError):
            ScopeSeeds.from_bytes(data)


def test_what_seeds_allow_in_a_wider_mode_follows_from_a_narrower_one() -> None:
    """S2: so a crawl may go on under it without its seeds; not the other way round."""
    known = ScopeSeeds(prefixes=frozenset({"www.a.co.uk:8080/docs", "[::1]:80/x"}))
    assert known.for_mode("prefix") == known
    assert known.for_mode("host").hosts == {"www.a.co.uk", "[::1]"}
    assert known.for_mode("domain").domains == {"a.co.uk", "[::1]"}
    wide = ScopeSeeds(domains=frozenset({"a.co.uk"}))
    lost = {mode: Scope(ScopeSettings(mode=mode), seeds=wide).is_lost for mode in ("all", "domain", "host", "prefix")}
    assert lost == {"all": False, "domain": False, "host": True, "prefix": True}
    assert not Scope(ScopeSettings(mode="host", include=("/x",)), seeds=wide).is_lost
    assert not Scope(ScopeSettings(mode="host")).is_lost
