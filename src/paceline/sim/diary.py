"""The diary: a chronicle that also writes down every run of a reminder as it is made and as it
changes its state, with all its deliveries.

It reads what stands in the tables just before each commit, and holds no opinion of the engine's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from paceline.core.instants import Instant
from paceline.core.states import CampaignState, DeliveryState
from paceline.engine.clock import LoopClock
from paceline.engine.ports import Alert, Delivery, LedgerRow, Run, Store, Tx
from paceline.engine.ports.audit import Moment
from paceline.sim.chronicle import Chronicle, Page
from paceline.sim.reminding import Book, Routine
from paceline.sim.worlds import Sender


@dataclass(frozen=True, slots=True)
class Entry:
    """A run as one commit left it, where that commit made it or moved it."""

    page: int
    at: Instant
    """True time."""
    new: bool
    run: Run
    deliveries: tuple[Delivery, ...]
    counted: Mapping[DeliveryState, int]
    """What the counters claim."""
    paused: bool
    """Whether its reminder was paused just then."""
    paused_because: str = ""
    accounts: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    """How its accounts stood, and why."""
    stopped: tuple[str, Instant] | None = None
    """Why everything was stopped, if it was, and since when."""


class Diary(Chronicle):
    """The store of a world with reminders."""

    def __init__(self, store: Store, clock: LoopClock) -> None:
        super().__init__(store, clock)
        self._tx: Tx | None = None
        self._states: dict[int, str] = {}
        self.entries: list[Entry] = []

    @contextmanager
    def write(self, *, at_once: bool = False) -> Iterator[Tx]:
        with super().write(at_once=at_once) as tx:
            self._tx = tx
            yield tx

    def _page(self, moment: Moment, rows: list[LedgerRow], alerts: Sequence[Alert]) -> Page:
        page = super()._page(moment, rows, alerts)
        assert self._tx is not None, "a page is written within a transaction"
        for run_id, state in moment.runs.items():
            if self._states.get(run_id) != state:
                self._note(self._tx, run_id, page.at)
        self._states = moment.runs
        return page

    def _note(self, tx: Tx, run_id: int, at: Instant) -> None:
        run = tx.runs.get(run_id)
        if run.kind != "reminder":
            return
        campaign, stop = tx.campaigns.get(run.campaign_id), tx.settings.stopped()
        self.entries.append(
            Entry(
                page=len(self.pages),
                at=at,
                new=run_id not in self._states,
                run=run,
                deliveries=tuple(tx.deliveries.page(run_id=run_id, limit=10_000)),
                counted=tx.runs.counts(run_id),
                paused=campaign.state is CampaignState.PAUSED,
                paused_because=campaign.reason,
                accounts={
                    account.id: (account.state.replace("_", " "), account.state_reason)
                    for account in tx.accounts.several(list(tx.runs.accounts(run_id))).values()
                },
                stopped=None if stop is None else (stop, tx.settings.get("stopped_at")),
            )
        )


@dataclass(frozen=True, slots=True)
class Annals:
    """All there is to judge reminders by, after the end."""

    pages: Sequence[Page]
    entries: Sequence[Entry]
    book: Book
    routine: Routine
    senders: Mapping[str, Sender]
