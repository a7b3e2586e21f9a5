"""An account that listens: what comes is taken in, once, whatever crashes; and it stays open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paceline.core.errors import StoreUnavailable
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.model import Target
from paceline.engine import hearing
from paceline.engine.commands import accounts
from paceline.providers.whatsapp import provider as providers
from paceline.providers.whatsapp.errors import LOGOUTS
from paceline.providers.whatsapp.wire import (
    Acknowledged,
    Came,
    Composing,
    Standing,
    WireLost,
)
from tests.engine.scenes import delivery
from tests.engine.world import World
from tests.providers.whatsapp.stage import ANNA
from tests.providers.whatsapp.test_engine import PairedWorld


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PairedWorld:
    monkeypatch.setattr(providers, "installed", lambda: True)
    return PairedWorld(tmp_path)


def came(number: int, text: str = "", chat: str = ANNA) -> Came:
    mark = f"ab:{number}"
    return Came(f"3EB0{number}", chat, chat, text or f"text {number}", "text", 0, mark=mark)


def texts(world: World) -> list[str]:
    return [one.text for one in reversed(world.read(lambda tx: tx.inbox.latest()))]


def alerts(world: World) -> list[str]:
    return [one.kind for one in world.read(lambda tx: tx.alerts.list())]


async def listening(world: PairedWorld, count: int = 1) -> None:
    """Until so many connections were made, and the last of them is listened to."""
    await world.until(lambda: len(world.whatsapp.wires) == count)
    await world.wait(SECOND)


def test_what_comes_is_heard_without_anything_to_send_and_then_confirmed(
    world: PairedWorld,
) -> None:
    async def script(_: World) -> None:
        world.pair()
        process = world.process(poll_us=MINUTE)
        await listening(world)
        world.whatsapp.say(came(1))
        world.whatsapp.say(came(2))
        await world.wait(SECOND)
        assert texts(world) == ["text 1", "text 2"]
        assert world.whatsapp.called("confirm")[-1] == "ab:2"
        await world.wait(DAY)
        world.whatsapp.say(came(3))
        await world.wait(SECOND)
        assert texts(world) == ["text 1", "text 2", "text 3"]
        assert len(world.whatsapp.wires) == 1, "one connection, all day"
        (known,) = world.read(lambda tx: tx.conversations.list())
        assert known.chat == ANNA
        await process.stop()
        assert world.whatsapp.wires[0].closed

    world.play(script)


def test_one_connection_sends_and_listens(world: PairedWorld) -> None:
    async def script(_: World) -> None:
        world.pair()
        world.campaign(targets=[Target(ANNA)])
        process = world.process()
        await world.until_finished()
        name = delivery(world, ANNA).provider_id
        assert name is not None
        world.whatsapp.say(Acknowledged((name,), "delivered", 0))
        await world.wait(SECOND)
        assert delivery(world, ANNA).delivered_at is not None
        world.whatsapp.say(Acknowledged((name,), "read", 0))
        await world.wait(SECOND)
        assert delivery(world, ANNA).read_at is not None
        assert len(world.whatsapp.wires) == 1
        await process.stop()

    world.play(script)


def test_what_a_killed_process_had_not_written_down_is_told_to_the_next(
    world: PairedWorld,
) -> None:
    async def script(_: World) -> None:
        world.pair()
        doomed = world.process()
        await listening(world)
        world.whatsapp.say(came(1))
        await world.wait(SECOND)
        doomed.die()
        world.whatsapp.say(came(2))
        await world.wait(SECOND)
        assert world.whatsapp.called("confirm") == ["ab:1"]
        heir = world.process("two")
        await listening(world, 2)
        for number in (1, 2):
            world.whatsapp.say(came(number))
        await world.wait(SECOND)
        assert texts(world) == ["text 1", "text 2"], "each once"
        assert world.whatsapp.called("confirm")[-1] == "ab:2"
        await heir.stop()
        await doomed.gone()

    world.play(script)


def test_it_is_not_confirmed_before_it_is_written_down(
    world: PairedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = True
    real = hearing.returns.take_in

    def take_in(*given: Any) -> Any:
        if away:
            raise StoreUnavailable("the database is away")
        return real(*given)

    monkeypatch.setattr(hearing.returns, "take_in", take_in)

    async def script(_: World) -> None:
        nonlocal away
        world.pair()
        process = world.process()
        await listening(world)
        world.whatsapp.say(came(1))
        await world.wait(MINUTE)
        assert not world.whatsapp.called("confirm") and texts(world) == []
        away = False
        await world.wait(MINUTE)
        assert texts(world) == ["text 1"]
        assert world.whatsapp.called("confirm") == ["ab:1"]
        await process.stop()

    world.play(script)


def test_a_defect_is_told_and_does_not_spin(
    world: PairedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    real = hearing.returns.take_in

    def take_in(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls < 20:
            raise ValueError("whatever")
        return real(*given)

    monkeypatch.setattr(hearing.returns, "take_in", take_in)

    async def script(_: World) -> None:
        world.pair()
        process = world.process()
        await world.wait(2 * MINUTE)
        assert alerts(world) == ["mailbox.failing"]
        assert 0 < calls < 10
        await process.stop()

    world.play(script)


def test_somebody_who_types_is_waited_for(world: PairedWorld) -> None:
    async def script(_: World) -> None:
        world.pair()
        wish = {"way": "none", "quiet_us": 8 * SECOND, "max_wait_us": 65 * SECOND}
        world.write(lambda tx: tx.accounts.update(1, answering=wish))
        process = world.process()
        await listening(world)
        world.whatsapp.say(came(1))
        await world.wait(5 * SECOND)
        (before,) = world.read(lambda tx: tx.conversations.list())
        world.whatsapp.say(Composing(ANNA))
        world.whatsapp.say(Composing("+34600111222"))
        await world.wait(SECOND)
        (after,) = world.read(lambda tx: tx.conversations.list())
        assert before.due_at is not None and after.due_at is not None
        assert 4 * SECOND < after.due_at - before.due_at < 6 * SECOND
        await process.stop()

    world.play(script)


def test_a_logout_suspends_an_account_that_sends_nothing(world: PairedWorld) -> None:
    async def script(_: World) -> None:
        world.pair()
        process = world.process()
        await listening(world)
        world.whatsapp.say(came(1))
        world.whatsapp.say(Standing("logged_out", LOGOUTS[2], "logged-out"))
        await world.until(lambda: world.account_now().state == "suspended")
        assert texts(world) == ["text 1"] and alerts(world) == ["account.suspended"]
        await world.wait(HOUR)
        assert len(world.whatsapp.wires) == 1 and world.whatsapp.wires[0].closed, "let go of"
        world.write(lambda tx: accounts.resume(tx, "ann", world.clock.now()))
        await listening(world, 2)
        await process.stop()

    world.play(script)


def test_an_account_that_is_paused_goes_on_listening(world: PairedWorld) -> None:
    async def script(_: World) -> None:
        world.pair()
        process = world.process()
        await listening(world)
        world.write(lambda tx: accounts.pause(tx, "ann", world.clock.now()))
        await world.wait(HOUR)
        world.whatsapp.say(came(1))
        await world.wait(SECOND)
        assert texts(world) == ["text 1"] and len(world.whatsapp.wires) == 1
        await process.stop()

    world.play(script)


def test_a_connection_that_is_lost_is_made_again_and_told_when_it_lasts(
    world: PairedWorld,
) -> None:
    async def script(_: World) -> None:
        world.pair()
        process = world.process()
        await listening(world)
        lost = WireLost("no network", handed_over=False)
        world.whatsapp.connects.extend([lost] * 30)
        world.whatsapp.wires[-1].crash()
        await world.wait(10 * MINUTE)
        assert not alerts(world) and world.account_now().state == "active"
        tried = len(world.whatsapp.wires)
        assert tried < 20, "with growing pauses"
        await world.wait(10 * MINUTE)
        assert alerts(world) == ["mailbox.failing"]
        world.whatsapp.connects.clear()
        await world.wait(2 * MINUTE)
        assert not alerts(world)
        world.whatsapp.say(came(1))
        await world.wait(SECOND)
        assert texts(world) == ["text 1"]
        await process.stop()

    world.play(script)


def test_of_two_processes_one_listens(world: PairedWorld) -> None:
    async def script(_: World) -> None:
        world.pair()
        first, second = world.process(), world.process("two")
        await listening(world)
        await world.wait(10 * MINUTE)
        assert len(world.whatsapp.wires) == 1
        await first.stop()
        await listening(world, 2)
        await second.stop()

    world.play(script)


def test_an_account_that_is_not_paired_yet_is_left_alone(world: PairedWorld) -> None:
    async def script(_: World) -> None:
        world.pair()
        (world.folder / "ann.session").unlink()
        process = world.process()
        await world.wait(10 * MINUTE)
        assert world.account_now().state == "active" and not world.whatsapp.wires
        (world.folder / "ann.session").touch()
        world.write(lambda tx: tx.lanes.touch(1, world.clock.now()))
        await listening(world)
        await process.stop()

    world.play(script)


def test_its_groups_are_listed_now_and_then(world: PairedWorld) -> None:
    async def script(_: World) -> None:
        world.pair()
        process = world.process()
        await listening(world)
        await world.wait(HOUR)
        world.whatsapp.say(came(1))
        await world.wait(SECOND)
        known = world.read(lambda tx: tx.groups.list(1))
        assert len(known) == 60 and len(world.whatsapp.called("groups")) == 1
        await process.stop()

    world.play(script)


def test_whoever_opts_out_over_whatsapp_is_suppressed(world: PairedWorld) -> None:
    async def script(_: World) -> None:
        world.pair()
        process = world.process()
        await listening(world)
        world.whatsapp.say(came(1, "STOP"))
        await world.wait(SECOND)
        assert world.read(lambda tx: tx.suppressions.has(ANNA))
        await process.stop()

    world.play(script)
