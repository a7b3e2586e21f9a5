"""The ledger: what limits are counted from. Rows are appended and never changed."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import ClauseElement, and_, bindparam, case, func, select

from paceline.core.instants import Instant
from paceline.core.keepable import keepable_name
from paceline.core.model import REPLY
from paceline.core.outcome import OutcomeKind
from paceline.core.states import DeliveryState
from paceline.engine.ports.records import LedgerRow
from paceline.store import rows
from paceline.store.base import Subject, insert_into, storable
from paceline.store.prepared import Prepared
from paceline.store.schema import deliveries, ledger

FETCHED_AT_ONCE = 1_000

_COUNTS = Prepared(
    lambda _: (
        select(ledger.c.action, func.sum(ledger.c.slots))
        .where(
            ledger.c.account_id == bindparam("account_id"),
            ledger.c.intent_at >= bindparam("since_at"),
        )
        .group_by(ledger.c.action)
        .order_by(ledger.c.action)
    )
)
_ACCEPTED = Prepared(
    lambda _: select(func.count()).where(
        ledger.c.account_id == bindparam("account_id"),
        ledger.c.intent_at >= bindparam("since_at"),
        ledger.c.outcome == OutcomeKind.ACCEPTED.value,
    )
)
_OUTCOMES = Prepared(
    lambda _: (
        select(ledger.c.outcome, func.count())
        .where(
            ledger.c.account_id == bindparam("account_id"),
            ledger.c.intent_at >= bindparam("since_at"),
            ledger.c.kind == "outcome",
        )
        .group_by(ledger.c.outcome)
    )
)
_CAME_LATE = deliveries.c.sent_at.is_not(None)
_BOUNCES = Prepared(
    lambda _: select(
        func.count(case((_CAME_LATE, None), else_=1)), func.count(case((_CAME_LATE, 1)))
    ).where(
        deliveries.c.account_id == bindparam("account_id"),
        deliveries.c.state == DeliveryState.BOUNCED.value,
        deliveries.c.moved_at >= bindparam("since_at"),
    )
)
_LAST_SENT = Prepared(
    lambda _: (
        select(func.coalesce(ledger.c.started_at, ledger.c.intent_at))
        .where(
            ledger.c.account_id == bindparam("account_id"),
            ledger.c.outcome == OutcomeKind.ACCEPTED.value,
        )
        .order_by(ledger.c.intent_at.desc())
        .limit(1)
    )
)
# Of whoever crashed during a call nobody knows when it was made: not before its intent, and not
# after somebody else gave it up. Until then a slow commit may have kept it.
_GIVEN_UP_AT = case((ledger.c.outcome == OutcomeKind.UNKNOWN.value, ledger.c.at))
_CALLED_AT = func.coalesce(ledger.c.started_at, _GIVEN_UP_AT, ledger.c.intent_at)
_LAST_CALLS = Prepared(
    lambda _: select(
        func.max(_CALLED_AT), func.max(case((ledger.c.action != REPLY, _CALLED_AT)))
    ).where(
        ledger.c.account_id == bindparam("account_id"),
        ledger.c.intent_at >= bindparam("since_at"),
    )
)
_COLUMNS = tuple(column.name for column in rows.LEDGER)


def _append(on_postgresql: bool) -> ClauseElement:
    return (
        insert_into(ledger, on_postgresql=on_postgresql)
        .values({name: bindparam(name) for name in _COLUMNS})
        .on_conflict_do_nothing()
        .returning(ledger.c.delivery_id)
    )


_APPEND = Prepared(_append)
_OF_DELIVERY = Prepared(
    lambda _: (
        select(*rows.LEDGER)
        .where(ledger.c.delivery_id == bindparam("delivery_id"))
        .order_by(ledger.c.attempt, ledger.c.part, ledger.c.kind)
    )
)


class Ledger(Subject):
    """Reads and the rare append; the lanes' own rows are written by the path."""

    def counts(self, account_id: int, since_at: Instant) -> dict[str, int]:
        counted = _COUNTS.run(self._context, account_id=account_id, since_at=since_at)
        return {action: int(slots) for action, slots in counted.fetchall()}

    def last_calls(
        self, account_id: int, since_at: Instant
    ) -> tuple[Instant | None, Instant | None]:
        found = _LAST_CALLS.run(self._context, account_id=account_id, since_at=since_at).fetchone()
        any_at: Instant | None
        paced_at: Instant | None
        any_at, paced_at = found
        return any_at, paced_at

    def accepted(self, account_id: int, since_at: Instant) -> int:
        found = _ACCEPTED.run(self._context, account_id=account_id, since_at=since_at).fetchone()
        return int(found[0])

    def outcomes(self, account_id: int, since_at: Instant) -> dict[str, int]:
        found = _OUTCOMES.run(self._context, account_id=account_id, since_at=since_at)
        return {outcome: int(count) for outcome, count in found.fetchall()}

    def last_sent_at(self, account_id: int) -> Instant | None:
        found = _LAST_SENT.run(self._context, account_id=account_id).fetchone()
        return None if found is None else found[0]

    def bounces(self, account_id: int, since_at: Instant) -> tuple[int, int]:
        found = _BOUNCES.run(self._context, account_id=account_id, since_at=since_at).fetchone()
        at_once, later = found
        return int(at_once), int(later)

    def append(self, row: LedgerRow) -> bool:
        values = dict(zip(_COLUMNS, _values(row), strict=True))
        return _APPEND.run(self._context, **values).fetchone() is not None

    def of_delivery(self, delivery_id: int) -> list[LedgerRow]:
        found = _OF_DELIVERY.run(self._context, delivery_id=delivery_id).fetchall()
        return [rows.ledger_row(row) for row in found]

    def walk(self, account_id: int, since_at: Instant = 0) -> Iterator[LedgerRow]:
        statement = (
            select(*rows.LEDGER)
            .where(and_(ledger.c.account_id == account_id, ledger.c.intent_at >= since_at))
            .order_by(
                ledger.c.intent_at,
                ledger.c.delivery_id,
                ledger.c.part,
                ledger.c.attempt,
                ledger.c.kind,
            )
            .execution_options(yield_per=FETCHED_AT_ONCE)
        )
        for row in self._connection.execute(statement):
            yield rows.ledger_row(row)


def _values(row: LedgerRow) -> tuple[object, ...]:
    return (
        row.delivery_id,
        row.part,
        row.attempt,
        row.kind,
        row.account_id,
        row.run_id,
        row.action,
        row.at,
        row.intent_at,
        row.started_at,
        row.slots,
        row.policy_id,
        row.generation,
        row.outcome,
        storable(row.code),
        storable(row.reason),
        row.provider_id and keepable_name(row.provider_id),
        row.latency_us,
    )
