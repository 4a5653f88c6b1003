"""Parts of the S3 client: signatures, credentials, places, sentences."""

from __future__ import annotations

import asyncio
import http.server
import json
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
import trustme

from nephila.interfaces.objects import ObjectBody
from nephila.model.errors import ObjectExistsError, StoreAwayError, StoreRefusedError, UsageError
from nephila.model.settings import S3Settings
from nephila.store import ArchivePlace
from nephila.store.s3 import S3ObjectStore, wire
from nephila.store.s3.answers import Answer, refusal_of
from nephila.store.s3.credentials import CredentialChain, Credentials
from nephila.store.s3.signing import S3Request, signed_headers
from nephila.store.s3.wire import Wire

NOW = 1_369_353_600_000
"""2013-05-24T00:00:00Z, the moment of the examples in the documentation of S3."""
EXAMPLE = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")


@pytest.mark.parametrize(
    ("request_", "signature"),
    [
        (
            S3Request("GET", "examplebucket.s3.amazonaws.com", "/test.txt", headers={"range": "bytes=0-9"}),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            S3Request(
                "PUT",
                "examplebucket.s3.amazonaws.com",
                "/test$file.text",
                headers={"date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"},
                digest="44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
            ),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
        ),
        (
            S3Request("GET", "examplebucket.s3.amazonaws.com", "/", [("lifecycle", "")]),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        ),
        (
            S3Request("GET", "examplebucket.s3.amazonaws.com", "/", [("max-keys", "2"), ("prefix", "J")]),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ],
)
def test_signatures_are_those_of_the_documentation(request_: S3Request, signature: str) -> None:
    """W2: byte for byte what S3 computes for its published examples."""
    headers = signed_headers(request_, EXAMPLE, "us-east-1", NOW)
    assert headers["authorization"].endswith(f"Signature={signature}")


def test_a_session_token_is_signed_and_sent() -> None:
    """W2: temporary credentials have three parts."""
    headers = signed_headers(S3Request("GET", "host", "/"), Credentials("k", "s", "t"), "r", NOW)
    assert headers["x-amz-security-token"] == "t"
    assert "x-amz-security-token" in headers["authorization"]


def test_credentials_that_are_printed_show_nothing() -> None:
    """W2, K4: not in a log, not in a traceback."""
    assert "wJalr" not in repr(EXAMPLE)
    assert "wJalr" not in f"{EXAMPLE}"


@contextmanager
def machine(
    answers: dict[str, str], context: ssl.SSLContext | None = None
) -> Iterator[tuple[str, list[tuple[str, str, dict[str, str]]]]]:
    """A service of a machine or a container, on loopback."""
    asked: list[tuple[str, str, dict[str, str]]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}))
            body = answers.get(f"{self.command} {self.path}", "").encode()
            self.send_response(200 if body else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body if self.command != "HEAD" else b"")

        def do_PUT(self) -> None:
            self.do_GET()

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that does not trust it hangs up
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def temporary(key: str, expires: str) -> str:
    return json.dumps({"AccessKeyId": key, "SecretAccessKey": "s", "Token": "t", "Expiration": expires})


def test_the_instance_is_asked_with_a_token_and_again_before_they_expire(tmp_path: Path) -> None:
    """W2: IMDSv2, with what it gives renewed five minutes early."""
    role = "GET /latest/meta-data/iam/security-credentials/"
    answers = {
        "PUT /latest/api/token": "token",
        role: "crawler\n",
        role + "crawler": temporary("first", "2013-05-24T00:10:00Z"),
    }
    now = [NOW]
    with machine(answers) as (url, asked):
        environ = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": url, "HOME": str(tmp_path)}
        chain = CredentialChain(environ, lambda: now[0])
        assert (chain.current().key, chain.current().token) == ("first", "t")
        assert len(asked) == 3
        assert asked[2][2]["x-aws-ec2-metadata-token"] == "token"
        answers[role + "crawler"] = temporary("second", "2013-05-24T06:00:00Z")
        now[0] += 5 * 60_000 + 1
        assert chain.current().key == "second"


def test_credentials_are_used_to_their_end_where_nobody_gives_new_ones(tmp_path: Path) -> None:
    """W2: a machine's service that is away for a minute stops nothing."""
    answers = {"GET /role": temporary("first", "2013-05-24T00:10:00Z")}
    with machine(answers) as (url, asked):
        now = [NOW]
        chain = CredentialChain(
            {"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{url}/role", "AWS_EC2_METADATA_DISABLED": "true"},
            lambda: now[0],
            tmp_path,
        )
        assert chain.current().key == "first"
        answers.clear()
        now[0] += 9 * 60_000
        assert chain.current().key == "first"
        assert len(asked) == 2
        now[0] += 60_000
        with pytest.raises(StoreRefusedError, match="no credentials"):
            chain.current()


def test_a_container_is_asked_where_it_is_told_to(tmp_path: Path) -> None:
    """W2: with the authorisation that it was given."""
    with machine({"GET /role": temporary("contained", "2013-05-25T00:00:00Z")}) as (url, asked):
        environ = {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{url}/role",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": "permit",
            "HOME": str(tmp_path),
        }
        assert CredentialChain(environ, lambda: NOW).current().key == "contained"
        assert asked[0][2]["authorization"] == "permit"


def test_the_environment_comes_before_files_and_those_before_the_machine(tmp_path: Path) -> None:
    """W2: the order of S3 tools; a profile that is named and not there is told."""
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text("[default]\naws_access_key_id=f\naws_secret_access_key=%s\n")
    (tmp_path / ".aws" / "config").write_text("[profile x]\naws_access_key_id=c\naws_secret_access_key=s\n")
    home = {"HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"}
    named = {"AWS_ACCESS_KEY_ID": "e", "AWS_SECRET_ACCESS_KEY": "s"}
    keys = [
        CredentialChain(one, lambda: NOW).current().key for one in (home | named, home, home | {"AWS_PROFILE": "x"})
    ]
    assert keys == ["e", "f", "c"]
    with pytest.raises(StoreRefusedError, match="the profile 'y'"):
        CredentialChain(home | {"AWS_PROFILE": "y"}, lambda: NOW).current()
    with pytest.raises(StoreRefusedError, match="there are no credentials"):
        CredentialChain({"AWS_EC2_METADATA_DISABLED": "true"}, lambda: NOW).current()


@pytest.mark.parametrize(
    ("url", "bucket", "prefix", "key"),
    [
        ("s3://crawls", "crawls", "", "name"),
        ("s3://crawls/", "crawls", "", "name"),
        ("s3://crawls/a/b/", "crawls", "a/b", "a/b/name"),
        ("s3://my.crawls-1/a%20b", "my.crawls-1", "a b", "a b/name"),
    ],
)
def test_a_place_is_a_bucket_and_a_prefix(url: str, bucket: str, prefix: str, key: str) -> None:
    """W2: slashes at the ends mean nothing."""
    place = ArchivePlace.parse(url)
    assert (place.bucket, place.prefix, place.key("name")) == (bucket, prefix, key)


@pytest.mark.parametrize(
    "url", ["", "crawls", "http://crawls/x", "s3://", "s3://Crawls", "s3://c?x=1", "s3://ab//c//d"]
)
def test_what_is_no_place_is_a_usage_error(url: str) -> None:
    """W2: with how to write it."""
    with pytest.raises(UsageError) as told:
        ArchivePlace.parse(url)
    assert told.value.hint


def answer(status: int, code: str = "", **headers: str) -> Answer:
    document = f"<Error><Code>{code}</Code><Message>so it is</Message></Error>" if code else ""
    return Answer(status, {name.replace("_", "-"): value for name, value in headers.items()}, document.encode())


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        (answer(412, "PreconditionFailed"), ObjectExistsError, "already"),
        (answer(503, "SlowDown"), StoreAwayError, "busy (503 SlowDown)"),
        (answer(500), StoreAwayError, "busy (500)"),
        (answer(409, "ConditionalRequestConflict"), StoreAwayError, "busy"),
        (answer(400, "RequestTimeout"), StoreAwayError, "busy"),
        (answer(400, "BadDigest"), StoreAwayError, "busy"),
        (answer(400, "ExpiredToken"), StoreRefusedError, "have expired"),
        (answer(301, "PermanentRedirect", x_amz_bucket_region="eu-west-1"), StoreRefusedError, "region eu-west-1"),
        (answer(403, "RequestTimeTooSkewed", date="noon"), StoreRefusedError, "where it is noon"),
        (answer(404, "NoSuchBucket"), StoreRefusedError, "no bucket 'b'"),
        (answer(418, "Teapot"), StoreRefusedError, "418 Teapot: so it is"),
    ],
)
def test_what_may_work_later_is_told_from_what_will_not(given: Answer, kind: type[Exception], words: str) -> None:
    """W2: the one is tried again, the other needs somebody."""
    error = refusal_of(given, "b", "written")
    assert type(error) is kind
    assert words in str(error)


def test_what_a_store_says_is_fit_for_a_terminal() -> None:
    """W2: control characters stay away, and a long word does not fill the screen."""
    said = b"<Error><Code>Odd\x1b[31m</Code><Message>one\r\ntwo\x07 " + b"x" * 5000 + b"</Message></Error>"
    error = refusal_of(Answer(418, {}, said), "b", "written")
    assert str(error).isprintable()
    assert "418 Odd [31m: one two xxx" in str(error)
    assert len(str(error)) < 1000


def test_a_store_with_a_certificate_of_its_own_is_trusted_when_told_to(tmp_path: Path) -> None:
    """W2: s3.authorities names who signed it; without, the sentence says what to do."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with machine({"HEAD /crawls/there": "x"}, context) as (url, _):
        endpoint = url.replace("http:", "https:")
        chain = CredentialChain({"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}, lambda: NOW)

        async def look(authorities: str) -> object:
            settings = S3Settings(endpoint=endpoint, authorities=authorities)
            store = S3ObjectStore("crawls", settings, chain, lambda: NOW)
            try:
                return await store.look("there")
            finally:
                await store.close()

        assert asyncio.run(look(str(tmp_path / "ca.pem"))) is not None
        with pytest.raises(StoreRefusedError, match="is not to be trusted") as told:
            asyncio.run(look(""))
        assert "s3.authorities" in told.value.hint
        with pytest.raises(UsageError, match="cannot be read as certificates"):
            asyncio.run(look(str(tmp_path / "none.pem")))


@contextmanager
def breaking_off(whole_from: int) -> Iterator[tuple[str, list[bytes]]]:
    """A store whose answers lack half of what they promise, up to one of them."""
    asked: list[bytes] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while (line := self.rfile.readline()) and line != b"\r\n":
                asked.extend([line] if line.startswith(b"GET ") else [])
            body = b"0123456789" if len(asked) >= whole_from else b"01234"
            self.wfile.write(b"HTTP/1.1 206 Partial Content\r\nContent-Length: 10\r\n\r\n" + body)

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", asked
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("whole_from", [2, 9])
def test_half_an_object_is_never_taken_for_the_whole(whole_from: int) -> None:
    """W2, N8: a line that is cut is no end of a file; it is asked once more, and told then."""
    chain = CredentialChain({"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}, lambda: NOW)
    with breaking_off(whole_from) as (url, asked):
        store = S3ObjectStore("crawls", S3Settings(endpoint=url), chain, lambda: NOW)
        try:
            if whole_from == 2:
                assert store.read("there", 0, 10) == b"0123456789"
            else:
                with pytest.raises(StoreAwayError, match="its answer broke off"):
                    store.read("there", 0, 10)
        finally:
            asyncio.run(store.close())
    assert len(asked) == 2


@contextmanager
def taking_parts(at_once: int, refused: int = 0) -> Iterator[tuple[str, list[str], dict[int, int]]]:
    """A store that answers parts when so many have come, and one of them with an error."""
    asked: list[str] = []
    sizes: dict[int, int] = {}
    together = threading.Barrier(at_once)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer(404)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.answer(200, b"<Begun><UploadId>u</UploadId></Begun>" if self.path.endswith("?uploads=") else b"")

        def do_PUT(self) -> None:
            number = int(parse_qs(urlsplit(self.path).query)["partNumber"][0])
            sizes[number] = len(self.rfile.read(int(self.headers["content-length"])))
            together.wait(10)
            self.answer(500 if number == refused else 200)

        def do_DELETE(self) -> None:
            self.answer(204)

        def answer(self, status: int, body: bytes = b"") -> None:
            asked.append(f"{self.command} {urlsplit(self.path).query}")
            self.send_response(status)
            self.send_header("ETag", f'"{len(asked)}"')
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", asked, sizes
        finally:
            server.shutdown()
            thread.join()


PART_BYTES = 5 * 1024 * 1024


def bring(endpoint: str, uploads: int, size: int) -> None:
    chain = CredentialChain({"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}, lambda: NOW)

    async def run() -> None:
        settings = S3Settings(endpoint=endpoint, uploads=uploads, part_bytes=PART_BYTES)
        store = S3ObjectStore("crawls", settings, chain, lambda: NOW)
        try:
            await store.create("large", ObjectBody(size, "0" * 64, lambda _offset, count: bytes(count)))
        finally:
            await store.close()

    asyncio.run(run())


@pytest.mark.parametrize("uploads", [1, 3])
def test_parts_of_an_object_are_sent_as_many_at_once_as_uploads_may_be(uploads: int) -> None:
    """W2: a segment at a time has the whole line; with one thread, too, it arrives."""
    with taking_parts(uploads) as (url, asked, sizes):
        bring(url, uploads, 2 * PART_BYTES + 7)
    assert sizes == {1: PART_BYTES, 2: PART_BYTES, 3: 7}
    assert sorted(asked[2:5]) == [f"PUT partNumber={number}&uploadId=u" for number in (1, 2, 3)]
    assert asked[5:] == ["POST uploadId=u"]


def test_after_a_part_that_fails_no_other_is_begun() -> None:
    """W2: those under way end, and all of them are given up."""
    with taking_parts(2, refused=1) as (url, asked, sizes), pytest.raises(StoreAwayError, match="busy"):
        bring(url, 2, 20 * PART_BYTES)
    assert len(sizes) <= 4, "the other thread may have gone on before the answer was there"
    assert asked[-1] == "DELETE uploadId=u"


def test_what_is_allowed_a_second_is_shared_by_whoever_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    """W2: one alone has all of it, several have it together."""
    now = [100.0]
    waited: list[float] = []
    monkeypatch.setattr(wire, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=None))
    line = Wire(S3Settings(uploads=4, max_bytes_per_s=1000), "https://store.test", waited.append)
    for _ in range(3):
        line._wait_for(500)
    assert waited == [0.5, 1.0]
    now[0] = 110.0
    line._wait_for(500)
    assert waited == [0.5, 1.0], "what was sent slowly is not waited for"


@pytest.mark.parametrize(
    "endpoint", ["https://[store", "https://store.test:99999", "https://store.test:x", "store.test"]
)
def test_an_endpoint_that_is_no_url_is_told_in_a_sentence(endpoint: str) -> None:
    """W2: an open bracket, a port that is none."""
    with pytest.raises(UsageError, match="is not a URL"):
        Wire(S3Settings(), endpoint)


@pytest.mark.parametrize("key", ["AKIA:secret@", "AKIA:sec/ret@", "AKIA@"])
def test_a_place_with_credentials_is_refused_and_not_shown(key: str) -> None:
    """W2, K4: keys have slashes in them, as often as not."""
    with pytest.raises(UsageError, match="has credentials in it") as refused:
        ArchivePlace.parse(f"s3://{key}bucket/prefix")
    assert "sec" not in str(refused.value)


@pytest.mark.parametrize(
    "endpoint", ["https://key:secret@store.test", "https://key@store.test", "https://key:secret/more@store.test"]
)
def test_an_endpoint_with_credentials_is_refused_and_not_shown(endpoint: str) -> None:
    """W2, K4: it is a setting, written into files and shown; whoever writes it so means it to be used."""
    with pytest.raises(UsageError, match="has credentials in it") as refused:
        Wire(S3Settings(), endpoint)
    assert "secret" not in str(refused.value)
