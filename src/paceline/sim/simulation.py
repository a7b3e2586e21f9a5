"""One seed: a world is drawn, played in bad weather, brought to rest in fair weather, and judged.

Everything that is left to chance comes from the seed, through streams of its own for each purpose,
so that a change in one place does not reshuffle all the others.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from paceline.core.instants import DAY, HOUR, MILLISECOND, MINUTE, SECOND, Instant
from paceline.core.model import Content, Target
from paceline.core.policy import Policy
from paceline.engine import queries
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.catalogue import Catalogue
from paceline.engine.clock import LoopClock
from paceline.engine.commands import accounts, campaigns
from paceline.engine.commands.accounts import House, NewAccount
from paceline.engine.ports import Delivery, Run, Store, Tx
from paceline.engine.supervisor import SupervisorOptions
from paceline.providers.registry import Registry
from paceline.providers.sandbox import MemoryEffects, SandboxProvider
from paceline.sim.checks import Evidence, Violation, judge
from paceline.sim.checks.evidence import OVER
from paceline.sim.loop import VirtualLoop, run_virtual
from paceline.sim.operators import OUT_OF_SERVICE, Operators
from paceline.sim.process import Process, Skew, Surroundings
from paceline.sim.trace import Trace
from paceline.sim.weather import CLIMATES, Faults, Weather
from paceline.sim.witness import Witness
from paceline.sim.worlds import Mailing, World, draw_world
from paceline.store.database import open_store

LOOK_EVERY_US = 20 * MINUTE
"""How often people put things right while everything comes to rest."""

DRIFT_US = 200 * MILLISECOND
"""By how much the clocks of a fleet differ all the time."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one seed came to."""

    seed: int
    world: str
    events: int
    crashes: int
    account_days: float
    digest: str
    violations: tuple[Violation, ...]
    excerpts: tuple[tuple[str, ...], ...] = ()
    """The trace around each violation."""


@dataclass(slots=True)
class Stage:
    """The running world: what is shared, who runs, and who gives orders."""

    world: World
    around: Surroundings
    operators: Operators
    effects: MemoryEffects
    house: House
    rng: Callable[[str], random.Random]
    processes: dict[str, Process] = field(default_factory=dict)
    skews: dict[str, Skew] = field(default_factory=dict)
    born: int = 0
    over: bool = False


def simulate(seed: int, *, world: str = "any", faults: Faults = "heavy") -> Verdict:
    """Play one seed to its end and judge it."""
    return play(seed, draw_world(world, _stream(seed)("world"), faults), faults)


def play(seed: int, world: World, faults: Faults) -> Verdict:
    return perform(seed, world, faults)[0]


def perform(seed: int, world: World, faults: Faults) -> tuple[Verdict, Evidence]:
    """The same, with everything that the verdict rests on."""
    with TemporaryDirectory(prefix="paceline-sim-") as folder:
        rng = _stream(seed)
        return run_virtual(
            _play(seed, world, faults, Path(folder) / "sim.db"),
            start_at=world.start_at,
            chance=rng("schedule") if faults != "none" else None,
        )


def _stream(seed: int) -> Callable[[str], random.Random]:
    return lambda purpose: random.Random(f"{seed}/{purpose}")


async def _play(seed: int, world: World, faults: Faults, path: Path) -> tuple[Verdict, Evidence]:
    rng = _stream(seed)
    clock = LoopClock(world.start_at)
    trace = Trace(clock.now)
    machine = Skew()
    # One machine has one clock, and a file has none of its own; a fleet's database has.
    database = clock.now if world.fleet else lambda: clock.now() + machine.us
    store = open_store(str(path), clock=database, durable=False)
    try:
        stage = _set(world, faults, rng, clock, store, trace)
        if not world.fleet:
            stage.skews = {f"process-{n}": machine for n in range(world.processes)}
        await _perform(stage)
        evidence = _evidence(stage)
    finally:
        store.close()
    violations = tuple(judge(evidence))
    verdict = Verdict(
        seed=seed,
        world=world.name,
        events=len(trace),
        crashes=stage.around.witness.crashes,
        account_days=len(world.senders) * (evidence.ended_at - world.start_at) / DAY,
        digest=trace.digest(),
        violations=violations,
        excerpts=tuple(tuple(trace.around(v.at, v.concerns)) for v in violations[:3]),
    )
    return verdict, evidence


def _set(
    world: World,
    faults: Faults,
    rng: Callable[[str], random.Random],
    clock: LoopClock,
    store: Store,
    trace: Trace,
) -> Stage:
    """Accounts, campaigns and people; nobody runs yet."""
    effects = MemoryEffects()
    provider = SandboxProvider(clock, effects)
    house = House(Registry([provider]), Catalogue())
    witness = Witness(clock, store, trace)
    weather = Weather(CLIMATES[faults], rng("weather"))
    around = Surroundings(clock, store, provider, witness, weather, trace, copy_context())
    operators = Operators(around, world, house, effects, rng("operators"))
    with store.write() as tx:
        tx.settings.put("instance", "sim")
        for sender in world.senders:
            new = NewAccount(
                sender.name, "sandbox", sender.name, sender.settings, sender.preset, sender.policy
            )
            accounts.add(tx, new, house, clock.now())
        for mailing in world.mailings:
            _create(tx, mailing, house, clock.now())
    return Stage(world, around, operators, effects, house, rng)


def _create(tx: Tx, mailing: Mailing, house: House, now: Instant) -> None:
    spec = CampaignSpec(
        name=mailing.name,
        accounts=mailing.senders,
        content=Content(mailing.parts),
        action=mailing.action,
        window=mailing.window,
        at_close=mailing.at_close,
        priority=mailing.priority,
        start_at=now + mailing.launched_after_us,
    )
    targets = [Target(f"{mailing.name}-{number:05}") for number in range(mailing.targets)]
    campaigns.create(tx, spec, targets, house.providers, now)
    campaigns.launch(tx, mailing.name, now)


# ---------------------------------------------------------------------- the play


async def _perform(stage: Stage) -> None:
    for number in range(stage.world.processes):
        _start(stage, f"process-{number}")
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.at_turn = lambda turn: _strike(stage)
    troubles = [asyncio.ensure_future(_keep_running(stage))]
    if not stage.around.weather.clear:
        troubles.append(asyncio.ensure_future(_set_clocks(stage)))
        if stage.world.operated:
            troubles.append(asyncio.ensure_future(_give_orders(stage)))
    await asyncio.sleep(stage.world.lasts_us / SECOND)
    for trouble in troubles[1:]:
        trouble.cancel()
    stage.around.weather.clear_up()
    loop.at_turn = None
    for skew in stage.skews.values():
        skew.us = 0
    await _come_to_rest(stage)
    troubles[0].cancel()
    for process in stage.processes.values():
        await process.stop()


def _start(stage: Stage, name: str) -> None:
    stage.born += 1
    drift = stage.rng(f"drift {name}").randint(-DRIFT_US, DRIFT_US)
    skew = stage.skews.setdefault(name, Skew(drift if stage.world.fleet else 0))
    stage.processes[name] = Process(
        stage.around,
        name,
        skew,
        stage.rng(f"process {stage.born}"),
        SupervisorOptions(
            name=name,
            poll_us=stage.world.poll_us,
            park_after_us=stage.world.park_after_us,
        ),
    )


def _strike(stage: Stage) -> None:
    """Between two turns of the loop somebody may die, wherever it waits."""
    weather = stage.around.weather
    if weather.crashes_now():
        alive = [process for process in stage.processes.values() if process.alive]
        if alive:
            weather.choose(alive).crash("while it waited")


async def _keep_running(stage: Stage) -> None:
    """Whoever looks after the machines starts again what has died, after a while."""
    weather = stage.around.weather
    while True:
        await asyncio.sleep(1)
        for name, process in sorted(stage.processes.items()):
            if not process.alive:
                if not weather.clear:
                    await asyncio.sleep(weather.up_to(weather.climate.restart_us) / SECOND)
                _start(stage, name)
            elif process.ended:
                process.leave_ended()


async def _set_clocks(stage: Stage) -> None:
    """Somebody sets a clock back, and later right again.

    Never ahead of the truth: a clock that is ahead opens gates early, and nothing that only has
    that clock can know (docs/decisions).
    """
    weather, trace = stage.around.weather, stage.around.trace
    rng = stage.rng("clocks")
    while weather.climate.step_every_us:
        await asyncio.sleep(weather.after(weather.climate.step_every_us) / SECOND)
        name = rng.choice(sorted(stage.skews))
        skew = stage.skews[name]
        right_us = skew.us
        skew.us -= rng.randint(1, weather.climate.farthest_step_us)
        trace.note(name, "clock", f"is set back to {skew.us} us")
        await asyncio.sleep(rng.randint(1, HOUR) / SECOND)
        skew.us = right_us
        trace.note(name, "clock", "is right again")


async def _give_orders(stage: Stage) -> None:
    weather = stage.around.weather
    every_us = min(weather.climate.operator_every_us, stage.world.lasts_us // 8)
    while True:
        await asyncio.sleep(weather.after(every_us) / SECOND)
        stage.operators.act()


async def _come_to_rest(stage: Stage) -> None:
    """Fair weather: people put right what only they can, until nothing is left to do."""
    give_up_at = stage.around.clock.now() + stage.world.calm_us
    while stage.around.clock.now() < give_up_at:
        if stage.world.tended:
            stage.operators.put_right()
        if not _left(stage):
            stage.over = True
            return
        await asyncio.sleep(LOOK_EVERY_US / SECOND)


def _left(stage: Stage) -> int:
    """How many deliveries are not over, but for those of accounts that nobody will resume."""
    with stage.around.store.read() as tx:
        given_up = (
            []
            if stage.world.tended
            else [account.id for account in tx.accounts.list() if account.state in OUT_OF_SERVICE]
        )
        return sum(
            count
            for campaign in tx.campaigns.list()
            for run in tx.runs.of_campaign(campaign.id)
            for account_id, counts in tx.runs.accounts(run.id).items()
            if account_id not in given_up
            for state, count in counts.items()
            if state not in OVER
        )


# ---------------------------------------------------------------------- the evidence


def _evidence(stage: Stage) -> Evidence:
    world, witness = stage.world, stage.around.witness
    with stage.around.store.read() as tx:
        names = {account.id: account.name for account in tx.accounts.list()}
        runs: dict[int, Run] = {}
        deliveries: list[Delivery] = []
        for campaign in tx.campaigns.list():
            deliveries += queries.deliveries_of(tx, campaign)
            runs.update((run.id, run) for run in tx.runs.of_campaign(campaign.id))
        used = {call.facts.policy_id for call in witness.calls if call.facts is not None}
        policies = {
            number: Policy.from_mapping(tx.policies.body(number))
            for number in sorted(number for number in used if number is not None)
        }
    return Evidence(
        calls=witness.calls,
        effects=stage.effects.all(),
        deliveries=deliveries,
        accounts=names,
        runs=runs,
        parts={run.id: max(1, len(run.content)) for run in runs.values()},
        policies=policies,
        planned=sum(m.targets for m in world.mailings) + stage.operators.direct,
        suppressed_at=witness.suppressed_at,
        silences=stage.operators.silences,
        ended_at=stage.around.clock.now(),
        came_to_rest=stage.over,
        resends=any(policy.on_unknown == "resend" for policy in policies.values()),
    )


__all__ = ["Verdict", "perform", "play", "simulate"]
