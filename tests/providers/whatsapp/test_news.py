"""What comes in: told to whoever listens, in order, and never waited for."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from paceline.core.instants import HOUR
from paceline.engine.clock import LoopClock
from paceline.engine.ports import AccountNews, Inbound, News, Receipt
from paceline.providers.whatsapp.driver import WhatsAppDriver
from paceline.providers.whatsapp.errors import BANS
from paceline.providers.whatsapp.news import Mailbox, news_of
from paceline.providers.whatsapp.wire import (
    Acknowledged,
    Came,
    Dropped,
    GroupChanged,
    PairingOver,
    QrCode,
    Standing,
)
from paceline.sim.loop import run_virtual
from tests.providers.whatsapp.scripted import FAMILY, OWN, READY
from tests.providers.whatsapp.stage import ANNA, START, Stage

HELLO = Came("3EB0A", ANNA, ANNA, "Hello", "text", START + 7)


def came(number: int) -> Came:
    return HELLO._replace(id=f"3EB0{number}")


async def take(listening: AsyncIterator[News], count: int) -> list[News]:
    return [await anext(listening) for _ in range(count)]


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
        listening = driver.listen()
        assert await take(listening, 1) == [AccountNews("ready", OWN, START)]
        scene.whatsapp.say(HELLO)
        scene.whatsapp.say(Standing("offline"))
        scene.whatsapp.say(Acknowledged(("a",), "delivered", START))
        told = await take(listening, 3)
        assert [type(news).__name__ for news in told] == ["Inbound", "AccountNews", "Receipt"]
        waiting = asyncio.ensure_future(take(listening, 1))
        await asyncio.wait({waiting}, timeout=1)
        assert not waiting.done()
        scene.whatsapp.say(came(2))
        assert await waiting == news_of(came(2), START)

    scene.play(listen)


def test_listening_ends_when_the_account_is_closed(scene: Stage) -> None:
    async def listen(driver: WhatsAppDriver) -> list[News]:
        listening = driver.listen()
        heard = await take(listening, 1)
        scene.whatsapp.say(HELLO)
        await driver.close()
        return heard + [news async for news in listening]

    assert [type(news).__name__ for news in scene.play(listen)] == ["AccountNews", "Inbound"]


def test_what_nobody_listens_to_is_not_kept(scene: Stage) -> None:
    async def listen(driver: WhatsAppDriver) -> None:
        scene.whatsapp.say(HELLO)
        scene.whatsapp.say(Dropped(9))
        listening = driver.listen()
        await take(listening, 1)
        scene.whatsapp.say(came(2))
        assert await take(listening, 1) == news_of(came(2), START)

    scene.play(listen)


def test_who_does_not_keep_up_loses_the_oldest_and_is_told() -> None:
    async def listen() -> None:
        mailbox = Mailbox(LoopClock(START), "team", most=3)
        listening = aiter(mailbox)
        mailbox.put(READY)
        await take(listening, 1)
        for number in range(8):
            mailbox.put(came(number))
        mailbox.put(Dropped(4))
        told = await take(listening, 4)
        assert told[0] == AccountNews(
            "ready", "9 reports were dropped: they came faster than they were taken", START
        )
        assert [news.provider_id for news in told[1:] if isinstance(news, Inbound)] == [
            "3EB05", "3EB06", "3EB07",
        ]  # fmt: skip
        mailbox.put(came(8))
        assert await take(listening, 1) == news_of(came(8), START), "what is told is told once"

    run_virtual(listen(), start_at=START)
