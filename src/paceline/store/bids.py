"""Follow-ups: who was sent something that may bid one, and which of them wait."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Select, bindparam, literal_column, select, text, update

from paceline.core.states import DeliveryState, RunState
from paceline.engine.ports.bids import Doubtful, Reached
from paceline.store.base import Subject
from paceline.store.prepared import Prepared
from paceline.store.rows import spelled
from paceline.store.schema import FOLLOWING, IN_FLIGHT, PARTLY, campaigns, deliveries, inbound, runs

LATEST = 50
"""Messages that are looked at, of those that one person was ever sent from one account."""

_WAITS = FOLLOWING.replace("state", "deliveries.state").replace("step", "deliveries.step")
_UNSETTLED = ("planned", "ready", "sending", "unknown")
"""States of a message of which nobody can say yet whether somebody got it."""

# Each as its index has it.
_WAITING = "deliveries.state IN ('planned', 'ready') AND deliveries.scheduled_at >= 0"
_EVER_SENT = "deliveries.sent_at IS NOT NULL"


def _reached(which: str) -> Select[Any]:
    return (
        select(
            deliveries.c.id,
            deliveries.c.run_id,
            runs.c.campaign_id,
            deliveries.c.position,
            deliveries.c.step,
            deliveries.c.state,
            deliveries.c.sent_at,
        )
        .join_from(deliveries, runs, runs.c.id == deliveries.c.run_id)
        .join(campaigns, campaigns.c.id == runs.c.campaign_id)
        .where(
            deliveries.c.target == bindparam("target"),
            deliveries.c.account_id == bindparam("account_id"),
            campaigns.c.kind == "campaign",
            ~deliveries.c.bidden,
            text(which),
        )
    )


# One after the other: each follows an index of its own, and both together none.
_SENT = Prepared(
    lambda _: (
        _reached("deliveries.sent_at IS NOT NULL AND deliveries.state = 'sent'")
        .order_by(deliveries.c.sent_at.desc())
        .limit(literal_column(str(LATEST)))
    )
)
_ON_ITS_WAY = Prepared(lambda _: _reached(IN_FLIGHT))
_BEGUN = Prepared(lambda _: _reached(PARTLY))
_BIDDEN = Prepared(
    lambda _: select(deliveries.c.id).where(
        deliveries.c.run_id == bindparam("run_id"),
        deliveries.c.position == bindparam("position"),
        text("deliveries.bidden"),
    )
)
_FOLLOWING_IT = Prepared(
    lambda _: (
        select(deliveries.c.id)
        .where(
            deliveries.c.run_id == bindparam("run_id"),
            deliveries.c.after_id == bindparam("after_id"),
            text(_WAITS),
            ~deliveries.c.bidden,
        )
        .order_by(deliveries.c.id)
    )
)
# Asked for every minute by every process.
_OPEN = Prepared(
    lambda _: (
        select(runs.c.id)
        .where(text("runs.follow_ups"), runs.c.state == spelled(RunState.RUNNING))
        .order_by(runs.c.id)
    )
)


def _settled(_: bool) -> Select[Any]:
    before = deliveries.alias("before")
    return (
        select(
            deliveries.c.id,
            deliveries.c.account_id,
            deliveries.c.run_id,
            deliveries.c.step,
            before.c.id,
            before.c.state,
        )
        .join_from(deliveries, before, before.c.id == deliveries.c.after_id)
        .where(
            # By run, or SQLite would rather begin with all that ever was sent.
            deliveries.c.run_id == bindparam("run_id"),
            text(_WAITS),
            deliveries.c.state == spelled(DeliveryState.PLANNED),
            before.c.state.not_in([literal_column(f"'{state}'") for state in _UNSETTLED]),
        )
        .order_by(deliveries.c.id)
    )


_SETTLED = Prepared(_settled)


class Bids(Subject):
    def reached(self, account_id: int, target: str) -> list[Reached]:
        wanted = {"account_id": account_id, "target": target}
        # In this order: what is settled in between is found by both, and else by neither.
        under_way = _ON_ITS_WAY.run(self._context, **wanted).fetchall()
        sent = _SENT.run(self._context, **wanted).fetchall()
        begun = _BEGUN.run(self._context, **wanted).fetchall()
        found = {row[0]: row for row in (*under_way, *begun, *reversed(sent))}
        return [Reached(*row)._replace(state=DeliveryState(row[5])) for row in found.values()]

    def writers(self, targets: Collection[str]) -> list[int]:
        theirs = (deliveries.c.target.in_(sorted(targets)), deliveries.c.account_id.is_not(None))
        from_them = select(deliveries.c.account_id).where(*theirs)
        # Those that wait first: whatever is sent in between is found by one of them at least.
        found: set[int] = set()
        for which in (_WAITING, IN_FLIGHT, _EVER_SENT, PARTLY):
            found.update(self._connection.execute(from_them.where(text(which))).scalars())
        return sorted(found)

    def bidden_in(
        self, conversation_ids: Collection[int], received_id: int | None = None
    ) -> list[int]:
        said: list[ColumnElement[bool]] = [inbound.c.conversation_id.in_(sorted(conversation_ids))]
        if received_id is not None:
            said.append(inbound.c.id == received_id)
        statement = (
            select(deliveries.c.id)
            .join_from(deliveries, inbound, inbound.c.id == deliveries.c.bidden_by)
            .where(deliveries.c.run_id == bindparam("run_id"), text(_WAITS), *said)
        )
        # Run by run: then it follows the index of what waits for what was before it.
        under_way = runs.c.state.in_([spelled(RunState.RUNNING), spelled(RunState.PAUSED)])
        of_them = select(runs.c.id).where(text("runs.follow_ups"), under_way)
        return [
            number
            for run_id in self._connection.execute(of_them).scalars().all()
            for number in self._connection.execute(statement, {"run_id": run_id}).scalars()
        ]

    def find(self, run_id: int, position: int) -> int | None:
        row = _BIDDEN.run(self._context, run_id=run_id, position=position).fetchone()
        return None if row is None else row[0]

    def give_back(self, delivery_id: int) -> None:
        self._connection.execute(
            update(deliveries).where(deliveries.c.id == delivery_id).values(bidden=False)
        )

    def following(self, run_id: int, delivery_id: int) -> list[int]:
        found = _FOLLOWING_IT.run(self._context, run_id=run_id, after_id=delivery_id)
        return [row[0] for row in found.fetchall()]

    def settled(self, run_id: int) -> list[Doubtful]:
        found = _SETTLED.run(self._context, run_id=run_id).fetchall()
        return [Doubtful(*row)._replace(before=DeliveryState(row[5])) for row in found]

    def open_runs(self) -> list[int]:
        return [row[0] for row in _OPEN.run(self._context).fetchall()]
