"""``verify`` bites: each invariant is broken in the tables, and exactly that one is told."""

from collections.abc import Callable

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, parse_instant
from paceline.core.model import Target
from tests.engine.scenes import (
    TWO_PARTS,
    change,
    finish,
    say,
    sql,
    suppress,
    until,
    violations,
)
from tests.engine.world import World

Plan = Callable[[World], None]
Tamper = Callable[[World], None]


def told(world: World, plan: Plan, tamper: Tamper) -> list[tuple[str, str]]:
    """What ``verify`` says of a campaign that was sent well and then tampered with."""

    async def script(world: World) -> list[tuple[str, str]]:
        plan(world)
        await finish(world)
        assert violations(world) == []
        tamper(world)
        found = violations(world)
        world.check = lambda: None  # type: ignore[method-assign]
        return found

    return world.play(script)


def plain(**policy: object) -> Plan:
    def plan(world: World) -> None:
        world.account(policy=policy)
        world.campaign(4)

    return plan


def changes(*statements: str) -> Tamper:
    def tamper(world: World) -> None:
        sql(world, "PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            assert sql(world, statement) > 0, statement

    return tamper


def call(number: int) -> str:
    """The outcome of the call to target ``number``, as a condition."""
    return f"kind = 'outcome' AND delivery_id = {number}"


def started_of(number: int) -> str:
    return f"(SELECT started_at FROM ledger WHERE {call(number)})"


def shifted(number: int, to: str) -> str:
    return f"UPDATE ledger SET started_at = {to} WHERE {call(number)}"


COPIED = """
INSERT INTO ledger SELECT delivery_id, part, {attempt}, '{kind}', account_id, run_id, action,
{at}, {at}, started_at, slots, policy_id, generation, outcome, code, reason, provider_id, latency_us
FROM ledger WHERE kind = '{source}' AND delivery_id = 1
"""


def copied(source: str, kind: str, attempt: str = "attempt", at: str = "intent_at") -> str:
    return COPIED.format(source=source, kind=kind, attempt=attempt, at=at)


BREACHES: dict[str, tuple[str, Plan, Tamper, str]] = {
    "accepted twice": (
        "never twice",
        plain(rate="60/min"),
        changes(copied("outcome", "resolution")),
        "delivery 1 part 0 was accepted 2 times",
    ),
    "a counter that is off": (
        "never lost",
        plain(),
        changes("UPDATE counters SET n = n + 1 WHERE state = 'sent'"),
        "the counter says 5 sent, there are 4",
    ),
    "a total that is off": (
        "never lost",
        plain(),
        changes("UPDATE runs SET total = total + 1"),
        "its total says 5, there are 4 deliveries",
    ),
    "a state behind the counters' back": (
        "never lost",
        plain(),
        changes("UPDATE deliveries SET state = 'failed' WHERE id = 2"),
        "the counter says 0 failed, there are 1",
    ),
    "sent at no time": (
        "never lost",
        plain(),
        changes("UPDATE deliveries SET sent_at = NULL WHERE id = 2"),
        "delivery 2 is sent but has no instant of sending",
    ),
    "sent and still due": (
        "never lost",
        plain(),
        changes("UPDATE deliveries SET due_at = 1 WHERE id = 2"),
        "delivery 2 is sent but still due",
    ),
    "an attempt without an intent": (
        "never lost",
        plain(),
        changes("DELETE FROM ledger WHERE kind = 'intent' AND delivery_id = 2"),
        "delivery 2 is sent but the ledger has no intent of its last attempt",
    ),
    "an attempt nobody knows of": (
        "never lost",
        plain(),
        changes(copied("intent", "intent", attempt="7", at=f"intent_at + {HOUR}")),
        "delivery 1 is sent but the ledger has attempts it does not know of",
    ),
    "an accepted part that is not counted": (
        "never lost",
        plain(),
        changes("UPDATE deliveries SET parts_done = 0 WHERE id = 2"),
        "delivery 2 does not count its accepted part 0",
    ),
    "too fast": (
        "never over",
        plain(rate="60/min"),
        changes(shifted(3, f"{started_of(2)} + {SECOND} - 1")),
        "exceeds 60/min",
    ),
    "beyond the burst": (
        "never over",
        plain(rate="6/min burst 2"),
        changes(shifted(3, f"{started_of(2)} + 1")),
        "exceeds 6/min burst 2",
    ),
    "over the daily cap": (
        "never over",
        plain(daily={"message": 4}),
        changes("""UPDATE policies SET body = '{"daily": {"message": 3}}'"""),
        "is number 4 of 3 messages a day",
    ),
    "over the weekly cap": (
        "never over",
        plain(weekly={"message": 4}),
        changes("""UPDATE policies SET body = '{"weekly": {"message": 3}}'"""),
        "is number 4 of 3 messages a week",
    ),
    "over the warm-up": (
        "never over",
        plain(warmup="4 +10%/day to 50"),
        changes("""UPDATE policies SET body = '{"warmup": "3 +10%/day to 50"}'"""),
        "is number 4 of 3 messages a day",
    ),
    "at night": (
        "never out of hours",
        plain(hours="Mon-Fri 09:00-18:00 UTC"),
        changes(shifted(4, str(parse_instant("2026-03-02T18:00:00Z")))),
        "at 2026-03-02T18:00:00Z",
    ),
    "after the window": (
        "never out of hours",
        plain(),
        changes(f"UPDATE runs SET closes_at = {started_of(4)}"),
        "outside its window",
    ),
    "before the window": (
        "never out of hours",
        plain(),
        changes(f"UPDATE runs SET opens_at = {started_of(1)} + 1"),
        "outside its window",
    ),
    "outside the window's hours": (
        "never out of hours",
        plain(),
        changes("UPDATE runs SET window = '10:00-12:00 UTC'"),
        "outside its window",
    ),
    "too close": (
        "never too close",
        plain(spacing="10s..20s"),
        changes(shifted(2, f"{started_of(1)} + 10 * {SECOND} - 1")),
        "only 10.000 s after the last",
    ),
    "below the least gap": (
        "never too close",
        plain(min_gap="10s"),
        changes(shifted(2, f"{started_of(1)} + {SECOND}")),
        "only 1.000 s after the last",
    ),
    "to the suppressed": (
        "never to the suppressed",
        plain(),
        changes(
            "INSERT INTO suppressions (address, reason, source, at)"
            " VALUES ('spring-0003', 'no', 'operator', 1)"
        ),
        "delivery 4: intent",
    ),
    "by two": (
        "never by two",
        plain(spacing="20s"),
        changes("UPDATE ledger SET generation = 9 WHERE delivery_id = 2"),
        "by owner 1 after 9 took over",
    ),
}


@pytest.mark.parametrize(
    ("invariant", "plan", "tamper", "detail"), BREACHES.values(), ids=BREACHES.keys()
)
def test_each_breach_is_told_and_nothing_else(
    world: World, invariant: str, plan: Plan, tamper: Tamper, detail: str
) -> None:
    found = told(world, plan, tamper)
    assert {name for name, _ in found} == {invariant}
    assert any(detail in text for _, text in found), found


def test_parts_out_of_order_are_told(world: World) -> None:
    def plan(world: World) -> None:
        world.account()
        world.campaign(2, parts=TWO_PARTS)

    swaps = [
        f"UPDATE ledger SET part = {new} WHERE delivery_id = 1 AND part = {old}"
        for old, new in ((0, 9), (1, 0), (9, 1))
    ]
    found = told(world, plan, changes(*swaps))
    assert [name for name, _ in found] == ["never too close"]
    assert "part 1 attempt 1 before part 0 was sent" in found[0][1]


def test_a_delivery_that_is_gone_is_missed(world: World) -> None:
    found = told(world, plain(), changes("DELETE FROM deliveries WHERE id = 2"))
    assert {name for name, _ in found} == {"never lost"}
    assert len(found) == 2  # the counter and the run's total


STUCK: dict[str, tuple[dict[str, object], tuple[str, ...], str]] = {
    "nobody will wake it": (
        {"spacing": "10m"},
        ("UPDATE lanes SET wake_at = NULL",),
        "nobody will wake it",
    ),
    "it wakes far too late": (
        {"spacing": "10m"},
        (f"UPDATE lanes SET wake_at = wake_at + {HOUR}",),
        "wakes it",
    ),
    "it cools down and nobody will wake it": (
        {"spacing": "10m"},
        (
            "UPDATE lanes SET wake_at = NULL",
            "UPDATE accounts SET state = 'cooling_down', state_until_at = 1772450000000000",
        ),
        "nobody will wake it",
    ),
}


@pytest.mark.parametrize(("policy", "statements", "detail"), STUCK.values(), ids=STUCK.keys())
def test_a_lane_that_nobody_wakes_is_told(
    world: World, policy: dict[str, object], statements: tuple[str, ...], detail: str
) -> None:
    async def script(world: World) -> list[tuple[str, str]]:
        world.account(policy=policy)
        world.campaign(3)
        process = world.process()
        await until(world, lambda: len(world.sends()) == 1)
        await world.wait(5 * SECOND)
        await process.stop()
        assert violations(world) == []
        changes(*statements)(world)
        found = violations(world)
        world.check = lambda: None  # type: ignore[method-assign]
        return found

    found = world.play(script)
    assert [name for name, _ in found] == ["never stuck"]
    assert detail in found[0][1]


# ---------------------------------------------------------------------- and no false alarms


@pytest.mark.parametrize(
    "reason",
    ["pause account", "pause campaign", "stop all"],
)
def test_what_waits_for_a_person_is_not_stuck(world: World, reason: str) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(4)
        process = world.process()
        await world.wait(2 * SECOND)
        say(world, reason)
        await world.wait(10 * SECOND)
        assert world.read(lambda tx: tx.lanes.get(1)).wake_at is None
        assert violations(world) == []
        await process.stop()

    world.play(script)


def test_what_no_cap_will_ever_have_room_for_is_not_stuck_but_explained(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 2}})
        world.campaign(1, parts=TWO_PARTS)
        change(world, overrides={"daily": {"message": 1}})
        process = world.process()
        await world.wait(5 * SECOND)
        assert world.read(lambda tx: tx.lanes.get(1)).owner is None
        assert violations(world) == []
        await process.stop()

    world.play(script)


def test_a_suppression_that_leaves_only_something_to_skip_is_not_stuck(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 1}})
        world.campaign(targets=[Target("eve"), Target("adam")])
        process = world.process(poll_us=HOUR)
        await world.wait(MINUTE)
        suppress(world, "adam")
        assert violations(world) == []
        await finish(world, process=process, every_us=10 * MINUTE, within_us=DAY)

    world.play(script)
    assert world.counts_at_end == {"sent": 1, "skipped": 1}
