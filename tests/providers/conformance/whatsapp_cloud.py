"""The Cloud API's case: a number at Meta, to whom everybody has just written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from paceline.core.enclosures import Enclosed
from paceline.core.instants import parse_instant
from paceline.core.model import Part
from paceline.engine.clock import SystemClock
from paceline.engine.ports import AccountNews, Inbound, Message, Receipt
from paceline.providers.whatsapp_cloud import WhatsAppCloudProvider
from paceline.providers.whatsapp_cloud.errors import BY_STATUS, ERRORS, RANGES, TABLE
from tests.providers.conformance.case import Case, Proof, Reports, Sample, Seen
from tests.providers.conformance.web import WebStage
from tests.providers.loopback import HTML, Scripted, running
from tests.providers.whatsapp_cloud.fake import (
    APP_SECRET,
    BUSINESS,
    KEY,
    NUMBER,
    PHONE,
    FakeMeta,
    error,
    report,
    signed,
    status,
    value,
)

ROWS = (
    {row.code: row.kind for row in ERRORS}
    | {str(known.last): known.kind for known in RANGES}
    | {f"http-{status}": kind for status, kind in BY_STATUS.items()}
)


class WhatsAppCloudStage(WebStage):
    fake: FakeMeta

    def __init__(self, fake: FakeMeta) -> None:
        super().__init__(
            fake,
            lambda clock, timeout: WhatsAppCloudProvider(clock, timeout=timeout),
            fake.settings(),
        )

    def message(
        self, key: str = "home-7-0", text: str = "Hello", *, handle: str | None = None
    ) -> Message:
        media = None if handle is None else "a" * 64
        part = Part("text" if handle is None else "media", text, media=media)
        return Message(key, PHONE, "message", part, handle)

    def answer(self, row: str) -> None:
        if row.startswith("http-"):
            self.script(error(None, int(row.removeprefix("http-"))))
        else:
            known = TABLE.by_code.get(row)
            self.script(error(int(row), 400 if known is None else known.status))

    def mute(self) -> None:
        self.fake.answers[f"/{NUMBER}/messages"] = Scripted(502, b"<html>", HTML)

    def sent(self) -> list[Seen]:
        return [
            Seen(one["to"], one["text"], one["content"], one["key"]) for one in self.fake.messages
        ]

    def uploads(self) -> int:
        return len(self.fake.files)

    def forget_uploads(self) -> None:
        self.fake.files.clear()


@contextmanager
def _stage() -> Iterator[WhatsAppCloudStage]:
    with running(FakeMeta()) as fake:
        yield WhatsAppCloudStage(fake)


# ---------------------------------------------------------------------- what it reports

VERIFY = "vErIfY+token"
AT = parse_instant("2026-11-15T09:00:00Z")
SECONDS = AT // 1_000_000
ACCOUNT = {"access_token": KEY, "phone_number_id": NUMBER, "business_account_id": BUSINESS}
PERSON = PHONE.removeprefix("+")
GROUP = "Y2FwaV9ncm91cDox"
NOBODY: dict[str, Any] = {"from": None}


def said(kind: str, /, number: str = NUMBER, **more: Any) -> Any:
    """A report of a message that came in."""
    message = {"from": PERSON, "id": "wamid.A", "timestamp": str(SECONDS), "type": kind, **more}
    contacts = [{"profile": {"name": "Anna"}, "wa_id": PERSON}]
    return report(value(number, contacts=contacts, messages=[message]))


def became(state: str, **more: Any) -> Any:
    """A report of what became of one of ours."""
    pricing = {"billable": True, "category": "utility", "pricing_model": "PMP"}
    return report(value(statuses=[status("wamid.B", state, SECONDS, pricing=pricing, **more)]))


def account(event: str, business: str = BUSINESS, **more: Any) -> Any:
    """A report about the whole business account."""
    told = report({"event": event, **more}, field="account_update", business=business)
    told["entry"][0]["time"] = SECONDS
    return told


def trouble(code: int) -> Any:
    """A report that nothing can be done for the number."""
    one = {"code": code, "title": "Trouble", "message": "Trouble", "error_data": {"details": "x"}}
    told = report(value(errors=[one]))
    told["entry"][0]["time"] = SECONDS
    return told


FAILURE = {
    "code": 131047,
    "title": "Re-engagement message",
    "message": "Re-engagement message",
    "error_data": {"details": "More than 24 hours\n have passed."},
    "href": "/documentation",
}
IN = Inbound("wamid.A", PHONE, PHONE, "Yes please", AT)
ECHO = {"to": PERSON, "from": "49301234567", "id": "wamid.A", "timestamp": str(SECONDS)}
SAMPLES = (
    Sample("a message", said("text", text={"body": "Yes please"}), [IN]),
    Sample(
        "a picture",
        said("image", image={"id": "1", "mime_type": "image/jpeg", "caption": "Look"}),
        [IN._replace(text="Look", kind="image", files=(Enclosed(mime="image/jpeg", handle="1"),))],
    ),
    Sample(
        "a voice",
        said("audio", audio={"id": "1", "voice": True}),
        [IN._replace(text="", kind="audio", files=(Enclosed(handle="1"),))],
    ),
    Sample(
        "a document",
        said(
            "document",
            document={"id": "7", "mime_type": "application/pdf", "filename": "offer.pdf"},
        ),
        [
            IN._replace(
                text="",
                kind="document",
                files=(Enclosed("offer.pdf", "application/pdf", handle="7"),),
            )
        ],
    ),
    Sample(
        "the button of a template",
        said("button", button={"payload": "p", "text": "Yes please"}),
        [IN._replace(kind="button")],
    ),
    Sample(
        "a choice",
        said(
            "interactive",
            interactive={"type": "list_reply", "list_reply": {"id": "1", "title": "Yes please"}},
        ),
        [IN._replace(kind="interactive")],
    ),
    Sample(
        "what WhatsApp cannot show",
        said("unsupported", errors=[{"code": 131051, "title": "Unsupported"}]),
        [IN._replace(text="", kind="unsupported")],
    ),
    Sample(
        "a message in a group",
        said("text", text={"body": "Here"}, group_id=GROUP),
        [Inbound("wamid.A", GROUP, PHONE, "Here", AT, group=True)],
    ),
    Sample(
        "somebody without a number",
        said("text", NUMBER, text={"body": "Yes please"}, from_user_id="DE.131", **NOBODY),
        [IN._replace(chat="DE.131", sender="DE.131")],
    ),
    Sample(
        "our own, from the phone",
        report(
            value(message_echoes=[{**ECHO, "type": "text", "text": {"body": "Yes please"}}]),
            field="smb_message_echoes",
        ),
        [IN._replace(sender="+49301234567", from_us=True)],
    ),
    Sample(
        "sent",
        became("sent", biz_opaque_callback_data="home-7-0"),
        [Receipt("wamid.B", "sent", AT, key="home-7-0")],
    ),
    Sample("delivered", became("delivered"), [Receipt("wamid.B", "delivered", AT)]),
    Sample("read", became("read"), [Receipt("wamid.B", "read", AT)]),
    Sample("played", became("played"), [Receipt("wamid.B", "read", AT)]),
    Sample(
        "failed",
        became("failed", errors=[FAILURE], biz_opaque_callback_data="home-7-0"),
        [
            Receipt(
                "wamid.B",
                "failed",
                AT,
                "131047",
                "Re-engagement message: More than 24 hours have passed.",
                "home-7-0",
            )
        ],
    ),
    Sample("failed, nobody knows why", became("failed"), [Receipt("wamid.B", "failed", AT)]),
    Sample(
        "several at once",
        report(
            value(
                statuses=[status("wamid.B", "sent", SECONDS), status("wamid.C", "read", SECONDS)]
            ),
            value("999999", statuses=[status("wamid.X", "sent", SECONDS)]),
            value(statuses=[status("wamid.D", "delivered", SECONDS)]),
        ),
        [
            Receipt("wamid.B", "sent", AT),
            Receipt("wamid.C", "read", AT),
            Receipt("wamid.D", "delivered", AT),
        ],
    ),
    Sample("locked", trouble(131031), [AccountNews("refused", "Trouble: x", AT)]),
    Sample("under maintenance", trouble(131057), [AccountNews("offline", "Trouble: x", AT)]),
    Sample(
        "disabled",
        account("DISABLED_UPDATE", ban_info={"waba_ban_state": "DISABLE"}),
        [AccountNews("refused", "Meta has disabled the business account", AT)],
    ),
    Sample(
        "back again",
        account("DISABLED_UPDATE", ban_info={"waba_ban_state": "REINSTATE"}),
        [AccountNews("ready", "", AT)],
    ),
    Sample("reconnected", account("ACCOUNT_RECONNECTED"), [AccountNews("ready", "", AT)]),
    Sample(
        "gone",
        account("ACCOUNT_DELETED"),
        [AccountNews("refused", "Meta says: ACCOUNT_DELETED", AT)],
    ),
    Sample(
        "restricted for a while",
        account(
            "ACCOUNT_RESTRICTION",
            restriction_info=[
                {"restriction_type": "RESTRICTED_ADD_PHONE_NUMBER_ACTION"},
                {
                    "restriction_type": "RESTRICTED_BIZ_INITIATED_MESSAGING",
                    "expiration": "2026-11-22T09:00:00+0000",
                },
            ],
        ),
        [
            AccountNews(
                "refused",
                "Meta says: RESTRICTED_BIZ_INITIATED_MESSAGING",
                AT,
                parse_instant("2026-11-22T09:00:00Z"),
            )
        ],
    ),
)
NOTHING = (
    said("reaction", reaction={"message_id": "wamid.B", "emoji": "👍"}),
    said("system", system={"body": "Anna changed", "wa_id": "1"}),
    said("text", "999999", text={"body": "to somebody else"}),
    became("deleted"),
    trouble(130429),
    account("ACCOUNT_VIOLATION", violation_info={"violation_type": "SPAM"}),
    account("DISABLED_UPDATE", ban_info={"waba_ban_state": "SCHEDULE_FOR_DISABLE"}),
    account("ACCOUNT_DELETED", business="999999"),
    report({"event": "APPROVED"}, field="message_template_status_update"),
    {"object": "whatsapp_business_account", "entry": []},
)


def _prove(way: str, settings: Mapping[str, Any], body: bytes) -> Proof:
    return Proof(signed(body, settings["app_secret"]), {})


SHAKE = {"hub.mode": "subscribe", "hub.verify_token": VERIFY, "hub.challenge": "1158201444"}

REPORTS = Reports(
    webhooks=lambda: WhatsAppCloudProvider(SystemClock()),
    settings={"signature": {**ACCOUNT, "app_secret": APP_SECRET, "verify_token": VERIFY}},
    unproved=ACCOUNT,
    prove=_prove,
    samples=SAMPLES,
    nothing=NOTHING,
    challenges=(
        (SHAKE, "1158201444"),
        ({**SHAKE, "hub.verify_token": VERIFY[:-1]}, None),
        ({**SHAKE, "hub.verify_token": ""}, None),
        ({**SHAKE, "hub.mode": "unsubscribe"}, None),
        ({**SHAKE, "hub.challenge": "<script>"}, None),
        ({key: text for key, text in SHAKE.items() if key != "hub.verify_token"}, None),
        ({}, None),
    ),
)

CASES = [
    Case(
        "whatsapp_cloud",
        _stage,
        ROWS,
        secret=KEY,
        reports=REPORTS,
        speaks_http=True,
    ),
]
