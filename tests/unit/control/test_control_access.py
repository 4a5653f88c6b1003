"""Who may ask the control API, and what a browser cannot be made to do."""

from __future__ import annotations

import hmac
from pathlib import Path

import pytest

from nephila.control import access
from nephila.control.access import Gate, Role, Token, check_binding, digest_of, is_loopback, read_tokens
from nephila.control.bounds import Bounds, RateLimit
from nephila.control.problems import ProblemError
from nephila.model.errors import UsageError

READER, WRITER = "reader-0123456789", "writer-0123456789"
ANY = "0.0.0.0"  # noqa: S104 - that is what is refused
TOKENS = (Token("bob", Role.READ, digest_of(READER)), Token("ann", Role.WRITE, digest_of(WRITER)))


def refused(gate: Gate, headers: dict[str, str], role: Role = Role.READ) -> int:
    """The status with which a request is refused."""
    with pytest.raises(ProblemError) as caught:
        gate.admit(headers, role)
    return caught.value.status


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost"])
def test_without_a_token_loopback_may_be_bound(host: str) -> None:
    """C2: this machine."""
    check_binding(host, ())
    assert is_loopback(host)


@pytest.mark.parametrize("host", [ANY, "::", "192.168.1.4", "example.org", "", "127.0.0.1.example.org"])
def test_without_a_token_nothing_else_may_be_bound(host: str) -> None:
    """C2: an address that others reach wants a token; with one it may be."""
    with pytest.raises(UsageError, match="token"):
        check_binding(host, ())
    check_binding(host, TOKENS)


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8470", "10.0.0.1", "", "localhost.evil.example", "[::1].evil.example"),
        *("[::1", "127.0.0.1:@evil.example", "127.0.0.1:80:80", "[127.0.0.1", "localhost/evil.example"),
    ],
)
def test_a_name_that_was_made_to_lead_here_is_refused(host: str) -> None:
    """C2: DNS rebinding."""
    assert refused(Gate(()), {"host": host}) == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8470", "localhost:8470", "[::1]:8470", "localhost"])
def test_names_of_this_machine_are_answered(host: str) -> None:
    """C2: whoever asks is loopback, and may write."""
    assert Gate(()).admit({"host": host}, Role.WRITE).name == "loopback"


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
        {"origin": "http://127.0.0.1:8470@evil.example"},
        {"origin": ""},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_nothing_is_done_for_a_page_of_another_site(headers: dict[str, str]) -> None:
    """C2: cross-site requests are refused, whatever they ask."""
    assert refused(Gate(()), {"host": "127.0.0.1:8470", **headers}) == 403
    token = {"authorization": f"Bearer {WRITER}"}
    assert refused(Gate(TOKENS), {"host": "127.0.0.1:8470", **token, **headers}) == 403


def test_who_is_behind_a_proxy_that_changes_the_name_is_told_so() -> None:
    """C2, C3: the dashboard's own changes look like another site's there."""
    headers = {"host": "127.0.0.1:8470", "origin": "https://crawler.example", "authorization": f"Bearer {WRITER}"}
    with pytest.raises(ProblemError) as caught:
        Gate(TOKENS).admit({**headers, "sec-fetch-site": "same-origin"}, Role.WRITE)
    assert "Host header" in caught.value.hint


def test_a_page_of_our_own_may_ask() -> None:
    """C3: the dashboard's own requests."""
    headers = {"host": "127.0.0.1:8470", "origin": "http://127.0.0.1:8470", "sec-fetch-site": "same-origin"}
    assert Gate(()).admit(headers, Role.WRITE).role is Role.WRITE


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer wrong-0123456789ab", f"Basic {WRITER}", WRITER, f"Bearer {WRITER}x"]
)
def test_with_tokens_every_request_must_bear_one(given: str) -> None:
    """C2: nothing is readable without."""
    assert refused(Gate(TOKENS), {"host": "crawler.example", "authorization": given}) == 401


def test_roles_are_kept_apart() -> None:
    """C2: who may read may not write; who may write may read."""
    gate = Gate(TOKENS)
    reader, writer = ({"host": "x", "authorization": f"Bearer {one}"} for one in (READER, WRITER))
    assert gate.admit(reader, Role.READ).name == "bob"
    assert refused(gate, reader, Role.WRITE) == 403
    assert gate.admit(writer, Role.WRITE).name == gate.admit(writer, Role.READ).name == "ann"


def test_every_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """C2: by digests, all of them, also when the first fits."""
    compared: list[bytes] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append(one)
        return hmac.compare_digest(one, other)

    class Watched:
        compare_digest = staticmethod(compare)

    monkeypatch.setattr(access, "hmac", Watched)
    Gate(TOKENS).admit({"host": "x", "authorization": f"Bearer {READER}"}, Role.READ)
    assert compared == [token.digest for token in TOKENS]


def test_tokens_come_from_a_file_and_the_environment(tmp_path: Path) -> None:
    """C2: never from the command line; roles and names are kept."""
    file = tmp_path / "tokens"
    file.write_text(f"# of the team\n\nann write {WRITER}\nbob read {READER}\n")
    file.chmod(0o600)
    found = read_tokens(file, {access.WRITE_TOKEN: "environment-0123456789", access.READ_TOKEN: "another-0123456789"})
    assert [(one.name, one.role) for one in found] == [
        ("environment-write", "write"),
        ("environment-read", "read"),
        ("ann", "write"),
        ("bob", "read"),
    ]
    assert WRITER not in repr(found)


@pytest.mark.parametrize(
    ("text", "mode", "told"),
    [
        (f"ann write {WRITER}\n", 0o644, "can be read by others"),
        ("ann write short\n", 0o600, "too short"),
        (f"ann admin {WRITER}\n", 0o600, "no token"),
        (f"{WRITER}\n", 0o600, "no token"),
        ("# nothing\n", 0o600, "there is no token"),
    ],
)
def test_a_file_of_tokens_that_makes_no_sense_is_refused(tmp_path: Path, text: str, mode: int, told: str) -> None:
    """C2, C4: one sentence, and no token in it."""
    file = tmp_path / "tokens"
    file.write_text(text)
    file.chmod(mode)
    with pytest.raises(UsageError, match=told) as caught:
        read_tokens(file, {})
    assert WRITER not in str(caught.value)
    with pytest.raises(UsageError, match="cannot be read"):
        read_tokens(tmp_path / "none", {})


def test_a_caller_is_let_in_again_after_a_while() -> None:
    """C1: so many at once, so many a second; changes are counted apart, callers too."""
    now = [0.0]
    limit = RateLimit(Bounds(reads_per_s=2, reads_at_once=3, changes_per_s=1, changes_at_once=1), lambda: now[0])
    for _ in range(3):
        limit.take("ann", change=False)
    with pytest.raises(ProblemError) as caught:
        limit.take("ann", change=False)
    assert (caught.value.status, caught.value.headers["Retry-After"]) == (429, "1")
    limit.take("bob", change=False)
    limit.take("ann", change=True)
    now[0] = 0.5
    limit.take("ann", change=False)
    with pytest.raises(ProblemError):
        limit.take("ann", change=False)
