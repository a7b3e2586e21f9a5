"""The database goes away for minutes at every commit of a small campaign, and comes back.

Either nothing was stored, or everything was and only the answer was lost; the process cannot tell
the two apart. Afterwards everything is finished, nothing was sent twice, nothing is lost, and
nothing is in doubt whose call was never made.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from paceline.core.errors import StoreUnavailable
from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.engine import recovery
from paceline.engine.leases import LEASE_US
from paceline.engine.taking import Taking
from tests.engine.faults import CommitMoment, LostStore, TrippedStore
from tests.engine.test_crashes import ABREAST, SERIAL, Scene, gaps_of
from tests.engine.world import World
from tests.engine.worlds import Worlds

POLL_US = 4 * SECOND
CERTAIN = Scene("one at a time, and nobody can be asked", settings={"finds": False})
CERTAIN_ABREAST = Scene(
    "three abreast, and nobody can be asked",
    count=3,
    parts=ABREAST.parts,
    policy=ABREAST.policy,
    settings={"latency": "900ms", "finds": False},
)
TROUBLED = Scene(
    "with a bounce, a throttle and a passing failure",
    count=4,
    policy={"concurrency": 2, "retry": "5s doubling"},
    settings={
        "finds": False,
        "bounce_at": (1,),
        "transient_at": (2,),
        "throttle_at": (3,),
        "retry_after": "5s",
    },
)


def commits_of(worlds: Worlds, scene: Scene) -> int:
    async def script(world: World) -> int:
        scene.set_up(world)
        store = TrippedStore(world.store)
        process = world.process(store=store, poll_us=POLL_US)
        await world.until_finished(within_us=HOUR)
        await process.stop()
        return store.commits

    return worlds.fresh().play(script)


def lose(
    scene: Scene, away_us: int, expected: dict[str, int], number: int, moment: CommitMoment
) -> Callable[[World], Any]:
    async def script(world: World) -> None:
        scene.set_up(world)
        store = LostStore(world.store, world.clock, number, moment, away_us)
        process = world.process(store=store, poll_us=POLL_US)
        await world.until(lambda: store.back, HOUR, SECOND)
        if not process.running:  # it could not even join, which its caller is told
            await process.gone()
            process = world.process("again", poll_us=POLL_US)
        await world.until(lambda: world.state() == "finished", 20 * MINUTE, POLL_US)
        await process.stop()
        assert world.counts() == expected
        assert min(gaps_of(world)) >= scene.interval_us
        assert owners(world) == {None}

    return script


def owners(world: World) -> set[int | None]:
    with world.store.read() as tx:
        return {tx.lanes.get(account.id).owner for account in tx.accounts.list()}


@pytest.mark.parametrize("scene", [CERTAIN, CERTAIN_ABREAST], ids=lambda scene: scene.name)
def test_whatever_commit_fails_everything_is_sent_and_nothing_is_in_doubt(
    worlds: Worlds, scene: Scene
) -> None:
    commits = commits_of(worlds, scene) - 1
    script = partial(lose, scene, 3 * MINUTE, {"sent": scene.count})
    worlds.play_each(script, commits, "before", "after")


def test_what_follows_from_an_outcome_follows_once_whatever_commit_fails(worlds: Worlds) -> None:
    commits = commits_of(worlds, TROUBLED) - 1
    script = partial(lose, TROUBLED, MINUTE, {"sent": 3, "bounced": 1})
    worlds.play_each(script, commits, "before", "after")


def cut_off(scene: Scene, number: int, moment: CommitMoment) -> Callable[[World], Any]:
    """One of two processes loses the database; the other one still has it and takes over."""

    async def script(world: World) -> None:
        scene.set_up(world)
        store = LostStore(world.store, world.clock, number, moment, 2 * MINUTE)
        first = world.process("one", store=store, poll_us=POLL_US)
        await world.until(lambda: store.gone, HOUR)
        second = world.process("two", poll_us=POLL_US)
        await world.until(lambda: store.back, HOUR, POLL_US)
        await world.until(lambda: world.state() == "finished", 20 * MINUTE, POLL_US)
        await second.stop()
        first.supervisor.stop()
        await first.gone()
        assert world.counts() == {"sent": scene.count}
        assert min(gaps_of(world)) >= scene.interval_us
        assert owners(world) == {None}

    return script


@pytest.mark.parametrize("scene", [SERIAL, ABREAST], ids=lambda scene: scene.name)
def test_a_process_that_alone_lost_the_store_is_replaced_and_does_no_harm_when_it_is_back(
    worlds: Worlds, scene: Scene
) -> None:
    commits = commits_of(worlds, scene) - 1
    worlds.play_each(partial(cut_off, scene), commits, "before", "after")


@pytest.mark.parametrize("seed", range(5))
def test_a_store_that_fails_every_other_time_only_takes_longer(worlds: Worlds, seed: int) -> None:
    chance = random.Random(seed)

    async def script(world: World) -> None:
        CERTAIN_ABREAST.set_up(world)

        def trip(commit: int, moment: CommitMoment) -> None:
            if commit > 2 and chance.random() < 0.3:
                raise StoreUnavailable("not now")

        process = world.process(store=TrippedStore(world.store, trip))
        await world.until_finished(within_us=HOUR)
        await process.stop()
        assert world.counts() == {"sent": CERTAIN_ABREAST.count}

    worlds.fresh().play(script)


def test_while_the_store_is_away_nothing_is_sent_and_the_process_says_so(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency="300ms")
        world.campaign(60)
        store = LostStore(world.store, world.clock, 8, "before", 2 * MINUTE)
        process = world.process(store=store)
        await world.until(lambda: store.gone)
        assert process.supervisor.healthy
        gone_at, calls = world.clock.now(), len(world.calls())
        await world.wait(LEASE_US)
        assert not process.supervisor.healthy
        await world.until(lambda: store.back)
        assert len(world.calls()) == calls
        await world.until_finished(within_us=HOUR)
        await process.stop()
        silent = [e for e in world.calls() if gone_at < e.called_at < gone_at + 2 * MINUTE]
        assert not silent
        assert world.counts() == {"sent": 60}

    worlds.fresh().play(script)


def test_an_intent_is_never_followed_by_a_call_when_its_commit_was_not_heard_of(
    worlds: Worlds,
) -> None:
    """Withdrawn means withdrawn: its slot comes back, and the day's cap still allows everybody."""

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "daily": {"message": 2}}, finds=False)
        world.campaign(2)
        account_id, intents = world.account_now().id, 0

        def trip(commit: int, moment: CommitMoment) -> None:
            nonlocal intents
            if moment != "after" or world.calls() or intents == 3:
                return
            with world.store.read() as tx:
                written = sum(row.kind == "intent" for row in tx.ledger.walk(account_id))
            if written > intents:
                intents += 1
                raise StoreUnavailable("the answer was lost")

        process = world.process(store=TrippedStore(world.store, trip))
        await world.until_finished(within_us=HOUR)
        await process.stop()
        assert intents == 3
        assert world.counts() == {"sent": 2}
        assert len(world.calls()) == 2
        with world.store.read() as tx:
            rows = list(tx.ledger.walk(world.account_now().id))
        assert sum(row.slots for row in rows) == 2
        assert [row.outcome for row in rows].count("withdrawn") == 3

    worlds.fresh().play(script)


def test_it_would_be_seen_if_a_doubtful_intent_were_forgotten(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken twin: it never looks for an intent of whose commit it did not hear."""

    async def forget(*_: Any) -> None:
        return

    monkeypatch.setattr(recovery, "take_back", forget)
    monkeypatch.setattr(recovery, "left_over", lambda *_: [])
    script = partial(lose, CERTAIN, MINUTE, {"sent": CERTAIN.count})
    with pytest.raises(AssertionError, match="never came to be so"):
        worlds.play_each(script, commits_of(worlds, CERTAIN) - 1, "after")


def test_it_would_be_seen_if_a_lane_were_lost_in_a_lost_answer(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken twin: it does not remember which lanes it may have taken."""
    monkeypatch.setattr(Taking, "make_sure", _nothing)
    monkeypatch.setattr(Taking, "let_go", _nothing)
    with pytest.raises(AssertionError, match="never came to be so"):
        worlds.play_each(partial(lose, CERTAIN, MINUTE, {"sent": CERTAIN.count}), 3, "after")


async def _nothing(*_: Any) -> None:
    return
