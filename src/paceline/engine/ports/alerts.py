"""Alerts: what operators are told of, and who tells them."""

from __future__ import annotations

from builtins import list as list_of
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from paceline.core.instants import Instant

Reasons = tuple[tuple[str, int], ...]
"""What was said, and how often, the most frequent first."""


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that a person should look at; open until its cause is gone or somebody clears it.

    The same thing again while it is open only counts up.
    """

    id: int
    key: str
    """What it is about. There is one open alert per key at most."""
    kind: str
    text: str
    reasons: Reasons
    count: int
    first_at: Instant
    last_at: Instant
    told_at: Instant | None
    cleared_at: Instant | None
    account_id: int | None = None
    run_id: int | None = None


class OpenKind(NamedTuple):
    """What is open of one kind, taken together."""

    kind: str
    quietest_at: Instant
    """When the one happened last that has been quiet for longest."""
    told_at: Instant | None
    """When any of them was told last."""
    telling_at: Instant | None
    """When a process last set out to tell any, of those that are not told yet."""


@dataclass(frozen=True, slots=True)
class NewAlert:
    key: str
    kind: str
    text: str
    reasons: Reasons = ()
    account_id: int | None = None
    run_id: int | None = None


class Alerts(Protocol):
    def put(self, alert: NewAlert, at: Instant) -> None:
        """Open it; where one with its key is open already, count that up and renew its words."""
        ...

    def get(self, alert_id: int) -> Alert | None: ...

    def list(self, *, with_cleared: bool = False, limit: int = 1000) -> list_of[Alert]:
        """The open ones, or all, the latest first."""
        ...

    def about(self, account_ids: Collection[int], run_ids: Collection[int]) -> list_of[Alert]:
        """The open ones about any of these accounts or runs, the latest first."""
        ...

    def kinds(self) -> list_of[OpenKind]:
        """The open ones by their kind."""
        ...

    def clear(
        self,
        at: Instant,
        *,
        alert_id: int | None = None,
        account_id: int | None = None,
        run_id: int | None = None,
        kinds: Sequence[str] = (),
        keys: Sequence[str] = (),
        quiet_since_at: Instant | None = None,
    ) -> int:
        """Close the open ones to which all of this applies; how many there were.

        ``quiet_since_at`` means those that have not happened again since then.
        """
        ...

    def reasons(
        self,
        account_id: int,
        kinds: Collection[str],
        *,
        run_id: int | None = None,
        since_at: Instant = 0,
        latest: int = 10_000,
    ) -> list_of[tuple[str, int]]:
        """What was said when outcomes were of these kinds, and how often, most frequent first.

        Only the latest of those outcomes are looked at, of the account, in a run, since an instant.
        """
        ...

    def untold(self, now: Instant, *, again_us: int, abandoned_us: int) -> list_of[Alert]:
        """Open ones that somebody has yet to be told of: never told, or happened again since and
        told longer ago than ``again_us``. Not those that a process is telling right now; one that
        set out to longer ago than ``abandoned_us`` is given up."""
        ...

    def set_out(
        self, alert_ids: Collection[int], now: Instant, *, again_us: int, abandoned_us: int
    ) -> list_of[Alert]:
        """Take it upon this process to tell these; those of them that are still untold, as they
        are now. Where another was faster it is left out."""
        ...

    def told(self, alert_ids: Collection[int], at: Instant | None) -> None:
        """They were told at this instant; None: nobody could be reached."""
        ...


class Told(NamedTuple):
    """What became of one notice at one address; the address without its secrets."""

    where: str
    problem: str = ""

    @property
    def ok(self) -> bool:
        return not self.problem


class Notifier(Protocol):
    """Tells people: by mail, chat or whatever an address leads to."""

    async def tell(self, title: str, text: str) -> list[Told]:
        """Tell every address; what became of each. Never raises, never takes for ever."""
        ...
