"""One seed: a world is drawn, played in bad weather, brought to rest in fair weather, and judged.

Everything that is left to chance comes from the seed, through streams of its own for each purpose,
so that a change in one place does not reshuffle all the others.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from typing import Any

from paceline.core.instants import DAY, MINUTE, SECOND
from paceline.engine.ports import Tx
from paceline.sim.atlas import draw_world
from paceline.sim.checks import Evidence, Violation, judge
from paceline.sim.checks.evidence import OVER
from paceline.sim.gathering import gathered
from paceline.sim.loop import VirtualClock, VirtualLoop, run_virtual
from paceline.sim.machine import Skew
from paceline.sim.operators import OUT_OF_SERVICE
from paceline.sim.posting import keep_hours, next_mail_at, open_the_office, unread
from paceline.sim.reminder_orders import left
from paceline.sim.reminding import Routine
from paceline.sim.stage import DRIFT_US, Stage, set_stage
from paceline.sim.talking import open_the_exchange, unsettled
from paceline.sim.trace import Trace
from paceline.sim.weather import Faults
from paceline.sim.worlds import World
from paceline.store.sqlite_in_memory import InMemoryStore

LOOK_EVERY_US = 20 * MINUTE
"""How often people put things right while everything comes to rest."""
LOOK_SOON_US = MINUTE
"""The same where somebody waits for an answer."""
SURE_US = 4 * MINUTE
"""How long nothing that somebody waits for is on the wire there at most."""
BACK_US = MINUTE
"""How long before something is due everybody is back."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one seed came to."""

    seed: int
    world: str
    events: int
    crashes: int
    account_days: float
    """In bad weather: the calm in which everything comes to rest is not counted."""
    digest: str
    violations: tuple[Violation, ...]
    excerpts: tuple[tuple[str, ...], ...] = ()
    """The trace around each violation."""


def _unheeded(_: Trace) -> None:
    return


def simulate(
    seed: int,
    *,
    world: str = "any",
    faults: Faults = "heavy",
    follow: Callable[[Trace], None] = _unheeded,
) -> Verdict:
    """Play one seed to its end and judge it. Who wants to ``follow`` is given the trace when it
    begins, to have it even of a seed that comes to no end."""
    drawn = draw_world(world, _stream(seed)("world"), faults)
    return perform(seed, drawn, faults, follow)[0]


def play(seed: int, world: World, faults: Faults) -> Verdict:
    return perform(seed, world, faults)[0]


def perform(
    seed: int, world: World, faults: Faults, follow: Callable[[Trace], None] = _unheeded
) -> tuple[Verdict, Evidence]:
    """The same, with everything that the verdict rests on."""
    return run_virtual(
        _play(seed, world, faults, follow),
        start_at=world.start_at,
        chance=_stream(seed)("schedule") if faults != "none" else None,
    )


def _stream(seed: int) -> Callable[[str], random.Random]:
    return lambda purpose: random.Random(f"{seed}/{purpose}")


async def _play(
    seed: int, world: World, faults: Faults, follow: Callable[[Trace], None]
) -> tuple[Verdict, Evidence]:
    rng = _stream(seed)
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    clock = VirtualClock(loop)
    trace = Trace(clock.now)
    follow(trace)
    machine = Skew()
    # One machine has one clock, and a file has none of its own; a fleet's database has.
    database = clock.now if world.fleet else lambda: clock.now() + machine.us
    store = InMemoryStore(database)
    notes = store.note(clock.now)
    try:
        stage = set_stage(world, faults, rng, clock, store, trace)
        if not world.fleet:
            stage.skews = {f"process-{n}": machine for n in range(world.processes)}
        await _perform(stage)
        evidence = replace(gathered(stage), intents=notes.intents(), takings=notes.takings())
    except BaseException:
        # What comes out tells it. What goes down with the world would be told of whenever its
        # remains are collected, in the middle of anything else.
        loop.set_exception_handler(lambda *_: None)
        raise
    finally:
        store.close()
    violations = tuple(judge(evidence))
    verdict = Verdict(
        seed=seed,
        world=world.name,
        events=len(trace),
        crashes=stage.around.witness.crashes,
        account_days=len(world.senders) * world.lasts_us / DAY,
        digest=trace.digest(),
        violations=violations,
        excerpts=tuple(tuple(trace.around(v.at, v.concerns)) for v in violations[:3]),
    )
    return verdict, evidence


# ---------------------------------------------------------------------- the play


async def _perform(stage: Stage) -> None:
    if stage.office is not None:
        open_the_office(stage, stage.office)
    if stage.exchange is not None:
        open_the_exchange(stage, stage.exchange)
    for number in range(stage.world.processes):
        stage.start(f"process-{number}")
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.at_turn = _lightning(stage)
    keepers = [
        asyncio.ensure_future(_keep_running(stage, name)) for name in sorted(stage.processes)
    ]
    troubles = [asyncio.ensure_future(trouble) for trouble in _troubles(stage)]
    await asyncio.sleep(stage.world.lasts_us / SECOND)
    for trouble in troubles:
        trouble.cancel()
    stage.around.weather.clear_up()
    loop.at_turn = None
    for skew in stage.skews.values():
        skew.us = 0
    await _come_to_rest(stage)
    for keeper in keepers:
        if not keeper.cancel():
            keeper.result()  # a defect ended what it looked after
    for process in stage.processes.values():
        await process.stop()


def _troubles(stage: Stage) -> Iterator[Coroutine[Any, Any, None]]:
    if stage.world.post is not None:
        yield keep_hours(stage, stage.world.post)
    if stage.around.weather.clear:
        return
    yield _set_clocks(stage)
    yield _deploy(stage)
    if stage.world.routine is not None:
        yield _go_dark(stage, stage.world.routine)
    if stage.world.operated:
        yield _give_orders(stage)


def _lightning(stage: Stage) -> Callable[[int], None] | None:
    """Between two turns of the loop somebody may die, wherever it waits."""
    weather, loop = stage.around.weather, asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    if not weather.climate.turns_per_crash:
        return None
    loop.next_at_turn = loop.turns + weather.after(weather.climate.turns_per_crash)

    def strike(turn: int) -> None:
        loop.next_at_turn = turn + weather.after(weather.climate.turns_per_crash)
        if alive := [one for one in stage.processes.values() if one.alive]:
            weather.choose(alive).crash("while it waited")

    return strike


async def _keep_running(stage: Stage, name: str) -> None:
    """Whoever looks after a machine starts again what has ended there, after a while."""
    weather = stage.around.weather
    while True:
        process = stage.processes[name]
        await process.gone.wait()
        await process.leave()
        away_us = SECOND if weather.clear else weather.up_to(weather.climate.restart_us)
        await asyncio.sleep(away_us / SECOND)
        dark_us = stage.dark_until_at - stage.around.clock.now()
        if dark_us > 0:
            await asyncio.sleep(dark_us / SECOND)
        stage.start(name)


async def _deploy(stage: Stage) -> None:
    """Now and then everything is told to stop, one after the other, and started anew."""
    weather = stage.around.weather
    every_us = min(weather.climate.deploy_every_us, stage.world.lasts_us)
    while every_us:
        await asyncio.sleep(weather.after(every_us) / SECOND)
        for name in sorted(stage.processes):
            stage.processes[name].begin_to_stop()
            await asyncio.sleep(weather.up_to(weather.climate.restart_us) / SECOND)


async def _go_dark(stage: Stage, routine: Routine) -> None:
    """The power fails, and it takes long until anybody is back."""
    for after_us, lasts_us in routine.dark:
        await asyncio.sleep(after_us / SECOND)
        stage.dark_until_at = stage.around.clock.now() + lasts_us
        for name in sorted(stage.processes):
            stage.processes[name].crash("in the dark")
        await asyncio.sleep(lasts_us / SECOND)


async def _set_clocks(stage: Stage) -> None:
    """Somebody sets a clock back, and later right again.

    Never ahead of the truth: a clock that is ahead opens gates early, and nothing that only has
    that clock can know (docs/decisions).
    """
    weather, trace = stage.around.weather, stage.around.trace
    rng = stage.rng("clocks")
    every_us, farthest_us, wrong_us = weather.climate.clock_steps(stage.world.lasts_us, rng)
    while every_us:
        await asyncio.sleep(weather.after(every_us) / SECOND)
        name = rng.choice(sorted(stage.skews))
        skew = stage.skews[name]
        right_us = skew.us
        back_us = rng.randint(1, farthest_us)
        skew.us -= back_us
        stage.spread_us = max(stage.spread_us, back_us + 2 * DRIFT_US)
        trace.note(name, "clock", f"is set back to {skew.us} us")
        await asyncio.sleep(rng.randint(1, wrong_us) / SECOND)
        skew.us = right_us
        trace.note(name, "clock", "is right again")


async def _give_orders(stage: Stage) -> None:
    weather = stage.around.weather
    every_us = min(weather.climate.operator_every_us, stage.world.lasts_us // 8)
    every_us = max(every_us, stage.world.orders_us)
    while True:
        await asyncio.sleep(weather.after(every_us) / SECOND)
        stage.operators.act()


async def _come_to_rest(stage: Stage) -> None:
    """Fair weather: people put right what only they can, until nothing is left to do."""
    calm_at = stage.around.clock.now()
    give_up_at = calm_at + stage.world.calm_us
    every_us, sure_us = LOOK_EVERY_US, LOOK_EVERY_US
    if stage.world.talk is not None:
        every_us, sure_us = LOOK_SOON_US, SURE_US
    while (now := stage.around.clock.now()) < give_up_at:
        if stage.world.tended:
            stage.operators.put_right(doubts=now >= calm_at + sure_us)
        if not _left(stage):
            stage.over = True
            return
        if stage.world.rests:
            await _rest(stage)
        await asyncio.sleep(every_us / SECOND)


async def _rest(stage: Stage) -> None:
    """Where nothing is due for long, everybody is sent home until shortly before it is."""
    with stage.around.store.read() as tx:
        lanes = [tx.lanes.get(account.id) for account in tx.accounts.list()]
        wakes = (tx.lanes.next_wake_at(), next_mail_at(stage))
        wake_at = min((at for at in wakes if at is not None), default=None)
        busy = any(lane.owner is not None for lane in lanes) or bool(tx.steps.waiting())
        busy = busy or not _only_waits_for_mail(stage, tx) or bool(unsettled(stage, tx))
    rest_us = 0 if wake_at is None or busy else wake_at - BACK_US - stage.around.clock.now()
    if rest_us < LOOK_EVERY_US:
        return
    stage.dark_until_at = stage.around.clock.now() + rest_us
    for name in sorted(stage.processes):
        stage.processes[name].begin_to_stop()
    await asyncio.sleep(rest_us / SECOND)


def _only_waits_for_mail(stage: Stage, tx: Tx) -> bool:
    """Whether all that came back by now has been taken in."""
    return unread(stage, tx) == (next_mail_at(stage) is not None)


def _left(stage: Stage) -> int:
    """How many deliveries are not over, but for those of accounts that nobody will resume."""
    with stage.around.store.read() as tx:
        given_up = (
            []
            if stage.world.tended
            else [account.id for account in tx.accounts.list() if account.state in OUT_OF_SERVICE]
        )
        return (
            left(tx)
            + unread(stage, tx)
            + unsettled(stage, tx)
            + sum(
                count
                for campaign in tx.campaigns.list()
                for run in tx.runs.of_campaign(campaign.id)
                for account_id, counts in tx.runs.accounts(run.id).items()
                if account_id not in given_up
                for state, count in counts.items()
                if state not in OVER
            )
        )


__all__ = ["Verdict", "perform", "play", "simulate"]
