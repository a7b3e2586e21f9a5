"""Reads for ``verify``: whether what is stored agrees with itself."""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, exists, func, literal_column, or_, select

from paceline.core.instants import Instant
from paceline.core.opting_out import OptOut
from paceline.core.outcome import OutcomeKind
from paceline.core.states import DeliveryState
from paceline.engine.ports.audit import ActiveTurn, MailMoment, Moment, TalkMoment, Watched
from paceline.engine.ports.history import IMPORTED
from paceline.engine.ports.pools import NOBODY
from paceline.engine.ports.records import CallFacts
from paceline.store import audit_bids, audit_turns, rows
from paceline.store.base import Context, Subject
from paceline.store.schema import counters, deliveries, lanes, ledger, runs, suppressions

SHOWN = 1_000
"""Faults told of one kind: more would say nothing more."""


_AT_CALL = """
SELECT d.state, d.attempts, d.account_id, d.run_id, d.reply, l.generation, u.checkpoint,
    i.at, i.generation, i.policy_id, i.action, EXISTS (SELECT 1 FROM ledger o
        WHERE o.delivery_id = d.id AND o.part = i.part AND o.attempt = i.attempt
        AND o.kind = 'outcome')
FROM deliveries d
JOIN lanes l ON l.account_id = d.account_id
JOIN usage u ON u.account_id = d.account_id
LEFT JOIN ledger i ON i.delivery_id = d.id AND i.part = ? AND i.attempt = d.attempts
    AND i.kind = 'intent'
WHERE d.id = ?
"""

_ROWS = "SELECT delivery_id, part, attempt, kind FROM ledger"
_STANDINGS = """
SELECT a.id, a.state, l.generation, a.removed_at IS NOT NULL
FROM accounts a JOIN lanes l ON l.account_id = a.id
"""
_RUNS = "SELECT id, state FROM runs"
_CHECKPOINTS = "SELECT account_id, checkpoint FROM usage WHERE checkpoint IS NOT NULL"
_MAIL = """
SELECT (SELECT count(*) FROM suppressions),
    (SELECT coalesce(sum(n), 0) FROM counters WHERE state = 'bounced'),
    (SELECT count(*) FROM inbound), count(*), coalesce(sum(count), 0), count(cleared_at)
FROM alerts
"""
_WATCHES = """
SELECT account_id, cursor, generation, lease_until_at IS NOT NULL, problem FROM watches
"""
_STATES = "SELECT id, state FROM accounts"
_RECEIVED = "SELECT count(*) FROM inbound"
_ACTIVE = """
SELECT id, conversation_id, state, owner, generation, lease_until_at, started_at, delivery_id
FROM turns WHERE state IN ('thinking', 'replying') ORDER BY id
"""
_MODES = "SELECT id, mode FROM conversations"
_HELD = "SELECT way FROM held_ways ORDER BY way"
_CALLED_FOR = """
SELECT key FROM alerts WHERE kind = 'conversation.person' AND cleared_at IS NULL ORDER BY key
"""


class Audit(Subject):
    """Each answer is empty when all is well."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        context.unhurried()

    def recount(self) -> list[str]:
        owner = func.coalesce(deliveries.c.account_id, literal_column(str(NOBODY)))
        key = (owner, deliveries.c.run_id, deliveries.c.state)
        counted = {
            (account, run, state): int(n)
            for account, run, state, n in self._connection.execute(
                select(*key, func.count()).group_by(*key)
            )
        }
        claimed = {
            (account, run, state): int(n)
            for account, run, state, n in self._connection.execute(select(*counters.c))
        }
        differences = [
            f"run {run}, account {account}: the counter says {claimed.get(key, 0)} {state}, "
            f"there are {counted.get(key, 0)}"
            for key in sorted(counted.keys() | claimed.keys())
            for account, run, state in [key]
            if claimed.get(key, 0) != counted.get(key, 0)
        ]
        return differences + self._totals(counted)

    def _totals(self, counted: dict[tuple[Any, Any, Any], int]) -> list[str]:
        present: dict[int, int] = {}
        for (_, run, _), n in counted.items():
            present[run] = present.get(run, 0) + n
        statement = select(runs.c.id, runs.c.total).order_by(runs.c.id)
        return [
            f"run {run}: its total says {total}, there are {present.get(run, 0)} deliveries"
            for run, total in self._connection.execute(statement)
            if total != present.get(run, 0)
        ]

    def accepted_twice(self) -> list[tuple[int, int, int]]:
        part = (ledger.c.delivery_id, ledger.c.part)
        # Outcomes and resolutions alike: only a doubt is resolved, and a doubt is not accepted.
        statement = (
            select(*part, func.count())
            .where(ledger.c.outcome == OutcomeKind.ACCEPTED.value)
            .group_by(*part)
            .having(func.count() > 1)
            .order_by(*part)
            .limit(SHOWN)
        )
        return [(d, p, n) for d, p, n in self._connection.execute(statement)]

    def suppressed_after(self) -> list[tuple[int, Instant, Instant]]:
        """Delivery, its intent, and the suppression that was there before it."""
        target, entry = deliveries.c.target, suppressions.c.address
        found = self._intended_after(target == entry)
        # By domain every delivery has to be looked at, so only where a domain is suppressed at all.
        of_domains = entry.startswith("@", autoescape=True)
        if self._connection.execute(select(entry).where(of_domains).limit(1)).first():
            found += self._intended_after(and_(of_domains, rows.Domain(target) == entry))
        return found[:SHOWN]

    def _intended_after(self, meant: ColumnElement[bool]) -> list[tuple[int, Instant, Instant]]:
        statement = (
            select(deliveries.c.id, ledger.c.intent_at, suppressions.c.at)
            .join(deliveries, and_(meant, rows.HELD_BACK))
            .join(ledger, ledger.c.delivery_id == deliveries.c.id)
            # What others have sent, and only told us of, was never ours to hold back.
            .where(
                ledger.c.kind == "intent",
                ledger.c.intent_at > suppressions.c.at,
                ledger.c.code != IMPORTED,
            )
            .order_by(ledger.c.intent_at, deliveries.c.id)
            .limit(SHOWN)
        )
        return [(d, intent, since) for d, intent, since in self._connection.execute(statement)]

    def uncounted(self) -> list[tuple[int, int]]:
        """Delivery and part, where a part was accepted and its delivery does not know."""
        statement = (
            select(deliveries.c.id, ledger.c.part)
            .join(ledger, ledger.c.delivery_id == deliveries.c.id)
            .where(
                ledger.c.outcome == OutcomeKind.ACCEPTED.value,
                ledger.c.part >= deliveries.c.parts_done,
            )
            .order_by(deliveries.c.id, ledger.c.part)
            .limit(SHOWN)
        )
        return [(delivery, part) for delivery, part in self._connection.execute(statement)]

    def misplaced(self) -> list[str]:
        faults = []
        for what, statement in _misplacements():
            faults += [
                f"delivery {delivery_id} is {state} {what}"
                for delivery_id, state in self._connection.execute(statement)
            ]
        return faults

    def out_of_turn(self) -> list[str]:
        return audit_turns.faults(self._connection)

    def unbidden(self, words: OptOut) -> list[str]:
        return audit_bids.faults(self._connection, words)

    def at_call(self, delivery_id: int, part: int) -> CallFacts | None:
        mark = "%s" if self._context.postgresql else "?"
        cursor = self._context.cursor()
        cursor.execute(_AT_CALL.replace("?", mark), (part, delivery_id))
        row = cursor.fetchone()
        if row is None:
            return None
        return CallFacts(
            state=row[0],
            attempts=row[1],
            account_id=row[2],
            run_id=row[3],
            reply=bool(row[4]),
            lane_generation=row[5],
            checkpoint=row[6],
            intent_at=row[7],
            generation=row[8],
            policy_id=row[9],
            action=row[10],
            settled=bool(row[11]),
        )

    def moment(self) -> Moment:
        cursor = self._context.cursor()
        rows = [(d, part, attempt, kind) for d, part, attempt, kind in self._all(cursor, _ROWS)]
        accounts = {
            account_id: (state, generation, bool(removed))
            for account_id, state, generation, removed in self._all(cursor, _STANDINGS)
        }
        runs, checkpoints = (dict(self._all(cursor, asked)) for asked in (_RUNS, _CHECKPOINTS))
        return Moment(rows, accounts, runs, checkpoints)

    def talks(self) -> TalkMoment:
        cursor = self._context.cursor()
        ((received,),) = self._all(cursor, _RECEIVED)
        active = tuple(ActiveTurn(*row) for row in self._all(cursor, _ACTIVE))
        called_for = tuple(key for (key,) in self._all(cursor, _CALLED_FOR))
        modes = dict(self._all(cursor, _MODES))
        held = tuple(way for (way,) in self._all(cursor, _HELD))
        return TalkMoment(received, active, modes, called_for, self._context.now, held)

    def mail(self) -> MailMoment:
        cursor = self._context.cursor()
        ((suppressed, bounced, received, *alerts),) = self._all(cursor, _MAIL)
        watches = {
            account_id: Watched(place, generation, bool(held), problem)
            for account_id, place, generation, held, problem in self._all(cursor, _WATCHES)
        }
        count, raised, over = (int(number) for number in alerts)
        states = dict(self._all(cursor, _STATES))
        return MailMoment(
            suppressed, int(bounced), received, (count, raised, over), watches, states
        )

    @staticmethod
    def _all(cursor: Any, statement: str) -> list[Any]:
        cursor.execute(statement)
        found: list[Any] = cursor.fetchall()
        return found


@cache
def _misplacements() -> list[tuple[str, Select[Any]]]:
    """Put together once, which takes longer than looking where nothing is wrong."""
    found = select(deliveries.c.id, deliveries.c.state).order_by(deliveries.c.id).limit(SHOWN)
    return [(what, found.where(condition)) for what, condition in _impossible()]


def _impossible() -> list[tuple[str, ColumnElement[bool]]]:
    """Shapes that no sequence of steps leads to, each with the words that describe it."""
    state = deliveries.c.state
    waiting = state.in_([DeliveryState.READY.value, DeliveryState.UNKNOWN.value])
    attempted = or_(
        deliveries.c.attempts > 0,
        state.in_([DeliveryState.SENDING.value, DeliveryState.UNKNOWN.value]),
    )
    intent = exists().where(
        ledger.c.delivery_id == deliveries.c.id,
        ledger.c.attempt == deliveries.c.attempts,
        ledger.c.kind == "intent",
    )
    # A lane given back in a crash is woken in a moment, and then looks after what it left.
    unheld = exists().where(
        lanes.c.account_id == deliveries.c.account_id,
        lanes.c.owner.is_(None),
        lanes.c.wake_at.is_(None),
    )
    beyond = exists().where(
        ledger.c.delivery_id == deliveries.c.id, ledger.c.attempt > deliveries.c.attempts
    )
    before = deliveries.alias("before")
    unaware = exists().where(before.c.id == deliveries.c.after_id, ~before.c.awaited)
    return [
        ("but still due", and_(deliveries.c.due_at.is_not(None), ~waiting)),
        (
            "but never due",
            and_(state == DeliveryState.READY.value, deliveries.c.due_at.is_(None)),
        ),
        (
            "but has no instant of sending",
            and_(state == DeliveryState.SENT.value, deliveries.c.sent_at.is_(None)),
        ),
        ("but the ledger has no intent of its last attempt", and_(attempted, ~intent)),
        ("but the ledger has attempts it does not know of", beyond),
        ("but nobody holds its lane", and_(state == DeliveryState.SENDING.value, unheld)),
        (
            "but the message before it does not know that it waits",
            and_(state == DeliveryState.PLANNED.value, unaware),
        ),
    ]
