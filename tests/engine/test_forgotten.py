"""Erasing after real troubles: every text that an answer can get into, and the file's own bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paceline.core.instants import MINUTE, SECOND
from paceline.core.model import Content, Part, Target
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine import lane_writes
from paceline.engine.commands import campaigns, control, erasing
from paceline.engine.ports import Message
from paceline.engine.settling import Aftermath
from tests.engine.doubles import Double
from tests.engine.scenes import say, until
from tests.engine.world import World

MAIL, NAME = "anna@example.com", "Annabel"
TRACES = (b"anna@", b"annabel")
HELLO = (Part("text", "Dear {{ name }}"),)
SAID = f"550 <{MAIL.title()}>: {NAME} said no"

K = OutcomeKind


class Gossip:
    """A provider that repeats whom a message was for, whatever it answers."""

    def __init__(self, world: World) -> None:
        self.provider = Double(world.providers.get("sandbox"), send=self._send)
        self.kind = K.ACCEPTED
        self.wait_us: int | None = None

    async def _send(self, real: Any, message: Message) -> Outcome:
        if message.target != MAIL or self.kind is K.ACCEPTED:
            outcome: Outcome = await real(message)
            return outcome
        return Outcome(self.kind, SAID, "x", None, self.wait_us)


def bytes_of(path: Path) -> dict[str, bytes]:
    """The file, and whatever lies beside it."""
    return {file.name: file.read_bytes() for file in sorted(path.parent.glob(f"{path.name}*"))}


def traces_in(path: Path) -> list[tuple[str, bytes]]:
    found = bytes_of(path)
    return [(name, t) for name, content in found.items() for t in TRACES if t in content.lower()]


def texts_of(world: World) -> str:
    """What all that is told of others says: accounts, campaigns, runs, alerts, events, holds."""

    def read(tx: Any) -> str:
        cursor = tx._context.cursor()
        found = []
        for statement in (
            "SELECT state_reason FROM accounts",
            "SELECT reason FROM campaigns",
            "SELECT reason || summary FROM runs",
            "SELECT text || reasons FROM alerts",
            "SELECT text FROM events",
            "SELECT checkpoint FROM usage",
            "SELECT reason FROM suppressions",
            "SELECT reason FROM ledger",
            "SELECT reason FROM deliveries",
        ):
            found += [str(row[0]) for row in cursor.execute(statement).fetchall()]
        return "\n".join(found)

    return world.read(read)


@pytest.mark.parametrize(
    ("kind", "wait_us"),
    [
        (K.REJECTED, None),
        (K.BOUNCED, None),
        (K.THROTTLED, 30 * SECOND),
        (K.EXHAUSTED, 30 * SECOND),
        (K.UNAVAILABLE, None),
        (K.TRANSIENT, None),
        (K.UNAUTHORISED, None),
        (K.BANNED, None),
        (K.BANNED, 30 * SECOND),
        (K.UNKNOWN, None),
    ],
)
def test_no_answer_takes_an_address_along(
    world: World, tmp_path: Path, kind: OutcomeKind, wait_us: int | None
) -> None:
    file = tmp_path / "world.db"

    async def script(world: World) -> None:
        gossip = Gossip(world)
        gossip.kind, gossip.wait_us = kind, wait_us
        policy = {"rate": "60/min", "breaker": {"above": "20%"}, "retry": "1s doubling"}
        world.account(policy=policy)
        people = [Target(MAIL, {"name": NAME}), Target("bob@example.com", {"name": "Bob"})]
        world.campaign(targets=people, parts=HELLO)
        process = world.process(poll_us=SECOND, providers=gossip.provider.registry())
        await until(world, lambda: "said no" in texts_of(world))
        await world.wait(MINUTE)
        told = texts_of(world)
        assert MAIL not in told.lower() and NAME not in told, told
        await process.stop()
        assert traces_in(file), "she is still known"
        await _erase(world, process)
        assert traces_in(file) == []

    world.play(script)
    assert traces_in(file) == []


def test_nor_do_people_s_own_words(world: World, tmp_path: Path) -> None:
    file = tmp_path / "world.db"

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        now = world.clock.now()
        world.campaign(targets=[Target(MAIL, {"name": NAME})], parts=HELLO)
        process = world.process(poll_us=SECOND)
        await world.until(lambda: world.counts() == {"sent": 1})
        world.write(lambda tx: control.stop_all(tx, f"{MAIL} has complained", now))
        world.write(
            lambda tx: campaigns.send_direct(
                tx,
                "ann",
                MAIL,
                Content((Part("text", f"Sorry, {NAME}"),)),
                "message",
                now,
                providers=world.providers,
                key=f"sorry, {NAME}",
            )
        )
        world.write(
            lambda tx: tx.accounts.move(
                world.account_now().id, "pause", reason=f"until {MAIL.upper()} has calmed down"
            )
        )
        await process.stop()
        world.store.wipe()
        assert traces_in(file)
        await _erase(world, process)
        assert traces_in(file) == []
        say(world, "go on")

    world.play(script)
    assert traces_in(file) == []


def test_an_answer_that_comes_after_all_names_nobody_anew(world: World, tmp_path: Path) -> None:
    """A call that outlived its lane ends when its recipient has been forgotten: it bounced."""

    async def script(world: World) -> None:
        world.account()
        world.campaign(targets=[Target(MAIL)], parts=(Part("text", "hi"),))
        world.write(lambda tx: erasing.erase(tx, MAIL, world.clock.now()))
        account, now = world.account_now(), world.clock.now()
        late = Aftermath(suppress=MAIL, reason="550 (recipient) does not exist")
        world.write(lambda tx: lane_writes._carry_out(tx, late, account, now))
        known = world.read(lambda tx: [entry.address for entry in tx.suppressions.walk()])
        assert [address[:7] for address in known] == ["erased:"]
        assert world.store.wipe()
        assert traces_in(tmp_path / "world.db") == []

    world.play(script)


async def _erase(world: World, process: Any) -> None:
    assert not process.running
    world.write(lambda tx: erasing.erase(tx, MAIL, world.clock.now()))
    assert world.store.wipe()
