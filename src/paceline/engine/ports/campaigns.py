"""What the engine asks of the store about campaigns and their runs."""

from __future__ import annotations

from builtins import list as list_of
from collections.abc import Collection, Mapping
from typing import Any, Protocol

from paceline.core.instants import Instant
from paceline.core.states import CampaignState, DeliveryState, RunState
from paceline.engine.ports.records import Campaign, Run, RunKind
from paceline.engine.ports.reminders import Firing, Undelivered


class Campaigns(Protocol):
    def add(
        self,
        *,
        name: str,
        kind: RunKind,
        content: list[dict[str, Any]],
        settings: Mapping[str, Any],
        at: Instant,
    ) -> Campaign:
        """A name in use raises ``ConflictError``."""
        ...

    def get(self, campaign_id: int) -> Campaign: ...

    def find(self, name: str) -> Campaign | None: ...

    def list(self, state: CampaignState | None = None) -> list[Campaign]:
        """All of them, or those in one state."""
        ...

    def set_content(
        self, campaign_id: int, content: list_of[dict[str, Any]], settings: Mapping[str, Any]
    ) -> None: ...

    def rename(self, campaign_id: int, name: str) -> None: ...

    def set_settings(self, campaign_id: int, settings: Mapping[str, Any]) -> None: ...

    def move(
        self, campaign_id: int, event: str, *, at: Instant, reason: str = ""
    ) -> CampaignState | None: ...


class Runs(Protocol):
    def add(
        self,
        *,
        campaign_id: int,
        window: str | None = None,
        opens_at: Instant | None = None,
        closes_at: Instant | None = None,
        priority: int = 0,
        state: RunState = RunState.WAITING,
        firing: Firing | None = None,
        at: Instant,
    ) -> Run: ...

    def open_follow_ups(self, campaign_id: int, priority: int, at: Instant) -> Run:
        """A running run for what is bidden: it is empty as yet."""
        ...

    def get(self, run_id: int) -> Run: ...

    def of_campaign(self, campaign_id: int, states: Collection[RunState] = ()) -> list[Run]:
        """All of its runs, or those in some states, the oldest first."""
        ...

    def latest(self, campaign_id: int, limit: int) -> list[Run]:
        """The latest of them, the latest first."""
        ...

    def set_window(
        self, run_id: int, opens_at: Instant | None, closes_at: Instant | None
    ) -> None: ...

    def move(
        self, run_id: int, event: str, *, at: Instant, reason: str = "", summary: str = ""
    ) -> RunState | None: ...

    def counts(self, run_id: int, account_id: int | None = None) -> dict[DeliveryState, int]:
        """Deliveries by state, from the counters, of everybody or of one account; every state is
        present."""
        ...

    def goes_on(self, run_id: int) -> bool:
        """Whether anything of it is left to be sent. Told by the first counter that says so, where
        ``counts`` adds up those of all accounts."""
        ...

    def accounts(self, run_id: int) -> dict[int, dict[DeliveryState, int]]: ...

    def reached_after(
        self, run_id: int, unreached: Collection[DeliveryState]
    ) -> list[tuple[str, int | None]]:
        """Everybody to whom something of the campaign's later runs went, or is about to, with the
        person's number: all but those whose deliveries ended in these states with no part seen."""
        ...

    def last_fired_for(self, campaign_id: int) -> Instant:
        """The latest time for which a reminder has fired, or was missed; 0 where there is none."""
        ...

    def left_on(self, first: Collection[int] = ()) -> dict[int, int | None]:
        """Running runs of running campaigns, but standing ones, each with an account on which
        something of it is left to be sent; None where there is none. The ``first`` accounts are
        asked before all others."""
        ...

    def overdue(self, closed_before_at: Instant) -> list[int]:
        """Firings and campaigns whose window closed for good before then, and that go on."""
        ...

    def undelivered(self, run_id: int) -> list[Undelivered]:
        """What was not sent, by account, state and reason; the most frequent first."""
        ...

    def awaiting_proof(self, run_id: int) -> bool:
        """Whether some unknown delivery of the run will still be asked about by itself."""
        ...
