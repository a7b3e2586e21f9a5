"""Letters that the server of a mailbox does not hand over: those around them are read."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from paceline.core.errors import ProviderError
from paceline.engine.clock import SystemClock
from paceline.engine.ports.webhooks import News, Withheld
from paceline.providers.mail.imap import Connection, Fetched, Refused
from paceline.providers.mail.mailbox import ImapMailbox
from tests.providers.mail.imap_server import ImapServer, Step
from tests.providers.mail.imap_stage import letter, opened, play, put, texts

BROKEN = "NO [SERVERBUG] Internal error occurred. Refer to server log for more information."


async def begun(imap: ImapServer, *said: str, folder: str = "INBOX") -> tuple[ImapMailbox, str]:
    """A mailbox into which these letters came, and where it is read from."""
    box = await opened(imap)
    cursor, _ = await box.next("", 0)
    for number, text in enumerate(said):
        await put(imap, letter(text, number), folder)
    return box, cursor


def numbered(cursor: str, place: int) -> int:
    """The number of the letter that came so many places behind a cursor."""
    return int(cursor.rpartition(":")[2].strip('"}')) + place


def refusing(imap: ImapServer, uid: int, answer: str = BROKEN, times: int = 99) -> None:
    imap.script.extend([Step(f"UID FETCH {uid} ", answer)] * times)


def shown(news: list[News]) -> list[str]:
    """What was said, and the numbers of those letters that were passed over."""
    return [one.letter if isinstance(one, Withheld) else texts([one])[0] for one in news]


@pytest.mark.parametrize("answer", [BROKEN, "NO no", "BAD Command Error. 12"])
def test_one_is_passed_over_and_told_of(imap: ImapServer, answer: str) -> None:
    async def scene() -> None:
        box, cursor = await begun(imap, "one", "broken", "STOP")
        uid = numbered(cursor, 2)
        refusing(imap, uid, answer)
        with capture_logs() as logs:
            cursor, news = await box.next(cursor, 0)
            assert shown(news) == ["one"], "what was read before it is handed over"
            cursor, news = await box.next(cursor, 0)
        assert shown(news) == [str(uid), "STOP"]
        (passed,) = [one for one in news if isinstance(one, Withheld)]
        assert passed.folder == "INBOX" and passed.reason
        told = [one for one in logs if one["event"] == "letter not handed over"]
        assert [(one["folder"], one["uid"]) for one in told] == [("INBOX", uid)] * 2
        assert await box.next(cursor, 0) == (cursor, [])
        await box.close()

    play(scene())
    assert imap.count("LOGIN") == 4, "once by us, for each letter once to put it there"


def test_one_that_is_refused_once_is_not_lost(imap: ImapServer) -> None:
    async def scene() -> None:
        box, cursor = await begun(imap, "one", "two")
        refusing(imap, numbered(cursor, 1), times=1)
        assert await box.next(cursor, 0) == (cursor, [])
        assert shown((await box.next(cursor, 0))[1]) == ["one", "two"]
        await box.close()

    play(scene())


def test_the_last_one_is_passed_over_where_the_one_before_it_is_handed_over(
    imap: ImapServer,
) -> None:
    async def scene() -> None:
        box, cursor = await begun(imap, "one", "broken")
        uid = numbered(cursor, 2)
        refusing(imap, uid)
        cursor, _ = await box.next(cursor, 0)
        assert shown((await box.next(cursor, 0))[1]) == [str(uid)]
        await box.close()

    play(scene())


def test_several_in_a_row(imap: ImapServer) -> None:
    async def scene() -> None:
        box, cursor = await begun(imap, "broken", "broken, too", "STOP")
        uids = [numbered(cursor, place) for place in (1, 2)]
        for uid in uids:
            refusing(imap, uid)
        read: list[str] = []
        for _ in range(3):
            cursor, news = await box.next(cursor, 0)
            read += shown(news)
        assert read == [*map(str, uids), "STOP"]
        await box.close()

    play(scene())


def test_a_server_that_hands_over_nothing_is_away(imap: ImapServer) -> None:
    """That will be over for all of them: none is passed over, and it is told which was the first.
    Whoever opens the mailbox anew finds out the same."""

    async def scene() -> None:
        box, cursor = await begun(imap, "one", "two")
        uid = numbered(cursor, 1)
        imap.script.extend([Step("UID FETCH", BROKEN)] * 99)
        for _ in range(2):
            assert await box.next(cursor, 0) == (cursor, [])
            with pytest.raises(ProviderError, match=rf"'INBOX': the letter with UID {uid} .*error"):
                await box.next(cursor, 0)
            await box.close()
            box = await opened(imap)
        imap.script.clear()
        assert shown((await box.next(cursor, 0))[1]) == ["one", "two"]
        await box.close()

    play(scene())


def test_other_folders_are_read_meanwhile(imap: ImapServer) -> None:
    async def scene() -> None:
        imap.make("Junk")
        box = await opened(imap, folders=("INBOX", "Junk"))
        cursor, _ = await box.next("", 0)
        await put(imap, letter("alone and broken"), "Junk")
        await put(imap, letter("one"))
        imap.script.append(Step("UID FETCH", BROKEN))
        cursor, news = await box.next(cursor, 0)
        assert shown(news) == ["one"]
        assert shown((await box.next(cursor, 0))[1]) == ["alone and broken"]
        await box.close()

    play(scene())


def test_what_was_begun_of_one_is_not_taken_for_the_next(imap: ImapServer) -> None:
    connection = Connection(imap.access(), SystemClock().monotonic_us)
    uid = connection.end_of("INBOX").uid + 1
    imap.append(letter("broken"))
    imap.append(letter("STOP"))
    connection.end_of("INBOX")
    begin = f"* 1 FETCH (UID {uid} BODY[]<0> {{26}}\r\nFrom: x@client.example\r\n\r\n)"
    imap.script.append(Step(f"UID FETCH {uid} ", BROKEN, before=begin))
    assert isinstance(connection.fetch(uid), Refused)
    fetched = connection.fetch(uid + 1)
    assert isinstance(fetched, Fetched) and fetched.raw == letter("STOP")
    connection.cut()
