"""Storms: everybody does everything at once, and afterwards it all adds up.

A seed decides the policies, the provider's moods and what operators do meanwhile. In the end all
is put right, everything finishes, and every invariant holds. A failure names its seed.
"""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from paceline.core.errors import InputError
from paceline.core.instants import SECOND
from paceline.core.states import AccountState, DeliveryState
from paceline.engine.commands import control
from tests.engine.scenes import (
    THREE_PARTS,
    all_over,
    change,
    deliveries,
    in_state,
    reply,
    say,
    send_direct,
    suppress,
)
from tests.engine.world import Process, World

SEEDS = range(5)
NAMES = ("ann", "bob")
CAMPAIGNS = ("spring", "autumn", "tiny")

POLICIES = (
    {"rate": "60/min", "concurrency": 3, "part_gap": "200ms..2s"},
    {"rate": "120/min burst 4", "daily": {"message": 400}, "retry": "2s,4s"},
    {"spacing": "1s..3s", "batch": "5 then 8s", "retry": "3s doubling"},
    {"min_gap": "500ms", "breaker": {"above": "60%"}, "concurrency": 2},
    {"rate": "90/min", "per_recipient": "2/h", "on_unknown": "hold"},
)
MOODS = (
    {"latency": "10ms..3s", "transient_rate": 0.1, "reject_rate": 0.05},
    {"timeout_rate": 0.05, "lost_rate": 0.05, "timeout_latency": "4s"},
    {"throttle_rate": 0.03, "retry_after": "5s", "unavailable_rate": 0.02},
    {"bounce_rate": 0.1, "latency": "1s"},
    {},
)
COMMANDS = (
    "pause account",
    "resume account",
    "pause campaign",
    "resume campaign",
    "stop all",
    "go on",
)


def resolve(world: World, delivery_id: int, verdict: control.Resolved) -> None:
    now = world.clock.now()
    world.write(lambda tx: control.resolve_unknown(tx, delivery_id, verdict, now))


class Storm:
    """One seed's operators, in one world."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.rng = random.Random(seed)
        self.processes: list[Process] = []
        self.born = 0
        self.contents: dict[int, list[dict[str, Any]]] = {}

    def prepare(self) -> None:
        for name in NAMES:
            self.world.account(name, policy=self.rng.choice(POLICIES), **self.rng.choice(MOODS))
        for number, name in enumerate(CAMPAIGNS):
            parts = THREE_PARTS[: self.rng.randint(1, 3)]
            count = self.rng.randint(1, 12 if number < 2 else 2)
            self.world.campaign(count, name=name, on=NAMES, parts=parts, priority=number % 2)
        self.start()

    def start(self) -> None:
        self.born += 1
        self.processes.append(self.world.process(f"process {self.born}"))

    async def rage(self, blows: int) -> None:
        for _ in range(blows):
            await self.world.wait(self.rng.randint(1, 5 * SECOND))
            try:
                await self.strike()
            except InputError:
                continue  # not possible just now, which is an answer too

    async def strike(self) -> None:
        world, rng = self.world, self.rng
        account, target = rng.choice(NAMES), f"spring-{rng.randint(0, 11):04}"
        match rng.randint(0, 9):
            case 0 | 1 | 2:
                what = rng.choice(COMMANDS)
                name = account if "account" in what else rng.choice(CAMPAIGNS)
                say(world, what, name if " a" in what or "campaign" in what else "")
            case 3:
                change(world, account, overrides=rng.choice(POLICIES))
            case 4:
                suppress(world, target)
            case 5:
                send_direct(world, f"eve-{rng.random()}", account=account, parts=THREE_PARTS[:2])
            case 6:
                reply(world, f"adam-{rng.random()}", account=account)
            case 7:
                await self.processes.pop(rng.randrange(len(self.processes))).kill()
                self.start()
            case 8:
                await self.processes.pop(rng.randrange(len(self.processes))).stop()
                self.start()
            case _:
                if len(self.processes) < 3:
                    self.start()

    async def calm_down(self) -> None:
        """Put everything right, then let it run out."""
        world = self.world
        if world.read(lambda tx: tx.settings.stopped()) is not None:
            say(world, "go on")
        for _ in range(200):
            for name in NAMES:
                if world.account_now(name).state in (AccountState.PAUSED, AccountState.SUSPENDED):
                    say(world, "resume account", name)
            for name in CAMPAIGNS:
                if world.state(name) == "paused":
                    say(world, "resume campaign", name)
            self.resolve_doubts()
            if all_over(world, CAMPAIGNS) and not in_state(world, DeliveryState.READY):
                break
            await world.wait(20 * SECOND)
        for process in self.processes:
            await process.stop()
        assert all_over(world, CAMPAIGNS), [world.counts(name) for name in CAMPAIGNS]
        self.contents = {
            run.id: run.content
            for campaign in world.read(lambda tx: tx.campaigns.list())
            for run in world.read(lambda tx, i=campaign.id: tx.runs.of_campaign(i))
        }
        for state in (DeliveryState.PLANNED, DeliveryState.READY, DeliveryState.SENDING):
            assert in_state(world, state) == []

    def resolve_doubts(self) -> None:
        """By hand, and truly: the provider's own log is looked at."""
        for lost in in_state(self.world, DeliveryState.UNKNOWN):
            if lost.due_at is None:
                part = f"test-{lost.id}-{lost.parts_done}"
                went_out = part in {effect.key for effect in self.world.sends()}
                resolve(self.world, lost.id, "sent" if went_out else "resend")

    def compare_with_the_provider(self) -> None:
        """Whoever has the whole message counts as sent, and nobody else does."""
        log = Counter(effect.key.split("-")[1] for effect in self.world.sends())
        for row in deliveries(self.world):
            whole = log[str(row.id)] == row.parts_done > 0
            parts = len(row.content or self.contents[row.run_id])
            sent = row.state is DeliveryState.SENT
            assert log[str(row.id)] == row.parts_done, row
            assert sent == (whole and row.parts_done == parts), row


@pytest.mark.parametrize("seed", SEEDS)
def test_after_a_storm_everything_is_settled_and_adds_up(tmp_path: Path, seed: int) -> None:
    world = World(f"sqlite:///{tmp_path / 'storm.db'}")

    async def script(world: World) -> None:
        storm = Storm(world, seed)
        storm.prepare()
        await storm.rage(40)
        await storm.calm_down()
        storm.compare_with_the_provider()

    world.play(script)
