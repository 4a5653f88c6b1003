"""The `Frontier` on Valkey: the seven verbs, and what opening, recovering and operating need."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

import msgspec

from nephila.engines.valkey import Valkey
from nephila.engines.valkey_plain import PlainValkey
from nephila.engines.valkey_servers import ValkeyServers, servers_of
from nephila.engines.valkey_wire import REACH, EngineError, advice_on
from nephila.frontier.embedded.lending import OUTSIDE, Lent
from nephila.frontier.policy import Policy
from nephila.interfaces.clock import Clock
from nephila.interfaces.frontier import Settled, UrlStory
from nephila.model.errors import EngineLeftError, FrontierError
from nephila.model.outcome import Release, Settlement
from nephila.model.policy import Block, DomainPolicy
from nephila.model.record import SegmentId
from nephila.model.task import Lease, Level, PageTask, Token
from nephila.urls import Fingerprint

from .asking import grades_of
from .calling import Caller
from .clocks import EngineTimeline, RemoteTimeline, VirtualTimeline
from .cycling import Cycling
from .foundation import REFRESH_S
from .library import library
from .opening import ORDINARILY, Crawl, Opening, found_or_made
from .presence import Presence
from .rules import pack_policy, packed, read_policy
from .shards import Shards, check_name
from .spilling import Spilled, Spilling
from .told import Told
from .view import RedisFrontierView

HEARTBEAT_S = 10.0
MOST_LENT = 10_000
"""Leases of which it is remembered what their pages' links follow from; a kilobyte each."""
REAP_ALL_EVERY = 10
"""Of the calls of `reap`, one in so many looks at the shards of others too: they may be dead."""


class RedisFrontier(Cycling):
    """One worker's handle on a crawl that lives in Valkey. `view` is its reading side."""

    _presence: Presence
    _heart: asyncio.Task[None] | None = None
    _reaped = 0
    _lent: deque[Token]
    """What was lent last, and may be brought back."""
    spilling: Spilling | None = None
    """Long queues are kept elsewhere, where there is a place for that."""

    @classmethod
    async def open(
        cls,
        servers: ValkeyServers | Sequence[str],
        crawl: str,
        policy: Policy,
        *,
        worker: str,
        clock: Clock,
        options: Opening = ORDINARILY,
    ) -> RedisFrontier:
        """Open a crawl, making it where there is none of that name. `worker` names this process among all of them."""
        virtual = options.virtual
        check_name(crawl)
        if policy.sharing is not None:
            raise FrontierError("a frontier on Valkey is not shared by the processes of one crawl directory")
        known = servers if isinstance(servers, ValkeyServers) else servers_of(servers)
        valkey = Valkey(known, library().text)
        try:
            await valkey.start(options.patience_s)
            try:
                async with asyncio.timeout(options.patience_s):
                    made = await found_or_made(valkey, crawl, options)
                    divided = Shards(crawl, made.shards)
                    anchors = await _open_shards(valkey, divided, policy, made, options)
            except TimeoutError as error:
                why = valkey.why_away(options.patience_s) or "it takes too long"
                raise EngineError(f"the crawl {crawl} cannot be opened: {why}", advice_on(why) or REACH) from error
            timeline: EngineTimeline = VirtualTimeline(clock, anchors) if virtual else RemoteTimeline(clock)
            plain = PlainValkey(known, library().text, options.patience_s)
            view = RedisFrontierView(plain, divided, timeline, made.secret, options.chunks)
            caller = Caller(valkey, divided, timeline, options.replicas)
            frontier = cls(caller, policy, view, worker, virtual=virtual)
            frontier._lent = deque()
            frontier._joining.linger_s = 0.0 if virtual else options.linger_ms / 1000
            if options.chunks is not None:
                frontier.spilling = Spilling(caller, options.chunks)
            frontier._presence = Presence(valkey, crawl, worker)
            if options.brief:
                frontier._told_before = Told()
            await frontier._begin(options)
        except BaseException:
            await valkey.close()
            raise
        return frontier

    async def _begin(self, options: Opening) -> None:
        if options.visiting or options.looking:
            await self.look()
            return
        if not options.joining:
            await self._every("unpark")
        await self.meet()
        await self.look()
        if not self._virtual:
            self._heart = asyncio.create_task(self._beat(), name="frontier heartbeat")

    async def meet(self) -> None:
        """Tell that we live, and share the shards with whoever else does."""
        self._workers = await self._presence.tell()
        self._divide()

    async def _beat(self) -> None:
        """Tell that we live, see who else does, and look at the counters, less often the more workers there are."""
        loop = asyncio.get_running_loop()
        told_at, moves = loop.time(), self._valkey.moves
        while True:
            await asyncio.sleep(max(REFRESH_S, len(self._workers) * REFRESH_S / 10))
            if loop.time() - told_at >= HEARTBEAT_S:
                told_at = loop.time()
                await self.meet()
            if moves != self._valkey.moves:
                moves = self._valkey.moves
                await self._every("rest")  # another primary has another clock: hosts of its shards rest one full delay
            await self.look()
            cycles = {one.cycle for one in self._counters.values()}
            if len(cycles) > 1:
                await self._bring_cycle(max(cycles))  # whoever began it died on the way

    def hurry(self, seconds: float) -> None:
        """Somebody wants an end: an engine that does not answer is waited for so long, and no longer."""
        self._valkey.hurry(seconds)
        self.view.hurry(seconds)

    async def close(self) -> None:
        """Leave; what was answered is the engine's."""
        if self._heart is not None:
            self._heart.cancel()
            with contextlib.suppress(asyncio.CancelledError, EngineLeftError):
                await self._heart
        if self._valkey.away_since is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2.0):
                    await self._presence.leave()
        self.view.close()
        await self._valkey.close()

    # The verbs that touch leases and segments

    async def renew(self, tokens: Sequence[Token], lease_s: float) -> set[Token]:
        """Extend leases; those not in the answer are lost."""
        by_shard: dict[int, list[Token]] = {}
        for token in tokens:
            by_shard.setdefault(self._shards.of_token(token), []).append(token)
        kept: set[Token] = set()
        answers = await asyncio.gather(
            *(self._caller.call(shard, "renew", int(lease_s * 1000), *some) for shard, some in by_shard.items())
        )
        for _, names in answers:
            kept |= {Token(int(name)) for name in names}
        for token in set(tokens) - kept:
            self._facts.pop(token, None)
        await self._touched(by_shard)
        return kept

    async def confirm(self, segment: SegmentId, upto: int) -> int:
        """Complete the pages that were pending on the bytes before `upto`."""
        shards = await self._shards_of(segment)
        keeper = sorted(shards)[crc32(segment.encode()) % len(shards)]
        caller, told = self._caller, (segment, upto)
        calls = (
            caller.call(shard, "confirm", *told, int(shard == keeper), replicas=caller.replicas) for shard in shards
        )
        done = int(sum(await asyncio.gather(*calls)))
        self._noted.pop(segment, None)
        self._gone_through.discard(segment)
        await self._touched(shards)
        return done

    async def reap(self) -> int:
        """Return the hosts of expired leases, each for one full delay more: in our shards; now and then in all."""
        self._reaped += 1
        everywhere = self._virtual or self._reaped % REAP_ALL_EVERY == 1
        return await self._reap("expired", shards=None if everywhere else self._mine)

    async def _reap(self, which: str, holder: str = "", shards: Sequence[int] | None = None) -> int:
        ended = int(sum(await self._every("reap", which, holder, shards=shards)))
        if ended:
            self._quiet.clear()
        await self._touched(range(self._shards.count))
        return ended

    async def spill(self) -> Spilled:
        """Keep the far ends of long queues elsewhere, and bring back what is needed soon, in our shards."""
        if self.spilling is None:
            return Spilled()
        done = await self.spilling.turn(self._mine)
        if done.back:
            self._quiet.clear()
        if done != Spilled():
            await self._touched(self._mine)
        return done

    async def clear_chunks(self, *, strangers: bool) -> int:
        """Delete chunks that nobody needs any more; `strangers`: go through the whole store for those of the dead."""
        if self.spilling is None:
            return 0
        cleared = await self.spilling.clear(self._mine)
        return cleared + (await self.spilling.clear_strangers(self._mine) if strangers else 0)

    # Opening, recovering, operating

    def check_readers(self) -> int:
        """Readers leave nothing behind here."""
        return 0

    async def reap_all(self) -> int:
        """Return the hosts of all leases: their holders are known to be dead."""
        return await self._reap("all")

    async def reap_holder(self, holder: str) -> int:
        """Return the hosts of all leases of one worker, known to be dead."""
        return await self._reap("holder", holder)

    async def lose(self, segment: SegmentId, valid_end: int) -> int:
        """Queue again the pages whose bytes are gone."""
        if valid_end:  # else nothing of it is left that could be confirmed
            self._gone_through.add(segment)
        every = range(self._shards.count)
        lost = sum(await asyncio.gather(*(self._lose_in(shard, segment, valid_end) for shard in every)))
        await self._touched(every)
        return lost

    async def _lose_in(self, shard: int, segment: SegmentId, valid_end: int) -> int:
        repute = self._repute()
        grades: dict[str, int] | None = None if repute is None else {}
        while True:
            told = msgspec.msgpack.encode({} if grades is None else {"grades": grades})
            reply = await self._caller.call(shard, "lose", segment, valid_end, told)
            if grades is None or reply[0] != b"GRADES":
                return int(reply[1])
            grades |= grades_of(repute, reply[1])

    async def pending_segments(self) -> set[SegmentId]:
        """Segments that pages wait for, of all workers: as the view tells them, without holding up the event loop."""
        return {SegmentId(one.decode()) for pending in await self._every("pending") for one in pending}

    async def disown(self, segment: SegmentId, offset: int) -> None:
        """A capture that was stored, but whose settle was refused: it belongs to nobody and is listed nowhere."""
        key = self._shards.keys[0]
        await self._valkey.do(key, "SADD", f"{key}:orphaned", segment)  # first: of a segment may be nothing else
        await self._valkey.do(key, "SADD", f"{key}:orphans:{segment}", offset)

    async def revive(self, stories: Sequence[UrlStory]) -> int:
        """Put dead letters back into their queues, retries forgiven."""
        return await self._bring_back(stories, "dead", "")

    async def recall(self, stories: Sequence[UrlStory], level: Level) -> int:
        """Queue URLs that have ended, or that wait for a time, once more in a class (R2, by hand)."""
        return await self._bring_back(stories, "any", str(int(level)))

    async def _bring_back(self, stories: Sequence[UrlStory], which: str, level: str) -> int:
        by_shard = self._by_shard(stories)
        answers = await asyncio.gather(
            *(self._caller.call(shard, "bring_back", which, level, *names) for shard, names in by_shard.items())
        )
        await self._woken_all(by_shard)
        return int(sum(answers))

    async def _woken_all(self, shards: Iterable[int]) -> None:
        for shard in shards:
            self._woken(shard)
        await self._touched(shards)

    # Workers outside

    async def lend(self, hosts: int, lease_s: float) -> Lent:
        """Lease up to `hosts` hosts, one URL each, to a worker outside."""
        await self.reap_lent()
        claimed = await self._claim(hosts, lease_s, str(OUTSIDE), 1)
        lent = [lease for lease in claimed if isinstance(lease.tasks[0], PageTask)]
        self._lent.extend(lease.token for lease in lent)
        while len(self._lent) > MOST_LENT:
            self._facts.pop(self._lent.popleft(), None)  # nobody brought it back; who does so yet is asked for anew
        wanting = [lease for lease in claimed if not isinstance(lease.tasks[0], PageTask)]
        for lease in wanting:
            await self._give_back(lease)
        return Lent(lent, len(wanting))

    async def _give_back(self, lease: Lease) -> None:
        """A lease that nobody used: its host is as it was."""
        wait_ms = max(0, lease.not_before - self.timeline.now())
        await self.settle(lease.token, (), Release(wait_ms, lease.pace))

    async def take_back(self, token: Token, settlement: Settlement, release: Release) -> Settled:
        """Settle what was lent; refused where the lease was lost, or never was lent."""
        return await self._settle(token, [settlement], release, str(OUTSIDE))

    async def reap_lent(self) -> int:
        """Return the hosts of leases that were lent and have expired."""
        return await self._reap("lent", str(OUTSIDE))

    # A person's orders

    async def set_policy(self, domain: str, policy: DomainPolicy | None, was: DomainPolicy | None = None) -> bool:
        """Let a policy hold for a registrable domain from the next claim on; None takes it back (R4).

        Where somebody has changed `was` meanwhile, nothing is done; False then.
        """
        told = [b"" if policy is None else pack_policy(policy)]
        if was is not None:
            raw = await asyncio.to_thread(self.view.packed_policy, domain)
            if (read_policy(raw) if raw else DomainPolicy()) != was:
                return False
            told.append(raw)  # as it was written, by whatever version
        shard = self._shards.of_domain(domain)
        if not await self._caller.call(shard, "set_policy", domain, *told):
            return False
        await self._woken_all((shard,))
        return True

    async def block(self, block: Block) -> None:
        """Ask no more for a domain, a host or a part of it (T7)."""
        await self._every("block", block.pattern, msgspec.json.encode(block))
        await self._touched(range(self._shards.count))

    async def unblock(self, pattern: str) -> bool:
        """Take a block back; False when there was none."""
        gone = any(await self._every("unblock", pattern))
        await self._woken_all(range(self._shards.count))
        return gone

    async def forget(
        self,
        gone: Sequence[tuple[str, Fingerprint]],
        emptied: Sequence[tuple[str, Fingerprint]],
        origins: Sequence[str],
    ) -> None:
        """Forget what captures left behind that were taken out of the archive (K2), as the engine of a directory."""
        for what, named in (("gone", gone), ("emptied", emptied)):
            by_shard: dict[int, list[Any]] = {}
            for host, fingerprint in named:
                by_shard.setdefault(self._shards.of_host(host), []).extend((host, fingerprint))
            for shard, names in by_shard.items():
                await self._caller.call(shard, "forget", what, *names)
        for origin in origins:
            await self._caller.call(self._shards.of_origin(origin), "forget", "rules", origin)

    async def release_trap(self, host: str, skeleton_key: bytes) -> int:
        """Let a quarantined or slowed skeleton start anew; how many URLs come back (T2)."""
        shard = self._shards.of_host(host)

        def make(_: bool, patterns: dict[str, Any]) -> list[Any]:
            return [host, skeleton_key, msgspec.msgpack.encode({"patterns": patterns})]

        reply = await self._caller.with_patterns(shard, "release_trap", make)
        await self._woken_all((shard,))
        return int(reply[1])


async def _open_shards(valkey: Valkey, shards: Shards, policy: Policy, made: Crawl, options: Opening) -> list[bytes]:
    """Write the rules into every shard, unless somebody only looks; their anchors."""
    opened = () if options.looking else range(made.shards)
    return list(await asyncio.gather(*(_open_shard(valkey, shards, shard, policy, made) for shard in opened)))


async def _open_shard(valkey: Valkey, shards: Shards, shard: int, policy: Policy, made: Crawl) -> bytes:
    """Write the rules into a shard; answers its anchor, if it has one."""
    version, text = packed(policy, shard, shards.count, compact=made.compact)
    key = shards.keys[shard]
    reply = await valkey.do(key, "FCALL", library().function("open"), 1, key, version, text, made.cycle)
    return bytes(reply[1])
