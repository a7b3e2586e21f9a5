"""Wassenger's cases: a number that can write to groups, and one that cannot."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from paceline.core.enclosures import Enclosed
from paceline.core.instants import parse_instant
from paceline.core.model import Part
from paceline.engine.clock import SystemClock
from paceline.engine.ports import AccountNews, Inbound, Message, Receipt
from paceline.providers.wassenger import WassengerProvider
from paceline.providers.wassenger.errors import BY_STATUS, ERRORS, TABLE
from tests.providers.conformance.case import Case, Proof, Reports, Sample, Seen
from tests.providers.conformance.web import WebStage
from tests.providers.loopback import HTML, Scripted, running
from tests.providers.wassenger.fake import DEVICE, GROUP, KEY, PHONE, FakeWassenger, error

ROWS = {row.code: row.kind for row in ERRORS} | {
    f"http-{status}": kind for status, kind in BY_STATUS.items()
}


class WassengerStage(WebStage):
    fake: FakeWassenger

    def __init__(self, fake: FakeWassenger, **settings: Any) -> None:
        super().__init__(
            fake,
            lambda clock, timeout: WassengerProvider(clock, timeout=timeout),
            fake.settings(**settings),
        )
        fake.now = self.now

    def message(
        self, key: str = "home-7-0", text: str = "Hello", *, handle: str | None = None
    ) -> Message:
        media = None if handle is None else "a" * 64
        part = Part("text" if handle is None else "media", text, media=media)
        return Message(key, PHONE, "message", part, handle)

    def answer(self, row: str) -> None:
        if row in TABLE.by_code:
            self.script(error(TABLE.by_code[row].status, row))
        else:
            self.script(error(int(row.removeprefix("http-"))))

    def mute(self) -> None:
        self.fake.answers["/messages"] = Scripted(502, b"<html>", HTML)

    def sent(self) -> list[Seen]:
        return [
            Seen(one["phone"] or one["group"], one["message"], one["content"], one["reference"])
            for one in self.fake.messages
        ]

    def uploads(self) -> int:
        return len(self.fake.files)

    def forget_uploads(self) -> None:
        self.fake.files.clear()


def _stage(**settings: Any) -> Callable[[], AbstractContextManager[WassengerStage]]:
    @contextmanager
    def staged() -> Iterator[WassengerStage]:
        with running(FakeWassenger()) as fake:
            groups = [{"wid": f"1203630412345678{n:02}@g.us", "name": "G"} for n in range(90)]
            fake.groups = [{"wid": GROUP, "name": "Ours", "totalParticipants": 3}, *groups]
            yield WassengerStage(fake, **settings)

    return staged


# ---------------------------------------------------------------------- what it reports

SECRET = "wEbHoOk+secret"
AT = parse_instant("2026-11-15T09:00:00Z")
SECONDS = AT // 1_000_000
ACCOUNT = {"api_key": KEY, "device": DEVICE}


def _flat(event: str, **message: Any) -> dict[str, Any]:
    """A report whose data is the message itself."""
    return {
        "id": "5f4dcc3b5aa765d61d830001",
        "object": "message",
        "event": event,
        "created": SECONDS,
        "device": {"id": DEVICE, "phone": "+447362053576", "alias": "Shop"},
        "data": {"id": "3EB0AA", "type": "text", **message},
    }


def _nested(event: str, chat: dict[str, Any] | None = None, **message: Any) -> dict[str, Any]:
    """The other shape, with the message one step further down."""
    inner = {"id": "3EB0AA", "type": "text", **message}
    return {
        "id": "evt_01",
        "event": event,
        "createdAt": "2026-11-15T09:00:00.000Z",
        "device": DEVICE,
        "data": {"message": inner, "chat": chat or {"id": "4915112345678@c.us"}},
    }


IN = Inbound("3EB0AA", PHONE, PHONE, "Yes please", AT)
SAMPLES = (
    Sample(
        "a message",
        _flat(
            "message:in:new", flow="inbound", fromNumber=PHONE, toNumber="+447362053576",
            body="Yes please", timestamp=SECONDS, chat={"id": "4915112345678@c.us"},
            meta={"isGroup": False},
        ),
        [IN],
    ),
    Sample(
        "a message, nested",
        _nested(
            "message:in:new", chat=None, body="Yes please",
            **{"from": "4915112345678", "to": "447362053576", "fromMe": False},
            timestamp="2026-11-15T09:00:00.000Z",
        ),
        [IN],
    ),
    Sample(
        "a message in a group",
        _flat(
            "message:in:new", fromNumber=PHONE, body="Here", chat={"id": GROUP},
            timestamp=SECONDS * 1_000, meta={"isGroup": True},
        ),
        [Inbound("3EB0AA", GROUP, PHONE, "Here", AT, group=True)],
    ),
    Sample(
        "a picture",
        _flat(
            "message:in:new", type="image", fromNumber=PHONE, chat={"id": "4915112345678@c.us"},
            media={"id": "x", "caption": "Look", "mime": "image/jpeg", "size": 7},
        ),
        [
            IN._replace(
                text="Look", kind="image", files=(Enclosed("", "image/jpeg", 7, handle="x"),)
            )
        ],
    ),
    Sample(
        "a voice",
        _flat(
            "message:in:new", type="audio", fromNumber=PHONE, chat={"id": "4915112345678@c.us"},
            media={
                "id": "x", "mime": "audio/ogg; codecs=opus", "size": 30_000, "duration": "12",
                "links": {"download": "/v1/chat/1/files/x/download"},
            },
        ),
        [
            IN._replace(
                text="", kind="audio",
                files=(
                    Enclosed("", "audio/ogg", 30_000, 12, "/v1/chat/1/files/x/download"),
                ),
            )
        ],
    ),
    Sample(
        "our own, echoed",
        _flat(
            "message:out:new", flow="outbound", fromNumber="+447362053576", toNumber=PHONE,
            body="Yes please", chat={"id": "4915112345678@c.us"},
        ),
        [IN._replace(sender="+447362053576", from_us=True)],
    ),
    Sample(
        "sent",
        _flat("message:out:sent", id="a1", reference="home-7-0"),
        [Receipt("a1", "sent", AT, key="home-7-0")],
    ),
    Sample(
        "delivered",
        _flat("message:out:ack", ack="delivered"),
        [Receipt("3EB0AA", "delivered", AT)],
    ),
    Sample("read", _flat("message:out:ack", ack="read"), [Receipt("3EB0AA", "read", AT)]),
    Sample("played", _nested("message:out:ack", ack="played"), [Receipt("3EB0AA", "read", AT)]),
    Sample(
        "delivered, by its status",
        _flat("message:update", deliveryStatus="delivered"),
        [Receipt("3EB0AA", "delivered", AT)],
    ),
    Sample(
        "failed",
        _flat(
            "message:out:failed", id="a1", reference="home-7-0", failureReason="no such\n number",
            failureCode="e7",
        ),
        [Receipt("a1", "failed", AT, "e7", "no such number", "home-7-0")],
    ),
    Sample(
        "failed, nested",
        _nested("message:out:failed", error={"code": "e7", "message": "no such number"}),
        [Receipt("3EB0AA", "failed", AT, "e7", "no such number")],
    ),
    Sample("paired", _flat("number:session", status="online"), [AccountNews("ready", "", AT)]),
    Sample(
        "away",
        _flat("number:session", status="offline"),
        [AccountNews("offline", "offline: Wassenger says the WhatsApp session is 'offline'", AT)],
    ),
    Sample(
        "logged out",
        _flat("number:session", session={"status": "unauthorized"}),
        [
            AccountNews(
                "refused", "not paired: Wassenger says the WhatsApp session is 'unauthorized'", AT
            )
        ],
    ),
)  # fmt: skip
NOTHING = (
    _flat("group:update"),
    _flat("message:reaction", reaction="👍"),
    _flat("message:update", body="edited"),
    _flat("number:session", status="brand-new"),
    {**SAMPLES[0].body, "device": {"id": "0" * 24}},
    {**SAMPLES[1].body, "device": "0" * 24},
)


def _prove(way: str, settings: Mapping[str, Any], body: bytes) -> Proof:
    secret = settings["webhook_secret"]
    if way == "header":
        return Proof({settings.get("webhook_header", "X-Webhook-Secret"): secret}, {})
    if way == "token":
        return Proof({}, {"token": secret})
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return Proof({"X-Wassenger-Signature": f"sha256={signature}"}, {})


REPORTS = Reports(
    webhooks=lambda: WassengerProvider(SystemClock()),
    settings={
        way: {**ACCOUNT, "webhook_auth": way, "webhook_secret": SECRET}
        for way in ("signature", "header", "token")
    },
    unproved=ACCOUNT,
    prove=_prove,
    samples=SAMPLES,
    nothing=NOTHING,
    challenges=(({"hub.mode": "subscribe", "hub.challenge": "7"}, None),),
)

CASES = [
    Case(
        "wassenger",
        _stage(),
        ROWS,
        group=GROUP,
        secret=KEY,
        reports=REPORTS,
        speaks_http=True,
    ),
    Case("wassenger-business", _stage(groups=False), ROWS, secret=KEY, speaks_http=True),
]
