"""What the engine asks of the store about follow-ups: to whom something was sent that may bid one,
and which of them wait."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol

from paceline.core.instants import Instant
from paceline.core.states import DeliveryState


class Reached(NamedTuple):
    """A message of a campaign that somebody got from an account, or may have got."""

    delivery_id: int
    run_id: int
    campaign_id: int
    position: int
    step: int
    state: DeliveryState
    """Sent, or on its way, or in doubt; failed where only its beginning was sent."""
    sent_at: Instant | None


class Doubtful(NamedTuple):
    """A follow-up that was bidden while the message before it was on its way."""

    delivery_id: int
    account_id: int
    run_id: int
    step: int
    before_id: int
    before: DeliveryState
    """What became of that message."""


class Bids(Protocol):
    """Follow-ups are there from when somebody bids them, and not before."""

    def reached(self, account_id: int, target: str) -> list[Reached]:
        """The latest that campaigns have sent to this address from this account, what is on its
        way, and what has failed after its first part; what was bidden itself is not among them."""
        ...

    def writers(self, targets: Collection[str]) -> list[int]:
        """The accounts from which something was sent to one of these addresses, or is to be; in the
        order in which lanes are held."""
        ...

    def bidden_in(
        self, conversation_ids: Collection[int], received_id: int | None = None
    ) -> list[int]:
        """Follow-ups that wait, and were bidden by what was said in these conversations; or by this
        message of them."""
        ...

    def find(self, run_id: int, position: int) -> int | None:
        """The follow-up that was bidden from this place already."""
        ...

    def give_back(self, delivery_id: int) -> None:
        """A follow-up is over that nobody was sent: another may be bidden from its place."""
        ...

    def following(self, run_id: int, delivery_id: int) -> list[int]:
        """What comes after a message by itself, and has not been sent."""
        ...

    def settled(self, run_id: int) -> list[Doubtful]:
        """Follow-ups of a run whose message before is over by now."""
        ...

    def open_runs(self) -> list[int]:
        """Running runs of follow-ups."""
        ...
