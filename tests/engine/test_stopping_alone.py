"""Whoever may stop an account holds the lanes of its pools, and does that in a transaction of its
own: in company somebody would hold a lane before it."""

import pytest

from paceline.core.instants import MINUTE, SECOND, Instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.states import AccountState
from paceline.engine import bouncing, journal, outbox
from paceline.engine.committing import Entry
from paceline.engine.ports import Account, Driver, Media, Tx, Uploaded
from paceline.providers.sandbox import SandboxDriver
from paceline.store.pools import Pools
from tests.engine.faults import Standstill
from tests.engine.scenes import finish, to, until
from tests.engine.test_bouncing import three_come_back_of_fifteen
from tests.engine.test_media import picture
from tests.engine.world import World
from tests.engine.worlds import Worlds


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of everybody who asks for the pools of an account: whether nobody may share its group."""
    next_group, of_account = journal.GroupJournal._next_group, Pools.of_account
    current, found = [False], list[bool]()

    def taken(self: journal.GroupJournal) -> list[Entry]:
        group = next_group(self)
        current[0] = group[0].alone
        return group

    def asked(self: Pools, account_id: int) -> list[int]:
        found.append(current[0])
        return of_account(self, account_id)

    monkeypatch.setattr(journal.GroupJournal, "_next_group", taken)
    monkeypatch.setattr(Pools, "of_account", asked)
    return found


def test_a_doubt_that_its_lane_finds_to_have_ended_well(world: World, alone: list[bool]) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, timeout_latency="2s")
        world.campaign(targets=to("timeout"))
        await finish(world)
        assert world.counts() == {"sent": 1}

    world.play(script)
    assert alone == [True]


def test_a_file_that_nobody_takes(
    world: World, alone: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(self: Driver, media: Media, content: bytes) -> Uploaded | Outcome:
        return Outcome(OutcomeKind.UNAUTHORISED, "the credentials are refused")

    monkeypatch.setattr(SandboxDriver, "upload", refuse)

    async def script(world: World) -> None:
        world.account()
        world.campaign(1, parts=(picture(world),))
        process = world.process()
        await until(world, lambda: world.account_now().state is AccountState.SUSPENDED)
        await process.stop()

    world.play(script)
    assert alone and all(alone)


def test_a_judgement_of_what_came_back_in_the_very_moment(
    world: World, alone: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, asked = bouncing.any_came_back, list[bool]()

    def blind_at_first(tx: Tx, account: Account, at: Instant) -> bool:
        asked.append(True)
        return len(asked) > 1 and seen(tx, account, at)

    async def script(world: World) -> None:
        process = await three_come_back_of_fifteen(world)
        alone.clear()
        monkeypatch.setattr(outbox, "any_came_back", blind_at_first)
        await until(world, lambda: world.account_now().state is AccountState.PAUSED)
        await process.stop()

    world.play(script)
    assert alone and all(alone)


def test_an_answer_that_comes_when_the_lane_has_another_owner(
    worlds: Worlds, alone: list[bool]
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"timeout": "1m"}, latency="10s", finds=False)
        world.campaign(1)
        host = Standstill(world.clock, world.providers.get("sandbox"))
        first = world.process("one", **host.ports())
        await until(world, lambda: world.counts() == {"sending": 1})
        host.freeze()
        second = world.process("two")
        await until(world, lambda: world.counts() == {"unknown": 1})
        host.thaw()
        await until(world, lambda: world.counts() == {"sent": 1}, within_us=5 * MINUTE)
        await world.wait(SECOND)
        await first.stop()
        await second.stop()

    worlds.fresh().play(script)
    assert alone and all(alone)
