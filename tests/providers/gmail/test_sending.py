"""Letters on their way: how they are handed over, how large they may be, and what is refused."""

import asyncio
import json
from base64 import urlsafe_b64decode

import pytest

from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Driver, Media, Thread
from paceline.providers.gmail import GmailProvider
from paceline.providers.gmail import driver as drivers
from paceline.providers.mail.letters import key_in
from tests.providers.gmail.fake import ALIAS, MAILBOX, SENDS, FakeGmail
from tests.providers.gmail.stage import hand_over, letter, play, send
from tests.providers.loopback import HTML, JSON, Scripted, running
from tests.providers.remote import HASTY, account

K = OutcomeKind


def test_a_letter_goes_within_json_as_google_wants_it(fake: FakeGmail) -> None:
    outcome = send(fake, from_name="Anna Müller", reply_to="desk@example.com")
    assert outcome == Outcome(K.ACCEPTED, provider_id=fake.sent[0].id)
    (call,) = fake.sends()
    assert (call.path, call.headers["content-type"]) == (SENDS[0], "application/json")
    assert call.headers["authorization"] == f"Bearer {fake.issued[0]}"
    raw = urlsafe_b64decode(json.loads(call.body)["raw"])
    assert raw == fake.sent[0].raw
    taken = fake.sent[0].letter
    assert str(taken["From"]) == f"Anna Müller <{MAILBOX}>"
    assert (taken["To"], taken["Subject"]) == ("ben@example.org", "A word")
    assert taken["Reply-To"] == "desk@example.com"
    assert key_in(str(taken["Message-ID"])) == "home-7-0"
    assert fake.sent[0].text == "Hello Ben"


def test_a_letter_names_what_it_goes_on_with_and_where_to_unsubscribe(fake: FakeGmail) -> None:
    thread = Thread(("home-5-0", "home-6-0"), "A word")
    unsubscribe = "https://example.com/u/abc"
    send(fake, letter(thread=thread, unsubscribe=unsubscribe, subject=""))
    taken = fake.sent[0].letter
    assert key_in(str(taken["In-Reply-To"])) == "home-6-0"
    assert [key_in(one) for one in str(taken["References"]).split()] == ["home-5-0", "home-6-0"]
    assert taken["Subject"] == "Re: A word"
    assert taken["List-Unsubscribe"] == f"<{unsubscribe}>"


def test_it_may_be_from_an_alias(fake: FakeGmail) -> None:
    assert send(fake, from_address=ALIAS).kind is K.ACCEPTED
    assert fake.sent[0].letter["From"] == ALIAS
    assert [claims["sub"] for claims in fake.claims] == [MAILBOX]


def test_a_large_letter_goes_as_it_is(fake: FakeGmail) -> None:
    content = bytes(range(256)) * 8_192

    async def scene(driver: Driver) -> Outcome:
        handle = await hand_over(driver, content)
        return await driver.send(letter(handle=handle, media=handle))

    assert play(fake.settings(), scene).kind is K.ACCEPTED
    (call,) = fake.sends()
    assert (call.path, call.query) == (SENDS[1], {"uploadType": "media"})
    assert call.headers["content-type"] == "message/rfc822"
    assert call.body == fake.sent[0].raw and fake.sent[0].files == [content]


def test_several_files_in_their_order(fake: FakeGmail) -> None:
    async def scene(driver: Driver) -> Outcome:
        first, *rest = [await hand_over(driver, name.encode(), name) for name in ("a", "b", "c")]
        return await driver.send(letter(handle=first, media=first, attached=tuple(rest)))

    assert play(fake.settings(), scene).kind is K.ACCEPTED
    assert fake.sent[0].files == [b"a", b"b", b"c"]


def test_a_file_of_the_largest_size_fits_into_a_letter() -> None:
    """Packed, 57 bytes of a file are a line of 78; the rest is for the words."""
    packed = -(-drivers.LARGEST_FILE // 57) * 78
    assert packed + 500_000 < drivers.LARGEST_LETTER


def test_what_is_too_large_is_refused_before_anything_is_sent(
    fake: FakeGmail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drivers, "LARGEST_FILE", 50_000)
    monkeypatch.setattr(drivers, "LARGEST_LETTER", 70_000)

    async def scene(driver: Driver) -> None:
        refused = await driver.upload(Media("x", "x.bin", "a/b", 1), bytes(50_001))
        assert isinstance(refused, Outcome)
        assert (refused.kind, refused.code) == (K.REJECTED, "too-large")
        handle = await hand_over(driver, bytes(50_000))
        sent = await driver.send(letter(handle=handle, media=handle))
        assert sent.kind is K.ACCEPTED
        other = await hand_over(driver, bytes(1_000), "other")
        refused = await driver.send(letter(handle=handle, media=handle, attached=(other,)))
        assert (refused.kind, refused.code) == (K.REJECTED, "too-large")

    play(fake.settings(), scene)
    assert len(fake.sends()) == 1 and len(fake.sent[0].raw) <= 70_000


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("no address", "target"),
        ("+4915112345678", "target"),
        ("ben@example.org\r\nBcc: eve@example.org", "target"),
        ("бен@example.org", "smtputf8"),
    ],
)
def test_whoever_cannot_be_written_to_is_refused_before_anything_is_sent(
    fake: FakeGmail, target: str, code: str
) -> None:
    outcome = send(fake, letter(target))
    assert (outcome.kind, outcome.code) == (K.REJECTED, code)
    assert not fake.sends()


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (200, b'{"id": "18c1", "threadId": "18c1", "labelIds": ["SENT"]}', K.ACCEPTED),
        (200, b"{}", K.UNKNOWN),
        (200, b'{"id": null}', K.UNKNOWN),
        (200, b'{"id": "x", "error": {"code": 500}}', K.UNKNOWN),
        (200, b"<html>Welcome to our hotel</html>", K.UNKNOWN),
        (204, b"", K.UNKNOWN),
        (200, b"[]", K.UNKNOWN),
    ],
)
def test_a_yes_counts_if_it_is_gmail_s(
    fake: FakeGmail, status: int, body: bytes, kind: OutcomeKind
) -> None:
    assert send(fake, letter(), Scripted(status, body, JSON)).kind is kind


@pytest.mark.parametrize("takes", [True, False])
@pytest.mark.parametrize("drops", ["read", "midway"])
def test_hanging_up_after_the_letter_leaves_a_doubt(
    fake: FakeGmail, takes: bool, drops: str
) -> None:
    outcome = send(fake, letter(), Scripted(200, b'{"id": "', JSON, takes=takes, drops=drops))
    assert outcome.kind is K.UNKNOWN
    assert outcome.reason.startswith("Gmail's answer was lost: ")
    assert len(fake.sent) == takes


def test_no_answer_in_time_leaves_a_doubt(fake: FakeGmail) -> None:
    outcome = send(fake, letter(), Scripted(hangs=True, takes=True), timeout=HASTY)
    assert (outcome.kind, len(fake.sent)) == (K.UNKNOWN, 1)


def test_a_gateway_that_gave_up_leaves_a_doubt(fake: FakeGmail) -> None:
    for status in (500, 502, 504):
        page = Scripted(status, b"<html>Error (Server Error)!!1</html>", HTML, takes=True)
        assert send(fake, letter(), page).kind is K.UNKNOWN


def test_no_connection_is_no_doubt() -> None:
    """Opened while the other side was there; when the letter is sent it is gone."""

    async def scene() -> Outcome:
        with running(FakeGmail()) as fake:
            driver = await GmailProvider(SystemClock()).open(account(fake.settings()))
        try:
            return await driver.send(letter())
        finally:
            await driver.close()

    outcome = asyncio.run(scene())
    assert (outcome.kind, outcome.code) == (K.UNAVAILABLE, "connection")
