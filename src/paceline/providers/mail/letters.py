"""A message as a letter: RFC 5322, in lines that end as they should, seven bits wide.

Pure: everything it needs is passed in. Whatever can be known to be wrong with a letter is refused
here, before anybody is called. How headers are written is in ``headers.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from email.utils import format_datetime
from functools import lru_cache
from math import ceil, floor
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from paceline.core.instants import SECOND, Instant, to_datetime
from paceline.core.links import is_link
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.ports import Message, Thread
from paceline.providers.answers import refusal
from paceline.providers.mail import headers, mime
from paceline.providers.mail.addresses import domain_of, recipient, wire_address
from paceline.providers.mail.ids import id_of, key_in
from paceline.providers.mail.mime import File
from paceline.providers.mail.plain import plain_text
from paceline.providers.options import is_loopback

__all__ = ["File", "Letter", "Sender", "compose", "key_in", "message_id", "too_large"]

MOST_REFERENCES = 12
"""More earlier letters than these are not named: the first and the latest are what counts."""

SHORT, LONG = 300, 100_000
"""Texts of so many characters are remembered: to write a shorter one takes no longer than to look
it up, and many longer ones would take much memory."""

BAD_LINK = "letters cannot bear the link to unsubscribe; set base_url anew, and restart"
"""Said of the account: it has to wait until somebody has mended the setting."""

_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")
_ID = re.compile(r"<[\x21-\x3b\x3d\x3f-\x7e]{1,300}>")
_RE = re.compile(r"re:\s", re.IGNORECASE)


class Sender(NamedTuple):
    """Whom a letter is from, as people see it."""

    address: str
    name: str = ""
    reply_to: str = ""


class Letter(NamedTuple):
    """Ready to be handed over: the bytes, and for the envelope from whom and to whom."""

    message_id: str
    raw: bytes
    sender: str
    recipient: str

    @property
    def size(self) -> int:
        return len(self.raw)

    @property
    def needs_utf8(self) -> bool:
        """Whether only a server with SMTPUTF8 can take it."""
        return not (self.recipient.isascii() and self.sender.isascii())


def message_id(key: str, sender: Sender) -> str:
    """The same for every attempt, and another for every message."""
    return id_of(key, _own(sender).domain)


def compose(
    sender: Sender,
    message: Message,
    files: Sequence[File],
    at: Instant,
    *,
    html_to_text: Callable[[str], str] = plain_text,
    utf8: bool = False,
    largest: int | None = None,
) -> Letter | Outcome:
    """The letter, or why there can be none. ``files`` are those of the part, in its order;
    ``largest`` is how many bytes may be sent, ``utf8`` whether addresses may have any letters."""
    target = recipient(message.target, utf8=utf8)
    if isinstance(target, Outcome):
        return target
    part = message.part
    if not (part.text.strip() or part.html.strip() or files):
        return refusal("text", "there is nothing in the message")
    if message.unsubscribe and not is_link(message.unsubscribe):
        # So it would be in every letter, and no letter is to blame.
        return Outcome(OutcomeKind.UNAUTHORISED, BAD_LINK, "unsubscribe")
    if files and largest is not None:
        enclosed = sum(len(file.content) for file in files)
        if enclosed > largest:
            return too_large(enclosed, largest)
    try:
        own = _own(sender)
        own_id = id_of(message.key, own.domain)
        above = _above(own, sender, message, target, own_id, at)
        raw = above.encode() + _inside(part.text, part.html, files, html_to_text)
    except UnicodeEncodeError:
        return refusal("text", "the message has characters in it that no text has")
    if largest is not None and len(raw) > largest:
        return too_large(len(raw), largest)
    return Letter(own_id, raw, own.address, target)


def too_large(size: int, largest: int) -> Outcome:
    unit, name = (2**20, "MiB") if min(size, largest) >= 2**20 else (2**10, "KiB")
    has, most = size / unit, largest / unit
    # Rounded apart, or what is too large would seem to be as large as may be.
    has, most = ceil(10 * has) / 10, floor(10 * most) / 10
    return refusal(
        "too-large", f"the letter has {has:.1f} {name}, and {most:.1f} {name} can be sent"
    )


def _leaving(link: str) -> str:
    """How to unsubscribe. One click is promised of a link that is encrypted only, or mail programs
    believe none of it (RFC 8058, 3.1); this very machine needs none, for whoever tries it out."""
    listed = f"List-Unsubscribe: <{link}>\r\n"
    if not link.startswith("https://") and not is_loopback(urlsplit(link).hostname or ""):
        return listed
    return f"{listed}List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"


def _above(
    own: _Own, sender: Sender, message: Message, target: str, own_id: str, at: Instant
) -> str:
    """Everything above the letter. Nothing here says that a machine sent it: a campaign is no
    automatic answer, and clients would treat it as one."""
    earlier = _references(sender, message.thread) if message.thread else ""
    leaving = _leaving(message.unsubscribe) if message.unsubscribe else ""
    return (
        f"From: {own.shown}\r\n"
        f"To: {target}\r\n"
        f"{own.reply_to}"
        f"Subject: {_subject(message.part.subject, message.thread)}\r\n"
        f"Date: {_date(at // SECOND)}\r\n"
        f"Message-ID: {own_id}\r\n"
        f"{earlier}"
        f"{leaving}"
        "MIME-Version: 1.0\r\n"
    )


class _Own(NamedTuple):
    """What is the same in every letter of a sender."""

    address: str
    domain: str
    shown: str
    """Address and name."""
    reply_to: str
    """The header, where there is one."""


# These are the same for every letter of an account, or of a second, or most of a campaign.
@lru_cache(maxsize=4_096)
def _own(sender: Sender) -> _Own:
    address = wire_address(sender.address)
    reply_to = f"Reply-To: {wire_address(sender.reply_to)}\r\n" if sender.reply_to else ""
    shown = headers.mailbox(address, sender.name, "From")
    return _Own(address, domain_of(address), shown, reply_to)


@lru_cache(maxsize=16)
def _date(at_s: int) -> str:
    return format_datetime(to_datetime(at_s * SECOND))


@lru_cache(maxsize=256)
def _written(subject: str) -> str:
    return headers.words(headers.one_line(subject), "Subject")


def _references(sender: Sender, thread: Thread) -> str:
    keys = thread.keys
    if len(keys) > MOST_REFERENCES:
        keys = (keys[0], *keys[1 - MOST_REFERENCES :])
    ids = [key if key.startswith("<") else message_id(key, sender) for key in keys]
    # What others call their letters is theirs to say, and not to write headers of ours with.
    ids = [one for one in ids if _ID.fullmatch(one)]
    if not ids:
        return ""
    return f"In-Reply-To: {ids[-1]}\r\nReferences: {headers.in_lines(ids)}\r\n"


def _subject(own: str, thread: Thread | None) -> str:
    written = _written(own)
    if written or thread is None:
        return written
    first = headers.one_line(thread.subject)
    return _written(first if not first or _RE.match(first) else f"Re: {first}")


def _inside(
    text: str, html: str, files: Sequence[File], html_to_text: Callable[[str], str]
) -> bytes:
    """The words, the pictures that stand among them, then what is attached."""
    pictures, attached = _sorted(html, files) if files else ({}, [])
    for name, file in pictures.items():
        html = _referring(html, file.name, name)
    if not html.strip():
        whole = _words(text, "plain")
    else:
        page = _words(html, "html")
        if pictures:
            shown = [mime.file(file, name) for name, file in pictures.items()]
            page = mime.together("related", [page, *shown], "related")
        plain = _words(text if text.strip() else _read_out(html, html_to_text), "plain")
        whole = mime.together("alternative", [plain, page], "words")
    if attached:
        whole = mime.together("mixed", [whole, *map(mime.file, attached)], "letter")
    return whole


def _words(words: str, subtype: str) -> bytes:
    """A text or a page as a part. What has no blanks is the same for a whole campaign."""
    worth_it = SHORT < len(words) <= LONG
    return _same_words(words, subtype) if worth_it else mime.text(words, subtype)


def _read_out(html: str, html_to_text: Callable[[str], str]) -> str:
    return _same_page(html, html_to_text) if len(html) <= LONG else html_to_text(html)


@lru_cache(maxsize=32)
def _same_words(words: str, subtype: str) -> bytes:
    return mime.text(words, subtype)


@lru_cache(maxsize=32)
def _same_page(html: str, html_to_text: Callable[[str], str]) -> str:
    return html_to_text(html)


def _sorted(html: str, files: Sequence[File]) -> tuple[dict[str, File], list[File]]:
    """The files that the page shows, by the names they get within it, and those that it does not.

    A page refers to a picture as ``cid:NAME``. A name that no Content-ID can have is replaced."""
    pictures: dict[str, File] = {}
    attached: list[File] = []
    for number, file in enumerate(files, 1):
        if not _reference(file.name).search(html):
            attached.append(file)
            continue
        name = file.name if _PLAIN_NAME.fullmatch(file.name) else f"picture-{number}"
        if name in pictures:
            attached.append(file)
        else:
            pictures[name] = file
    return pictures, attached


def _reference(name: str) -> re.Pattern[str]:
    spelled = "|".join(re.escape(one) for one in dict.fromkeys((name, quote(name))))
    return re.compile(rf"\bcid:(?:{spelled})(?![\w.%-])", re.IGNORECASE)


def _referring(html: str, old: str, new: str) -> str:
    return html if old == new else _reference(old).sub(f"cid:{new}", html)
