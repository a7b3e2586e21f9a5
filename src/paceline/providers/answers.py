"""What comes back over HTTP, and how it is read with a driver's table of errors.

Pure, and without the library that speaks HTTP, so that a command that only reads settings does not
load it. Which errors a provider knows is written in its own folder; the calls are in ``http.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

from paceline.core.errors import InputError
from paceline.core.instants import SECOND, Instant, from_datetime
from paceline.core.outcome import Outcome, OutcomeKind

LONGEST_REASON = 300
LONGEST_NAME = 255

_K = OutcomeKind

Said = Mapping[str, Any]
"""The body of an answer that is a JSON object."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back over HTTP: the status, the headers in lower case, the body as it is."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def succeeded(self) -> bool:
        return 200 <= self.status < 300

    def read(self) -> Any:
        """The body as JSON; None if it is none, whatever it calls itself."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None

    def said(self) -> dict[str, Any] | None:
        """The body as an object; None if it is none."""
        read = self.read()
        return read if isinstance(read, dict) else None


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One error by its code: the status it comes with, and what it means for a message."""

    status: int
    code: str
    kind: OutcomeKind
    means: str
    wait_us: int | None = None
    """How long to wait, where the answer itself does not say. Left out where the engine's own wait
    for this kind of outcome will do, which grows when it does not help."""


WAITS = frozenset({_K.THROTTLED, _K.EXHAUSTED, _K.UNAVAILABLE, _K.BANNED})
"""The answers whose ``Retry-After`` counts."""


class ErrorTable:
    """What a provider's refusals mean: by their code, and where none is known by their status.

    What neither of them tells is ``transient``, as everywhere; except for the fives that are left,
    which come from somebody between us and the provider who passed the request on and got nothing
    usable back, for then the message may be out.
    """

    def __init__(
        self,
        rows: Sequence[ErrorRow],
        by_status: Mapping[int, OutcomeKind],
        *,
        code_of: Callable[[Said], str],
        words_of: Callable[[Said], Iterable[object]],
    ) -> None:
        self.rows = tuple(rows)
        self.by_status = by_status
        self.by_code: Mapping[str, ErrorRow] = {row.code: row for row in rows}
        self._code_of = code_of
        self._words_of = words_of

    def code_of(self, said: Said | None) -> str:
        """The code of an error; empty where there is none."""
        return self._code_of(said) if said else ""

    def kind_of(self, status: int, code: str) -> OutcomeKind:
        """What an answer that is no success means for the message."""
        if code in self.by_code:
            return self.by_code[code].kind
        if status in self.by_status:
            return self.by_status[status]
        return _K.UNKNOWN if 500 <= status < 600 else _K.TRANSIENT

    def outcome_of(self, answer: Answer, now: Instant) -> Outcome:
        """The outcome of a call that was not answered with success."""
        said = answer.said()
        code = self.code_of(said)
        kind, row = self.kind_of(answer.status, code), self.by_code.get(code)
        asked = answer.headers.get("retry-after")
        wait_us = retry_after_us(asked, now) if kind in WAITS else None
        if wait_us is None and row is not None:
            wait_us = row.wait_us
        reason = self.reason_of(answer, said)
        return Outcome(kind, reason, code or f"http-{answer.status}", None, wait_us)

    def reason_of(self, answer: Answer, said: Said | None) -> str:
        """The provider's own words, in one line."""
        words = self._words_of(said) if said else ()
        told = ": ".join(one_line(word) for word in words if isinstance(word, str) and word.strip())
        known = self.code_of(said)
        return told or known or f"answered {answer.status} without a readable reason"


def retry_after_us(value: str | None, now: Instant) -> int | None:
    """What a ``Retry-After`` asks for, in seconds or as a date; None where it makes no sense."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdecimal() and len(text) <= 9:
        return int(text) * SECOND
    try:
        return max(0, from_datetime(parsedate_to_datetime(text)) - now)
    except (ValueError, InputError, OverflowError):
        return None


def refusal(code: str, reason: str) -> Outcome:
    """What is known to be wrong with a message before anything was written."""
    return Outcome(_K.REJECTED, reason, code)


def name_of(raw: object) -> str | None:
    """An id as providers give them. It may be missing, and that alone is no failure."""
    if isinstance(raw, str):
        return raw.strip()[:LONGEST_NAME] or None
    if isinstance(raw, int) and not isinstance(raw, bool):
        return str(raw)[:LONGEST_NAME]
    return None


def segment(name: str) -> str:
    """A name as one piece of a path, whatever is in it; two dots would lead elsewhere."""
    return quote(name, safe="").replace(".", "%2E")


def one_line(text: str) -> str:
    return " ".join(text.split())


def shortened(reason: str) -> str:
    return reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 1]}…"
