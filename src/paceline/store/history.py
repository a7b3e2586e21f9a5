"""Messages that others have sent, written into the ledger as if a lane had sent them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, case, func, select, update

from paceline.core.instants import Instant
from paceline.core.model import REPLY
from paceline.core.outcome import OutcomeKind
from paceline.core.states import DeliveryState
from paceline.engine.ports.history import IMPORTED, PastMessage
from paceline.store.base import Tally
from paceline.store.contacts import People
from paceline.store.prepared import Prepared
from paceline.store.rows import LEDGER_NAMES
from paceline.store.schema import ledger, runs

SENT = DeliveryState.SENT.value
ACCEPTED = OutcomeKind.ACCEPTED.value

_KNOWN = "SELECT key FROM idempotency_keys WHERE key {texts}"
_KEYS = ("key, kind, subject_id, digest, at", ("text", "text", "bigint", "text", "bigint"))
_DELIVERIES = (
    "id, run_id, account_id, contact_id, step, position, target, fields, action, reply, state, "
    "scheduled_at, parts_done, attempts, retries, reason, provider_id, sent_at, moved_at",
    (
        *("bigint", "bigint", "bigint", "bigint", "int", "bigint", "text", "text", "text"),
        *("boolean", "text", "bigint", "int", "int", "int", "text", "text", "bigint", "bigint"),
    ),
)
_LEDGER = (
    LEDGER_NAMES,
    (
        *("bigint", "int", "int", "text", "bigint", "bigint", "text", "bigint", "bigint"),
        *("bigint", "int", "bigint", "bigint", "text", "text", "text", "text", "bigint"),
    ),
)


_LAST_CALLS = Prepared(
    lambda _: select(
        func.max(ledger.c.intent_at), func.max(case((ledger.c.action != REPLY, ledger.c.intent_at)))
    ).where(
        ledger.c.account_id == bindparam("account_id"),
        ledger.c.intent_at >= bindparam("since_at"),
        ledger.c.intent_at <= bindparam("until_at"),
        ledger.c.code == IMPORTED,
    )
)


class History(People):
    """The past, as far as somebody has told us of it."""

    def add(
        self, run_id: int, policy_id: int, messages: Sequence[PastMessage], at: Instant
    ) -> dict[int, int]:
        self._context.unhurried()
        fresh = self._fresh(messages)
        if not fresh:
            return {}
        first = self._connection.execute(select(runs.c.total).where(runs.c.id == run_id))
        position = int(first.scalar_one())
        ids = self.new_numbers("deliveries", len(fresh))
        numbered = list(zip(ids, fresh, strict=True))
        self.insert_many(
            "idempotency_keys", *_KEYS, [(m.key, "history", n, "", at) for n, m in numbered]
        )
        self.insert_many(
            "deliveries",
            *_DELIVERIES,
            [_delivery(n, m, run_id, position + k, at) for k, (n, m) in enumerate(numbered)],
        )
        lines = [line for n, m in numbered for line in _lines(n, m, run_id, policy_id, at)]
        self.insert_many("ledger", *_LEDGER, lines)
        counted = Counter(message.account_id for message in fresh)
        self._count(run_id, counted)
        return dict(counted)

    def last_calls(
        self, account_id: int, since_at: Instant, until_at: Instant
    ) -> tuple[Instant | None, Instant | None]:
        found = _LAST_CALLS.run(
            self._context, account_id=account_id, since_at=since_at, until_at=until_at
        ).fetchone()
        any_at: Instant | None
        paced_at: Instant | None
        any_at, paced_at = found
        return any_at, paced_at

    def _fresh(self, messages: Sequence[PastMessage]) -> list[PastMessage]:
        """Those that nobody has told us of before, each once."""
        told = {message.key: message for message in messages}
        known = {key for (key,) in self.ask(_KNOWN, told).fetchall()}
        return [message for key, message in told.items() if key not in known]

    def _count(self, run_id: int, counted: Counter[int]) -> None:
        self._context.hold_lanes(counted)
        self._connection.execute(
            update(runs).where(runs.c.id == run_id).values(total=runs.c.total + counted.total())
        )
        self._context.open_counters({(account_id, run_id) for account_id in counted})
        tally: Tally = {(account_id, run_id, SENT): n for account_id, n in counted.items()}
        self._context.add_counts(tally)


def _delivery(
    number: int, message: PastMessage, run_id: int, position: int, at: Instant
) -> tuple[Any, ...]:
    return (
        number,
        run_id,
        message.account_id,
        message.contact_id,
        1,
        position,
        message.target,
        "{}",
        message.action,
        False,
        SENT,
        message.at,
        1,
        1,
        0,
        "",
        message.key,
        message.at,
        at,
    )


def _lines(
    number: int,
    message: PastMessage,
    run_id: int,
    policy_id: int,
    at: Instant,
) -> list[tuple[Any, ...]]:
    """An intent of then, and its outcome, of which we have heard now."""
    account_id, action, then_at = message.account_id, message.action, message.at
    of_whom = (account_id, run_id, action)
    told = (policy_id, 0)  # no owner of a lane of ours has sent it
    intended = (then_at, then_at, None, 1, *told, None, IMPORTED, "", None, None)
    accepted = (at, then_at, then_at, 0, *told, ACCEPTED, IMPORTED, "", message.key, None)
    return [
        (number, 0, 1, "intent", *of_whom, *intended),
        (number, 0, 1, "outcome", *of_whom, *accepted),
    ]
