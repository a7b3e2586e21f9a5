"""A message as a letter: RFC 5322, in lines that end as they should, seven bits wide.

Pure: everything it needs is passed in. Whatever can be known to be wrong with a letter is refused
here, before anybody is called. How headers are written is in ``headers.py``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from email.utils import format_datetime
from functools import lru_cache
from urllib.parse import quote

from paceline.core.instants import SECOND, Instant, to_datetime
from paceline.core.outcome import Outcome
from paceline.engine.ports import Message, Thread
from paceline.providers.answers import refusal
from paceline.providers.mail import headers, mime
from paceline.providers.mail.addresses import domain_of, recipient, wire_address
from paceline.providers.mail.ids import id_of, key_in
from paceline.providers.mail.mime import File
from paceline.providers.mail.plain import plain_text

__all__ = ["File", "Letter", "Sender", "compose", "key_in", "message_id", "too_large"]

MOST_REFERENCES = 12
"""More earlier letters than these are not named: the first and the latest are what counts."""

_LINK = re.compile(r"https?://[\x21-\x3b\x3d\x3f-\x7e]+")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")
_ID = re.compile(r"<[\x21-\x3b\x3d\x3f-\x7e]{1,300}>")
_RE = re.compile(r"re:\s", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sender:
    """Whom a letter is from, as people see it."""

    address: str
    name: str = ""
    reply_to: str = ""


@dataclass(frozen=True, slots=True)
class Letter:
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
    return id_of(key, _own(sender.address)[1])


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
    if message.unsubscribe and not _LINK.fullmatch(message.unsubscribe):
        return refusal("unsubscribe", "the link to unsubscribe is no address of the web")
    if largest is not None and sum(len(file.content) for file in files) > largest:
        return too_large(sum(len(file.content) for file in files), largest)
    own_id = message_id(message.key, sender)
    try:
        above = _above(sender, message, target, own_id, at)
        raw = above.encode() + _inside(part.text, part.html, files, html_to_text)
    except UnicodeEncodeError:
        return refusal("text", "the message has characters in it that no text has")
    if largest is not None and len(raw) > largest:
        return too_large(len(raw), largest)
    return Letter(own_id, raw, _own(sender.address)[0], target)


def too_large(size: int, largest: int) -> Outcome:
    has, most = size / 2**20, largest / 2**20
    return refusal("too-large", f"the letter has {has:.1f} MiB, and {most:.1f} MiB can be sent")


def _above(sender: Sender, message: Message, target: str, own_id: str, at: Instant) -> str:
    """Everything above the letter. Nothing here says that a machine sent it: a campaign is no
    automatic answer, and clients would treat it as one."""
    lines = {
        "From": _from(sender),
        "To": target,
        "Reply-To": wire_address(sender.reply_to) if sender.reply_to else "",
        "Subject": headers.words(_subject(message), "Subject"),
        "Date": _date(at // SECOND),
        "Message-ID": own_id,
        **_references(sender, message.thread),
    }
    if message.unsubscribe:
        lines["List-Unsubscribe"] = f"<{message.unsubscribe}>"
        lines["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    lines["MIME-Version"] = "1.0"
    return "".join(
        f"{name}: {value}\r\n" for name, value in lines.items() if value or name == "Subject"
    )


# These are the same for every letter of an account, or of a second.
@lru_cache(maxsize=4_096)
def _own(address: str) -> tuple[str, str]:
    """A sender's address as it is sent, and its domain."""
    wire = wire_address(address)
    return wire, domain_of(wire)


@lru_cache(maxsize=4_096)
def _from(sender: Sender) -> str:
    return headers.mailbox(_own(sender.address)[0], sender.name, "From")


@lru_cache(maxsize=16)
def _date(at_s: int) -> str:
    return format_datetime(to_datetime(at_s * SECOND))


def _references(sender: Sender, thread: Thread | None) -> dict[str, str]:
    if thread is None or not thread.keys:
        return {}
    keys = thread.keys
    if len(keys) > MOST_REFERENCES:
        keys = (keys[0], *keys[1 - MOST_REFERENCES :])
    ids = [key if key.startswith("<") else message_id(key, sender) for key in keys]
    # What others call their letters is theirs to say, and not to write headers of ours with.
    ids = [one for one in ids if _ID.fullmatch(one)]
    return {"In-Reply-To": ids[-1], "References": headers.in_lines(ids)} if ids else {}


def _subject(message: Message) -> str:
    own = headers.one_line(message.part.subject)
    thread: Thread | None = message.thread
    if own or thread is None:
        return own
    first = headers.one_line(thread.subject)
    return first if not first or _RE.match(first) else f"Re: {first}"


def _inside(
    text: str, html: str, files: Sequence[File], html_to_text: Callable[[str], str]
) -> bytes:
    """The words, the pictures that stand among them, then what is attached."""
    pictures, attached = _sorted(html, files)
    for name, file in pictures.items():
        html = _referring(html, file.name, name)
    whole = mime.text(text if text.strip() or not html.strip() else html_to_text(html))
    if html.strip():
        page = mime.text(html, "html")
        if pictures:
            shown = [mime.file(file, name) for name, file in pictures.items()]
            page = mime.together("related", [page, *shown], "related")
        whole = mime.together("alternative", [whole, page], "words")
    if attached:
        whole = mime.together("mixed", [whole, *map(mime.file, attached)], "letter")
    return whole


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
