"""Memory of the C library: a crawl's threads share it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from nephila.native import AVAILABLE, native

PROGRAM = """
import asyncio, ctypes, tempfile, uvloop
from nephila.node import memory

async def busy():
    loop = asyncio.get_running_loop()
    await asyncio.gather(*(loop.run_in_executor(None, lambda: len(bytes(90_000))) for _ in range(200)))

with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner, memory.threads(runner.get_loop()):
    runner.run(busy())
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    told = tempfile.NamedTemporaryFile()
    stream = ctypes.c_void_p(libc.fopen(told.name.encode(), b"w"))
    libc.malloc_info(0, stream)
    libc.fclose(stream)
    print(told.read().count(b"<heap nr="))
"""


def test_threads_of_a_crawl_share_two_arenas() -> None:
    """Q3: what one thread gives back another can have; else each ends up with what the largest call took."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert (int(done.stdout) == 2) is AVAILABLE


@pytest.mark.skipif(not AVAILABLE, reason="without the extension there is nothing to call")
def test_a_number_of_arenas_that_makes_no_sense_is_refused() -> None:
    """Q3: none, or more than anybody could mean."""
    for count in (0, -1, 1025):
        with pytest.raises(ValueError, match="1 to 1024"):
            native.share_arenas(count)
    with pytest.raises(TypeError):
        native.share_arenas("2")  # type: ignore[arg-type]
