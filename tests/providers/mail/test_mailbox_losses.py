"""Mailboxes whose server hangs up, hangs, or is one of many, and mailboxes that are closed."""

from __future__ import annotations

import asyncio

import pytest

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import MINUTE
from paceline.engine.clock import SystemClock
from paceline.providers.mail import mailbox as watched
from paceline.providers.mail.imap import Timing
from paceline.providers.mail.mailbox import POLL_US, ImapMailboxes
from tests.providers.mail.imap_server import OTHER, ImapServer, Step, running
from tests.providers.mail.imap_stage import Turned, letter, opened, play, put, texts

# ---------------------------------------------------------------------- dropped


def test_dropped_while_it_waits(imap: ImapServer) -> None:
    async def scene() -> None:
        box = await opened(imap)
        cursor, _ = await box.next("", 0)
        waiting = asyncio.create_task(box.next(cursor, 10 * MINUTE))
        await imap.until("(waits)")
        await asyncio.to_thread(imap.drop_all)
        await imap.until("(waits)", 2)
        await put(imap, letter("hello"))
        assert texts((await waiting)[1]) == ["hello"]
        await box.close()

    play(scene())
    assert imap.count("LOGIN") == 3, "twice by us, once to put the letter there"


def test_dropped_between_two_calls(imap: ImapServer) -> None:
    async def scene() -> None:
        box = await opened(imap)
        cursor, _ = await box.next("", 0)
        await put(imap, letter("hello"))
        await asyncio.to_thread(imap.drop_all)
        assert texts((await box.next(cursor, 0))[1]) == ["hello"]
        await box.close()

    play(scene())


@pytest.mark.parametrize("at", ["EXAMINE", "UID SEARCH", "UID FETCH"])
def test_dropped_in_the_middle(imap: ImapServer, at: str) -> None:
    """Nothing is lost, and nothing is given twice."""

    async def scene() -> None:
        box = await opened(imap)
        cursor, _ = await box.next("", 0)
        await put(imap, letter("one"))
        await put(imap, letter("two"))
        imap.script.append(Step(at, drops=True))
        cursor, news = await box.next(cursor, 0)
        assert texts(news) == ["one", "two"]
        assert (await box.next(cursor, 0))[1] == []
        await box.close()

    play(scene())
    assert not imap.script


def test_dropped_again_and_again(imap: ImapServer) -> None:
    async def scene() -> None:
        box = await opened(imap)
        cursor, _ = await box.next("", 0)
        imap.script.extend([Step("IDLE", drops=True)] * 9)
        with pytest.raises(ProviderError) as caught:
            await box.next(cursor, 10 * MINUTE)
        assert not isinstance(caught.value, ProviderRefused)
        # Whoever asks again later is served.
        imap.script.clear()
        await put(imap, letter("hello"))
        assert texts((await box.next(cursor, 0))[1]) == ["hello"]
        await box.close()

    play(scene())
    assert imap.count("IDLE") <= 3, "not as often as it can"


def test_not_let_in_any_more(imap: ImapServer) -> None:
    async def scene() -> None:
        box = await opened(imap)
        cursor, _ = await box.next("", 0)
        imap.script.append(Step("LOGIN", "NO [AUTHENTICATIONFAILED] the password was changed"))
        await asyncio.to_thread(imap.drop_all)
        with pytest.raises(ProviderRefused, match="the password was changed"):
            await box.next(cursor, 0)
        await box.close()

    play(scene())


@pytest.mark.parametrize("at", ["EXAMINE", "IDLE"])
def test_a_server_that_hangs(imap: ImapServer, at: str) -> None:
    async def scene() -> None:
        boxes = ImapMailboxes(SystemClock(), timing=Timing(answer_s=0.2))
        box = await opened(imap, boxes)
        cursor, _ = await box.next("", 0)
        imap.script.extend([Step(at, hangs=True)] * 9)
        with pytest.raises(ProviderError, match="timed out"):
            await box.next(cursor, 5 * MINUTE)
        await box.close()

    play(scene())


def test_a_server_that_hangs_at_the_end_of_a_wait(imap: ImapServer) -> None:
    async def scene() -> None:
        boxes = ImapMailboxes(SystemClock(), timing=Timing(answer_s=0.2))
        box = await opened(imap, boxes)
        cursor, _ = await box.next("", 0)
        imap.script.append(Step("DONE", hangs=True))
        # Whether it is still there is seen on a new connection, before anything is said.
        assert await box.next(cursor, 50_000) == (cursor, [])
        await box.close()

    play(scene())
    assert imap.count("LOGIN") == 2


def test_a_server_that_answers_for_ever(imap: ImapServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watched, "LOOK_S", 0.2)

    async def scene() -> None:
        box = await opened(imap)
        imap.script.extend([Step("EXAMINE", hangs=True)] * 9)
        with pytest.raises(ProviderError, match="took too long"):
            await box.next("", 0)
        await box.close()

    play(scene())


@pytest.mark.parametrize(
    "answer",
    ["OK", "NO not now", "BAD what?", "OK [UIDVALIDITY x]", "* 1 EXISTS", "\r\n\r\n", "* SEARCH x"],
)
def test_a_server_that_makes_no_sense(imap: ImapServer, answer: str) -> None:
    async def scene() -> None:
        boxes = ImapMailboxes(SystemClock(), timing=Timing(answer_s=0.2))
        box = await opened(imap, boxes)
        cursor, _ = await box.next("", 0)
        await put(imap, letter("hello"))
        imap.script.extend([Step("UID SEARCH", answer)] * 9)
        try:
            _, news = await box.next(cursor, 0)
        except ProviderError as error:
            assert not isinstance(error, ProviderRefused)
        else:
            assert news == []
        imap.script.clear()
        assert texts((await box.next(cursor, 0))[1]) == ["hello"]
        await box.close()

    play(scene())


# ---------------------------------------------------------------------- closed


def test_whoever_is_cancelled_is_gone_at_once(imap: ImapServer) -> None:
    async def scene() -> None:
        box = await opened(imap)
        cursor, _ = await box.next("", 0)
        waiting = asyncio.create_task(box.next(cursor, 10 * MINUTE))
        await imap.until("(waits)")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        # The mailbox can be asked again.
        await put(imap, letter("hello"))
        assert texts((await box.next(cursor, 0))[1]) == ["hello"]
        await box.close()

    play(scene())


def test_a_mailbox_that_is_closed_ends_its_wait(imap: ImapServer) -> None:
    async def scene() -> None:
        box = await opened(imap)
        cursor, _ = await box.next("", 0)
        waiting = asyncio.create_task(box.next(cursor, 10 * MINUTE))
        await imap.until("(waits)")
        await box.close()
        with pytest.raises(ProviderError, match="closed"):
            await waiting
        with pytest.raises(ProviderError, match="closed"):
            await box.next(cursor, 0)
        await box.close()

    play(scene())


@pytest.mark.parametrize("at", ["LOGIN", "EXAMINE"])
def test_whoever_gives_up_while_it_opens(imap: ImapServer, at: str) -> None:
    async def scene() -> None:
        imap.script.append(Step(at, hangs=True))
        opening = asyncio.create_task(opened(imap))
        await imap.until(at)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    play(scene())


# ---------------------------------------------------------------------- without IDLE, and many


def test_a_server_that_does_not_tell_by_itself() -> None:
    async def scene(server: ImapServer) -> None:
        clock = Turned()
        box = await opened(server, ImapMailboxes(clock))
        cursor, _ = await box.next("", 0)
        waiting = asyncio.create_task(box.next(cursor, 10 * MINUTE))
        await clock.rests.wait()
        await put(server, letter("hello"))
        clock.pauses.release()
        assert texts((await waiting)[1]) == ["hello"]
        assert clock.slept == [POLL_US]
        await box.close()

    with running(ImapServer(idles=False)) as server:
        play(scene(server))
    assert server.count("IDLE") == 0


def test_a_rest_ends_when_the_mailbox_is_closed() -> None:
    async def scene(server: ImapServer) -> None:
        clock = Turned()
        box = await opened(server, ImapMailboxes(clock))
        cursor, _ = await box.next("", 0)
        waiting = asyncio.create_task(box.next(cursor, 10 * MINUTE))
        await clock.rests.wait()
        await box.close()
        with pytest.raises(ProviderError, match="closed"):
            await waiting

    with running(ImapServer(idles=False)) as server:
        play(scene(server))


def test_a_server_that_says_it_would_and_does_not(imap: ImapServer) -> None:
    async def scene() -> None:
        clock = Turned()
        box = await opened(imap, ImapMailboxes(clock))
        cursor, _ = await box.next("", 0)
        imap.script.append(Step("IDLE", "BAD no such thing"))
        waiting = asyncio.create_task(box.next(cursor, 10 * MINUTE))
        await clock.rests.wait()
        await put(imap, letter("hello"))
        clock.pauses.release()
        assert texts((await waiting)[1]) == ["hello"]
        await box.close()

    play(scene())
    assert imap.count("IDLE") == 1


def test_two_mailboxes_at_once(imap: ImapServer) -> None:
    async def scene() -> None:
        boxes = ImapMailboxes(SystemClock())
        anna, ben = await opened(imap, boxes), await opened(imap, boxes, username=OTHER)
        starts = [(await box.next("", 0))[0] for box in (anna, ben)]
        waits = [
            asyncio.create_task(box.next(start, 10 * MINUTE))
            for box, start in zip((anna, ben), starts, strict=True)
        ]
        await imap.until("(waits)", 2)
        await put(imap, letter("for ben"), user=OTHER)
        assert texts((await waits[1])[1]) == ["for ben"]
        assert not waits[0].done()
        await put(imap, letter("for anna"))
        assert texts((await waits[0])[1]) == ["for anna"]
        await asyncio.gather(anna.close(), ben.close())

    play(scene())


def test_more_mailboxes_than_threads_take_turns(imap: ImapServer) -> None:
    async def scene() -> None:
        clock = Turned()
        boxes = ImapMailboxes(clock, threads=1)
        anna = await opened(imap, boxes)
        start, _ = await anna.next("", 0)
        for_anna = asyncio.create_task(anna.next(start, 10 * MINUTE))
        await imap.until("(waits)")
        # Somebody else needs the thread: the wait ends, and from now on both ask in turns.
        ben = await opened(imap, boxes, username=OTHER)
        assert imap.count("DONE") == 1
        for_ben = asyncio.create_task(ben.next((await ben.next("", 0))[0], 10 * MINUTE))
        while len(clock.slept) < 2:
            clock.rests.clear()
            await clock.rests.wait()
        await put(imap, letter("for anna"))
        await put(imap, letter("for ben"), user=OTHER)
        clock.pauses.release()
        clock.pauses.release()
        assert texts((await for_anna)[1]) == ["for anna"]
        assert texts((await for_ben)[1]) == ["for ben"]
        assert imap.count("IDLE") == 1
        # When there are enough again, whoever is left is told by the server.
        await ben.close()
        cursor, _ = await anna.next(start, 0)
        again = asyncio.create_task(anna.next(cursor, 10 * MINUTE))
        await imap.until("(waits)", 2)
        again.cancel()
        await asyncio.gather(again, return_exceptions=True)
        await anna.close()

    play(scene())
