"""What an operator writes about opting out, in a table ``[opt_out]``: words, a confirmation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from paceline.core import readers
from paceline.core.errors import InputError
from paceline.core.opting_out import DEFAULT, LONGEST, START, STOP, OptOut, bare
from paceline.core.tables import Reader, read_table, table_of, text_of

LONGEST_CONFIRMATION = 1_000
SUBJECT = "You are unsubscribed"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What whoever opts out is told, once."""

    text: str
    subject: str = SUBJECT
    """Of a letter that answers none of theirs."""
    links: bool = False
    """Whether those are told as well who followed a link: they have seen a page that says so."""


class OptingOut(NamedTuple):
    words: OptOut = DEFAULT
    confirmation: Confirmation | None = None

    def to_mapping(self) -> dict[str, Any]:
        """As it could be written."""
        words = {"stop": list(self.words.stop), "start": list(self.words.start), "built_in": False}
        if self.confirmation is None:
            return words
        told = self.confirmation
        said = {"confirmation": told.text, "subject": told.subject, "confirm_links": told.links}
        return {**words, **said}


def opting_out_of(raw: object) -> OptingOut:
    """The table, checked; in a variable it is written in one line."""
    if isinstance(raw, str):
        raw = _table_in(raw)
    read = read_table(raw, _KEYS)
    built_in = read.get("built_in", True)
    words = OptOut(
        (*(STOP if built_in else ()), *read.get("stop", ())),
        (*(START if built_in else ()), *read.get("start", ())),
    )
    if not words.stop:
        # Whoever cannot be asked to stop must not begin.
        hint = 'Name the words by which people opt out: stop = ["stop"]'
        raise InputError("is empty, and built_in is false", key="stop", hint=hint)
    text = read.get("confirmation", "")
    for key in ("subject", "confirm_links"):
        if key in read and not text:
            raise InputError("is of no use without a confirmation", key=key)
    if not text:
        return OptingOut(words)
    return OptingOut(
        words,
        Confirmation(text, read.get("subject", SUBJECT), read.get("confirm_links", False)),
    )


def _table_in(text: str) -> Mapping[str, Any]:
    try:
        return table_of(text)
    except InputError:
        raise InputError("is not a table", hint='Write { stop = ["genug"] }') from None


def _words(raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list):
        raise InputError('must be a list such as ["stop", "no more"]')
    words = tuple(text_of(word).strip() for word in raw)
    for word in words:
        if not bare(word):
            raise InputError(f"{word!r} is no word")
        if len(word) > LONGEST:
            raise InputError(f"{word[:20]!r}... has more than {LONGEST} characters")
    return words


def _yes_or_no(raw: object) -> bool:
    if not isinstance(raw, bool):
        raise InputError(f"expected true or false, not {raw!r}")
    return raw


def _confirmation(raw: object) -> str:
    text = readers.text(raw)
    if len(text) > LONGEST_CONFIRMATION:
        raise InputError(f"has more than {LONGEST_CONFIRMATION} characters")
    return text


def _subject(raw: object) -> str:
    return " ".join(readers.text(raw).split())


_KEYS: Mapping[str, Reader[Any]] = {
    "stop": _words,
    "start": _words,
    "built_in": _yes_or_no,
    "confirmation": _confirmation,
    "subject": _subject,
    "confirm_links": _yes_or_no,
}
