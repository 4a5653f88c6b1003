"""The crawl's end of a plugin's process: started when it is first needed, ended when it is over its deadline.

One call at a time: who comes meanwhile waits, and how long is bounded by the deadlines of those before him and by the
plugin being switched off. After a kill the next call starts a new process, with the plugin as it was given at first.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import socket
from asyncio.subprocess import DEVNULL, Process
from contextlib import suppress
from multiprocessing import spawn
from typing import Any, NamedTuple

import msgspec

from nephila.engines.interpreter import heedless
from nephila.engines.secrets import without_secrets
from nephila.model.errors import UsageError

from .answers import BadAnswerError, Plain
from .child import FRAME, LONGEST_MESSAGE, Confines
from .points import CLOSE

ENDING_S = 1.0
"""How long a process that has closed its end may take to be gone, before it is killed."""
START_S = 30.0
"""For a new interpreter and the imports of a plugin, on a machine that is busy with a crawl."""

_PROGRAM = """
from nephila.plugins.child import live
live({crawl}, {descriptor})
"""


class OverranError(Exception):
    """A plugin did not answer within its deadline."""


class RaisedError(Exception):
    """A plugin raised, or its process died."""


class SwitchedOffError(Exception):
    """A plugin is not asked any more. No failure of its own: it had enough of those."""


class _Alive(NamedTuple):
    process: Process
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class Child:
    """A plugin in a process of its own."""

    def __init__(self, name: str, plugin: object, confines: Confines) -> None:
        """Raises `UsageError` for an object that cannot be given to another process."""
        self.name = name
        self._confines = confines
        try:
            self._pickled = pickle.dumps(plugin, pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            raise UsageError(
                f"the plugin {name} cannot be given to a process of its own: {error}",
                hint="define its class at the top of a module, make its methods asynchronous, or declare it quick",
            ) from error
        self._alive: _Alive | None = None
        self._turn = asyncio.Lock()
        self.is_retired = False
        """Set when nobody is to be let in any more, not even those who wait for their turn."""
        self.starts = 0

    async def call(self, method: str, arguments: tuple[Any, ...], asked: int, deadline_s: float) -> Plain:
        """Call a method there. Raises `OverranError`, `RaisedError`, `BadAnswerError` or `SwitchedOffError`."""
        async with self._turn:
            if self.is_retired:
                raise SwitchedOffError
            message = pickle.dumps((method, arguments, asked), pickle.HIGHEST_PROTOCOL)
            alive = self._alive or await self._started()
            return await self._exchange(alive, message, deadline_s)

    async def close(self, deadline_s: float, *, says_so: bool) -> None:
        """End the process; `says_so`: after a call of the plugin's own `close`."""
        try:
            if says_so and self._alive is not None and not self.is_retired:
                await self.call(CLOSE, (), 0, deadline_s)
        finally:
            if self._alive is not None:
                await self._end(self._alive)

    async def _started(self) -> _Alive:
        try:
            return await self._start()
        except OSError as error:  # no descriptor, no process, no memory left for one
            raise RaisedError(f"its process cannot be started: {error.strerror or error}") from error

    async def _start(self) -> _Alive:
        ours, its = socket.socketpair()
        with its:
            program = _PROGRAM.format(crawl=os.getpid(), descriptor=its.fileno())
            try:
                process = await asyncio.create_subprocess_exec(
                    *(*heedless(program), f"nephila-plugin-{self.name}"),
                    stdin=DEVNULL,
                    stdout=2,  # what it prints must not stand among the crawl's own output
                    pass_fds=(its.fileno(),),
                    env=without_secrets(os.environ) if self._confines.sealed else None,
                )
            except BaseException:
                ours.close()
                raise
        reader, writer = await asyncio.open_unix_connection(sock=ours, limit=1 << 20)
        self._alive = alive = _Alive(process, reader, writer)
        self.starts += 1
        preparation = pickle.dumps((self._preparation(), self._confines, self._pickled), pickle.HIGHEST_PROTOCOL)
        try:
            await self._exchange(alive, preparation, START_S)
        except RaisedError as error:
            await self._end(alive)
            raise RaisedError(f"it does not start: {error}") from error
        return alive

    def _preparation(self) -> dict[str, Any]:
        """What the new interpreter needs to find the plugin's class; the main program only where that defines it."""
        data = spawn.get_preparation_data(f"nephila-plugin-{self.name}")
        if b"__main__" not in self._pickled:
            data.pop("init_main_from_name", None)
            data.pop("init_main_from_path", None)
        return {key: value for key, value in data.items() if key not in {"authkey", "start_method"}}

    async def _exchange(self, alive: _Alive, message: bytes, deadline_s: float) -> Plain:
        done = False
        try:
            async with asyncio.timeout(deadline_s):
                alive.writer.write(FRAME.pack(len(message)))
                alive.writer.write(message)
                await alive.writer.drain()
                size = FRAME.unpack(await alive.reader.readexactly(FRAME.size))[0]
                if size > LONGEST_MESSAGE:
                    raise BadAnswerError(f"an answer of {size} bytes")
                answer = await alive.reader.readexactly(size)
            done = True
        except TimeoutError:
            raise OverranError(f"no answer within {deadline_s:g} s") from None
        except (asyncio.IncompleteReadError, OSError):
            with suppress(TimeoutError):  # it has closed its end, so it is ending: its own code tells why
                async with asyncio.timeout(ENDING_S):
                    await alive.process.wait()
            code = await self._end(alive)
            raise RaisedError(f"its process {_death_of(code)}") from None
        finally:
            if not done:  # also when we are cancelled: an answer that comes later would be taken for the next one
                await asyncio.shield(self._end(alive))
        return _told(answer)

    async def _end(self, alive: _Alive) -> int:
        if self._alive is alive:
            self._alive = None
        alive.writer.close()
        if alive.process.returncode is None:
            try:
                alive.process.send_signal(signal.SIGKILL)
            except ProcessLookupError:
                """It has ended by itself."""
        return await alive.process.wait()


def _told(answer: bytes) -> Plain:
    try:
        kind, value = msgspec.msgpack.decode(answer, type=tuple[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadAnswerError("its process answers nonsense") from error
    match kind:
        case "ok":
            plain: Plain = value
            return plain
        case "raised":
            raise RaisedError(str(value))
        case _:
            raise BadAnswerError(str(value))


def _death_of(code: int) -> str:
    try:
        return f"ended with exit code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
