"""What operators are told of. One open alert per key is the index's business, not a convention."""

from __future__ import annotations

import json
from builtins import list as list_of
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    and_,
    bindparam,
    case,
    func,
    or_,
    select,
    text,
    update,
)

from paceline.core.instants import Instant
from paceline.engine.ports.alerts import Alert, NewAlert, OpenKind
from paceline.store.base import Subject, dump, storable
from paceline.store.prepared import Prepared, among, listed
from paceline.store.schema import alerts, ledger

_OPEN = "cleared_at IS NULL"
_COLUMNS = tuple(
    alerts.c[name]
    for name in (
        "id",
        "key",
        "kind",
        "text",
        "reasons",
        "count",
        "first_at",
        "last_at",
        "told_at",
        "cleared_at",
        "account_id",
        "run_id",
    )
)


class Alerts(Subject):
    """Opened and counted in the transaction of their cause, told and cleared later."""

    def put(self, alert: NewAlert, at: Instant) -> None:
        words = {
            "text": storable(alert.text),
            "reasons": dump([[storable(reason), count] for reason, count in alert.reasons]),
        }
        insert = self._context.insert(alerts).values(
            key=alert.key,
            kind=alert.kind,
            count=1,
            first_at=at,
            last_at=at,
            account_id=alert.account_id,
            run_id=alert.run_id,
            **words,
        )
        self._connection.execute(
            insert.on_conflict_do_update(
                index_elements=["key"],
                index_where=text(_OPEN),
                set_={
                    "count": alerts.c.count + 1,
                    "last_at": insert.excluded.last_at,
                    "text": insert.excluded.text,
                    "reasons": insert.excluded.reasons,
                },
            )
        )

    def get(self, alert_id: int) -> Alert | None:
        statement = select(*_COLUMNS).where(alerts.c.id == alert_id)
        row = self._connection.execute(statement).first()
        return None if row is None else _alert(row)

    def list(self, *, with_cleared: bool = False, limit: int = 1000) -> list_of[Alert]:
        found = (_EVER if with_cleared else _OPENED).run(self._context, most=limit)
        return [_alert(row) for row in found.fetchall()]

    def about(self, account_ids: Collection[int], run_ids: Collection[int]) -> list_of[Alert]:
        concerned = or_(
            alerts.c.account_id.in_(sorted(account_ids)), alerts.c.run_id.in_(sorted(run_ids))
        )
        statement = select(*_COLUMNS).where(text(_OPEN), concerned).order_by(*_LATEST_FIRST)
        return [_alert(row) for row in self._connection.execute(statement)]

    def kinds(self) -> list_of[OpenKind]:
        return [OpenKind(*row) for row in _KINDS.run(self._context).fetchall()]

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
        statement = update(alerts).where(text(_OPEN)).values(cleared_at=at)
        for column, wanted in (
            (alerts.c.id, alert_id),
            (alerts.c.account_id, account_id),
            (alerts.c.run_id, run_id),
        ):
            if wanted is not None:
                statement = statement.where(column == wanted)
        if kinds:
            statement = statement.where(alerts.c.kind.in_(kinds))
        if keys:
            statement = statement.where(alerts.c.key.in_(keys))
        if quiet_since_at is not None:
            statement = statement.where(alerts.c.last_at <= quiet_since_at)
        return self._connection.execute(statement).rowcount

    def reasons(
        self,
        account_id: int,
        kinds: Collection[str],
        *,
        run_id: int | None = None,
        since_at: Instant = 0,
        latest: int = 10_000,
    ) -> list_of[tuple[str, int]]:
        inner = (
            select(ledger.c.outcome, ledger.c.reason)
            .where(
                ledger.c.account_id == account_id,
                ledger.c.intent_at >= since_at,
                ledger.c.kind == "outcome",
                ledger.c.outcome.in_(sorted(kinds)),
            )
            .order_by(ledger.c.intent_at.desc())
            .limit(latest)
        )
        if run_id is not None:
            inner = inner.where(ledger.c.run_id == run_id)
        found = inner.subquery()
        number = func.count()
        statement = (
            select(found.c.reason, found.c.outcome, number)
            .group_by(found.c.reason, found.c.outcome)
            .order_by(number.desc(), found.c.reason)
        )
        rows_found = self._connection.execute(statement)
        return [(reason or outcome, count) for reason, outcome, count in rows_found]

    def untold(self, now: Instant, *, again_us: int, abandoned_us: int) -> list_of[Alert]:
        asked = _bounds(now, again_us, abandoned_us)
        return [_alert(row) for row in _UNTOLD.run(self._context, **asked).fetchall()]

    def set_out(
        self, alert_ids: Collection[int], now: Instant, *, again_us: int, abandoned_us: int
    ) -> list_of[Alert]:
        asked = _bounds(now, again_us, abandoned_us)
        ours = _SET_OUT.run(
            self._context, **asked, telling=now, ids=listed(self._context, alert_ids)
        )
        return sorted((_alert(row) for row in ours.fetchall()), key=lambda alert: alert.id)

    def told(self, alert_ids: Collection[int], at: Instant | None) -> None:
        _TOLD.run(self._context, told=at, ids=listed(self._context, alert_ids))


def _bounds(now: Instant, again_us: int, abandoned_us: int) -> dict[str, Instant]:
    return {
        "again_before": now - again_us,
        "abandoned_before": now - abandoned_us,
        "beyond": now + abandoned_us,
    }


def _is_untold() -> ColumnElement[bool]:
    """Never told, or happened again since and told long ago; and nobody is telling it: nobody has
    set out, or it was too long ago. What lies far ahead was written by a wrong clock, what lies
    ahead a little by one that is not quite the same as ours."""
    told_at, telling_at = alerts.c.told_at, alerts.c.telling_at
    beyond = bindparam("beyond", type_=BigInteger)
    long_ago = or_(told_at <= bindparam("again_before"), told_at > beyond)
    again = and_(alerts.c.count > alerts.c.told_count, long_ago)
    nobody_tells = or_(
        telling_at.is_(None), telling_at <= bindparam("abandoned_before"), telling_at > beyond
    )
    return and_(text(_OPEN), or_(told_at.is_(None), again), nobody_tells)


_REACHED = bindparam("told", type_=BigInteger)
"""When it was told; nothing if nobody was reached."""


def _now_or(before: ColumnElement[int]) -> ColumnElement[int]:
    return func.coalesce(_REACHED, before)


def _told_count() -> ColumnElement[int]:
    return case((_REACHED.is_(None), alerts.c.told_count), else_=alerts.c.telling_count)


_LATEST_FIRST = (alerts.c.last_at.desc(), alerts.c.id.desc())
_EVER = Prepared(
    lambda _: select(*_COLUMNS).order_by(*_LATEST_FIRST).limit(bindparam("most", type_=BigInteger))
)
_OPENED = Prepared(
    lambda _: (
        select(*_COLUMNS)
        .where(text(_OPEN))
        .order_by(*_LATEST_FIRST)
        .limit(bindparam("most", type_=BigInteger))
    )
)
_KINDS = Prepared(
    lambda _: (
        select(
            alerts.c.kind,
            func.min(alerts.c.last_at),
            func.max(alerts.c.told_at),
            func.max(alerts.c.telling_at),
        )
        .where(text(_OPEN))
        .group_by(alerts.c.kind)
        .order_by(alerts.c.kind)
    )
)
_UNTOLD = Prepared(lambda _: select(*_COLUMNS).where(_is_untold()).order_by(alerts.c.id))
_SET_OUT = Prepared(
    lambda on_postgresql: (
        update(alerts)
        .where(_is_untold(), among(alerts.c.id, "ids", on_postgresql=on_postgresql))
        .values(telling_at=bindparam("telling"), telling_count=alerts.c.count)
        .returning(*_COLUMNS)
    )
)
_TOLD = Prepared(
    lambda on_postgresql: (
        update(alerts)
        .where(among(alerts.c.id, "ids", on_postgresql=on_postgresql))
        .values(telling_at=None, told_at=_now_or(alerts.c.told_at), told_count=_told_count())
    )
)


def _alert(row: Any) -> Alert:
    values = list_of(row)
    values[4] = tuple((reason, count) for reason, count in json.loads(values[4]))
    return Alert(*values)
