"""Mailboxes over IMAP, against a real server on this machine: what is read, and when."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import MINUTE, parse_instant
from paceline.engine.ports.webhooks import Inbound, News, Returned
from paceline.providers.mail import mailbox as watched
from paceline.providers.mail.incoming import MOST_BYTES
from tests.providers.mail.imap_server import ImapServer, Step
from tests.providers.mail.imap_stage import letter, opened, play, put, texts
from tests.providers.mail.letters_in import KEY
from tests.providers.mail.letters_in.statuses import STATUSES

# ---------------------------------------------------------------------- reading


def test_from_now_on(imap: ImapServer) -> None:
    async def scene() -> None:
        await put(imap, letter("before"))
        box = await opened(imap)
        # Where it begins is told at once, although nothing comes.
        cursor, news = await box.next("", 10 * MINUTE)
        assert cursor and news == []
        await put(imap, letter("after"))
        after, news = await box.next(cursor, 0)
        assert texts(news) == ["after"] and after != cursor
        assert news[0].at == parse_instant("2026-11-16T12:00:00Z")
        assert await box.next(after, 0) == (after, [])
        await box.close()

    play(scene())


def test_a_letter_wakes_whoever_waits(imap: ImapServer) -> None:
    async def scene() -> None:
        box = await opened(imap)
        cursor, _ = await box.next("", 0)
        waiting = asyncio.create_task(box.next(cursor, 10 * MINUTE))
        await imap.until("(waits)")
        await put(imap, STATUSES[0].raw)
        cursor, news = await waiting
        (back,) = news
        assert isinstance(back, Returned) and (back.kind, back.key) == ("bounced", KEY)
        # And a second time on the same connection.
        waiting = asyncio.create_task(box.next(cursor, 10 * MINUTE))
        await imap.until("(waits)", 2)
        await put(imap, letter("hello"))
        assert texts((await waiting)[1]) == ["hello"]
        await box.close()

    play(scene())
    assert len([each for each in imap.heard if each[1] == "IDLE"]) == 2
    assert not any("\\Seen" in str(each) for each in imap.flags()), "nothing is marked as seen"
    asked = {command.split(" ")[0] for number, command in imap.heard if number == 1}
    assert asked == {"CAPABILITY", "LOGIN", "EXAMINE", "UID", "IDLE", "(waits)", "DONE"}


def test_the_wait_ends_when_its_time_is_over(imap: ImapServer) -> None:
    async def scene() -> None:
        box = await opened(imap)
        cursor, _ = await box.next("", 0)
        assert await box.next(cursor, 100_000) == (cursor, [])
        await box.close()

    play(scene())
    assert imap.count("DONE") == 1, "it waited, and said that it does no longer"


@pytest.mark.parametrize(
    "step",
    [
        # Before the server says that it will tell.
        Step("IDLE", before="* 9 EXISTS"),
        # Together with that, so that it has been read by the time we listen.
        Step("IDLE", idling="* 9 EXISTS"),
    ],
)
def test_what_comes_just_before_the_wait_is_not_missed(imap: ImapServer, step: Step) -> None:
    async def scene() -> None:
        box = await opened(imap)
        cursor, _ = await box.next("", 0)
        imap.script.append(step)
        waiting = asyncio.create_task(box.next(cursor, 10 * MINUTE))
        # It has looked again, and waits again.
        await imap.until("IDLE", 2)
        await imap.until("(waits)")
        await put(imap, letter("hello"))
        assert texts((await waiting)[1]) == ["hello"]
        await box.close()

    play(scene())


def test_what_is_not_about_letters_does_not_end_the_wait(imap: ImapServer) -> None:
    async def scene() -> None:
        box = await opened(imap)
        cursor, _ = await box.next("", 0)
        waiting = asyncio.create_task(box.next(cursor, 500_000))
        await imap.until("(waits)")
        await asyncio.to_thread(imap.say, "* OK Still here")
        assert await waiting == (cursor, [])
        await box.close()

    play(scene())
    assert imap.count("IDLE") == 1


def test_a_server_that_does_not_say_which_number_is_next(imap: ImapServer) -> None:
    async def scene() -> None:
        box = await opened(imap)
        cursor, _ = await box.next("", 0)
        validity = cursor.partition(':"')[2].partition(":")[0]
        for last in ("101", "102"):
            told = f"* 9 EXISTS\r\n* OK [UIDVALIDITY {validity}] these hold"
            imap.script.append(Step("EXAMINE", "OK [READ-ONLY] done", before=told))
            # It names the last letter even if that is not asked for.
            imap.script.append(Step("UID SEARCH", "OK done", before=f"* SEARCH {last}"))
            imap.script.append(Step("UID FETCH", "OK gone"))
            cursor, news = await box.next(f'{{"INBOX":"{validity}:101"}}', 0)
            assert news == [] and cursor == f'{{"INBOX":"{validity}:{last}"}}'
        await box.close()

    play(scene())
    assert [command[:13] for command in imap.commands() if "FETCH" in command] == ["UID FETCH 102"]


def test_across_restarts(imap: ImapServer) -> None:
    """Whoever has stored the cursor is not given the news again; whoever has not is."""

    async def scene() -> None:
        first = await opened(imap)
        cursor, _ = await first.next("", 0)
        await put(imap, letter("one"))
        stored, news = await first.next(cursor, 0)
        assert texts(news) == ["one"]
        await first.close()

        second = await opened(imap)
        assert texts((await second.next(cursor, 0))[1]) == ["one"]
        await put(imap, letter("two"))
        assert texts((await second.next(stored, 0))[1]) == ["two"]
        await second.close()

    play(scene())


def test_many_come_in_order_and_in_pieces(
    imap: ImapServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched, "MOST_LETTERS", 3)

    async def scene() -> None:
        box = await opened(imap)
        cursor, _ = await box.next("", 0)
        for number in range(7):
            await put(imap, letter(str(number), number))
        told: list[list[str]] = []
        for _ in range(4):
            cursor, news = await box.next(cursor, 0)
            told.append(texts(news))
        assert told == [["0", "1", "2"], ["3", "4", "5"], ["6"], []]
        await box.close()

    play(scene())


def test_what_says_nothing_is_passed_over_without_waiting(
    imap: ImapServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched, "MOST_LETTERS", 2)

    async def scene() -> None:
        box = await opened(imap)
        cursor, _ = await box.next("", 0)
        for _ in range(3):
            await put(imap, b"Subject: from nobody\r\n\r\nhello\r\n")
        await put(imap, letter("hello"))
        cursor, news = await box.next(cursor, 10 * MINUTE)
        assert texts(news) == ["hello"]
        await box.close()

    play(scene())
    assert imap.count("IDLE") == 0


def test_of_large_letters_the_beginning_is_read(imap: ImapServer) -> None:
    async def scene() -> None:
        box = await opened(imap)
        cursor, _ = await box.next("", 0)
        await put(imap, letter("hello\r\n" + "x" * 76 + "\r\n" * (2 * MOST_BYTES)))
        (news,) = (await box.next(cursor, 0))[1]
        assert isinstance(news, Inbound) and news.text.startswith("hello")
        await box.close()

    play(scene())
    (fetch,) = [command for command in imap.commands() if "FETCH" in command]
    assert f"BODY.PEEK[]<0.{MOST_BYTES}>" in fetch


def test_a_letter_that_nobody_understands_is_told_and_passed_over(
    imap: ImapServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = watched.read_letter

    def fails(raw: bytes, **more: Any) -> list[News]:
        if b"bad" in raw:
            raise RuntimeError("a defect")
        return real(raw, **more)

    monkeypatch.setattr(watched, "read_letter", fails)

    async def scene() -> None:
        box = await opened(imap)
        cursor, _ = await box.next("", 0)
        await put(imap, letter("bad"))
        await put(imap, letter("good"))
        assert texts((await box.next(cursor, 0))[1]) == ["good"]
        await box.close()

    with capture_logs() as logs:
        play(scene())
    assert [line["event"] for line in logs] == ["letter not understood"]


# ---------------------------------------------------------------------- folders and numbers


def test_several_folders(imap: ImapServer) -> None:
    imap.make("Junk")

    async def scene() -> None:
        one = await opened(imap)
        cursor, _ = await one.next("", 0)
        await put(imap, letter("seen"), "Junk")
        await one.close()
        # A folder that is new to us begins now.
        box = await opened(imap, folders=("INBOX", "Junk"))
        cursor, news = await box.next(cursor, 0)
        assert news == []
        await put(imap, letter("junk"), "Junk")
        await put(imap, letter("inbox"))
        cursor, news = await box.next(cursor, 0)
        assert sorted(texts(news)) == ["inbox", "junk"]
        # What is waited for is the first of them.
        waiting = asyncio.create_task(box.next(cursor, 10 * MINUTE))
        await imap.until("(waits)")
        await put(imap, letter("more"))
        assert texts((await waiting)[1]) == ["more"]
        await box.close()

    play(scene())
    commands = imap.commands()
    assert commands[commands.index("IDLE") - 1] == 'EXAMINE "INBOX"'


def test_a_folder_that_is_not_there(imap: ImapServer) -> None:
    with pytest.raises(ProviderError, match="folder 'Spam'") as caught:
        play(opened(imap, folders=("INBOX", "Spam")))
    assert not isinstance(caught.value, ProviderRefused)


def test_a_folder_that_is_numbered_anew_is_read_from_now_on(imap: ImapServer) -> None:
    async def scene() -> None:
        box = await opened(imap)
        cursor, _ = await box.next("", 0)
        await put(imap, letter("given"))
        cursor, news = await box.next(cursor, 0)
        assert texts(news) == ["given"]
        imap.number_anew()
        cursor, news = await box.next(cursor, 0)
        assert news == [], "nothing is given twice"
        await put(imap, letter("new"))
        assert texts((await box.next(cursor, 0))[1]) == ["new"]
        await box.close()

    with capture_logs() as logs:
        play(scene())
    (line,) = logs
    assert line["log_level"] == "warning" and "numbers its letters anew" in line["reason"]


@pytest.mark.parametrize("cursor", ["nonsense", "[]", '{"INBOX":7}', '{"INBOX":"1"}', "[" * 5_000])
def test_a_cursor_that_is_none_of_ours(imap: ImapServer, cursor: str) -> None:
    async def scene() -> None:
        await put(imap, letter("before"))
        box = await opened(imap)
        good, news = await box.next(cursor, 10 * MINUTE)
        assert news == [] and await box.next(good, 0) == (good, [])
        await box.close()

    with capture_logs() as logs:
        play(scene())
    assert [line["reason"] for line in logs] == ["bad cursor"]
