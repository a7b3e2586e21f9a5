"""The nouns that cross module borders: content and its parts, targets, and what the pacer is asked.

Plain values only. How they are stored is the store's affair, how they are sent a provider's. What
is made anew for every message is a named tuple: nothing immutable is made faster.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from paceline.core.errors import InputError
from paceline.core.hours import Hours
from paceline.core.instants import DAY, Instant
from paceline.core.states import AccountState

REPLY = "reply"
"""The action type under which replies and follow-ups are counted."""

RETRIES = "retries"
"""Under which name a message keeps how often it is tried again."""

PartKind = Literal["text", "media", "template"]
AtClose = Literal["skip", "resume"]
Trigger = Literal["reply", "accepted"]
"""What somebody does that bids a follow-up: they answer, or they accept an invitation."""


class Part(NamedTuple):
    """A text or a media piece of a delivery; ``text`` is the caption of a media part.

    In a campaign the strings are templates; in a rendered part they are what will be sent.
    A captioned image is one part: one send, one token. A part of the kind ``template`` names a text
    that the provider has and has approved; only its blanks are filled in here.
    """

    kind: PartKind
    text: str = ""
    subject: str = ""
    html: str = ""
    media: str | None = None
    template: str = ""
    """The template's name at the provider."""
    language: str = ""
    values: tuple[tuple[str, str], ...] = ()
    """What its blanks are filled with, in order; each with its name, empty where it has none."""
    attachments: tuple[str, ...] = ()
    """Files that travel with an e-mail, besides the one it may be about."""
    answers: tuple[str, ...] = ()
    """Of an e-mail the letters that it goes on with, the oldest first: in angle brackets what
    theirs are called, and the numbers of our own deliveries."""

    @property
    def files(self) -> tuple[str, ...]:
        """Every file the part is sent with, in order."""
        return self.attachments if self.media is None else (self.media, *self.attachments)

    def to_mapping(self) -> dict[str, Any]:
        optional = {
            "subject": self.subject,
            "html": self.html,
            "media": self.media,
            "template": self.template,
            "language": self.language,
            "values": [list(value) for value in self.values],
            "attachments": list(self.attachments),
            "answers": list(self.answers),
        }
        return {"kind": self.kind, "text": self.text} | {k: v for k, v in optional.items() if v}

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any]) -> Part:
        return cls(
            kind=raw["kind"],
            text=raw.get("text", ""),
            subject=raw.get("subject", ""),
            html=raw.get("html", ""),
            media=raw.get("media"),
            template=raw.get("template", ""),
            language=raw.get("language", ""),
            values=tuple((name, text) for name, text in raw.get("values", ())),
            attachments=tuple(raw.get("attachments", ())),
            answers=tuple(raw.get("answers", ())),
        )


@dataclass(frozen=True, slots=True)
class Content:
    """What every delivery of a campaign says: its parts, in the order they are sent."""

    parts: tuple[Part, ...]
    retries: int | None = None
    """How often it is tried again at most; None for as often as the policy's ladder says."""

    def __post_init__(self) -> None:
        if not self.parts:
            raise InputError("a message needs at least one part", key="parts")

    def stored(self, ids: Mapping[str, str]) -> Content:
        """The same with each file's name replaced by what it is stored as."""
        parts = [
            part._replace(
                media=ids[part.media] if part.media else None,
                attachments=tuple(ids[name] for name in part.attachments),
            )
            for part in self.parts
        ]
        return replace(self, parts=tuple(parts))

    def to_list(self) -> list[dict[str, Any]]:
        """As it is kept; what is said of the whole message is with its first part."""
        first, *others = [part.to_mapping() for part in self.parts]
        return [first if self.retries is None else first | {RETRIES: self.retries}, *others]

    @classmethod
    def from_list(cls, raw: list[dict[str, Any]], step: int = 1) -> Content:
        """What one step says, of a list that may hold those of several."""
        entries = [entry for entry in raw if entry.get("step", 1) == step]
        retries = entries[0].get(RETRIES) if entries else None
        return cls(tuple(Part.from_mapping(entry) for entry in entries), retries)


@dataclass(frozen=True, slots=True)
class Step:
    """A message that follows another, so long after that one was sent."""

    after_us: int
    content: Content


@dataclass(frozen=True, slots=True)
class FollowUp:
    """The message of a campaign that somebody bids by what they do, within so long after any of
    the others was sent to them; to everybody else it is never sent."""

    content: Content
    on: Trigger = "reply"
    within_us: int = DAY
    action: str | None = None
    """None where it is the campaign's."""


@dataclass(frozen=True, slots=True)
class Target:
    """One addressee of a campaign, with the fields its templates may use."""

    address: str
    fields: Mapping[str, str] = field(default_factory=dict)
    contact_id: int | None = None
    """The person, where one is known: an address is only where they are reached."""
    addresses: tuple[tuple[str, str], ...] = ()
    """Everywhere they are said to be reached: each by its kind, in its one spelling."""


@dataclass(frozen=True, slots=True)
class Standing:
    """An account's state as the pacer sees it: whether it may send at all, and since what day."""

    state: AccountState = AccountState.ACTIVE
    until_at: Instant | None = None
    reason: str = ""
    warm_since_at: Instant = 0


class Ask(NamedTuple):
    """A delivery as far as the gates care: what it would use, and when it may go at all."""

    action: str = "message"
    parts: int = 1
    run_id: int = 0
    reply: bool = False
    not_before_at: Instant = 0
    expires_at: Instant | None = None
    suppressed: bool = False
    window: Hours | None = None
    opens_at: Instant | None = None
    closes_at: Instant | None = None
    recipient_hours: Hours | None = None
    contacted: tuple[Instant, ...] = ()
    """When this recipient was last written to, newest last: what the frequency gate counts."""
    known: bool = True
    """Whether the account has written to this recipient before; asked for only while it matters."""

    @property
    def counted_as(self) -> str:
        """The action type whose cap this delivery uses up."""
        return REPLY if self.reply else self.action


@dataclass(frozen=True, slots=True)
class Go:
    """Every gate is open now."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Some gate is shut until ``until_at``; ``None`` means until somebody or something opens it."""

    until_at: Instant | None
    gate: str
    why: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """This delivery can never go out; ``gate`` says what forbids it."""

    gate: str
    why: str


Verdict = Go | Wait | Refuse
