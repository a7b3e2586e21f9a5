"""What Unipile reports by itself: whether it was Unipile, and what it said. Pure.

Unipile signs nothing: a header that was chosen when the webhook was made shows that it is theirs.
Any report may come twice or late, and our own messages are reported with everybody else's. What an
account does not want to know is no news; what is no report at all is an ``InputError``.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Mapping
from typing import Any, Literal

from paceline.core.address import canonical
from paceline.core.enclosures import MOST_FILES, Enclosed, enclosed
from paceline.core.errors import InputError, ProviderRefused
from paceline.core.instants import Instant, parse_instant
from paceline.engine.ports import Accepted, AccountNews, Inbound, News, Receipt
from paceline.providers.answers import name_of
from paceline.providers.mail.automatic import SENDERS
from paceline.providers.options import secret_in
from paceline.providers.unipile.settings import UnipileSettings
from paceline.providers.unipile.status import STATUSES, standing_of
from paceline.providers.unipile.wire import CHAT

STATUS = "AccountStatus"
MESSAGE = "message_received"
MAILS = {"mail_received": False, "mail_sent": True}
"""The reports about an e-mail, with whether it is one of ours."""

ACCEPTED = "new_relation"
"""Somebody is connected with the account from now on: whom it has invited, for whoever invites it
is connected only when the account's owner says so."""

State = Literal["delivered", "read"]
RECEIPTS: Mapping[str, State] = {"message_delivered": "delivered", "message_read": "read"}

LONGEST_TEXT = 50_000
LONGEST_SUBJECT = 500

_TAG = re.compile(r"<[^<>]{0,2000}>")


def verify(settings: UnipileSettings, headers: Mapping[str, str]) -> bool:
    """Whether somebody who knows the secret sent this."""
    if settings.webhook_secret is None:
        return False
    try:
        secret = secret_in(settings.webhook_secret, "webhook secret")
    except ProviderRefused:
        return False
    given = {name.lower(): value for name, value in headers.items()}
    shown = given.get(settings.webhook_header.lower(), "")
    # Compared in the same time whatever is different, so that nobody can feel their way.
    return hmac.compare_digest(shown.encode("utf-8", "backslashreplace"), secret.encode())


def parse(settings: UnipileSettings, body: bytes) -> list[News]:
    report = _object(_read(body), "the report")
    if STATUS in report:
        return _standing(settings, _object(report[STATUS], "the account's status"))
    event = report.get("event")
    if not isinstance(event, str):
        raise InputError("the report does not say what happened", key="event")
    if name_of(report.get("account_id")) not in (None, settings.account_id):
        # Reports may be ordered for a whole house of accounts. This one is another's.
        return []
    if event == MESSAGE:
        return [_message(report)]
    if event in MAILS:
        return [_mail(report, from_us=MAILS[event])]
    if event == ACCEPTED:
        return _accepted(report)
    return _receipt(report, RECEIPTS[event]) if event in RECEIPTS else []


# ---------------------------------------------------------------------- messages


def _message(report: Mapping[str, Any]) -> Inbound:
    name, chat = name_of(report.get("message_id")), name_of(report.get("chat_id"))
    if name is None or chat is None:
        raise InputError("the message has no id, or is from nowhere", key="message_id")
    others = report.get("attendees")
    return Inbound(
        provider_id=name,
        chat=f"{CHAT}{chat}",
        sender=_sender(report),
        text=_text(report.get("message")),
        at=_instant(report.get("timestamp")),
        from_us=_is_ours(report),
        kind=_kind(report.get("attachments")),
        group=isinstance(others, list) and len(others) > 1,
        files=_files(report.get("attachments")),
        also=_called(report.get("sender"), "attendee_profile_url", "attendee_public_identifier"),
    )


def _accepted(report: Mapping[str, Any]) -> list[News]:
    names = _called(report, "user_provider_id", "user_public_identifier", "user_profile_url")
    return [Accepted(names, _instant(report.get("timestamp")))] if names else []


def _called(raw: object, *keys: str) -> tuple[str, ...]:
    """Names of a person as targets are written, each once."""
    found = raw if isinstance(raw, dict) else {}
    names = (name_of(found.get(key)) for key in keys)
    return tuple(dict.fromkeys(canonical(name) for name in names if name))


def _sender(report: Mapping[str, Any]) -> str:
    sender = report.get("sender")
    name = name_of(sender.get("attendee_provider_id")) if isinstance(sender, dict) else None
    return canonical(name) if name else ""


def _is_ours(report: Mapping[str, Any]) -> bool:
    info = report.get("account_info")
    own = name_of(info.get("user_id")) if isinstance(info, dict) else None
    by_name = own is not None and canonical(own) == _sender(report)
    return by_name or report.get("is_sender") in (True, 1)


def _kind(attachments: object) -> str:
    first = attachments[0] if isinstance(attachments, list) and attachments else None
    named = name_of(_of(first, "type")) if isinstance(first, dict) else None
    return "text" if first is None else named or "file"


def _files(attachments: object) -> tuple[Enclosed, ...]:
    listed = attachments if isinstance(attachments, list) else []
    return tuple(
        enclosed(
            _of(one, "name") or one.get("file_name"),
            _of(one, "mimetype"),
            _of(one, "size") or one.get("file_size"),
            one.get("duration"),
            name_of(_of(one, "id")),
        )
        for one in listed[:MOST_FILES]
        if isinstance(one, dict)
    )


def _of(attachment: Mapping[str, Any], key: str) -> object:
    """Two of its reports spell it in two ways."""
    found: object = attachment.get(key, attachment.get(f"attachment_{key}"))
    return found


def _receipt(report: Mapping[str, Any], state: State) -> list[News]:
    name = name_of(report.get("message_id"))
    if name is None:
        raise InputError("the receipt does not say for which message", key="message_id")
    if _sender(report) and not _is_ours(report):
        # That we have read something of somebody's.
        return []
    return [Receipt(name, state, _instant(report.get("timestamp")))]


# ---------------------------------------------------------------------- e-mail


def _mail(report: Mapping[str, Any], *, from_us: bool) -> Inbound:
    name = name_of(report.get("message_id")) or name_of(report.get("email_id"))
    sender = _attendee(report.get("from_attendee"))
    to = report.get("to_attendees")
    first = to[0] if isinstance(to, list) and to else None
    chat = _attendee(first) if from_us else sender
    if name is None or not chat:
        raise InputError("the e-mail has no id, or is from nowhere", key="email_id")
    return Inbound(
        provider_id=name.strip("<>"),
        chat=chat,
        sender=sender,
        text=_text(report.get("body_plain")) or _TAG.sub(" ", _text(report.get("body"))).strip(),
        at=_instant(report.get("date")),
        from_us=from_us,
        subject=" ".join(_text(report.get("subject")).split())[:LONGEST_SUBJECT],
        automatic=SENDERS.fullmatch(sender) is not None,
        files=_files(report.get("attachments")),
    )


def _attendee(raw: object) -> str:
    name = name_of(raw.get("identifier")) if isinstance(raw, dict) else None
    return canonical(name) if name else ""


# ---------------------------------------------------------------------- the account


def _standing(settings: UnipileSettings, status: Mapping[str, Any]) -> list[News]:
    if name_of(status.get("account_id")) not in (None, settings.account_id):
        return []
    word = name_of(status.get("message")) or ""
    if word.upper() not in STATUSES:
        # A word nobody knows: the next send will tell.
        return []
    standing = standing_of(word)
    if standing.verdict == "fine":
        return [AccountNews("ready", "", 0)]
    state: Literal["refused", "offline"]
    state = "refused" if standing.verdict == "stopped" else "offline"
    return [AccountNews(state, standing.reason, 0)]


# ---------------------------------------------------------------------- reading


def _read(body: bytes) -> object:
    try:
        read: object = json.loads(body)
    except (ValueError, RecursionError):
        raise InputError("the report is not JSON") from None
    return read


def _object(raw: object, what: str) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise InputError(f"{what} is no object")
    return raw


def _text(raw: object) -> str:
    return raw[:LONGEST_TEXT] if isinstance(raw, str) else ""


def _instant(raw: object) -> Instant:
    try:
        return max(0, parse_instant(raw)) if isinstance(raw, str) else 0
    except (InputError, OverflowError):
        return 0
