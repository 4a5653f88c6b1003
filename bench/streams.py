"""W7: what a message for others costs, by the stream that it goes to.

Messages are made from rows of the catalogue and published in batches of 500, each acknowledged before the next is sent:
to Valkey (append-only file, synced at every command), to NATS with JetStream (file storage), to librdkafka's mock of a
Kafka broker (which runs inside this process: its share is in the figure), and to a file. CPU is this process's, in
microseconds a message; wall time beside it.

    nephila bench streams [--json] [--quick] [--messages N]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from stream_servers import nats, running, valkey

from nephila.interfaces.stream import Message
from nephila.model.settings import StreamSettings
from nephila.node.telling import open_stream
from nephila.store.messages import messages_of
from nephila.testing.contracts.catalogue import sample_row

MESSAGES, QUICK = 50_000, 10_000
BATCH = 500
NAME = "pages"


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds a message."""

    what: str
    cpu_us: float
    wall_us: float


@contextmanager
def places() -> Iterator[list[tuple[str, str]]]:
    """The streams, by name and URL."""
    import confluent_kafka  # noqa: PLC0415 - of the test tools, which help does without

    with (
        tempfile.TemporaryDirectory() as first,
        tempfile.TemporaryDirectory() as second,
        tempfile.TemporaryDirectory() as third,
        running(valkey(Path(first))) as redis_like,
        running(nats(Path(second))) as jetstream,
    ):
        mock = confluent_kafka.Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0})
        [broker] = mock.list_topics(timeout=10).brokers.values()
        yield [
            ("valkey", f"redis://127.0.0.1:{redis_like.port}"),
            ("nats", f"nats://127.0.0.1:{jetstream.port}"),
            ("kafka (mock)", f"kafka://{broker.host}:{broker.port}"),
            ("file", f"file://{third}/pages.jsonl"),
        ]


def publishing(what: str, url: str, messages: Sequence[Message]) -> Cost:
    stream = open_stream(StreamSettings(url=url, name=NAME), {})
    stream.publish(messages[:1])
    cpu, wall = time.process_time(), time.perf_counter()
    for start in range(0, len(messages), BATCH):
        stream.publish(messages[start : start + BATCH])
    cost = _cost(what, time.process_time() - cpu, time.perf_counter() - wall, len(messages))
    stream.close()
    return cost


def making(count: int) -> tuple[Cost, list[Message]]:
    rows = [sample_row(number) for number in range(count)]
    cpu, wall = time.process_time(), time.perf_counter()
    messages = messages_of(rows, "bench", "0" * 32, answers=False)
    return _cost("made", time.process_time() - cpu, time.perf_counter() - wall, count), messages


def _cost(what: str, cpu_s: float, wall_s: float, count: int) -> Cost:
    return Cost(what, round(cpu_s / count * 1e6, 1), round(wall_s / count * 1e6, 1))


def main() -> None:
    parser = argparse.ArgumentParser(prog="nephila bench streams", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--messages", type=int, default=0, metavar="N", help="other than 50,000")
    parser.add_argument("--quick", action="store_true", help="end within 45 seconds")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args()
    made, messages = making(chosen.messages or (QUICK if chosen.quick else MESSAGES))
    with places() as streams:
        costs = [made, *(publishing(what, url, messages) for what, url in streams)]
    if chosen.json:
        report = {"messages": len(messages), "bytes": len(messages[0].body), "costs": [asdict(cost) for cost in costs]}
        print(json.dumps(report))
        return
    print(f"{len(messages):,} messages of {len(messages[0].body)} bytes; microseconds each")
    print(f"{'':15}{'cpu':>9}{'wall':>9}")
    for cost in costs:
        print(f"{cost.what:15}{cost.cpu_us:9}{cost.wall_us:9}")


if __name__ == "__main__":
    main()
