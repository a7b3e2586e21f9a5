"""Throttles that are about one recipient: it fails as after any soft refusal, and holds nobody
back. Those that are about the account fail nobody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.stubborn import AT_LAST, BY_ITSELF
from paceline.engine import station
from paceline.engine.commands import signals
from paceline.engine.ports import Message
from tests.engine.doubles import Act, Double
from tests.engine.scenes import delivery, finish, outcomes, to, until
from tests.engine.world import World

FAST = "10ms"


def tries(world: World) -> Counter[str]:
    return Counter(effect.target for effect in world.calls())


def sparing(world: World, every_us: int) -> Act:
    """A provider that takes one message in so long."""
    free_at = 0

    async def act(real: Act, message: Message) -> Outcome:
        nonlocal free_at
        now = world.clock.now()
        if now < free_at:
            return Outcome(OutcomeKind.THROTTLED, "slow down")
        free_at = now + every_us
        return await real(message)  # type: ignore[no-any-return]

    return act


def test_one_that_is_always_throttled_fails_and_keeps_the_others_waiting_for_minutes(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency=FAST, retry_after="none")
        world.campaign(targets=to("a", "stubborn", *(f"b{n}" for n in range(200))))
        await finish(world, every_us=MINUTE, within_us=2 * HOUR)
        found = delivery(world, "stubborn")
        assert (found.state, found.retries) == ("failed", 3)
        assert found.reason == "too many messages (others get through) (after 3 retries)"
        theirs = [row.outcome for row in outcomes(world) if row.delivery_id == found.id]
        assert theirs == ["throttled"] * 2 + ["transient"] * 4

    world.play(script)
    assert world.counts_at_end == {"sent": 201, "failed": 1}
    others = [effect.at for effect in world.calls() if effect.target != "stubborn"]
    # Held back twice, a minute and two; and somewhat slower for a while. Then no more.
    assert others[-1] - others[0] < 12 * MINUTE
    assert tries(world)["stubborn"] == 6


def test_it_holds_nobody_back_whatever_the_table_says_of_failures(calm: None, world: World) -> None:
    """Found by a simulated world: read as a failure of its own message, it was held against the
    account by a rule for such failures."""

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency=FAST, retry_after="none")
        world.campaign(targets=to("a", "stubborn", *(f"b{n}" for n in range(800))))
        rule, now = {"scope": "account", "for": "2h"}, world.clock.now()
        world.write(lambda tx: signals.set_rule(tx, "sandbox transient", rule, ["sandbox"], now))
        await finish(world, every_us=MINUTE, within_us=12 * HOUR)

    world.play(script)
    assert world.counts_at_end == {"sent": 801, "failed": 1}
    others = [effect.at for effect in world.calls() if effect.target != "stubborn"]
    assert others[-1] - others[0] < HOUR


def test_so_do_several_in_a_row_and_all_the_others_are_served(calm: None, world: World) -> None:
    names = [f"stubborn{n}" for n in range(4)]

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency=FAST, retry_after="none")
        world.campaign(targets=to(*names, *(f"b{n}" for n in range(20))))
        await finish(world, every_us=MINUTE, within_us=2 * DAY, poll_us=HOUR)

    world.play(script)
    assert world.counts_at_end == {"sent": 20, "failed": 4}
    assert max(tries(world)[name] for name in names) <= 12


def stubborn(real: Act, message: Message) -> Awaitable[Outcome]:
    """A server that tells single people "not now" for ever, and says no more than that."""

    async def refuse() -> Outcome:
        return Outcome(OutcomeKind.THROTTLED, "451 Please try again later", "451")

    return refuse() if message.target.startswith("stubborn") else real(message)


@pytest.mark.parametrize("ahead", [0, 5], ids=["in front of all", "in the middle"])
def test_many_side_by_side_keep_the_others_waiting_for_minutes(
    calm: None, world: World, ahead: int
) -> None:
    """Whoever is tried behind a hold is looked for elsewhere: one of them costs two holds, a minute
    and two, and the other nineteen cost nobody else anything."""
    good = [f"b{n}" for n in range(20)]
    names = [*good[:ahead], *(f"stubborn{n}" for n in range(20)), *good[ahead:]]

    async def script(world: World) -> None:
        provider = Double(world.providers.get("sandbox"), send=stubborn)
        world.account(latency=FAST)
        world.campaign(targets=to(*names))
        process = world.process(poll_us=HOUR, providers=provider.registry())
        began_at = world.clock.now()
        await until(world, lambda: world.counts().get("sent") == 20, SECOND, within_us=HOUR)
        assert world.clock.now() - began_at <= 3 * MINUTE + 5 * SECOND
        await finish(world, process=process, every_us=MINUTE, within_us=3 * DAY)

    world.play(script)
    assert world.counts_at_end == {"sent": 20, "failed": 20}


def test_one_here_and_there_is_paid_for_once(calm: None, world: World) -> None:
    """Once a provider was seen to mean single people, the next one that it means so holds nobody
    back."""
    names = [f"b{n}" if n % 21 else f"stubborn{n}" for n in range(420)]

    async def script(world: World) -> None:
        provider = Double(world.providers.get("sandbox"), send=stubborn)
        world.account(latency=FAST)
        world.campaign(targets=to(*names))
        process = world.process(poll_us=HOUR, providers=provider.registry())
        began_at = world.clock.now()
        await until(world, lambda: world.counts().get("sent") == 400, SECOND, within_us=DAY)
        assert world.clock.now() - began_at < 15 * MINUTE
        await finish(world, process=process, every_us=MINUTE, within_us=3 * DAY)

    world.play(script)
    assert world.counts_at_end == {"sent": 400, "failed": 20}


def test_an_account_that_is_too_fast_as_well_fails_nobody_else(calm: None, world: World) -> None:
    """Five a minute are taken, one person is refused for ever: the others wait, and are sent."""
    taken: list[int] = []

    async def sparing_and_stubborn(real: Act, message: Message) -> Outcome:
        now = world.clock.now()
        full = len([at for at in taken if at > now - MINUTE]) >= 5
        if full and not message.target.startswith("stubborn"):
            return Outcome(OutcomeKind.THROTTLED, "451 Please try again later", "451")
        outcome: Outcome = await stubborn(real, message)
        if outcome.kind is OutcomeKind.ACCEPTED:
            taken.append(now)
        return outcome

    async def script(world: World) -> None:
        provider = Double(world.providers.get("sandbox"), send=sparing_and_stubborn)
        world.account(policy={"rate": "60/min"}, latency=FAST)
        world.campaign(targets=to("stubborn", *(f"b{n}" for n in range(150))))
        process = world.process(poll_us=HOUR, providers=provider.registry())
        await finish(world, process=process, every_us=MINUTE, within_us=3 * DAY)

    world.play(script)
    assert world.counts_at_end == {"sent": 150, "failed": 1}


@pytest.mark.parametrize(("count", "refused"), [(2, 6), (5, 12), (30, 50)])
def test_a_throttle_of_the_account_fails_nobody(
    calm: None, world: World, count: int, refused: int
) -> None:
    """Nobody gets through for hours. Everybody waits, and is sent in the end."""

    async def script(world: World) -> None:
        world.account(
            policy={"rate": "60/min"},
            latency=FAST,
            retry_after="none",
            throttle_at=list(range(2, refused)),
        )
        world.campaign(count)
        await finish(world, every_us=MINUTE, within_us=DAY, poll_us=HOUR)
        assert {row.outcome for row in outcomes(world)} == {"throttled", "accepted"}

    world.play(script)
    assert world.counts_at_end == {"sent": count}


@pytest.mark.parametrize("rate", ["60/min", "2/min"])
@pytest.mark.parametrize("every_us", [90 * SECOND, 150 * SECOND, 5 * MINUTE, 20 * MINUTE])
def test_an_account_that_is_far_too_fast_fails_nobody(
    calm: None, world: World, every_us: int, rate: str
) -> None:
    """It may send one in so many minutes. Whoever is throttled is not the one that it is about,
    though one gets through now and then."""

    async def script(world: World) -> None:
        provider = Double(world.providers.get("sandbox"), send=sparing(world, every_us))
        world.account(policy={"rate": rate}, latency=FAST)
        world.campaign(40)
        process = world.process(poll_us=HOUR, providers=provider.registry())
        await finish(world, process=process, every_us=MINUTE, within_us=3 * DAY)

    world.play(script)
    assert world.counts_at_end == {"sent": 40}


@pytest.mark.parametrize(
    ("names", "nth", "hours"),
    [(["stubborn"], BY_ITSELF, 12), (["stubborn1", "stubborn2"], AT_LAST, 4 * 24)],
    ids=["by itself", "with others as stubborn"],
)
def test_where_nobody_else_is_there_to_be_tried_it_is_not_tried_for_ever(
    calm: None, world: World, monkeypatch: pytest.MonkeyPatch, *, names: list[str], nth: int,
    hours: int,
) -> None:  # fmt: skip
    """As long as nobody can tell whose trouble it is, it is tried for longer than most of them
    last."""
    monkeypatch.setattr(station, "WATCH_EVERY_US", DAY)

    async def script(world: World) -> None:
        world.account(latency=FAST, retry_after="none")
        world.campaign(targets=to(*names))
        await finish(world, every_us=6 * HOUR, within_us=9 * DAY, poll_us=6 * HOUR)
        assert {delivery(world, name).retries for name in names} == {3}

    world.play(script)
    assert world.counts_at_end == {"failed": len(names)}
    for name in names:
        times = [effect.at for effect in world.calls() if effect.target == name]
        assert len(times) <= nth + 3
    first = [effect.at for effect in world.calls() if effect.target == names[0]]
    assert len(first) == nth + 3 and first[nth - 1] - first[0] > hours * HOUR


def test_what_is_known_of_it_outlives_the_process(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency=FAST, retry_after="none")
        world.campaign(targets=to("a", "stubborn", *(f"b{n}" for n in range(200))))
        first = world.process(poll_us=MINUTE)
        await until(world, lambda: tries(world)["stubborn"] == 2, SECOND)
        await first.stop()
        await finish(world, process=world.process("two"), every_us=MINUTE, within_us=2 * HOUR)

    world.play(script)
    assert world.counts_at_end == {"sent": 201, "failed": 1}
    assert tries(world)["stubborn"] == 6
