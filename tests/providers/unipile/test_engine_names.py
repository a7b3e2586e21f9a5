"""Campaigns to people by their public names, through the real engine: looked up, paced, counted."""

from __future__ import annotations

from itertools import pairwise

import pytest

from paceline.core.instants import MILLISECOND
from paceline.core.model import Part, Target
from paceline.engine.ports import LedgerRow
from tests.providers.loopback import Scripted
from tests.providers.unipile.fake import error
from tests.providers.unipile.live import LiveWorld

NAMES = ("anna", "bob", "carl", "dora", "eva")
PEOPLE = [Target(f"https://www.linkedin.com/in/{name}/") for name in NAMES]
NOTE = (Part("text", "Hello"),)


def looked_up(live: LiveWorld) -> list[str]:
    paths = [call.path for call in live.fake.calls]
    return [path.removeprefix("/users/") for path in paths if path.startswith("/users/")]


def ledger(live: LiveWorld) -> list[LedgerRow]:
    return live.read(
        lambda tx: [
            row
            for delivery in tx.deliveries.page(run_id=1)
            for row in tx.ledger.of_delivery(delivery.id)
        ]
    )


@pytest.mark.parametrize("action", ["message", "inmail"])
def test_everybody_gets_it_once(live: LiveWorld, action: str) -> None:
    live.fake.profiles |= {name: f"AA{name}" for name in NAMES}

    async def script(world: LiveWorld) -> None:
        world.connect(rate="20/s")
        world.campaign(targets=PEOPLE, parts=NOTE * 2, action=action)
        await world.send_all()
        assert world.counts() == {"sent": 5}
        assert world.account_now().state == "active"

    live.play(script)
    assert live.targets() == {f"ACoAA{name}": 2 for name in NAMES}
    assert sorted(looked_up(live)) == sorted(NAMES), "once each, though there are two parts"


def test_whoever_does_not_exist_is_given_up_at_the_pace_of_a_send(live: LiveWorld) -> None:
    """A list of bad names must not be looked up in one go, nor use up the day's allowance."""
    live.fake.profiles["eva"] = "AAeva"
    gap_us = 150 * MILLISECOND

    async def script(world: LiveWorld) -> None:
        world.connect(spacing="150ms", daily={"message": 1})
        world.campaign(targets=PEOPLE, parts=NOTE)
        await world.send_all()
        assert world.counts() == {"failed": 4, "sent": 1}
        rows = ledger(world)
        calls = sorted(row.started_at or 0 for row in rows if row.kind == "outcome")
        assert len(calls) == 5
        assert all(b - a >= gap_us for a, b in pairwise(calls))
        assert sum(row.slots for row in rows) == 1, "nobody was sent anything but eva"
        reasons = {row.reason for row in rows if row.outcome == "rejected"}
        assert reasons == {"Resource not found: User not found"}

    live.play(script)
    assert looked_up(live) == list(NAMES)
    assert live.targets() == {"ACoAAeva": 1}


@pytest.mark.parametrize(
    "scripted",
    [
        error(500, "provider_error"),
        error(504, "request_timeout"),
        Scripted(502, b"<html>"),
        Scripted(drops="read"),
    ],
    ids=["500", "504", "502", "hangs up"],
)
def test_a_look_up_that_failed_is_made_again(live: LiveWorld, scripted: Scripted) -> None:
    live.fake.profiles["anna"] = "AAanna"
    live.fake.answers["/users/anna"] = scripted

    async def script(world: LiveWorld) -> None:
        world.connect(retry="50ms doubling")
        world.campaign(targets=PEOPLE[:1], parts=NOTE)
        process = world.lively()
        await world.until_so(lambda: any(world.reasons()))
        assert world.counts().get("unknown", 0) == 0, "nothing was sent"
        del world.fake.answers["/users/anna"]
        await world.until_so(lambda: world.state() == "finished")
        await process.stop()
        assert world.counts() == {"sent": 1}

    live.play(script)
    assert live.targets() == {"ACoAAanna": 1}


def test_a_look_up_without_an_answer_is_no_doubt(live: LiveWorld) -> None:
    live.fake.profiles["anna"] = "AAanna"
    live.fake.answers["/users/anna"] = Scripted(hangs=True)

    async def script(world: LiveWorld) -> None:
        world.connect(timeout="1s", retry="50ms doubling")
        world.campaign(targets=PEOPLE[:1], parts=NOTE)
        process = world.lively()
        await world.until_so(lambda: any("took too long" in text for text in world.reasons()))
        del world.fake.answers["/users/anna"]
        await world.until_so(lambda: world.state() == "finished")
        await process.stop()
        assert world.counts() == {"sent": 1}

    live.play(script)
    assert live.targets() == {"ACoAAanna": 1}


def test_a_throttled_look_up_slows_the_account(live: LiveWorld) -> None:
    live.fake.answers["/users/anna"] = error(429, "too_many_requests")

    async def script(world: LiveWorld) -> None:
        world.connect()
        world.campaign(targets=PEOPLE, parts=NOTE)
        process = world.lively()
        await world.until_so(lambda: any("Too many requests" in text for text in world.reasons()))
        await process.stop()
        assert world.counts() == {"ready": 5}

    live.play(script)
    assert looked_up(live) == ["anna"], "nobody else is looked up meanwhile"


def test_a_disconnected_account_is_suspended_by_a_look_up_too(live: LiveWorld) -> None:
    live.fake.answers["/users/anna"] = error(401, "disconnected_account")

    async def script(world: LiveWorld) -> None:
        world.connect()
        world.campaign(targets=PEOPLE, parts=NOTE)
        process = world.lively()
        await world.until_so(lambda: world.account_now().state == "suspended")
        await process.stop()
        assert world.counts() == {"ready": 5}

    live.play(script)
    assert not live.fake.sends()
