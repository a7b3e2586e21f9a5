"""Unipile's cases: LinkedIn, which has neither files nor proof, and e-mail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from paceline.core.enclosures import Enclosed
from paceline.core.instants import parse_instant
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Accepted, AccountNews, Inbound, Message, Receipt
from paceline.providers.unipile import UnipileProvider
from paceline.providers.unipile.errors import BY_STATUS, ERRORS, TABLE
from tests.providers.conformance.case import Case, Proof, Reports, Sample, Seen
from tests.providers.conformance.web import WebStage
from tests.providers.loopback import HTML, Scripted, running
from tests.providers.unipile.fake import KEY, LINKEDIN, FakeUnipile, error
from tests.providers.unipile.stage import letter, message

ROWS = {row.code: row.kind for row in ERRORS} | {
    f"http-{status}": kind for status, kind in BY_STATUS.items()
}


class UnipileStage(WebStage):
    """Files travel with every e-mail, so that there is nothing to be uploaded ahead."""

    fake: FakeUnipile

    def __init__(self, fake: FakeUnipile, kind: str) -> None:
        super().__init__(
            fake,
            lambda clock, timeout: UnipileProvider(clock, timeout=timeout),
            fake.settings(kind),
        )
        self._kind = kind
        fake.now = self.now

    def message(
        self, key: str = "home-7-0", text: str = "Hello", *, handle: str | None = None
    ) -> Message:
        if self._kind == "linkedin":
            media = {} if handle is None else {"media": "a" * 64}
            return message(key=key, text=text, handle=handle, **media)
        media = {} if handle is None else {"media": handle}
        return letter(key=key, text=text, handle=handle, **media)

    def answer(self, row: str) -> None:
        if row in TABLE.by_code:
            self.script(error(TABLE.by_code[row].status, row))
        else:
            self.script(Scripted(int(row.removeprefix("http-")), b"<html>", HTML))

    def mute(self) -> None:
        for path in ("/users/invite/sent", "/emails", "/chat_attendees/ACoAA-anna/chats"):
            self.fake.answers[path] = Scripted(502, b"<html>", HTML)

    def sent(self) -> list[Seen]:
        return [
            Seen(one["target"], one.get("text") or one["body"], _file(one), _key(one))
            for one in self.fake.sent
        ]

    def uploads(self) -> int:
        return 0

    def forget_uploads(self) -> None:
        self.restart()


def _file(one: dict[str, object]) -> bytes | None:
    files = one.get("files")
    return files[0][2] if isinstance(files, list) else None


def _key(one: dict[str, object]) -> str | None:
    headers = one.get("headers")
    return headers[0]["value"] if isinstance(headers, list) else None


def _stage(kind: str) -> Callable[[], AbstractContextManager[UnipileStage]]:
    @contextmanager
    def staged() -> Iterator[UnipileStage]:
        with running(FakeUnipile()) as fake:
            yield UnipileStage(fake, kind)

    return staged


# ---------------------------------------------------------------------- what it reports

AT = parse_instant("2026-11-15T09:00:00.500Z")
ACCOUNT = FakeUnipile().settings() | {"dsn": "https://api1.unipile.com:13111"}
OWN = "ACoAAAcDMMQBODyLwZrRcgYhrkCafURGqva0U4E"
ANNA = "ACoAABcDMMQBODyLwZrRcgYhrkCafURGqva0U4F"
SECRET = "hEaDeR+secret"


def chat(event: str = "message_received", sender: str = ANNA, **more: Any) -> Any:
    """A report about a conversation, as Unipile's guide "New messages" has it."""
    return {
        "account_id": LINKEDIN,
        "account_type": "LINKEDIN",
        "account_info": {"type": "LINKEDIN", "feature": "classic", "user_id": OWN},
        "event": event,
        "chat_id": "R8J-xM9WX7",
        "timestamp": "2026-11-15T09:00:00.500Z",
        "webhook_name": "Paceline",
        "message_id": "ykmhfXlRW0W",
        "message": "Yes please",
        "sender": {"attendee_id": "C8z", "attendee_name": "Anna", "attendee_provider_id": sender},
        "attendees": [{"attendee_id": "12S", "attendee_provider_id": ANNA}],
        **more,
    }


def mail(event: str = "mail_received", **more: Any) -> Any:
    """A report about an e-mail, as published integrations have it ("New emails")."""
    return {
        "email_id": "kN3",
        "account_id": LINKEDIN,
        "event": event,
        "webhook_name": "Paceline",
        "date": "2026-11-15T09:00:00.500Z",
        "from_attendee": {"display_name": "Anna", "identifier": "Anna@Example.com"},
        "to_attendees": [{"display_name": "Ben", "identifier": "ben@example.com"}],
        "message_id": "<1@example.com>",
        "subject": "Re:  A word",
        "body": "<p>Yes please</p>",
        "body_plain": "Yes please",
        "origin": "external",
        **more,
    }


def status(word: str, account: str = LINKEDIN) -> Any:
    return {"AccountStatus": {"account_id": account, "account_type": "LINKEDIN", "message": word}}


IN = Inbound("ykmhfXlRW0W", "chat:R8J-xM9WX7", ANNA, "Yes please", AT)
MAIL = Inbound("1@example.com", "anna@example.com", "anna@example.com", "Yes please", AT)
SAMPLES = (
    Sample("a message", chat(), [IN]),
    Sample(
        "a picture",
        chat(message=None, attachments=[{"id": "2-M", "type": "img", "mimetype": "image/jpeg"}]),
        [IN._replace(text="", kind="img", files=(Enclosed(mime="image/jpeg", handle="2-M"),))],
    ),
    Sample(
        "two files, spelled the other way",
        chat(
            attachments=[
                {"attachment_id": "3-A", "attachment_type": "file", "attachment_name": "a.pdf",
                 "attachment_mimetype": "application/pdf", "attachment_size": 2048},
                {"attachment_id": "3-B", "attachment_type": "audio", "duration": 12.4},
                "no file at all",
            ],
        ),
        [
            IN._replace(
                kind="file",
                files=(
                    Enclosed("a.pdf", "application/pdf", 2048, handle="3-A"),
                    Enclosed(seconds=12, handle="3-B"),
                ),
            )
        ],
    ),
    Sample(
        "in a group",
        chat(attendees=[{"attendee_id": "1"}, {"attendee_id": "2"}]),
        [IN._replace(group=True)],
    ),
    Sample("our own", chat(sender=OWN), [IN._replace(sender=OWN, from_us=True)]),
    Sample(
        "our own, it says so",
        chat(sender="", is_sender=True, account_info=None),
        [IN._replace(sender="", from_us=True)],
    ),
    Sample("read", chat("message_read", OWN), [Receipt("ykmhfXlRW0W", "read", AT)]),
    Sample("delivered", chat("message_delivered", OWN), [Receipt("ykmhfXlRW0W", "delivered", AT)]),
    Sample("an e-mail", mail(), [MAIL._replace(subject="Re: A word")]),
    Sample(
        "an e-mail of ours",
        mail("mail_sent", body_plain=None, subject=None),
        [MAIL._replace(chat="ben@example.com", from_us=True)],
    ),
    Sample(
        "nobody wrote it",
        mail(from_attendee={"identifier": "mailer-daemon@example.com"}, message_id=None, date="x"),
        [
            MAIL._replace(
                provider_id="kN3", chat="mailer-daemon@example.com", automatic=True, at=0,
                sender="mailer-daemon@example.com", subject="Re: A word",
            )
        ],
    ),
    Sample(
        "an invitation is accepted",
        {
            "event": "new_relation",
            "account_id": LINKEDIN,
            "account_type": "LINKEDIN",
            "webhook_name": "Paceline",
            "user_full_name": "Anna",
            "user_provider_id": ANNA,
            "user_public_identifier": "anna-muster",
            "user_profile_url": "https://www.linkedin.com/in/anna-muster/",
        },
        [Accepted((ANNA, "anna-muster"), 0)],
    ),
    Sample("it is well", status("OK"), [AccountNews("ready", "", 0)]),
    Sample(
        "stopped",
        status("STOPPED"),
        [
            AccountNews(
                "offline",
                "Unipile reports STOPPED: Unipile has stopped fetching its messages",
                0,
            )
        ],
    ),
    Sample(
        "logged out",
        status("credentials"),
        [
            AccountNews(
                "refused",
                "Unipile reports CREDENTIALS: it has to be connected again, its credentials are "
                "refused",
                0,
            )
        ],
    ),
)  # fmt: skip
NOTHING = (
    chat(account_id="another"),
    chat("message_reaction"),
    chat("message_read"),
    mail("mail_moved"),
    status("OK", "another"),
    status("BRAND_NEW"),
    {"event": "new_relation", "account_id": LINKEDIN, "user_full_name": "Anna"},
)

REPORTS = Reports(
    webhooks=lambda: UnipileProvider(SystemClock()),
    settings={"header": {**ACCOUNT, "webhook_secret": SECRET}},
    unproved=ACCOUNT,
    prove=lambda way, settings, body: Proof({"Unipile-Auth": settings["webhook_secret"]}, {}),
    samples=SAMPLES,
    nothing=NOTHING,
    names_ours=False,
    states=frozenset({"delivered", "read"}),
)

CASES = [
    Case(
        "unipile-linkedin",
        _stage("linkedin"),
        ROWS,
        media=False,
        secret=KEY,
        reports=REPORTS,
        speaks_http=True,
        actions=frozenset({"message", "connection_request", "inmail"}),
    ),
    Case(
        "unipile-email",
        _stage("email"),
        ROWS,
        secret=KEY,
        speaks_http=True,
        actions=frozenset({"email"}),
    ),
]
