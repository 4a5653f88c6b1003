"""Messages for others on real servers: Valkey, NATS with JetStream; and on librdkafka's mock of a Kafka broker."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import confluent_kafka
import jsonschema_rs
import nats as nats_client
import pytest
import redis
import trustme
from gate import gate
from secured_front import SecuredFront
from stream_servers import StreamServer, free_port, nats, running, valkey

from nephila.engines.secrets import Secret
from nephila.interfaces.stream import Message
from nephila.model.errors import NephilaError, StorageError, StreamAwayError, StreamRefusedError, UsageError
from nephila.model.settings import Settings, StreamSettings
from nephila.node.fleet.checking import _stream
from nephila.node.fleet.findings import Verdict
from nephila.node.telling import open_stream, telling
from nephila.store import SqliteCatalogue
from nephila.store.messages import LONGEST, is_page, messages_of
from nephila.store.publishing import Publisher
from nephila.testing.contracts.catalogue import SEGMENT, sample_row

PASSWORD = "silk-of-an-orb-weaver"  # noqa: S105 - of the servers here
SCHEMA = json.loads((Path(__file__).parents[3] / "docs" / "streams.schema.json").read_text())
QUICK = {"retry_s": 0.05, "retry_max_s": 0.1, "timeout_s": 5.0, "open_s": 0.3}


@dataclass
class Place:
    """A stream to write to, and the way to read it by another program than ours."""

    settings: StreamSettings
    read: Callable[[], list[tuple[str, bytes]]]
    """Ids and bodies in order."""
    server: StreamServer | None = None


def on_valkey(server: StreamServer) -> Place:
    settings = StreamSettings(url=f"redis://127.0.0.1:{server.port}/0", name="pages", **QUICK)

    def read() -> list[tuple[str, bytes]]:
        with redis.Redis(port=server.port) as client:
            return [(entry[b"id"].decode(), entry[b"message"]) for _, entry in client.xrange("pages")]

    return Place(settings, read, server)


def on_nats(server: StreamServer) -> Place:
    settings = StreamSettings(url=f"nats://127.0.0.1:{server.port}", name="nephila.pages", **QUICK)

    async def fetch() -> list[tuple[str, bytes]]:
        client = await nats_client.connect(f"nats://127.0.0.1:{server.port}")
        stream = client.jetstream()
        reader = await stream.subscribe("nephila.pages", ordered_consumer=True)
        count = (await stream.stream_info("nephila_pages")).state.messages
        found = [await reader.next_msg(timeout=5) for _ in range(count)]
        await client.close()
        return [((one.headers or {})["Nats-Msg-Id"], one.data) for one in found]

    return Place(settings, lambda: asyncio.run(fetch()), server)


def on_kafka() -> Iterator[Place]:
    mock = confluent_kafka.Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0})
    [broker] = mock.list_topics(timeout=10).brokers.values()
    place = f"{broker.host}:{broker.port}"

    def read() -> list[tuple[str, bytes]]:
        reader = confluent_kafka.Consumer(
            {
                "bootstrap.servers": place,
                "group.id": "test",
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
            }
        )
        reader.subscribe(["pages"])
        found: list[Any] = []
        parts = len(mock.list_topics("pages", timeout=10).topics["pages"].partitions)
        while parts:
            one = reader.poll(10)
            assert one is not None
            if one.error() is None:
                found.append(one)
            else:
                parts -= one.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
        reader.close()
        found.sort(key=lambda one: one.timestamp()[1])
        return [(dict(one.headers())["id"].decode(), one.value()) for one in found]

    yield Place(StreamSettings(url=f"kafka://{place}", name="pages", **QUICK), read)
    mock.flush(1)


@pytest.fixture(params=["valkey", "nats", "kafka", "file"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    match request.param:
        case "valkey":
            with running(valkey(tmp_path)) as server:
                yield on_valkey(server)
        case "nats":
            with running(nats(tmp_path)) as server:
                yield on_nats(server)
        case "kafka":
            yield from on_kafka()
        case _:
            path = tmp_path / "pages.jsonl"

            def read() -> list[tuple[str, bytes]]:
                return [(json.loads(line)["id"], line) for line in path.read_bytes().splitlines()]

            yield Place(StreamSettings(url=f"file://{path}", **QUICK), read)


@pytest.fixture(params=["valkey", "nats"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Those whose server can be taken away and brought back."""
    start, made = (valkey, on_valkey) if request.param == "valkey" else (nats, on_nats)
    with running(start(tmp_path)) as server:
        yield made(server)


def some(count: int, first: int = 0) -> list[Message]:
    return messages_of([sample_row(first + number) for number in range(count)], "news", "abc", answers=False)


def publish(settings: StreamSettings, messages: Sequence[Message]) -> None:
    stream = open_stream(settings, {})
    try:
        stream.publish(messages)
    finally:
        stream.close()


# What arrives


def test_messages_arrive_with_their_ids(place: Place) -> None:
    """W7: all of a batch, each as it was."""
    messages = some(7)
    stream = open_stream(place.settings, {})
    stream.publish(())
    stream.publish(messages[:5])
    stream.publish(messages[5:])
    stream.close()
    found = place.read()
    assert sorted(found) == sorted((message.id, message.body) for message in messages)
    validator = jsonschema_rs.validator_for(SCHEMA)
    for _, body in found:
        validator.validate(json.loads(body))


def test_a_catalogue_tells_before_it_lists(place: Place, tmp_path: Path) -> None:
    """W7: pages only, robots.txt and errors not; what is recorded again is told again under the same id."""
    catalogue = telling(SqliteCatalogue(tmp_path / "catalogue.sqlite"), place.settings, "news", "abc")
    rows = [
        sample_row(0),
        replace(sample_row(1), robots=True),
        replace(sample_row(2), status=404),
        replace(sample_row(3), status=304, changed=False),
    ]
    catalogue.record(rows, ())
    catalogue.record(rows[:1], ())
    assert catalogue.capture_count() == 4
    catalogue.close()
    found = place.read()
    expected = {f"abc/{SEGMENT}#0", f"abc/{SEGMENT}#3000"}
    assert {name for name, _ in found} == expected
    assert 2 <= len(found) <= 3, "a stream may drop repetitions by itself"


def test_what_goes_wrong_after_telling_is_told_again(place: Place, tmp_path: Path) -> None:
    """W7, Q4: killed between the stream and the catalogue, the page is not in the catalogue, and comes once more."""

    class Broken(SqliteCatalogue):
        def record(self, captures: object, errors: object) -> None:
            raise StorageError("the disk is full")

    path = tmp_path / "catalogue.sqlite"
    broken = telling(Broken(path), place.settings, "news", "abc")
    with pytest.raises(StorageError):
        broken.record([sample_row(1)], ())
    broken.close()
    again = telling(SqliteCatalogue(path), place.settings, "news", "abc")
    assert again.upto(SEGMENT) == 0
    again.record([sample_row(1)], ())
    again.close()
    assert {name for name, _ in place.read()} == {f"abc/{SEGMENT}#1000"}


# A stream that comes and goes


def test_publishing_goes_on_when_the_stream_comes_back(served: Place) -> None:
    """W7, N4: killed in the middle, twice: every message is there, none twice but those that were on their way."""
    told: list[str] = []
    stream = open_stream(served.settings, {})
    publisher = Publisher(stream, served.settings, "news", "abc", lambda word, _: told.append(word))
    publisher.open()
    under_way, enough = threading.Event(), threading.Event()

    def write() -> int:
        sent = 0
        while not enough.is_set():
            publisher.publish([sample_row(sent + number) for number in range(20)])
            sent += 20
            under_way.set()
        return sent

    assert served.server is not None
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        for _ in range(2):
            under_way.clear()
            assert under_way.wait(30)
            served.server.crash()
            _until(lambda: told[-1:] == ["stream_away"])
            served.server.start()
            _until(lambda: told[-1:] == ["stream_back"])
        enough.set()
        sent = writing.result(30)
    publisher.close()
    found = [name for name, _ in served.read()]
    assert set(found) == {f"abc/{SEGMENT}#{1_000 * number}" for number in range(sent)}
    assert len(found) - sent <= 3 * 20


def test_a_stream_that_a_network_has_swallowed(served: Place) -> None:
    """N4, W7: a batch that is not acknowledged in its time is sent again."""
    assert served.server is not None
    told: list[str] = []
    with gate(served.server.port) as door, ThreadPoolExecutor(1) as pool:
        url = f"{served.settings.url.partition(':')[0]}://127.0.0.1:{door.port}"
        settings = replace(served.settings, url=url, timeout_s=0.4, open_s=30)
        publisher = Publisher(open_stream(settings, {}), settings, "news", "abc", lambda word, _: told.append(word))
        publisher.open()
        door.hold()
        sending = pool.submit(publisher.publish, [sample_row(1)])
        _until(lambda: told == ["stream_away"])
        door.let_go()
        sending.result(30)
        publisher.close()
    assert {name for name, _ in served.read()} == {f"abc/{SEGMENT}#1000"}


def test_a_hurry_cuts_off_what_is_waited_for(served: Place) -> None:
    """F10, W7: Ctrl-C does not wait out the time of a batch whose stream was swallowed."""
    assert served.server is not None
    with gate(served.server.port) as door, ThreadPoolExecutor(1) as pool:
        url = f"{served.settings.url.partition(':')[0]}://127.0.0.1:{door.port}"
        settings = replace(served.settings, url=url, timeout_s=300, open_s=30)
        publisher = Publisher(open_stream(settings, {}), settings, "news", "abc")
        publisher.open()
        door.hold()
        sending = pool.submit(publisher.publish, [sample_row(1)])
        publisher.hurry(0.1)
        with pytest.raises(StreamAwayError):
            sending.result(20)
        door.let_go()
        publisher.close()


def test_the_end_of_a_crawl_does_not_wait_for_a_stream(served: Place) -> None:
    """F10, W7: it is given up after a moment, and says that nothing is lost."""
    publisher = Publisher(open_stream(served.settings, {}), served.settings, "news", "abc")
    publisher.open()
    assert served.server is not None
    served.server.crash()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(publisher.publish, [sample_row(1)])
        publisher.hurry(0.2)
        with pytest.raises(StreamAwayError) as caught:
            waiting.result(30)
    assert "nothing is lost" in caught.value.hint
    publisher.close()


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("scheme", ["redis", "nats", "kafka"])
def test_a_stream_that_is_not_there_is_told_in_a_sentence(scheme: str, tmp_path: Path) -> None:
    """W7, C4: the start waits for it, but not for ever."""
    settings = StreamSettings(url=f"{scheme}://127.0.0.1:1", **(QUICK | {"timeout_s": 0.5}))
    with SqliteOf(tmp_path) as catalogue, pytest.raises(StreamAwayError, match=r"127\.0\.0\.1:1"):
        telling(catalogue, settings, "news", "abc")


class SqliteOf:
    def __init__(self, folder: Path) -> None:
        self._catalogue = SqliteCatalogue(folder / "catalogue.sqlite")

    def __enter__(self) -> SqliteCatalogue:
        return self._catalogue

    def __exit__(self, *_: object) -> None:
        self._catalogue.close()


def test_what_cannot_be_a_stream_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """W7, C4, K4: and a password in a URL is refused."""
    for url, told in (
        ("mqtt://h", "no kind of stream"),
        ("redis://u:secret@h", "has a password in it"),
        ("nats://u:secret@h", "has a password in it"),
        ("kafka://u:secret@h:1,i:2", "has a password in it"),
        ("redis://h/pages", "no number of a database"),
        ("kafka://", "names no broker"),
        ("file://relative", "names no file"),
        ("redis://h:port", "not a URL"),
    ):
        with pytest.raises(UsageError, match=told) as caught:
            open_stream(StreamSettings(url=url), {})
        assert "secret" not in str(caught.value)
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(UsageError) as missing:
        open_stream(StreamSettings(url="kafka://h"), {})
    assert "nephila[kafka]" in missing.value.hint


# Who may


def test_valkey_with_a_password(tmp_path: Path) -> None:
    """W7, K4: from a file or the environment; a wrong one is told at once."""
    with running(valkey(tmp_path, "--requirepass", PASSWORD)) as server:
        settings = StreamSettings(url=f"redis://127.0.0.1:{server.port}", name="pages", **QUICK)
        file = tmp_path / "password"
        file.write_text(PASSWORD)
        for stream in (
            open_stream(settings, {"NEPHILA_STREAM_PASSWORD": PASSWORD}),
            open_stream(replace(settings, password_file=str(file)), {}),
        ):
            stream.publish(some(1))
            assert PASSWORD not in repr(vars(stream)["_settings"]) + repr(Secret(PASSWORD))
            stream.close()
        for environ in ({}, {"NEPHILA_STREAM_PASSWORD": "wrong"}):
            stream = open_stream(settings, environ)
            with pytest.raises(StreamRefusedError) as caught:
                stream.publish(some(1))
            assert "wrong" not in str(caught.value)
            stream.close()


def test_nats_with_a_password(tmp_path: Path) -> None:
    """W7, K4: the same."""
    with running(nats(tmp_path, "--user", "spider", "--pass", PASSWORD)) as server:
        settings = StreamSettings(url=f"nats://spider@127.0.0.1:{server.port}", **QUICK)
        stream = open_stream(settings, {"NEPHILA_STREAM_PASSWORD": PASSWORD})
        stream.publish(some(1))
        stream.close()
        stream = open_stream(settings, {"NEPHILA_STREAM_PASSWORD": "wrong"})
        with pytest.raises(StreamRefusedError, match=r"(?i)authorization"):
            stream.publish(some(1))
        stream.close()


@pytest.mark.parametrize("kind", ["valkey", "nats"])
def test_lines_to_streams_are_secured(kind: str, tmp_path: Path) -> None:
    """W7, K4: certificates are verified by the authorities of the settings; a stranger's is refused."""
    authority, stranger = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    stranger.cert_pem.write_to_path(tmp_path / "stranger.pem")
    certificate = authority.issue_cert("127.0.0.1")
    with ExitStack() as stack:
        if kind == "valkey":  # the wheel's server is built without TLS
            server = stack.enter_context(running(valkey(tmp_path)))
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            certificate.configure_cert(context)
            port = stack.enter_context(SecuredFront(server.port, context).running())
            settings = StreamSettings(url=f"redis://127.0.0.1:{port}", tls="verified", **QUICK)
        else:
            certificate.cert_chain_pems[0].write_to_path(tmp_path / "server.pem")
            certificate.private_key_pem.write_to_path(tmp_path / "server.key")
            files = ("--tlscert", str(tmp_path / "server.pem"), "--tlskey", str(tmp_path / "server.key"))
            server = stack.enter_context(running(nats(tmp_path, "--tls", *files)))
            settings = StreamSettings(url=f"nats://127.0.0.1:{server.port}", tls="verified", **QUICK)
        publish(replace(settings, authorities=str(tmp_path / "ca.pem")), some(1))
        publish(replace(settings, tls="unverified"), some(1))
        for authorities in ("", str(tmp_path / "stranger.pem")):
            with pytest.raises(StreamRefusedError, match="not trusted"):
                publish(replace(settings, authorities=authorities), some(1))


def test_a_full_valkey_is_waited_for(tmp_path: Path) -> None:
    """W7, N4: whoever fills a stream that nobody empties waits, and nothing is dropped."""
    with running(valkey(tmp_path, "--maxmemory", "3mb", "--maxmemory-policy", "noeviction")) as server:
        place = on_valkey(server)
        stream = open_stream(place.settings, {})

        def fill() -> None:
            for first in range(0, 100_000, 500):
                stream.publish(some(500, first))

        with pytest.raises(StreamAwayError, match="memory"):
            fill()
        with redis.Redis(port=server.port) as client:
            client.config_set("maxmemory", "0")
        stream.publish(some(1))
        stream.close()


@pytest.mark.parametrize(
    ("trouble", "mended"),
    [
        (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE")),
        (("CONFIG", "SET", "min-replicas-to-write", "1"), ("CONFIG", "SET", "min-replicas-to-write", "0")),
    ],
    ids=["fails over", "lacks replicas"],
)
def test_a_valkey_that_takes_nothing_for_the_moment_is_waited_for(
    trouble: Sequence[str], mended: Sequence[str], tmp_path: Path
) -> None:
    """W7, N4: in the middle of a crawl, and at its start."""
    with running(valkey(tmp_path)) as server, redis.Redis(port=server.port) as client:
        place = on_valkey(server)
        stream = open_stream(place.settings, {})
        stream.publish(some(1))
        client.execute_command(*trouble)
        for messages in (some(2, 1), []):
            with pytest.raises(StreamAwayError, match="is away"):
                stream.publish(messages)
        client.execute_command(*mended)
        stream.publish([])
        stream.publish(some(2, 1))
        stream.close()
        assert [one for one, _ in place.read()] == [one.id for one in some(3)]


def test_a_cluster_of_valkey_without_a_server_for_the_stream_is_waited_for(tmp_path: Path) -> None:
    """W7, N4: the others say so, or their client does."""
    with running(valkey(tmp_path, "--cluster-enabled", "yes", "--cluster-port", str(free_port()))) as server:
        with redis.Redis(port=server.port) as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16_383)
            _until(lambda: client.cluster("INFO")["cluster_state"] == "ok")
            place = on_valkey(server)
            publish(place.settings, some(1))
            client.execute_command("CLUSTER", "DELSLOTSRANGE", 0, 16_383)
            _until(lambda: client.cluster("INFO")["cluster_state"] == "fail")
        for messages in (some(1), []):
            with pytest.raises(StreamAwayError):
                publish(place.settings, messages)


def test_another_thing_under_its_name_is_refused(tmp_path: Path) -> None:
    """W7, O1: waiting would not help; what is told of it shows nothing of the messages."""
    with running(valkey(tmp_path)) as server:
        with redis.Redis(port=server.port) as client:
            client.set("pages", "x")
        with pytest.raises(StreamRefusedError, match="refused") as caught:
            publish(on_valkey(server).settings, some(1))
        assert some(1)[0].id not in str(caught.value)


def test_a_stream_of_valkey_is_trimmed_where_that_is_asked_for(tmp_path: Path) -> None:
    """W7: never by itself."""
    with running(valkey(tmp_path)) as server:
        place = on_valkey(server)
        publish(replace(place.settings, keep=100), some(2_000))
        assert 100 <= len(place.read()) < 500
        publish(place.settings, some(2_000))
        assert len(place.read()) >= 2_100


def test_a_cluster_of_valkey(tmp_path: Path) -> None:
    """W7, N4: the stream lies on one of its servers, whichever is asked."""
    with running(valkey(tmp_path, "--cluster-enabled", "yes", "--cluster-port", str(free_port()))) as server:
        with redis.Redis(port=server.port) as client:
            client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16_383)
            _until(lambda: client.cluster("INFO")["cluster_state"] == "ok")
        place = on_valkey(server)
        publish(place.settings, some(3))
        assert len(place.read()) == 3


def test_nats_drops_repetitions_by_their_ids(tmp_path: Path) -> None:
    """W7: within the window of the stream."""
    with running(nats(tmp_path)) as server:
        place = on_nats(server)
        publish(place.settings, some(5))
        publish(place.settings, some(6))
        assert len(place.read()) == 6


def test_a_fleet_looks_whether_its_stream_is_there(tmp_path: Path) -> None:
    """W7, N4: `nephila check` tells, before any worker is started, and whether something may be added to it."""
    with running(valkey(tmp_path)) as server:
        settings = Settings(stream=on_valkey(server).settings)
        found = _stream(settings, {})
        assert (found.verdict, found.engine) == (Verdict.OK, "stream")
        with redis.Redis(port=server.port) as client:
            client.execute_command("ACL", "SETUSER", "default", "-xadd")
            refused = _stream(settings, {})
            assert refused.verdict is Verdict.FAILED
            assert "xadd" in refused.text
            client.execute_command("ACL", "SETUSER", "default", "+xadd")
            assert not client.exists("pages")
        server.crash()
        assert _stream(settings, {}).verdict is Verdict.FAILED


# What a message says


def test_messages_say_what_the_catalogue_says() -> None:
    """W7: under the names of its columns; ids name the capture and are the same every time."""
    row = replace(sample_row(3), simhash=-1, title="x" * 9_999, near_duplicate_of="https://other.example/\ud800")
    [message] = messages_of([row], "news", "abc", answers=False)
    body = json.loads(message.body)
    jsonschema_rs.validator_for(SCHEMA).validate(body)
    assert message.id == body["id"] == f"abc/{SEGMENT}#3000"
    assert message.key == row.fingerprint
    assert (body["url"], body["status"], body["crawled_at"]) == (row.url, 200, row.at)
    assert body["content_hash"] == row.content_hash.hex()
    assert body["simhash"] == "f" * 16
    assert len(body["title"]) == LONGEST
    assert "truncated" not in body, "what is not set is left out"
    assert messages_of([row], "news", "abc", answers=False) == [message]


def test_which_captures_are_told() -> None:
    """W7: whole pages and those that have not changed; or all answers."""
    rows = [
        sample_row(0),
        replace(sample_row(1), robots=True),
        replace(sample_row(2), status=302),
        replace(sample_row(3), content_hash=b""),
        replace(sample_row(4), status=304, content_hash=b""),
    ]
    assert [is_page(row) for row in rows] == [True, False, False, False, True]
    assert len(messages_of(rows, "c", "i", answers=False)) == 2
    assert len(messages_of(rows, "c", "i", answers=True)) == 4


def test_a_torn_line_of_a_file_is_ended(tmp_path: Path) -> None:
    """W7, Q4: and its message comes again."""
    path = tmp_path / "pages.jsonl"
    path.write_bytes(some(1)[0].body + b"\n" + some(1, 1)[0].body[:40])
    publish(StreamSettings(url=f"file://{path}"), some(2, 1))
    lines = path.read_bytes().splitlines()
    assert [len(lines), lines[0], *lines[2:]] == [4, some(1)[0].body, *(one.body for one in some(2, 1))]


def test_errors_of_streams_are_told_to_people() -> None:
    """C4: they are ours, and of the disk's kind: a crawl ends cleanly by them."""
    assert issubclass(StreamAwayError, StorageError)
    assert issubclass(StreamRefusedError, NephilaError)
