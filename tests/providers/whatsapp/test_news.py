"""What comes in: told to whoever listens, in order, and never waited for."""

import asyncio
from typing import Any

import pytest

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import HOUR
from paceline.engine.clock import LoopClock
from paceline.engine.ports import AccountNews, Inbound, Receipt
from paceline.providers.whatsapp.driver import WhatsAppDriver
from paceline.providers.whatsapp.errors import BANS
from paceline.providers.whatsapp.news import Mailbox, news_of
from paceline.providers.whatsapp.wire import (
    Acknowledged,
    Came,
    Composing,
    Dropped,
    GroupChanged,
    PairingOver,
    QrCode,
    Standing,
    WireLost,
)
from paceline.sim.loop import run_virtual
from tests.providers.whatsapp.scripted import FAMILY, OWN, READY
from tests.providers.whatsapp.stage import ANNA, START, Stage

HELLO = Came("3EB0A", ANNA, ANNA, "Hello", "text", START + 7)


def came(number: int) -> Came:
    return HELLO._replace(id=f"3EB0{number}")


def test_what_came_in_is_told_as_it_is() -> None:
    assert news_of(HELLO, START) == [Inbound("3EB0A", ANNA, ANNA, "Hello", START + 7)]
    ours = Came("3EB0B", FAMILY.jid, OWN, "", "image", 0, from_us=True, group=True)
    assert news_of(ours, START) == [
        Inbound("3EB0B", FAMILY.jid, OWN, "", START, from_us=True, kind="image", group=True)
    ]


def test_receipts_are_told_one_by_one() -> None:
    read = Acknowledged(("a", "b"), "read", START + 5)
    assert news_of(read, START) == [
        Receipt("a", "read", START + 5),
        Receipt("b", "read", START + 5),
    ]
    lost = news_of(Acknowledged(("c",), "failed", 0), START)
    assert lost == [
        Receipt("c", "failed", START, "media-expired", "the phone could not fetch the file")
    ]


def test_how_the_account_stands_is_news() -> None:
    assert news_of(READY, START) == [AccountNews("ready", OWN, START)]
    assert news_of(Standing("offline"), START) == [AccountNews("offline", "offline", START)]
    ban = Standing("banned", BANS[2], "temporary-ban", HOUR)
    assert news_of(ban, START, START + HOUR) == [
        AccountNews(
            "refused",
            "banned by WhatsApp: blocked by too many people, until 2026-11-15T10:00:00Z",
            START,
            START + HOUR,
        )
    ]


@pytest.mark.parametrize("event", [GroupChanged(FAMILY.jid), QrCode("2@x"), PairingOver("success")])
def test_the_rest_is_nobody_elses_affair(event: GroupChanged | QrCode | PairingOver) -> None:
    assert news_of(event, START) == []


def test_a_listener_hears_everything_in_order(scene: Stage) -> None:
    async def listen(driver: WhatsAppDriver) -> None:
        assert (await driver.listen()).news == [AccountNews("ready", OWN, START)]
        scene.whatsapp.say(HELLO)
        scene.whatsapp.say(Standing("offline"))
        scene.whatsapp.say(Acknowledged(("a",), "delivered", START))
        scene.whatsapp.say(Composing(ANNA))
        told = (await driver.listen()).news
        names = ["Inbound", "AccountNews", "Receipt", "Typing"]
        assert [type(news).__name__ for news in told] == names
        waiting = asyncio.ensure_future(driver.listen())
        await asyncio.wait({waiting}, timeout=1)
        assert not waiting.done()
        scene.whatsapp.say(came(2))
        assert (await waiting).news == news_of(came(2), START)

    scene.play(listen)


def test_what_was_written_down_is_confirmed(scene: Stage) -> None:
    async def listen(driver: WhatsAppDriver) -> None:
        for number in (1, 2):
            scene.whatsapp.say(came(number)._replace(mark=f"ab:{number}"))
        heard = await driver.listen()
        assert [type(one).__name__ for one in heard.news] == ["AccountNews", "Inbound", "Inbound"]
        assert heard.mark == "ab:2"
        await driver.confirm(heard.mark)
        assert scene.whatsapp.called("confirm") == ["ab:2"]
        scene.whatsapp.wires[-1].over.set()
        await driver.confirm("ab:3")
        scene.whatsapp.say(Acknowledged(("a",), "read", START))
        assert (await driver.listen()).mark == "", "receipts need not be"

    scene.play(listen)


def test_listening_ends_when_the_account_is_closed(scene: Stage) -> None:
    async def listen(driver: WhatsAppDriver) -> None:
        await driver.listen()
        listening = asyncio.ensure_future(driver.listen())
        await asyncio.sleep(0)
        await driver.close()
        assert (await listening).news == []
        with pytest.raises(ProviderError, match="closed"):
            await driver.listen()

    scene.play(listen)


def test_a_connection_that_has_ended_is_made_anew_for_whoever_listens(scene: Stage) -> None:
    async def listen(driver: WhatsAppDriver) -> None:
        await driver.listen()
        scene.whatsapp.wires[-1].crash()
        (news,) = (await driver.listen()).news
        assert isinstance(news, AccountNews) and news.state == "offline"
        (news,) = (await driver.listen()).news
        assert isinstance(news, AccountNews) and news.state == "ready"
        assert len(scene.whatsapp.wires) == 2
        scene.whatsapp.connects.append(WireLost("no network", handed_over=False))
        scene.whatsapp.wires[-1].crash()
        await driver.listen()
        with pytest.raises(ProviderError, match="no network"):
            await driver.listen()
        (news,) = (await driver.listen()).news
        assert isinstance(news, AccountNews) and news.state == "ready"

    scene.play(listen)


@pytest.mark.parametrize("state", ["logged_out", "replaced", "outdated", "banned"])
def test_an_account_that_somebody_has_to_see_to_is_not_tried_again(
    scene: Stage, state: Any
) -> None:
    async def listen(driver: WhatsAppDriver) -> None:
        await driver.listen()
        scene.whatsapp.say(Standing(state))
        (news,) = (await driver.listen()).news
        assert isinstance(news, AccountNews) and news.state == "refused"
        for _ in range(2):
            with pytest.raises(ProviderRefused):
                await driver.listen()
        assert len(scene.whatsapp.wires) == 1

    scene.play(listen)


def test_only_what_has_to_be_confirmed_is_kept_for_whoever_listens_later(scene: Stage) -> None:
    async def listen(driver: WhatsAppDriver) -> None:
        scene.whatsapp.say(Acknowledged(("a",), "read", START))
        scene.whatsapp.say(Dropped(9))
        scene.whatsapp.say(came(1)._replace(mark="ab:1"))
        heard = await driver.listen()
        assert [type(one).__name__ for one in heard.news] == ["AccountNews", "Inbound"]

    scene.play(listen)


def test_who_does_not_keep_up_loses_the_oldest_receipts_and_no_message() -> None:
    async def listen() -> None:
        mailbox = Mailbox(LoopClock(START), "team", most=3)
        mailbox.put(READY)
        await mailbox.take()
        for number in range(8):
            mailbox.put(Acknowledged((f"r{number}",), "read", START))
            mailbox.put(came(number)._replace(mark=f"ab:{number}"))
        mailbox.put(Dropped(4))
        told = (await mailbox.take()).news
        assert [one.provider_id for one in told if isinstance(one, Receipt)] == ["r5", "r6", "r7"]
        assert len([one for one in told if isinstance(one, Inbound)]) == 8
        mailbox.put(came(8))
        assert (await mailbox.take()).news == news_of(came(8), START), "what is told is told once"

    run_virtual(listen(), start_at=START)


def test_whoever_wants_to_know_who_types_is_shown_as_online(scene: Stage) -> None:
    async def listen(driver: WhatsAppDriver) -> int:
        return len(scene.whatsapp.called("online"))

    assert scene.play(listen) == 0
    assert scene.play(listen, online=True) == 1
    scene.whatsapp.fails("online", "can't send presence without PushName set")
    assert scene.play(listen, online=True) == 2, "and is paired all the same"
