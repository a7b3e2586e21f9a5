"""Connections that end, and calls that are called off: what is in doubt then, and what is not."""

import asyncio

import pytest

from paceline.core.errors import ProviderError
from paceline.core.instants import SECOND
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.drivers import within_time
from paceline.providers.whatsapp.driver import WhatsAppDriver
from paceline.providers.whatsapp.wire import Standing, WireLost
from tests.providers.whatsapp.scripted import FAMILY, READY
from tests.providers.whatsapp.stage import ANNA, Stage, message

K = OutcomeKind


def test_a_message_under_way_when_the_process_crashes_is_in_doubt(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        scene.whatsapp.hold.add("send")
        sending = asyncio.ensure_future(driver.send(message(ANNA)))
        await scene.whatsapp.begun.wait()
        scene.whatsapp.wires[-1].crash()
        outcome = await sending
        assert (outcome.kind, outcome.code) == (K.UNKNOWN, "lost")

    scene.play(send)


def test_the_next_message_connects_again(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        scene.whatsapp.wires[-1].crash()
        assert (await driver.send(message(ANNA))).kind is K.ACCEPTED

    scene.play(send)
    assert len(scene.whatsapp.wires) == 2
    assert all(wire.closed for wire in scene.whatsapp.wires)


def test_several_messages_make_one_connection(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        scene.whatsapp.wires[-1].crash()
        outcomes = await asyncio.gather(*(driver.send(message(ANNA)) for _ in range(3)))
        assert {outcome.kind for outcome in outcomes} == {K.ACCEPTED}

    scene.play(send)
    assert len(scene.whatsapp.wires) == 2


def test_while_there_is_no_network_nothing_is_in_doubt(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        scene.whatsapp.wires[-1].crash()
        scene.whatsapp.connects.append([Standing("ended", "no such host")])
        outcome = await driver.send(message(ANNA))
        assert outcome == Outcome(K.UNAVAILABLE, "team: offline: no such host", "offline")

    scene.play(send)


def test_a_connection_lost_before_anything_was_handed_over(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        scene.whatsapp.will("send", WireLost("its process has ended", handed_over=False))
        assert (await driver.send(message(ANNA))).kind is K.UNAVAILABLE
        scene.whatsapp.will("group", WireLost("its process has ended", handed_over=True))
        assert (await driver.send(message(FAMILY.jid))).kind is K.UNAVAILABLE

    scene.play(send)


def test_while_it_is_cut_off_nothing_is_tried(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        scene.whatsapp.say(Standing("offline"))
        outcome = await driver.send(message(ANNA))
        assert (outcome.kind, outcome.code) == (K.UNAVAILABLE, "offline")
        scene.whatsapp.say(READY)
        assert (await driver.send(message(ANNA))).kind is K.ACCEPTED

    scene.play(send)
    assert len(scene.whatsapp.wires) == 1, "the library connects again by itself"


def test_a_call_that_is_called_off_answers_all_the_same(scene: Stage) -> None:
    """It was handed over, so it may be out: whoever waits no longer must still hear of it."""

    async def send(driver: WhatsAppDriver) -> None:
        scene.whatsapp.hold.add("send")
        sending = asyncio.ensure_future(driver.send(message(ANNA)))
        await scene.whatsapp.begun.wait()
        sending.cancel()
        await asyncio.wait({sending}, timeout=20)
        assert not sending.done(), "it is with the library, and cannot be called back"
        scene.whatsapp.go_on.set()
        assert (await sending).kind is K.ACCEPTED

    scene.play(send)
    assert len(scene.whatsapp.sent) == 1


def test_the_engine_leaves_such_a_call_behind_and_gets_its_answer(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        scene.whatsapp.hold.add("send")
        left: list[asyncio.Future[Outcome]] = []
        with pytest.raises(TimeoutError):
            await within_time(driver.send(message(ANNA)), 30 * SECOND, left.append)
        scene.whatsapp.go_on.set()
        assert (await left[0]).kind is K.ACCEPTED

    scene.play(send)


def test_called_off_twice_it_certainly_goes_no_further(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        scene.whatsapp.hold.add("send")
        sending = asyncio.ensure_future(driver.send(message(ANNA)))
        await scene.whatsapp.begun.wait()
        sending.cancel()
        await asyncio.wait({sending}, timeout=1)
        sending.cancel()
        outcome = await sending
        assert outcome.kind is K.UNKNOWN
        scene.whatsapp.go_on.set()

    scene.play(send)
    assert scene.whatsapp.sent == []


def test_closing_ends_what_is_under_way(scene: Stage) -> None:
    async def whole(driver: WhatsAppDriver) -> None:
        scene.whatsapp.hold.add("send")
        sending = asyncio.ensure_future(driver.send(message(ANNA)))
        await scene.whatsapp.begun.wait()
        await driver.close()
        assert (await sending).kind is K.UNKNOWN
        assert (await driver.send(message(ANNA))).code == "closed"
        with pytest.raises(ProviderError, match="team: the account has been closed"):
            await driver.groups()

    scene.play(whole)
    assert len(scene.whatsapp.wires) == 1
    assert scene.whatsapp.sent == []


def test_before_it_is_handed_over_a_call_ends_when_it_is_told_to(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        scene.whatsapp.hold.add("group")
        sending = asyncio.ensure_future(driver.send(message(FAMILY.jid)))
        await scene.whatsapp.begun.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending

    scene.play(send)
    assert scene.whatsapp.called("send") == []
