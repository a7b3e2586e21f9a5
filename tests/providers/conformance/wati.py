"""WATI's case: a number to which everybody has just written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from paceline.core.enclosures import Enclosed
from paceline.core.instants import parse_instant
from paceline.core.model import Part
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Inbound, Message, Receipt
from paceline.providers.wati import WatiProvider
from paceline.providers.wati.errors import BY_STATUS, ERRORS
from tests.providers.conformance.case import Case, Proof, Reports, Sample, Seen
from tests.providers.conformance.web import WebStage
from tests.providers.loopback import HTML, Scripted, running
from tests.providers.wati.fake import (
    CHANNEL,
    KEY,
    LISTED,
    PERSON,
    PHONE,
    TENANT,
    FakeWati,
    answer_of,
)

ROWS = {row.code: row.kind for row in ERRORS} | {
    f"http-{status}": kind for status, kind in BY_STATUS.items()
}


class WatiStage(WebStage):
    fake: FakeWati

    def __init__(self, fake: FakeWati) -> None:
        super().__init__(
            fake, lambda clock, timeout: WatiProvider(clock, timeout=timeout), fake.settings()
        )
        fake.now = self.now

    def message(
        self, key: str = "home-7-0", text: str = "Hello", *, handle: str | None = None
    ) -> Message:
        media = None if handle is None else "a" * 64
        part = Part("text" if handle is None else "media", text, media=media)
        return Message(key, PHONE, "message", part, handle)

    def answer(self, row: str) -> None:
        self.script(answer_of(row))

    def mute(self) -> None:
        self.fake.answers[LISTED] = Scripted(502, b"<html>", HTML)

    def sent(self) -> list[Seen]:
        return [
            Seen(
                f"+{one['to']}",
                one["text"],
                one["content"],
                None if one["v3"] else one["localMessageId"],
            )
            for one in self.fake.messages
        ]

    def uploads(self) -> int:
        """None: each file travels with its message."""
        return 0

    def forget_uploads(self) -> None:
        self.restart()


@contextmanager
def _stage() -> Iterator[WatiStage]:
    with running(FakeWati()) as fake:
        yield WatiStage(fake)


# ---------------------------------------------------------------------- what it reports

SECRET = "wEbHoOk+secret"
AT = parse_instant("2026-11-15T09:00:00Z")
SECONDS = AT // 1_000_000
ACCOUNT = {"endpoint": f"https://live-mt-server.wati.io/{TENANT}", "access_token": KEY}
UUID = "d38f0c3a-e833-4725-a894-53a2b1dc1af6"
WAMID = "wamid.HBgNODYxODcxOTE0OTIxNBUCABIYFDNCRkJFNDFCMTI1MDAwQTRCMDMwAA=="
OWN = f"+{CHANNEL}"


def came(**more: Any) -> dict[str, Any]:
    """A report of a message that came in."""
    return {
        "id": "69282478274a880fe782b2d9",
        "created": "2026-11-15T09:00:01.6268572Z",
        "whatsappMessageId": WAMID,
        "conversationId": "68c8d56157578adb12ada249",
        "ticketId": "69280a6d6244a6d9b9b486e9",
        "text": "Yes please",
        "type": "text",
        "data": None,
        "timestamp": str(SECONDS),
        "owner": False,
        "eventType": "message",
        "statusString": "SENT",
        "waId": PERSON,
        "senderName": "Anna",
        "listReply": None,
        "interactiveButtonReply": None,
        "buttonReply": None,
        "replyContextId": "",
        "channelId": None,
        "channelPhoneNumber": CHANNEL,
        "bsuid": None,
    } | more


def became(event: str, **more: Any) -> dict[str, Any]:
    """A report of what became of one of ours."""
    return {
        "eventType": event,
        "localMessageId": "home-7-0",
        "id": "693fd65f961dc81779391640",
        "whatsappMessageId": "wamid.B",
        "conversationId": "68cba3db12b3349e",
        "ticketId": "693fd64d1d45f54",
        "text": "Hello",
        "type": "text",
        "timestamp": str(SECONDS),
        "operatorEmail": "shop@example.com",
        "channelId": None,
        "channelPhoneNumber": CHANNEL,
    } | more


def went(event: str, **more: Any) -> dict[str, Any]:
    """A report of what went out, with all that was said."""
    sent = {"data": None, "owner": True, "statusString": "SENT", "waId": PERSON, "bsuid": None}
    return became(event, **(sent | more))


IN = Inbound(WAMID, PHONE, PHONE, "Yes please", AT)
OUT = Inbound("home-7-0", PHONE, OWN, "Hello", AT, from_us=True)
GOT = Receipt("home-7-0", "sent", AT, key="home-7-0")
BARE = {"waId": PERSON, "text": "Hola", "id": "1"}
SAMPLES = (
    Sample("a message", came(), [IN]),
    Sample(
        "somebody without a number",
        came(eventType="message_bsuid", waId=None, bsuid="HK.1234567890123"),
        [IN._replace(chat="HK.1234567890123", sender="HK.1234567890123")],
    ),
    Sample(
        "a picture",
        came(type="image", text="Look", data="https://live-mt-server.wati.io/api/file/x.jpg"),
        [
            IN._replace(
                text="Look",
                kind="image",
                files=(
                    Enclosed(
                        "x.jpg",
                        "image/jpeg",
                        handle="https://live-mt-server.wati.io/api/file/x.jpg",
                    ),
                ),
            )
        ],
    ),
    Sample("a voice", came(type="voice", text=None), [IN._replace(text="", kind="voice")]),
    Sample(
        "a document",
        came(type="document", text="data/documents/offer.pdf"),
        [
            IN._replace(
                text="",
                kind="document",
                files=(
                    Enclosed("offer.pdf", "application/pdf", handle="data/documents/offer.pdf"),
                ),
            )
        ],
    ),
    Sample(
        "the button of a template",
        came(type="button", text=None, buttonReply={"text": "Yes please", "payload": "p"}),
        [IN._replace(kind="button")],
    ),
    Sample("a message, passed on", BARE, [Inbound("1", PHONE, PHONE, "Hola", 0)]),
    Sample(
        "our own, from the inbox",
        went("sessionMessageSent_v2", localMessageId=UUID),
        [OUT._replace(provider_id=UUID), Receipt(UUID, "sent", AT)],
    ),
    Sample("our own, by us", went("sessionMessageSent_v2"), [OUT, GOT]),
    Sample("our own, among what comes", came(owner=True), [IN._replace(sender=OWN, from_us=True)]),
    Sample("delivered", became("sentMessageDELIVERED_v2"), [GOT._replace(state="delivered")]),
    Sample("read", became("sentMessageREAD_v2"), [GOT._replace(state="read")]),
    Sample(
        "failed",
        became(
            "sessionMessageFailed", failedCode="131047", failedDetail="More than 24 hours\n passed."
        ),
        [GOT._replace(state="failed", code="131047", reason="More than 24 hours passed.")],
    ),
    Sample(
        "a template that failed",
        became(
            "templateMessageFailed",
            localMessageId=UUID,
            failedCode=131026,
            failedDetail="Message undeliverable",
        ),
        [Receipt(UUID, "failed", AT, "131026", "Message undeliverable")],
    ),
)
NOTHING = (
    came(type="reaction", text="👍"),
    {"eventType": "newContactMessageReceived", "id": "a", "waId": PERSON, "senderName": "New"},
    {"eventType": "ticketStatusChanged", "id": "a", "waId": PERSON},
    {"eventType": "brandNew"},
)


def _prove(way: str, settings: Mapping[str, Any], body: bytes) -> Proof:
    secret = settings["webhook_secret"]
    if way == "token":
        return Proof({}, {"token": secret})
    return Proof({"X-Webhook-Secret": secret} if way == "header" else {}, {})


def _enclose(way: str, settings: Mapping[str, Any], body: Any) -> Any:
    return {**body, "passkey": settings["webhook_secret"]} if way == "passkey" else body


REPORTS = Reports(
    webhooks=lambda: WatiProvider(SystemClock()),
    settings={
        way: {**ACCOUNT, "webhook_auth": way, "webhook_secret": SECRET}
        for way in ("token", "header", "passkey")
    },
    unproved=ACCOUNT,
    prove=_prove,
    samples=SAMPLES,
    nothing=NOTHING,
    challenges=(({"hub.mode": "subscribe", "hub.challenge": "7"}, None),),
    groups=False,
    standings=False,
    enclose=_enclose,
)

CASES = [Case("wati", _stage, ROWS, secret=KEY, reports=REPORTS, speaks_http=True)]
