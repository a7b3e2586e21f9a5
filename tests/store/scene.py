"""A small world for the store's tests: accounts, runs, lanes and deliveries in a few words.

It speaks to the store through its ports; only what a port cannot do (the passing of a server's
time, planted corruption) is done in SQL.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from sqlalchemy import Engine, create_engine, text

from paceline.core.errors import StoreSurprise
from paceline.core.instants import HOUR, SECOND, Instant
from paceline.core.outcome import Outcome, accepted
from paceline.core.states import DeliveryState, RunState
from paceline.engine.ports import (
    Delivery,
    Intent,
    LaneResult,
    LaneUnit,
    Lease,
    NewDelivery,
    Settlement,
    Store,
)

T0: Instant = 1_800_000_000 * SECOND
CHECKPOINT = '{"tat_at": 1, "health": {}}'


@dataclass
class Ticker:
    """The clock of a SQLite store, which only a test moves."""

    now: Instant = T0

    def __call__(self) -> Instant:
        return self.now


@dataclass(frozen=True)
class Lane:
    """A lane as its owner knows it."""

    lease: Lease
    revision: int

    @property
    def account_id(self) -> int:
        return self.lease.account_id


@dataclass
class Scene:
    """One store with whatever has been put into it."""

    store: Store
    url: str
    kind: str
    clock: Ticker
    numbers: count[int] = field(default_factory=lambda: count(1))
    trusting: bool = False
    """Whether units are written as the journal does it: as good as sure, unless that fails."""
    _engine: Engine | None = None

    def sql(self, statement: str, **values: Any) -> list[Any]:
        """Run SQL behind the store's back, in a transaction of its own."""
        if self._engine is None:
            self._engine = create_engine(self.url)
        with self._engine.begin() as connection:
            result = connection.execute(text(statement), values)
            return list(result) if result.returns_rows else []

    def close(self) -> None:
        if self._engine is not None:
            self._engine.dispose()

    def account(self, name: str | None = None) -> int:
        number = next(self.numbers)
        with self.store.write() as tx:
            policy_id = tx.policies.version("preset", {"rate": "1/s"}, T0)
            return tx.accounts.add(
                name=name or f"account-{number}",
                provider="sandbox",
                address=f"{number}@example.com",
                settings={"seed": 7},
                policy_name="preset",
                overrides={},
                policy_id=policy_id,
                at=T0,
            ).id

    def run(self, state: RunState = RunState.RUNNING, **options: Any) -> int:
        with self.store.write() as tx:
            campaign = tx.campaigns.add(
                name=f"campaign-{next(self.numbers)}",
                kind="campaign",
                content=[{"kind": "text", "text": "Hello"}],
                settings={},
                at=T0,
            )
            return tx.runs.add(campaign_id=campaign.id, state=state, at=T0, **options).id

    def process(self, lease_us: int = HOUR) -> int:
        with self.store.write() as tx:
            return tx.processes.join("test", lease_us).id

    def expire(self, process_id: int) -> None:
        """Let a process's lease run out, as if it had been silent for long."""
        self.sql("UPDATE processes SET lease_until_at = 1 WHERE id = :id", id=process_id)

    def lane(self, account_id: int, process_id: int | None = None) -> Lane:
        owner = self.process() if process_id is None else process_id
        with self.store.write() as tx:
            row = tx.lanes.take(account_id, owner)
        assert row is not None
        return Lane(Lease(account_id, owner, row.generation), row.revision)

    def delivery(self, run_id: int, account_id: int, **options: Any) -> int:
        number = next(self.numbers)
        plan = {"target": f"to-{number}@example.com", "due_at": T0} | options
        with self.store.write() as tx:
            return tx.deliveries.add_one(
                NewDelivery(run_id, account_id, number, scheduled_at=T0, **plan), T0
            )

    def on_its_way(self, **options: Any) -> tuple[Lane, int, int]:
        """A lane, a run, and a delivery whose first part has been intended."""
        account_id, run_id = self.account(), self.run()
        lane = self.lane(account_id)
        delivery_id = self.delivery(run_id, account_id, **options)
        assert self.intend(lane, intent(delivery_id, run_id)).intended
        return lane, run_id, delivery_id

    def apply(self, *units: LaneUnit) -> list[LaneResult]:
        if self.trusting:
            with suppress(StoreSurprise), self.store.write() as tx:
                if (foretold := tx.path.trust(units)) is not None:
                    return foretold
        with self.store.write() as tx:
            return tx.path.apply(units)

    def intend(self, lane: Lane, wish: Intent) -> LaneResult:
        return self.apply(unit(lane, wish))[0]

    def settle(self, lane: Lane, *settlements: Settlement) -> LaneResult:
        return self.apply(unit(lane, settlements=settlements))[0]

    def get(self, delivery_id: int) -> Delivery:
        with self.store.read() as tx:
            return tx.deliveries.get(delivery_id)

    def state(self, delivery_id: int) -> DeliveryState:
        return self.get(delivery_id).state

    def counts(self, run_id: int) -> dict[str, int]:
        with self.store.read() as tx:
            return {state.value: n for state, n in tx.runs.counts(run_id).items() if n}

    def ledger(self, delivery_id: int) -> list[tuple[int, int, str, str | None]]:
        with self.store.read() as tx:
            rows = tx.ledger.of_delivery(delivery_id)
        return [(row.part, row.attempt, row.kind, row.outcome) for row in rows]


def unit(
    lane: Lane,
    wish: Intent | None = None,
    settlements: tuple[Settlement, ...] = (),
    usage: str | None = None,
) -> LaneUnit:
    return LaneUnit(lane.lease, lane.revision, usage, settlements, wish)


def intent(delivery_id: int, run_id: int, **changes: Any) -> Intent:
    values: dict[str, Any] = {"part": 0, "attempt": 1, "action": "message", "at": T0}
    return Intent(delivery_id, run_id, policy_id=1, **(values | changes))


def settlement(
    delivery_id: int,
    run_id: int,
    state: DeliveryState = DeliveryState.SENT,
    outcome: Outcome | None = None,
    **changes: Any,
) -> Settlement:
    values: dict[str, Any] = {
        "part": 0,
        "attempt": 1,
        "action": "message",
        "intent_at": T0,
        "started_at": T0 + 1,
        "settled_at": T0 + SECOND,
        "parts_done": 1,
    }
    return Settlement(
        delivery_id,
        run_id,
        outcome=outcome or accepted("provider-1"),
        policy_id=1,
        state=state,
        **(values | changes),
    )
