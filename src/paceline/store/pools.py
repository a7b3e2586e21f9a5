"""Pools: runs whose deliveries any of several accounts may take.

Taking is part of the intent and lives in the message path; who may take, and what is given back by
an account that cannot go on, lives here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sqlalchemy import insert, select, update

from paceline.core.states import DeliveryState
from paceline.engine.ports.pools import NOBODY
from paceline.store.base import Subject, Tally
from paceline.store.schema import deliveries, run_accounts


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
            .where(run_accounts.c.account_id == account_id)
            .order_by(run_accounts.c.run_id)
        )
        return list(self._connection.execute(statement).scalars())

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
