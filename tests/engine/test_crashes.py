"""A process dies at every commit and at every call of a small campaign, and another takes over.

Nobody is contacted twice by the provider's own log, every delivery ends in exactly one state, and
what is in doubt is exactly what nobody can know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from paceline.core.grammar import Rate
from paceline.core.instants import HOUR, MINUTE, SECOND, Instant
from paceline.core.model import Part
from paceline.engine import recovery
from paceline.engine.ports import Tx
from paceline.engine.sender import Sender
from tests.engine.faults import CallMoment, CommitMoment, TrippedStore, Wire
from tests.engine.world import Process, World
from tests.engine.worlds import Worlds

RATE = "60/min"
ONE_PART = (Part("text", "hello {{ target }}"),)
POLL_US = 4 * SECOND
"""Looking more rarely changes nothing that is judged here, and spares most of the work."""
TWO_PARTS = (Part("text", "hello"), Part("text", "and {{ target }}"))


@dataclass(frozen=True)
class Scene:
    """A small campaign, and what becomes of those whose message is in doubt."""

    name: str
    count: int = 2
    parts: tuple[Part, ...] = ONE_PART
    policy: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    doubts_end_as: str = "sent"
    may_repeat: bool = False

    @property
    def interval_us(self) -> int:
        rate = Rate.parse(self.policy.get("rate", RATE))
        return rate.interval_us

    def set_up(self, world: World) -> None:
        world.twice_allowed = self.may_repeat
        policy = {"rate": RATE, **self.policy}
        world.account(policy=policy, **{"latency": "300ms", **self.settings})
        world.campaign(self.count, parts=self.parts)


SERIAL = Scene("one at a time")
ABREAST = Scene(
    "three abreast, two parts each",
    count=3,
    parts=TWO_PARTS,
    policy={"rate": "120/min", "concurrency": 3, "part_gap": "100ms"},
    settings={"latency": "900ms"},
)
BLIND = Scene("nobody can be asked", settings={"finds": False}, doubts_end_as="unknown")
BLIND_ABREAST = Scene(
    "nobody can be asked, three abreast",
    count=3,
    parts=TWO_PARTS,
    policy={"rate": "120/min", "concurrency": 3, "part_gap": "100ms"},
    settings={"latency": "900ms", "finds": False},
    doubts_end_as="unknown",
)
RECKLESS = Scene(
    "sent again when in doubt",
    policy={"on_unknown": "resend"},
    settings={"finds": False},
    may_repeat=True,
)
SCENES = (SERIAL, ABREAST, BLIND, BLIND_ABREAST, RECKLESS)


@dataclass
class Death:
    """What was known at the moment a process died."""

    at: Instant
    in_doubt: set[int]
    between_parts: set[int]
    free_at: Instant


def witness(world: World) -> Death:
    def look(tx: Tx) -> Death:
        account = tx.accounts.find("ann")
        assert account is not None
        stranded = tx.path.stranded(account.id)
        owner = tx.lanes.get(account.id).owner
        lease = [p.lease_until_at for p in tx.processes.list() if p.id == owner]
        return Death(
            at=world.clock.now(),
            in_doubt={delivery.id for delivery, intent in stranded if intent is not None},
            between_parts={delivery.id for delivery, intent in stranded if intent is None},
            free_at=lease[0] if lease else world.clock.now(),
        )

    return world.read(look)


async def take_over(world: World, scene: Scene, first: Process) -> Death:
    """Wait for the first process to die or to finish; let a second one finish, and judge."""
    await world.until(lambda: first.dead or world.state() == "finished", HOUR, SECOND // 2)
    if not first.dead:
        first.supervisor.stop()
    await first.gone()
    death = witness(world)
    second = world.process("two", poll_us=POLL_US)
    await world.until(lambda: world.state() == "finished", 10 * MINUTE, POLL_US)
    await second.stop()
    judge(world, scene, death)
    return death


def judge(world: World, scene: Scene, death: Death) -> None:
    early = [e for e in world.calls() if death.at < e.called_at < death.free_at]
    assert not early, f"sent before the lease had run out: {early}"
    with world.store.read() as tx:
        rows = tx.deliveries.page()
    assert len(rows) == scene.count
    ended = {row.id: str(row.state) for row in rows}
    expected = {row.id: scene.doubts_end_as if row.id in death.in_doubt else "sent" for row in rows}
    assert ended == expected
    whole = {f"test-{row.id}-{part}" for row in rows for part in range(len(scene.parts))}
    lost = [
        key
        for key in sorted(whole - {effect.key for effect in world.sends()})
        if ended[int(key.split("-")[1])] == "sent"
    ]
    assert not lost, f"said to be sent, but the provider never had it: {lost}"
    repeated = {int(key.split("-")[1]) for key in world.twice()}
    assert repeated <= death.in_doubt
    too_close = [gap for gap in gaps_of(world) if gap < scene.interval_us]
    assert not too_close, f"faster than allowed, whoever sent: {too_close}"


def gaps_of(world: World) -> list[int]:
    """The times between calls, by the provider's log: it knows also what nobody settled."""
    called = [effect.called_at for effect in world.calls()]
    return [later - earlier for earlier, later in pairwise(called)]


def commits_of(worlds: Worlds, scene: Scene) -> int:
    """How many commits an undisturbed process makes from its start to its stop."""

    async def script(world: World) -> int:
        scene.set_up(world)
        store = TrippedStore(world.store)
        process = world.process(store=store, poll_us=POLL_US)
        await world.until_finished()
        await process.stop()
        return store.commits

    return worlds.fresh().play(script)


def die_at_commit(scene: Scene, number: int, moment: CommitMoment) -> Callable[[World], Any]:
    async def script(world: World) -> None:
        scene.set_up(world)

        def trip(commit: int, now: CommitMoment) -> None:
            if (commit, now) == (number, moment):
                first.die()
                raise asyncio.CancelledError

        first = world.process("one", store=TrippedStore(world.store, trip), poll_us=POLL_US)
        await take_over(world, scene, first)

    return script


def die_at_call(scene: Scene, number: int, moment: CallMoment) -> Callable[[World], Any]:
    async def script(world: World) -> None:
        scene.set_up(world)

        def trip(call: int, now: CallMoment) -> None:
            if (call, now) == (number, moment):
                first.die()
                if moment != "during":
                    raise asyncio.CancelledError

        wire = Wire(world.providers.get("sandbox"), trip)
        first = world.process("one", providers=wire.registry(), poll_us=POLL_US)
        death = await take_over(world, scene, first)
        assert first.dead
        assert death.in_doubt

    return script


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_a_death_at_any_commit_harms_nobody(worlds: Worlds, scene: Scene) -> None:
    commits = commits_of(worlds, scene)
    assert commits > 2 * scene.count
    worlds.play_each(partial(die_at_commit, scene), commits, "before", "after")


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
def test_a_death_at_any_call_leaves_exactly_that_message_in_doubt(
    worlds: Worlds, scene: Scene
) -> None:
    calls = scene.count * len(scene.parts)
    worlds.play_each(partial(die_at_call, scene), calls, "before", "during", "after")


SLOW = Scene(
    "a message in ten seconds",
    parts=TWO_PARTS,
    policy={"rate": "6/min", "timeout": "5s"},
    settings={"latency": "4s"},
)


def die_twice(scene: Scene, number: int, moment: CommitMoment) -> Callable[[World], Any]:
    """The first process dies with a message on the wire, the second while it takes over."""

    async def script(world: World) -> None:
        scene.set_up(world)

        def cut(call: int, now: CallMoment) -> None:
            if (call, now) == (1, "during"):
                first.die()

        def trip(commit: int, now: CommitMoment) -> None:
            if (commit, now) == (number, moment):
                second.die()
                raise asyncio.CancelledError

        wire = Wire(world.providers.get("sandbox"), cut)
        first = world.process("one", providers=wire.registry(), poll_us=POLL_US)
        await world.until(lambda: first.dead)
        await first.gone()
        store = TrippedStore(world.store, trip)
        second = world.process("two", store=store, poll_us=POLL_US)
        await take_over(world, scene, second)

    return script


def test_a_death_at_any_commit_of_a_takeover_harms_nobody_either(worlds: Worlds) -> None:
    worlds.play_each(partial(die_twice, SLOW), 12, "before", "after")


def test_it_would_be_seen_if_a_takeover_sent_again_what_was_under_way(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken twin: it takes what was left in the middle for unsent."""

    async def hopeful(context: Any, snapshot: Any, lease: Any, capabilities: Any) -> Any:
        def put_back(tx: Tx) -> None:
            for delivery, _ in tx.path.stranded(lease.account_id):
                tx.deliveries.move(delivery.id, "retry", at=tx.now, reason="")

        await context.journal.write(put_back)
        return snapshot

    monkeypatch.setattr(recovery, "take_stock", hopeful)
    with pytest.raises(AssertionError):
        worlds.fresh().play(die_at_call(SERIAL, 1, "after"))


def test_it_would_be_seen_if_the_call_came_before_the_intent(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken twin: it calls the provider first and writes the intent afterwards."""
    intend, launch = Sender._intend, Sender._launch

    async def launch_first(
        self: Any, flight: Any, message: Any, usage: Any, now: Any, *, starts: bool
    ) -> bool:
        flight.intent_at, flight.term = now, self._context.lease.term
        await launch(self, flight, message)
        return await intend(self, flight, message, usage, now, starts=starts)

    async def launched_already(self: Any, flight: Any, message: Any) -> None:
        return

    monkeypatch.setattr(Sender, "_intend", launch_first)
    monkeypatch.setattr(Sender, "_launch", launched_already)
    with pytest.raises(AssertionError):
        worlds.play_each(partial(die_at_commit, SERIAL), commits_of(worlds, SERIAL), "before")
