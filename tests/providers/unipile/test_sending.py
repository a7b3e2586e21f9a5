"""Every action on the wire, field by field, and what is refused before anything is written."""

import asyncio
import json

import pytest

from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Driver, Media, Message, Provider, Uploaded
from paceline.providers.unipile import UnipileProvider
from paceline.providers.unipile.files import LARGEST_FILE, Files
from paceline.providers.unipile.wire import Attachment
from tests.providers.remote import account
from tests.providers.unipile.fake import KEY, LINKEDIN, MAILBOX, FakeUnipile
from tests.providers.unipile.stage import letter, message, play, send

PAPER = Media("a" * 64, "offer “1”.pdf", "application/pdf", 9)


def test_it_is_a_provider() -> None:
    provider: Provider = UnipileProvider(SystemClock())
    assert provider.name == "unipile"
    assert provider.capabilities.actions == {"message", "connection_request", "inmail", "email"}
    assert not provider.capabilities.proves_absence
    assert provider.secrets == {"api_key", "webhook_secret"}


def test_what_an_account_can_do_is_known_without_opening_it(fake: FakeUnipile) -> None:
    provider = UnipileProvider(SystemClock())
    linkedin = provider.capabilities_of(fake.settings())
    email = provider.capabilities_of(fake.settings("email"))
    assert linkedin.actions == {"message", "connection_request", "inmail"}
    assert (linkedin.channel, linkedin.media, linkedin.finds) == ("linkedin", False, True)
    assert (email.actions, email.channel, email.media) == ({"email"}, "email", True)
    assert play(fake.settings(), _capabilities) == linkedin
    assert play(fake.settings("email"), _capabilities) == email
    assert not fake.sends()


async def _capabilities(driver: Driver) -> object:
    return driver.capabilities


def test_a_message_to_a_person_starts_a_chat(fake: FakeUnipile) -> None:
    outcome = send(fake, message(text="Hello Ännä 👋\nsecond line"))
    assert outcome == Outcome(OutcomeKind.ACCEPTED, provider_id="id-1")
    (call,) = fake.sends()
    assert call.path == "/chats"
    assert call.headers["x-api-key"] == KEY
    assert {field.name: field.text for field in call.fields} == {
        "account_id": LINKEDIN,
        "attendees_ids": "ACoAA-anna",
        "text": "Hello Ännä 👋\nsecond line",
        "linkedin[api]": "classic",
    }
    assert all(field.mime is None for field in call.fields), "a field is not a file"


def test_a_message_to_a_chat_goes_on_with_it(fake: FakeUnipile) -> None:
    outcome = send(fake, message(target="chat:a/b c..?"))
    assert outcome.kind is OutcomeKind.ACCEPTED
    (call,) = fake.sends()
    assert call.path == "/chats/a%2Fb%20c%2E%2E%3F/messages"
    assert call.names == ["text"]
    assert fake.sent[0]["chat"] == "a/b c..?"


def test_an_inmail_is_a_chat_with_a_subject(fake: FakeUnipile) -> None:
    sent = message("inmail", subject="An idea")
    settings = fake.settings(linkedin_api="recruiter")
    assert play(settings, lambda driver: driver.send(sent)).kind is OutcomeKind.ACCEPTED
    (call,) = fake.sends()
    assert (call.path, call.field("subject")) == ("/chats", "An idea")
    assert call.field("linkedin[api]") == "recruiter"
    assert call.field("linkedin[inmail]") == "true"


@pytest.mark.parametrize("note", ["", "Shall we connect? Ä", "x" * 300])
def test_a_connection_request_is_an_object(fake: FakeUnipile, note: str) -> None:
    outcome = send(fake, message("connection_request", text=note))
    assert outcome == Outcome(OutcomeKind.ACCEPTED, provider_id="id-1")
    (call,) = fake.sends()
    expected = {"account_id": LINKEDIN, "provider_id": "ACoAA-anna"}
    assert call.path == "/users/invite"
    assert json.loads(call.body) == expected | ({"message": note} if note else {})


def test_an_email_carries_our_key(fake: FakeUnipile) -> None:
    outcome = send(fake, letter(text="plain", html="<p>Grüße</p>"))
    assert outcome == Outcome(OutcomeKind.ACCEPTED, provider_id="id-1")
    (call,) = fake.sends()
    assert call.path == "/emails"
    assert call.names == ["account_id", "to", "subject", "body", "custom_headers"]
    assert call.field("account_id") == MAILBOX
    assert json.loads(call.field("to")) == [{"identifier": "anna@example.com"}]
    assert call.field("body") == "<p>Grüße</p>", "HTML goes first"
    headers = json.loads(call.field("custom_headers"))
    assert headers == [{"name": "X-Paceline-Key", "value": "home-7-0"}]


def test_an_email_without_html_is_its_text(fake: FakeUnipile) -> None:
    send(fake, letter(text="plain"))
    assert fake.sends()[0].field("body") == "plain"


def test_nothing_is_tracked_unless_somebody_wants_it(fake: FakeUnipile) -> None:
    settings = fake.settings("email", track_links=True)
    play(settings, lambda driver: driver.send(letter()))
    tracking = json.loads(fake.sends()[0].field("tracking_options"))
    assert tracking == {"opens": False, "links": True, "label": "home-7-0"}


def test_ids_may_be_null(fake: FakeUnipile) -> None:
    fake.nullifies = True
    for sent in (message(), message("connection_request"), letter()):
        assert send(fake, sent) == Outcome(OutcomeKind.ACCEPTED)
    assert len(fake.sent) == 3


def test_a_file_goes_along_with_every_email(fake: FakeUnipile) -> None:
    content = b"\r\n--%PDF\x00\xff\r\n"

    async def scene(driver: Driver) -> list[Outcome]:
        uploaded = await driver.upload(PAPER, content)
        assert isinstance(uploaded, Uploaded)
        sent = letter(media=PAPER.id, handle=uploaded.handle)
        return [await driver.send(sent), await driver.send(sent._replace(key="home-8-0"))]

    outcomes = play(fake.settings("email"), scene)
    assert [outcome.kind for outcome in outcomes] == [OutcomeKind.ACCEPTED] * 2
    expected = [("offer “1”.pdf", "application/pdf", content)]
    assert [one["files"] for one in fake.sent] == [expected, expected]


def test_after_a_restart_the_file_is_asked_for_again(fake: FakeUnipile) -> None:
    outcome = send(fake, letter(media=PAPER.id, handle=PAPER.id))
    assert outcome.handle_gone
    assert not fake.sends()


def test_files_too_large_or_over_linkedin_are_refused(fake: FakeUnipile) -> None:
    large = play(fake.settings("email"), lambda d: d.upload(PAPER, b"x" * (LARGEST_FILE + 1)))
    assert isinstance(large, Outcome)
    assert large.kind is OutcomeKind.REJECTED and "15.0 MiB" in large.reason
    other = play(fake.settings(), lambda d: d.upload(PAPER, b"x"))
    assert isinstance(other, Outcome)
    assert (other.kind, other.code) == (OutcomeKind.REJECTED, "media")


def test_files_are_kept_up_to_a_size_and_the_oldest_go_first() -> None:
    files = Files(most=10)
    for name in ("a", "b", "a", "c"):
        files.put(name, Attachment(name, "text/plain", b"12345"))
    assert files.get("a") is not None and files.get("c") is not None
    assert files.get("b") is None
    files.put("large", Attachment("large", "text/plain", b"x" * 11))
    assert files.get("large") is not None, "what is being sent is never dropped for its own size"
    assert files.get("a") is None


REFUSED: list[tuple[str, Message, str]] = [
    ("linkedin", letter(), "cannot send 'email'"),
    ("email", message(), "cannot send 'message' (it can: email)"),
    ("email", message("connection_request"), "cannot send 'connection_request'"),
    ("linkedin", message("fax"), "cannot send 'fax'"),
    ("linkedin", message("connection_request", text="x" * 301), "301 characters"),
    ("linkedin", message("connection_request", "chat:1"), "goes to a person"),
    ("linkedin", message("connection_request", " "), "goes to a person"),
    ("linkedin", message("inmail", "chat:1"), "has begun already"),
    ("linkedin", message(text=" \n"), "nothing in the message"),
    ("linkedin", message(target="chat:"), "nobody to write to"),
    ("linkedin", message(target=" "), "nobody to write to"),
    ("linkedin", message(media="a" * 64), "files cannot be sent"),
    ("linkedin", message(text="broken \ud800"), "characters in it that no text has"),
    ("linkedin", message(target="chat:\ud800"), "characters in it that no text has"),
    ("linkedin", message("connection_request", text="\udfff"), "characters in it"),
    ("email", letter(target="anna"), "no e-mail address"),
    ("email", letter(target="anna@example.com, bob@example.com"), "no e-mail address"),
    ("email", letter(target="anna@exa\nmple.com"), "no e-mail address"),
    ("email", letter(text=""), "nothing in the message"),
    ("email", letter(subject="\ud800"), "characters in it"),
]


@pytest.mark.parametrize(("kind", "sent", "reason"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_is_known_to_be_wrong_is_never_sent(
    fake: FakeUnipile, kind: str, sent: Message, reason: str
) -> None:
    outcome = play(fake.settings(kind), lambda driver: driver.send(sent))
    assert outcome.kind is OutcomeKind.REJECTED
    assert reason in outcome.reason
    assert not fake.sends()


def test_a_closed_account_sends_nothing(fake: FakeUnipile) -> None:
    async def scene() -> Outcome:
        driver = await UnipileProvider(SystemClock()).open(account(fake.settings()))
        await driver.close()
        await driver.close()
        return await driver.send(message())

    outcome = asyncio.run(scene())
    assert outcome.kind is OutcomeKind.TRANSIENT
    assert not fake.sends()
