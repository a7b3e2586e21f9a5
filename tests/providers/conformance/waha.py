"""WAHA's cases: a number whose engine takes ids of ours, and one whose engine does not."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from paceline.core.enclosures import Enclosed
from paceline.core.instants import parse_instant
from paceline.core.model import Part
from paceline.core.outcome import OutcomeKind
from paceline.engine.clock import SystemClock
from paceline.engine.ports import AccountNews, Inbound, Message, Receipt, Typing
from paceline.providers.answers import segment
from paceline.providers.waha import WahaProvider
from paceline.providers.waha.errors import BY_STATUS, ERRORS
from paceline.providers.waha.wire import own_id
from tests.providers.conformance.case import Case, Proof, Reports, Sample, Seen
from tests.providers.conformance.web import WebStage
from tests.providers.loopback import HTML, Scripted, running
from tests.providers.waha.fake import (
    CHAT,
    GROUP,
    KEY,
    OWN,
    OWN_LID,
    PHONE,
    SESSION,
    FakeWaha,
    answer_of,
)
from tests.providers.waha.live import address_of

ROWS = {row.code: row.kind for row in ERRORS} | {
    f"http-{status}": kind for status, kind in BY_STATUS.items()
}


class WahaStage(WebStage):
    fake: FakeWaha

    def __init__(self, fake: FakeWaha, **settings: Any) -> None:
        super().__init__(
            fake,
            lambda clock, timeout: WahaProvider(clock, timeout=timeout),
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
        self.script(answer_of(row))

    def mute(self) -> None:
        name = segment(f"true_{CHAT}_{own_id('home-7-0')}")
        path = f"/{SESSION}/chats/{segment(CHAT)}/messages/{name}"
        self.fake.answers[path] = Scripted(502, b"<html>", HTML)

    def sent(self) -> list[Seen]:
        return [
            Seen(address_of(one["chat"]), one["text"], one["file"]) for one in self.fake.messages
        ]

    def uploads(self) -> int:
        """None: each file travels with its message."""
        return 0

    def forget_uploads(self) -> None:
        self.restart()


def _stage(engine: str, **settings: Any) -> Callable[[], AbstractContextManager[WahaStage]]:
    @contextmanager
    def staged() -> Iterator[WahaStage]:
        with running(FakeWaha()) as fake:
            fake.engine = engine
            others = [{"JID": f"1203630412345678{n:02}@g.us", "Name": "G"} for n in range(90)]
            fake.groups = [{"JID": GROUP, "Name": "Ours"}, *others]
            yield WahaStage(fake, **settings)

    return staged


# ---------------------------------------------------------------------- what it reports

SECRET = "wEbHoOk+secret"
AT = parse_instant("2026-11-15T09:00:00Z")
SECONDS = AT // 1_000_000
LID = "111222333444555@lid"
JID = "4915112345678@s.whatsapp.net"
ACCOUNT = {"base_url": "https://waha.example.com", "api_key": KEY, "session": SESSION}


def report(event: str, payload: Any, **more: Any) -> dict[str, Any]:
    return {
        "id": "evt_01jcaaaaaaaaaaaaaaaaaaaaaa",
        "timestamp": AT // 1_000,
        "event": event,
        "session": SESSION,
        "me": {"id": OWN, "lid": OWN_LID, "pushName": "Shop"},
        "engine": "GOWS",
        "environment": {"version": "2026.7.1", "engine": "GOWS", "tier": "PLUS", "browser": None},
        "payload": payload,
    } | more


def said_by(chat: str, **more: Any) -> dict[str, Any]:
    """A message as it is reported, from somebody else unless it says otherwise."""
    return {
        "id": f"false_{chat}_3A00AA",
        "timestamp": SECONDS,
        "from": chat,
        "fromMe": False,
        "source": "app",
        "to": None,
        "participant": None,
        "body": "Yes please",
        "hasMedia": False,
        "media": None,
        "ack": 2,
        "ackName": "DEVICE",
        "_data": {"Info": {"Chat": chat, "Sender": chat, "SenderAlt": "", "IsGroup": False}},
    } | more


def ack(name: str, number: int, chat: str = CHAT, **more: Any) -> dict[str, Any]:
    return {
        "id": f"true_{chat}_3EB0AA",
        "from": chat,
        "to": OWN,
        "participant": None,
        "fromMe": True,
        "ack": number,
        "ackName": name,
    } | more


def status(name: str, **more: Any) -> dict[str, Any]:
    points = [{"status": name, "timestamp": AT // 1_000}]
    return report(
        "session.status",
        {"name": SESSION, "status": name, "statuses": points, "data": None},
        **more,
    )


IN = Inbound("3A00AA", PHONE, PHONE, "Yes please", AT)
IN_GROUP = Inbound("3A00AA", GROUP, PHONE, "Here", AT, group=True)
SAMPLES = (
    Sample("a message", report("message", said_by(CHAT)), [IN]),
    Sample("the same once more", report("message.any", said_by(CHAT)), [IN]),
    Sample(
        "from somebody who hides",
        report(
            "message",
            said_by(LID, _data={"Info": {"Chat": LID, "Sender": LID, "SenderAlt": JID}}),
        ),
        [IN._replace(also=(LID,))],
    ),
    Sample(
        "from somebody who hides, with NOWEB",
        report(
            "message",
            said_by(LID, _data={"key": {"remoteJid": LID, "remoteJidAlt": JID, "id": "3A00AA"}}),
        ),
        [IN._replace(also=(LID,))],
    ),
    Sample(
        "from nobody knows whom", report("message", said_by(LID)),
        [IN._replace(chat=LID, sender=LID)],
    ),
    Sample(
        "in a group",
        report("message", said_by(
            GROUP, id=f"false_{GROUP}_3A00AA_{CHAT}", participant=CHAT, to=CHAT, body="Here",
        )),
        [IN_GROUP],
    ),
    Sample(
        "in a group, from somebody who hides",
        report("message", said_by(
            GROUP, id=f"false_{GROUP}_3A00AA_{LID}", participant=LID, body="Here",
            _data={"Info": {"Chat": GROUP, "Sender": LID, "SenderAlt": JID.replace("@", ":7@")}},
        )),
        [IN_GROUP],
    ),
    Sample(
        "a picture",
        report("message", said_by(
            CHAT, hasMedia=True, body="Look",
            media={"url": "http://localhost/x.jpg", "mimetype": "image/jpeg", "filename": None},
        )),
        [
            IN._replace(
                text="Look", kind="image",
                files=(Enclosed(mime="image/jpeg", handle="http://localhost/x.jpg"),),
            )
        ],
    ),
    Sample(
        "a voice, that the engine knows more of",
        report("message", said_by(
            CHAT, hasMedia=True, body="",
            media={"url": "http://localhost/v.oga", "mimetype": "audio/ogg; codecs=opus"},
            _data={"message": {"audioMessage": {"seconds": 12, "fileLength": "30000"}}},
        )),
        [
            IN._replace(
                text="", kind="audio",
                files=(Enclosed("", "audio/ogg", 30_000, 12, "http://localhost/v.oga"),),
            )
        ],
    ),
    Sample(
        "somebody types",
        report("presence.update", {
            "id": CHAT, "presences": [{"participant": CHAT, "lastKnownPresence": "typing"}],
        }),
        [Typing(PHONE, AT)],
    ),
    Sample(
        "somebody speaks",
        report("presence.update", {"id": CHAT, "presences": [{"lastKnownPresence": "recording"}]}),
        [Typing(PHONE, AT)],
    ),
    Sample(
        "somebody types in a group",
        report("presence.update", {"id": GROUP, "presences": [{"lastKnownPresence": "typing"}]}),
        [],
    ),
    Sample(
        "somebody is there, and says nothing",
        report("presence.update", {"id": CHAT, "presences": [{"lastKnownPresence": "online"}, 7]}),
        [],
    ),
    Sample(
        "our own, echoed",
        report("message.any", said_by(CHAT, id=f"true_{CHAT}_3EB0AA", fromMe=True, source="api")),
        [Inbound("3EB0AA", PHONE, "+447362053576", "Yes please", AT, from_us=True)],
    ),
    Sample(
        "our own with WEBJS, to somebody",
        report("message.any", said_by(
            CHAT, id=f"true_{CHAT}_3EB0AA", fromMe=True, **{"from": OWN}, to=CHAT, _data={},
        ), engine="WEBJS"),
        [Inbound("3EB0AA", PHONE, "+447362053576", "Yes please", AT, from_us=True)],
    ),
    Sample("sent", report("message.ack", ack("SERVER", 1)), [Receipt("3EB0AA", "sent", AT)]),
    Sample(
        "delivered", report("message.ack", ack("DEVICE", 2)), [Receipt("3EB0AA", "delivered", AT)]
    ),
    Sample("read", report("message.ack", ack("READ", 3)), [Receipt("3EB0AA", "read", AT)]),
    Sample("played", report("message.ack", ack("PLAYED", 4)), [Receipt("3EB0AA", "read", AT)]),
    Sample(
        "read in a group",
        report("message.ack.group", ack(
            "READ", 3, GROUP, id=f"true_{GROUP}_3EB0AA_{OWN}", participant=CHAT,
        )),
        [Receipt("3EB0AA", "read", AT)],
    ),
    Sample(
        "failed", report("message.ack", ack("ERROR", -1)),
        [Receipt("3EB0AA", "failed", AT, "", "WhatsApp has refused it")],
    ),
    Sample(
        "failed for a reason",
        report("message.ack", ack("ERROR", -1, error={
            "code": "463", "blocked": True, "reason": "account_restricted",
            "until": "2026-11-16T09:00:00.000Z",
        })),
        [Receipt(
            "3EB0AA", "failed", AT, "463", "account_restricted, until 2026-11-16T09:00:00.000Z"
        )],
    ),
    Sample("it works", status("WORKING"), [AccountNews("ready", "", AT)]),
    Sample(
        "away", status("STARTING"),
        [AccountNews("offline", "offline: WAHA says the session is 'STARTING'", AT)],
    ),
    Sample(
        "to be paired", status("SCAN_QR_CODE"),
        [AccountNews(
            "refused",
            "not paired: WAHA says the session is 'SCAN_QR_CODE'; scan its code with the phone", AT,
        )],
    ),
    Sample(
        "logged out", status("FAILED"),
        [AccountNews(
            "refused",
            "not paired: WAHA says the session is 'FAILED'; restart it in WAHA, or pair it again",
            AT,
        )],
    ),
    Sample(
        "failed, but starts again by itself", status("FAILED", engine="WEBJS"),
        [AccountNews(
            "offline",
            "offline: WAHA says the session is 'FAILED'; restart it in WAHA, or pair it again", AT,
        )],
    ),
)  # fmt: skip
NOTHING = (
    report("group.v2.join", {"group": {"id": GROUP, "subject": "Ours"}, "timestamp": 1}),
    report("group.v2.participants", {"group": {"id": GROUP}, "type": "join", "participants": []}),
    report("message.reaction", said_by(CHAT, reaction={"text": "👍", "messageId": "x"})),
    report("message.edited", said_by(CHAT, editedMessageId="3A00AA")),
    report("message", said_by("status@broadcast", id=f"false_status@broadcast_3A00AA_{CHAT}")),
    report("message", said_by("120363@newsletter")),
    report("message.ack", ack("PENDING", 0)),
    report("message.ack", ack("UNKNOWN", 99)),
    report("message.ack", ack("READ", 3, fromMe=False)),
    status("BRAND_NEW"),
    {**SAMPLES[0].body, "session": "another"},
)


def sign(body: bytes, secret: str = SECRET) -> dict[str, str]:
    """The headers that come with a report."""
    return {
        "X-Webhook-Hmac": hmac.new(secret.encode(), body, hashlib.sha512).hexdigest(),
        "X-Webhook-Hmac-Algorithm": "sha512",
    }


def _prove(_: str, settings: Mapping[str, Any], body: bytes) -> Proof:
    return Proof(sign(body, settings["webhook_secret"]), {})


REPORTS = Reports(
    webhooks=lambda: WahaProvider(SystemClock()),
    settings={"signature": {**ACCOUNT, "webhook_secret": SECRET}},
    unproved=ACCOUNT,
    prove=_prove,
    samples=SAMPLES,
    nothing=NOTHING,
    challenges=(({"hub.mode": "subscribe", "hub.challenge": "7"}, None),),
    names_ours=False,
)

CASES = [
    Case(
        "waha",
        _stage("GOWS"),
        ROWS,
        group=GROUP,
        secret=KEY,
        reports=REPORTS,
        speaks_http=True,
    ),
    Case(
        "waha-webjs",
        _stage("WEBJS", own_ids=False, look_up=False),
        # Its engine starts again by itself.
        ROWS | {"session-failed": OutcomeKind.UNAVAILABLE},
        group=GROUP,
        secret=KEY,
        speaks_http=True,
    ),
]
