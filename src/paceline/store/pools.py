"""Pools: runs whose deliveries any of several accounts may take.

Taking is part of the intent and lives in the message path; who may take, and what is given back by
an account that cannot go on, lives here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from sqlalchemy import insert, select, text, update

from paceline.core.states import DeliveryState
from paceline.engine.ports.pools import NOBODY
from paceline.store.base import Subject, Tally, chunks
from paceline.store.campaigns import RUN_OVER
from paceline.store.doubts import IN_DOUBT
from paceline.store.schema import deliveries, run_accounts, runs

CHUNK = 500
_OVER = sorted(state.value for state in RUN_OVER)


class Pools(Subject):
    """Who may take the deliveries of a run that are nobody's."""

    def open(self, run_id: int, account_ids: Iterable[int]) -> None:
        members = sorted(set(account_ids))
        self._connection.execute(
            insert(run_accounts),
            [{"run_id": run_id, "account_id": account_id} for account_id in members],
        )
        self._context.open_counters((account_id, run_id) for account_id in (NOBODY, *members))

    def members(self, run_id: int) -> list[int]:
        statement = (
            select(run_accounts.c.account_id)
            .where(run_accounts.c.run_id == run_id)
            .order_by(run_accounts.c.account_id)
        )
        return list(self._connection.execute(statement).scalars())

    def of_account(self, account_id: int) -> list[int]:
        statement = (
            select(run_accounts.c.run_id)
            .join(runs, runs.c.id == run_accounts.c.run_id)
            .where(run_accounts.c.account_id == account_id, runs.c.state.not_in(_OVER))
            .order_by(run_accounts.c.run_id)
        )
        return list(self._connection.execute(statement).scalars())

    def hand_over(self, account_id: int, run_id: int, owners: Mapping[int, int]) -> dict[int, int]:
        self._context.hold_lanes([account_id, *owners.values()])
        ready, given = DeliveryState.READY.value, Counter[int]()
        by_owner: dict[int, list[int]] = {}
        for delivery_id, owner in sorted(owners.items()):
            by_owner.setdefault(owner, []).append(delivery_id)
        for owner, delivery_ids in sorted(by_owner.items()):
            for chunk in chunks(delivery_ids, CHUNK):
                statement = update(deliveries).where(
                    deliveries.c.id.in_(chunk),
                    deliveries.c.run_id == run_id,
                    deliveries.c.account_id == account_id,
                    deliveries.c.state == ready,
                    deliveries.c.parts_done == 0,
                )
                given[owner] += self._connection.execute(
                    statement.values(account_id=owner)
                ).rowcount
        self._context.open_counters((owner, run_id) for owner in by_owner)
        tally: Tally = {(account_id, run_id, ready): -given.total()}
        tally |= {(owner, run_id, ready): count for owner, count in given.items()}
        self._context.add_counts(tally)
        return dict(given)

    def give_back(self, account_id: int) -> list[int]:
        self._context.hold_lanes([account_id])
        pooled = select(run_accounts.c.run_id).where(run_accounts.c.account_id == account_id)
        ready = DeliveryState.READY.value
        result = self._connection.execute(
            update(deliveries)
            .where(
                deliveries.c.account_id == account_id,
                deliveries.c.run_id.in_(pooled),
                deliveries.c.due_at.is_not(None),
                deliveries.c.state == ready,
                # Whoever has seen the beginning of a message, or an earlier one, knows the sender.
                deliveries.c.parts_done == 0,
                deliveries.c.step == 1,
                # What may have arrived from here is this account's, whatever becomes of it.
                text(f"NOT ({IN_DOUBT})"),
            )
            .values(account_id=None)
            .returning(deliveries.c.run_id)
        )
        returned = Counter(result.scalars())
        tally: Tally = {}
        for run_id, count in returned.items():
            tally[account_id, run_id, ready] = -count
            tally[NOBODY, run_id, ready] = count
        self._context.add_counts(tally)
        return sorted(returned)
