"""A mailbox read over Gmail's API: what comes in, in order, each letter once, and nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any, TypeVar

import httpx
import pytest

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import HOUR, MILLISECOND, MINUTE, SECOND
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Inbound, News, Returned
from paceline.providers.gmail import GmailProvider, mailbox
from paceline.providers.gmail.mailbox import GmailMailbox, Place
from tests.providers.gmail.bodies import BODIES
from tests.providers.gmail.fake import READ_SCOPE, SEND_SCOPE, STALE, USER, FakeGmail, error
from tests.providers.loopback import HTML, JSON, Scripted
from tests.providers.mail.imap_stage import Turned, letter, texts
from tests.providers.mail.letters_in import KEY
from tests.providers.mail.letters_in.statuses import STATUSES
from tests.providers.remote import PATIENT, account

T = TypeVar("T")

HISTORY = f"{USER}/history"
GONE = error(404, "notFound", "Requested entity was not found.")
"""github.com/LogicLabs-OU/OpenArchiver/issues/443"""


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox, "POLL_US", 10 * MILLISECOND)


def play(scene: Coroutine[Any, Any, T]) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(60):
            return await scene

    return asyncio.run(bounded())


async def opened(fake: FakeGmail, clock: SystemClock | None = None, **more: Any) -> GmailMailbox:
    provider = GmailProvider(clock or SystemClock(), timeout=PATIENT)
    found = await provider.open_mailbox(account(fake.settings(watch=True, **more)))
    assert isinstance(found, GmailMailbox)
    return found


async def read(box: GmailMailbox, cursor: str, within_us: int = 20 * SECOND) -> tuple[str, Any]:
    return await box.next(cursor, within_us)


def reading(fake: FakeGmail, cursor: str, count: int, **more: Any) -> tuple[str, list[News]]:
    """So many pieces of news from behind a cursor on, and where that leads."""

    async def scene() -> tuple[str, list[News]]:
        box = await opened(fake, **more)
        place, found = cursor, list[News]()
        while len(found) < count:
            place, news = await read(box, place)
            found += news
        await box.close()
        return place, found

    return play(scene())


def start(fake: FakeGmail) -> str:
    async def scene() -> str:
        box = await opened(fake)
        cursor, news = await read(box, "")
        assert news == []
        await box.close()
        return cursor

    return play(scene())


def test_what_was_there_before_is_no_news_and_what_comes_is_read_in_order(fake: FakeGmail) -> None:
    fake.box.put(letter("before", 0))
    cursor = start(fake)
    for number in (1, 2, 3):
        fake.box.put(letter(f"text {number}", number))
    after, news = reading(fake, cursor, 3)
    assert texts(news) == ["text 1", "text 2", "text 3"]
    (first, *_) = news
    assert isinstance(first, Inbound) and first.at == 1_790_000_000 * SECOND
    fake.box.put(letter("text 4", 4))
    assert texts(reading(fake, after, 1)[1]) == ["text 4"]
    assert texts(reading(fake, cursor, 4)[1])[:1] == ["text 1"], "what was not stored comes again"
    asked = [call for call in fake.calls if call.path != "/token"]
    assert {call.method for call in asked} == {"GET"}, "nothing is marked, moved or deleted"


def test_bounces_come_to_the_inbox_or_are_called_spam(fake: FakeGmail) -> None:
    cursor = start(fake)
    for labels in (("SENT",), ("DRAFT",), ("TRASH",), ("CATEGORY_UPDATES", "UNREAD")):
        fake.box.put(letter(str(labels)), *labels)
    came = next(one for one in STATUSES if one.news and one.news[0].get("key") == KEY)
    fake.box.put(came.raw, "SPAM", "UNREAD")
    fake.box.put(letter("to ourselves", 2), "SENT", "INBOX")
    _, news = reading(fake, cursor, 2)
    assert isinstance(news[0], Returned) and news[0].key == KEY
    assert texts(news[1:]) == ["to ourselves"]
    assert sum(path.startswith("messages/") for path in fake.box.asked) == 2


def test_many_letters_come_in_pieces_whatever_the_pages_are(fake: FakeGmail) -> None:
    cursor, fake.box.page = start(fake), 7
    for number in range(60):
        fake.box.put(letter(f"text {number}", number))

    async def scene() -> list[int]:
        box = await opened(fake)
        place, sizes, found = cursor, list[int](), list[str]()
        while len(found) < 60:
            place, news = await read(box, place)
            sizes.append(len(news))
            found += texts(news)
        assert found == [f"text {number}" for number in range(60)]
        await box.close()
        return sizes

    assert play(scene()) == [25, 25, 10]
    assert fake.box.asked.count("history") == 9, "those that wait are not looked for again"


def test_more_than_can_be_listed_at_once_is_listed_later(
    fake: FakeGmail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mailbox, "MOST_PAGES", 2)
    cursor, fake.box.page = start(fake), 5
    for number in range(23):
        fake.box.put(letter(f"text {number}", number))
    assert texts(reading(fake, cursor, 23)[1]) == [f"text {number}" for number in range(23)]


@pytest.mark.parametrize("answer", [None, error(400, "invalidArgument", "Invalid startHistoryId")])
def test_where_the_history_is_forgotten_letters_are_found_by_date(
    fake: FakeGmail, answer: Scripted | None
) -> None:
    """``None`` is the 404 that the fake gives by itself."""
    read_at = SystemClock().now() // SECOND - 100_000
    cursor = Place("5", read_at * SECOND, ("19a0000000000000",)).text
    hour = HOUR // SECOND
    fake.box.put(letter("waited", 0), at_s=read_at)
    fake.box.put(letter("long ago", 1), at_s=read_at - 2 * hour)
    fake.box.put(letter("just before", 2), at_s=read_at - hour // 2)
    fake.box.put(letter("after", 3), at_s=read_at + 60)
    fake.box.put(letter("bin", 4), "TRASH", at_s=read_at + 60)
    fake.box.put(letter("junk", 5), "SPAM", at_s=read_at + 60)
    fake.box.forget()
    fake.box.page = 2
    if answer is not None:
        fake.soon[HISTORY] = [answer]
    place, news = reading(fake, cursor, 5)
    assert texts(news) == ["waited", "waited", "just before", "after", "junk"]
    assert json.loads(place)["history"] == fake.box.history_id
    fake.box.put(letter("next", 6))
    assert texts(reading(fake, place, 1)[1]) == ["next"], "from then on by its history again"


def test_looking_by_date_goes_back_a_month_at_most(fake: FakeGmail) -> None:
    now_s = SystemClock().now() // SECOND
    fake.box.put(letter("old", 1), at_s=now_s - 31 * 86_400)
    fake.box.put(letter("new", 2), at_s=now_s - 29 * 86_400)
    fake.box.forget()
    assert texts(reading(fake, Place("5", 0).text, 1)[1]) == ["new"]


@pytest.mark.parametrize(
    "cursor", ["x", "{}", '{"INBOX":"1:2"}', "[" * 99_999, '{"history":"x","at":1}', "7", "null"]
)
def test_a_cursor_of_somebody_else_s_begins_anew(fake: FakeGmail, cursor: str) -> None:
    fake.box.put(letter("before"))

    async def scene() -> None:
        box = await opened(fake)
        place, news = await read(box, cursor)
        assert news == [] and json.loads(place)["history"] == fake.box.history_id
        await box.close()

    play(scene())


def test_a_letter_that_is_told_of_too_early_is_asked_for_once_more(fake: FakeGmail) -> None:
    cursor = start(fake)
    fake.box.slow.add(fake.box.put(letter("slow", 1)))
    gone = fake.box.put(letter("gone", 2))
    fake.box.gone.add(gone)
    fake.box.put(letter("there", 3))
    _, news = reading(fake, cursor, 2)
    assert texts(news) == ["there", "slow"]
    assert fake.box.asked.count(f"messages/{gone}") == 2, "and then it is let go"


def test_of_a_large_letter_the_beginning_is_read(fake: FakeGmail) -> None:
    cursor = start(fake)
    words = b'Content-Type: multipart/mixed; boundary="b"\r\n\r\n--b\r\n\r\nYes\r\n'
    file = b'--b\r\nContent-Disposition: attachment; filename="a.bin"\r\n\r\n' + b"x" * 3_000_000
    fake.box.put(letter("", 1).partition(b"\r\n\r\n")[0] + b"\r\n" + words + file)
    fake.box.put(letter("small", 2))
    _, news = reading(fake, cursor, 2)
    assert texts(news) == ["Yes", "small"]


@pytest.mark.parametrize("raw", [None, 7, "%%%", "A", ["x"]])
def test_a_letter_that_cannot_be_read_keeps_no_other_from_it(fake: FakeGmail, raw: Any) -> None:
    cursor = start(fake)
    bad = fake.box.put(letter("bad", 1))
    fake.answers[f"{USER}/messages/{bad}"] = Scripted(
        200, json.dumps({"id": bad, "raw": raw}).encode(), JSON
    )
    fake.box.put(letter("good", 2))
    assert texts(reading(fake, cursor, 1)[1]) == ["good"]


# ---------------------------------------------------------------------- what goes wrong


def failing(fake: FakeGmail, *answers: Scripted, path: str = HISTORY) -> ProviderError:
    cursor = start(fake)

    async def scene() -> ProviderError:
        box = await opened(fake)
        fake.soon[path] = list(answers)
        with pytest.raises(ProviderError) as told:
            await read(box, cursor)
        await box.close()
        return told.value

    return play(scene())


@pytest.mark.parametrize(
    ("answer", "refused", "reason"),
    [
        (BODIES["no mailbox"].answer, True, "Mail service not enabled"),
        (BODIES["domain"].answer, True, "disabled Gmail apps"),
        (BODIES["guide: daily"].answer, False, "Daily Limit Exceeded"),
        (BODIES["backend"].answer, False, "Backend Error"),
        (BODIES["unavailable"].answer, False, "currently unavailable"),
        (Scripted(502, b"<html>", HTML), False, "answered 502"),
        (Scripted(404, b"<html>", HTML), False, "answered 404"),
        (Scripted(200, b"<html>", HTML), False, "not Gmail's"),
        (Scripted(200, b"{}", JSON), False, "how far its history goes"),
        (Scripted(drops="read"), False, "no answer from Gmail"),
        (error(429, "rateLimitExceeded", "x", headers={"Retry-After": "90"}), False, "x"),
    ],
)
def test_what_keeps_a_mailbox_from_being_read(
    fake: FakeGmail, answer: Scripted, refused: bool, reason: str
) -> None:
    told = failing(fake, answer)
    assert reason in str(told) and isinstance(told, ProviderRefused) == refused


def test_a_scope_that_is_missing_is_named(fake: FakeGmail) -> None:
    told = failing(fake, BODIES["scopes"].answer)
    assert isinstance(told, ProviderRefused)
    assert str(told) == f"shop: Insufficient Permission; delegate {SEND_SCOPE},{READ_SCOPE}"
    fake.delegated = {SEND_SCOPE}
    with pytest.raises(ProviderRefused, match=f"unauthorized_client.*; delegate .*{READ_SCOPE}$"):
        play(opened(fake))


def test_a_token_that_is_not_good_any_more_is_replaced_once(fake: FakeGmail) -> None:
    cursor = start(fake)
    fake.box.put(letter("still here"))
    fake.soon[HISTORY] = [STALE]
    assert texts(reading(fake, cursor, 1)[1]) == ["still here"]
    assert isinstance(failing(fake, STALE, STALE), ProviderRefused)


def test_too_fast_is_waited_for(fake: FakeGmail, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox, "THROTTLED_US", MILLISECOND)
    cursor = start(fake)
    name = fake.box.put(letter("late"))
    fake.soon[HISTORY] = [BODIES["429"].answer, BODIES["per minute"].answer]
    fake.soon[f"{USER}/messages/{name}"] = [BODIES["user rate"].answer]
    assert texts(reading(fake, cursor, 1)[1]) == ["late"]


def test_an_answer_that_never_comes_is_not_waited_for(
    fake: FakeGmail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mailbox, "ASK_WITHIN_S", 0.2)
    told = failing(fake, Scripted(hangs=True))
    assert str(told) == "shop: Gmail took too long" and not isinstance(told, ProviderRefused)


# ---------------------------------------------------------------------- pace


def test_it_is_asked_every_half_minute_and_not_more_often(
    fake: FakeGmail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mailbox, "POLL_US", 30 * SECOND)
    cursor = start(fake)
    fake.box.put(letter("first"))

    async def scene() -> None:
        clock = Turned()
        box = await opened(fake, clock)
        place, news = await read(box, cursor, MINUTE)
        assert texts(news) == ["first"] and clock.slept == []
        waiting = asyncio.ensure_future(read(box, place, MINUTE))
        await clock.rests.wait()
        assert fake.box.asked.count("history") == 1, "it was asked a moment ago"
        clock.rests.clear()
        fake.box.put(letter("second", 2))
        clock.pauses.release()
        assert texts((await waiting)[1]) == ["second"]
        (pause_us,) = clock.slept
        assert 25 * SECOND < pause_us <= 30 * SECOND
        await box.close()

    play(scene())


def test_whoever_waits_is_told_when_time_is_over_or_it_is_closed(
    fake: FakeGmail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mailbox, "POLL_US", 30 * SECOND)
    cursor = start(fake)

    async def scene() -> None:
        box = await opened(fake)
        assert await read(box, cursor, 0) == (cursor, [])
        place, news = await read(box, cursor, 50 * MILLISECOND)
        assert news == [] and json.loads(place)["history"] == fake.box.history_id
        await box.close()
        clock = Turned()
        box = await opened(fake, clock)
        waiting = asyncio.ensure_future(read(box, place, MINUTE))
        await clock.rests.wait()
        await box.close()
        assert (await waiting)[1] == []

    play(scene())


# ---------------------------------------------------------------------- opening


def test_it_is_read_only_where_somebody_wants_it() -> None:
    provider = GmailProvider(SystemClock())
    assert provider.has_mailbox({"watch": True})
    assert not provider.has_mailbox({}) and not provider.has_mailbox({"watch": False})


def test_one_that_cannot_be_opened_leaves_no_client_behind(
    fake: FakeGmail, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients: list[httpx.AsyncClient] = []
    made = httpx.AsyncClient.__init__

    def note(self: httpx.AsyncClient, *args: Any, **more: Any) -> None:
        clients.append(self)
        made(self, *args, **more)

    monkeypatch.setattr(httpx.AsyncClient, "__init__", note)
    fake.answers[f"{USER}/profile"] = BODIES["no mailbox"].answer
    with pytest.raises(ProviderRefused, match="Mail service not enabled"):
        play(opened(fake))
    assert [client.is_closed for client in clients] == [True, True]
