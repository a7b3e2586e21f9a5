"""What one letter that came in says: that one of ours came back, a complaint, or somebody's answer.

Pure, and never fails, whatever the letter is made of. In this order: a complaint (RFC 5965), a
report about the delivery of a letter (``bounces.py``), and whatever is left is a message to us,
written by a person or by a program (``automatic.py``). When something happened is what the mailbox
says, and not what the letter does: anybody may write any date.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection
from email.message import Message
from email.parser import HeaderParser

from paceline.core.errors import InputError
from paceline.core.instants import Instant
from paceline.engine.ports.webhooks import Inbound, News, Returned
from paceline.providers.answers import LONGEST_NAME, shortened
from paceline.providers.mail.automatic import is_automatic
from paceline.providers.mail.bounces import SENT_TO, key_of, read_bounce
from paceline.providers.mail.incoming import (
    Incoming,
    addresses_in,
    field,
    key_named,
    spelled,
    taken_apart,
    text_of,
    words_in,
)

LONGEST_SUBJECT = 500

_HEADERS = re.compile(rb"\s*(?:>?From [^\n]*\n)?[A-Za-z][A-Za-z0-9-]{0,60}[ \t]*:")
"""How a letter begins; some who pass one on write from whom it is above it."""

_NAME = re.compile(r"<([^<>\s]{1,255})>")
_KIND = re.compile(r"[a-z][a-z0-9_.-]{0,39}(?![^\s(;])")
_NO_COMPLAINTS = frozenset({"not-spam", "auth-failure", "dmarc"})
"""Reports of the same form that nobody complains with."""
_HOTMAIL = "X-HmXmrOriginalRecipient"
"""Whom a letter was for that somebody at Outlook.com complained of: their reports have no fields,
and this in the letter that they return."""


def read_letter(raw: bytes, *, ours: Collection[str], at: Instant) -> list[News]:
    """What a letter says, which may be nothing; ``ours`` are the addresses we write from."""
    incoming = taken_apart(raw)
    complaint = _complaint(incoming, at)
    if complaint is not None:
        return complaint
    returned = read_bounce(incoming, at)
    if returned is not None:
        return returned
    return _message(incoming, {spelled(each) for each in ours}, at)


def read_posted(raw: bytes, *, ours: Collection[str], at: Instant) -> list[News]:
    """The same for a letter that a mail server has passed on; ``InputError`` for what is none."""
    if not _HEADERS.match(raw):
        raise InputError("that is no letter: pass it on as it came, with its headers")
    return read_letter(raw, ours=ours, at=at)


# ---------------------------------------------------------------------- complaints


def _complaint(incoming: Incoming, at: Instant) -> list[News] | None:
    """A report that somebody called one of ours spam; None if it is something else."""
    fields = next(
        (part for part in incoming.leaves if part.get_content_type() == "message/feedback-report"),
        None,
    )
    enclosed = incoming.enclosed
    kind = "" if fields is None else _kind_of(_fields_of(fields))
    if fields is not None and kind:
        return _as_arf(incoming, _fields_of(fields), kind, at)
    told = field(enclosed, _HOTMAIL) if enclosed is not None else ""
    if not told or not _is_from(incoming, "hotmail.com", "outlook.com", "microsoft.com"):
        return None
    found = addresses_in(told) or [""]
    reason = shortened(words_in(incoming.header("Subject"))) or "called spam"
    return [Returned("complaint", found[0], reason, at, "abuse", key_of(incoming))]


def _kind_of(fields: Message) -> str:
    """What a report is of. It has to say so (RFC 5965, 3.1): nobody is taken to have complained by
    one that does not, or in a way that nobody can read."""
    told = words_in(field(fields, "Feedback-Type")).lower()
    found = _KIND.match(told)
    return found[0] if found else ""


def _as_arf(incoming: Incoming, fields: Message, kind: str, at: Instant) -> list[News]:
    if kind in _NO_COMPLAINTS:
        return []
    told = [field(fields, "Original-Rcpt-To"), field(fields, "Removal-Recipient")]
    if incoming.enclosed is not None:
        told += [field(incoming.enclosed, _HOTMAIL), field(incoming.enclosed, "To")]
    found = next((addresses for each in told if (addresses := addresses_in(each))), [""])
    agent = words_in(field(fields, "User-Agent"))
    reason = shortened(f"{kind}, reported by {agent}" if agent else kind)
    return [Returned("complaint", found[0], reason, at, kind, key_of(incoming))]


def _fields_of(part: Message) -> Message:
    payload = part.get_payload()
    inner = payload[0] if isinstance(payload, list) and payload else None
    if not isinstance(inner, Message):
        return part
    # Some leave a line empty above their fields, which are a text then.
    return inner if inner.keys() else HeaderParser().parsestr(text_of(inner).lstrip("\n"))


def _is_from(incoming: Incoming, *domains: str) -> bool:
    senders = addresses_in(incoming.header("From"))
    return bool(senders) and senders[0].rpartition("@")[2] in domains


# ---------------------------------------------------------------------- messages


def _message(incoming: Incoming, ours: set[str], at: Instant) -> list[News]:
    sender = _first(incoming, "From", "Sender", "Return-Path")
    if not sender:
        # Nobody says to have written it, and nobody could be answered.
        return []
    answers = _answered(incoming)
    from_us = sender in ours
    return [
        Inbound(
            provider_id=_name_of(incoming),
            chat=_chat(incoming, sender, from_us, ours),
            sender=sender,
            text=incoming.text,
            at=at,
            from_us=from_us,
            subject=words_in(incoming.header("Subject"))[:LONGEST_SUBJECT],
            answers=answers,
            automatic=is_automatic(incoming, answers=answers is not None),
        )
    ]


def _chat(incoming: Incoming, sender: str, from_us: bool, ours: set[str]) -> str:
    """Whom an answer goes to: for one of our own, whom it was for."""
    if from_us:
        return _first(incoming, "To", "Cc") or sender
    asked = addresses_in(incoming.header("Reply-To"))
    return asked[0] if len(asked) == 1 and asked[0] not in ours else sender


def _answered(incoming: Incoming) -> str | None:
    """What it says it answers; else, as absence notes often do, by the address it came to."""
    told = ["In-Reply-To", "References"]
    named = [incoming.header(name) for name in told]
    named += [value for name in SENT_TO for value in incoming.headers(name)]
    return next((key for key in map(key_named, named) if key is not None), None)


def _first(incoming: Incoming, *names: str) -> str:
    for name in names:
        if found := addresses_in(incoming.header(name)):
            return found[0]
    return ""


def _name_of(incoming: Incoming) -> str:
    """What the letter calls itself, without its brackets; one made from it where it has no name."""
    named = _NAME.search(incoming.header("Message-ID"))
    if named and named[1].isprintable():
        return named[1][:LONGEST_NAME]
    # Without what changes on its way: the same letter is to have the same name.
    said = [incoming.header(name) for name in ("From", "To", "Date", "Subject")]
    body = incoming.source.partition(b"\n\n")[2]
    return "sha256:" + hashlib.sha256("\n".join(said).encode() + b"\n\n" + body).hexdigest()
