"""Whoever may stop an account holds the lanes of its pools, and does that in a transaction of its
own: in company somebody would hold a lane before it. Where nobody may be stopped they are not held.
"""

from collections.abc import Iterable

import pytest

from paceline.core.instants import MINUTE, SECOND, Instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.states import AccountState, DeliveryState
from paceline.engine import bouncing, journal, outbox
from paceline.engine.committing import Entry
from paceline.engine.ports import Account, Driver, Media, Receipt, Tx, Uploaded
from paceline.providers.sandbox import SandboxDriver
from paceline.store.lanes import Lanes
from tests.engine.faults import Standstill
from tests.engine.fenced import groups_at_the_fence
from tests.engine.scenes import finish, in_state, to, until
from tests.engine.test_bouncing import three_come_back_of_fifteen
from tests.engine.test_media import picture
from tests.engine.test_reporting import desk_of, reporting, secret, take
from tests.engine.world import World
from tests.engine.worlds import Worlds


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of everybody who holds lanes to stop an account: whether nobody may share its group."""
    next_group, hold = journal.GroupJournal._next_group, Lanes.hold
    current, found = [False], list[bool]()

    def taken(self: journal.GroupJournal) -> list[Entry]:
        group = next_group(self)
        current[0] = group[0].alone
        return group

    def holding(self: Lanes, account_id: int, run_ids: Iterable[int] = ()) -> None:
        found.append(current[0])
        hold(self, account_id, run_ids)

    monkeypatch.setattr(journal.GroupJournal, "_next_group", taken)
    monkeypatch.setattr(Lanes, "hold", holding)
    return found


@pytest.fixture
def strict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is judged is too much."""
    for rule in ("any_came_back", "enough_to_judge", "bounces_too_many"):
        monkeypatch.setattr(bouncing, rule, lambda *_: True)


def stopped(world: World) -> list[str]:
    names = ("ann", "bob")
    return [one for one in names if world.account_now(one).state is AccountState.PAUSED]


def lose_one(world: World, *others: str, **policy: str) -> None:
    """The account that has taken it hears no answer."""
    for name in ("ann", "bob"):
        world.account(name, policy=policy, timeout_latency="2s", finds=not others)
    world.campaign(targets=to("timeout", *others), on=("ann", "bob"), assignment="pooled")


@pytest.mark.usefixtures("strict")
def test_a_doubt_that_its_lane_finds_to_have_ended_well(world: World, alone: list[bool]) -> None:
    async def script(world: World) -> None:
        lose_one(world)
        await finish(world)
        assert (world.counts(), len(stopped(world))) == ({"sent": 1}, 1)

    world.play(script)
    assert alone == [True]


def test_where_nothing_came_back_a_doubt_ends_in_company(
    world: World, alone: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    fenced = groups_at_the_fence(monkeypatch)

    async def script(world: World) -> None:
        lose_one(world)
        del fenced[:]
        await finish(world)
        assert (world.counts(), stopped(world)) == ({"sent": 1}, [])

    world.play(script)
    assert (alone, fenced) == ([], [])


@pytest.mark.usefixtures("strict")
def test_a_receipt_that_may_stop_its_account(world: World, alone: list[bool]) -> None:
    reporting(world)

    async def script(world: World) -> None:
        lose_one(world, "b", "c", spacing="1h")
        process = world.process()
        await until(world, lambda: world.counts() == {"unknown": 1, "sent": 1, "ready": 1})
        (one,) = in_state(world, DeliveryState.UNKNOWN)
        owner = world.read(lambda tx: tx.accounts.get(one.account_id or 0).name)
        key = f"{world.read(lambda tx: tx.settings.get('instance'))}-{one.id}-0"
        desk = desk_of(world, process)
        who = await desk.admit(owner, secret(world, owner))
        assert who is not None
        for _ in range(2):
            arrived = Receipt("x", "delivered", world.clock.now(), key=key)
            assert await take(desk, who, arrived) == "taken"
            assert (world.counts(), stopped(world)) == ({"sent": 2, "ready": 1}, [owner])
        await process.stop()

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


async def answer_after_a_takeover(world: World) -> None:
    for name in ("ann", "bob"):
        world.account(name, policy={"timeout": "1m"}, latency="10s", finds=False)
    world.campaign(1, on=("ann", "bob"), assignment="pooled")
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


@pytest.mark.usefixtures("strict")
def test_an_answer_that_comes_when_the_lane_has_another_owner(
    worlds: Worlds, alone: list[bool]
) -> None:
    async def script(world: World) -> None:
        await answer_after_a_takeover(world)
        assert len(stopped(world)) == 1

    worlds.fresh().play(script)
    assert alone == [True]


def test_where_nothing_came_back_its_owner_is_told_in_company(
    worlds: Worlds, alone: list[bool]
) -> None:
    async def script(world: World) -> None:
        await answer_after_a_takeover(world)
        assert stopped(world) == []

    worlds.fresh().play(script)
    assert alone == []
