"""What the engine's stories have in common: playing a campaign to its end, and looking at it.

Long stories (days of virtual time) are told with a slow heart: a process that renews its lease and
looks for other processes' changes less often does the same things, in far fewer steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND, Instant, to_datetime
from paceline.core.model import Content, Part, Target
from paceline.core.states import DeliveryState
from paceline.engine import leases, station
from paceline.engine.commands import accounts, campaigns, control
from paceline.engine.commands.accounts import AccountChange
from paceline.engine.commands.campaigns import DirectMessage
from paceline.engine.ports import Delivery, Event, LedgerRow, Run, Tx
from paceline.engine.verify import verify
from tests.engine.world import Process, World

Begins = Callable[[Instant], World]
"""Makes a world that begins at an instant."""

TWO_PARTS = (Part("text", "one"), Part("text", "two"))
THREE_PARTS = (*TWO_PARTS, Part("text", "three"))


def slow_heart(patch: pytest.MonkeyPatch) -> None:
    """Make long stories cheap: leases of hours, renewed every hour."""
    patch.setattr(leases, "LEASE_US", 6 * HOUR)
    for pause in ("RENEW_EVERY_US", "LINGER_US"):
        patch.setattr(leases, pause, HOUR)
    patch.setattr(station, "WATCH_EVERY_US", 6 * HOUR)


def to(*names: str) -> list[Target]:
    return [Target(name) for name in names]


def per_day(instants: list[Instant], zone: str) -> dict[str, int]:
    """How many fall on each date of the zone."""
    days: dict[str, int] = {}
    for at in instants:
        day = to_datetime(at).astimezone(ZoneInfo(zone)).date().isoformat()
        days[day] = days.get(day, 0) + 1
    return days


async def finish(
    world: World,
    *names: str,
    every_us: int = SECOND,
    within_us: int = 10 * MINUTE,
    poll_us: int = SECOND,
    process: Process | None = None,
) -> None:
    """Run a process until the campaigns are finished (or cancelled), then stop it."""
    process = process or world.process(poll_us=poll_us)
    await until(world, lambda: all_over(world, names or ("spring",)), every_us, within_us)
    await process.stop()


def all_over(world: World, names: Iterable[str]) -> bool:
    return all(world.state(name) in ("finished", "cancelled") for name in names)


async def until(
    world: World,
    predicate: Callable[[], bool],
    every_us: int = SECOND,
    within_us: int = 10 * MINUTE,
) -> None:
    give_up_at = world.clock.now() + within_us
    while not predicate():
        assert world.clock.now() < give_up_at, "it never came to be so"
        await world.wait(every_us)


def intents(world: World, account: str = "ann") -> list[LedgerRow]:
    """The account's intents, oldest first."""
    return [row for row in ledger(world, account) if row.kind == "intent"]


def outcomes(world: World, account: str = "ann") -> list[LedgerRow]:
    return [row for row in ledger(world, account) if row.kind == "outcome"]


def ledger(world: World, account: str = "ann") -> list[LedgerRow]:
    account_id = world.account_now(account).id
    return world.read(lambda tx: list(tx.ledger.walk(account_id)))


def delivery(world: World, target: str) -> Delivery:
    """The one delivery to a target."""
    (found,) = deliveries(world, lambda row: row.target == target)
    return found


def deliveries(
    world: World, chosen: Callable[[Delivery], bool] = lambda row: True
) -> list[Delivery]:
    return [row for row in world.read(lambda tx: tx.deliveries.page(limit=100_000)) if chosen(row)]


def in_state(world: World, state: DeliveryState) -> list[Delivery]:
    return deliveries(world, lambda row: row.state is state)


def the_run(world: World, name: str = "spring") -> Run:
    def read(tx: Tx) -> Run:
        campaign = tx.campaigns.find(name)
        assert campaign is not None
        (run,) = tx.runs.of_campaign(campaign.id)
        return run

    return world.read(read)


def events(world: World, kind: str) -> list[Event]:
    found = world.read(lambda tx: tx.events.latest(limit=1000))
    return [event for event in reversed(found) if event.kind == kind]


def started(world: World, account: str | None = None) -> list[Instant]:
    """When each delivery's first part was called for, in order."""
    first = [effect for effect in world.calls(account) if effect.key.endswith("-0")]
    return [effect.called_at for effect in first]


def gaps(instants: list[Instant]) -> list[int]:
    return [later - earlier for earlier, later in pairwise(instants)]


def called(world: World, account: str | None = None) -> list[Instant]:
    return [effect.called_at for effect in world.calls(account)]


def change(world: World, name: str = "ann", **wish: Any) -> None:
    """As another process would: `paceline account set`."""
    now = world.clock.now()
    world.write(lambda tx: accounts.change(tx, name, AccountChange(**wish), world.house, now))


def send_direct(
    world: World,
    target: str,
    *,
    account: str = "ann",
    parts: tuple[Part, ...] = (Part("text", "hello"),),
    action: str = "message",
) -> int:
    now = world.clock.now()
    return world.write(
        lambda tx: campaigns.send_direct(
            tx, account, target, Content(parts), action, now, providers=world.providers
        )
    )


def reply(world: World, target: str, account: str = "ann", action: str = "message") -> int:
    """An answer to somebody who wrote to us, as conversations send it."""
    message = DirectMessage(account, target, Content((Part("text", "hello"),)), action, reply=True)
    now = world.clock.now()
    return world.write(lambda tx: campaigns.send_message(tx, message, now, world.providers))


def suppress(world: World, address: str) -> Instant:
    """As another process would; the instant from which nothing may be sent there."""
    now = world.clock.now()

    def work(tx: Tx) -> None:
        tx.settings.fence()
        tx.suppressions.add(address, "asked us to stop", "operator", now)

    world.write(work)
    return now


def say(world: World, what: str, name: str = "") -> Instant:
    """A command said by another process; the instant of its commit."""
    now = world.clock.now()
    words: dict[str, Callable[[Tx], object]] = {
        "pause account": lambda tx: accounts.pause(tx, name or "ann", now),
        "resume account": lambda tx: accounts.resume(tx, name or "ann", now),
        "remove account": lambda tx: accounts.remove(tx, name or "ann", now, cancel=True),
        "pause campaign": lambda tx: campaigns.pause(tx, name or "spring", now),
        "resume campaign": lambda tx: campaigns.resume(tx, name or "spring", now),
        "cancel campaign": lambda tx: campaigns.cancel(tx, name or "spring", now),
        "launch campaign": lambda tx: campaigns.launch(tx, name or "spring", now),
        "stop all": lambda tx: control.stop_all(tx, "fire drill", now),
        "go on": lambda tx: control.go_on(tx, now),
    }
    world.write(words[what])
    return now


def sql(world: World, statement: str, *values: object) -> int:
    """Tamper with the tables behind everybody's back; how many rows were touched."""

    def work(tx: Any) -> int:
        cursor = tx._context.cursor()
        cursor.execute(statement, values)
        return int(cursor.rowcount)

    return world.write(work)


def violations(world: World) -> list[tuple[str, str]]:
    found = world.read(lambda tx: verify(tx, world.clock.now()))
    return [(violation.invariant, violation.detail) for violation in found]
