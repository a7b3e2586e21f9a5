"""Campaigns and their runs."""

from __future__ import annotations

from builtins import list as list_of
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    and_,
    bindparam,
    func,
    literal_column,
    or_,
    select,
    update,
)

from paceline.core.errors import ConflictError
from paceline.core.instants import Instant
from paceline.core.states import CAMPAIGN, RUN, CampaignState, DeliveryState, RunState
from paceline.engine.ports.records import Campaign, Run, RunKind
from paceline.engine.ports.reminders import Firing, Undelivered
from paceline.store import rows
from paceline.store.base import Subject, dump, storable
from paceline.store.moves import next_state
from paceline.store.prepared import Prepared, among, listed
from paceline.store.schema import campaigns, counters, deliveries, runs

CAMPAIGN_OVER = frozenset({CampaignState.FINISHED, CampaignState.CANCELLED})
WAITING = (DeliveryState.PLANNED, DeliveryState.READY, DeliveryState.SENDING)
"""States in which a delivery keeps its run going."""
RUN_OVER = frozenset(RunState) - {RunState.WAITING, RunState.RUNNING, RunState.PAUSED}


class Campaigns(Subject):
    """Content and settings; what is sent belongs to the runs."""

    def add(
        self,
        *,
        name: str,
        kind: RunKind,
        content: list_of[dict[str, Any]],
        settings: Mapping[str, Any],
        at: Instant,
    ) -> Campaign:
        statement = (
            self._context.insert(campaigns)
            .values(
                name=name,
                kind=kind,
                state=CAMPAIGN.start.value,
                content=dump(content),
                settings=dump(dict(settings)),
                reason="",
                created_at=at,
            )
            .on_conflict_do_nothing()
            .returning(campaigns.c.id)
        )
        campaign_id = self._connection.execute(statement).scalar()
        if campaign_id is None:
            raise ConflictError(f"a campaign named {name!r} exists already")
        return self.get(campaign_id)

    def get(self, campaign_id: int) -> Campaign:
        statement = select(*rows.CAMPAIGN).where(campaigns.c.id == campaign_id)
        row = self._connection.execute(statement).first()
        return rows.campaign(rows.found(row, "campaign", campaign_id))

    def find(self, name: str) -> Campaign | None:
        row = _BY_NAME.run(self._context, name=name).fetchone()
        return rows.campaign(row) if row else None

    def list(self, state: CampaignState | None = None) -> list_of[Campaign]:
        statement = select(*rows.CAMPAIGN).order_by(campaigns.c.id)
        if state is not None:
            statement = statement.where(campaigns.c.state == state.value)
        return [rows.campaign(row) for row in self._connection.execute(statement)]

    def set_content(
        self,
        campaign_id: int,
        content: list_of[dict[str, Any]],
        settings: Mapping[str, Any],
    ) -> None:
        statement = update(campaigns).where(campaigns.c.id == campaign_id)
        values = {"content": dump(content), "settings": dump(dict(settings))}
        self._connection.execute(statement.values(values))

    def rename(self, campaign_id: int, name: str) -> None:
        statement = update(campaigns).where(campaigns.c.id == campaign_id)
        self._connection.execute(statement.values(name=name))

    def set_settings(self, campaign_id: int, settings: Mapping[str, Any]) -> None:
        statement = update(campaigns).where(campaigns.c.id == campaign_id)
        self._connection.execute(statement.values(settings=dump(dict(settings))))

    def move(
        self, campaign_id: int, event: str, *, at: Instant, reason: str = ""
    ) -> CampaignState | None:
        state = next_state(self._connection, campaigns, CAMPAIGN, campaign_id, event)
        if state is None:
            return None
        values: dict[str, Any] = {
            "state": state.value,
            "reason": storable(reason),
            "finished_at": at if state in CAMPAIGN_OVER else None,
        }
        if state is CampaignState.RUNNING:
            values["launched_at"] = func.coalesce(campaigns.c.launched_at, at)
        self._connection.execute(
            update(campaigns).where(campaigns.c.id == campaign_id).values(values)
        )
        return state


class Runs(Subject):
    """Firings of campaigns, and how far each has come."""

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
    ) -> Run:
        statement = (
            self._context.insert(runs)
            .values(
                campaign_id=campaign_id,
                state=state.value,
                total=0,
                window=window,
                opens_at=opens_at,
                closes_at=closes_at,
                priority=priority,
                reason="",
                summary="",
                content=dump(firing.content) if firing else None,
                fired_for=firing.fired_for if firing else None,
                created_at=at,
                started_at=at if state is RunState.RUNNING else None,
                finished_at=at if state in RUN_OVER else None,
            )
            .returning(runs.c.id)
        )
        return self.get(self._connection.execute(statement).scalar_one())

    def open_follow_ups(self, campaign_id: int, priority: int, at: Instant) -> Run:
        run = self.add(campaign_id=campaign_id, priority=priority, state=RunState.RUNNING, at=at)
        self._connection.execute(update(runs).where(runs.c.id == run.id).values(follow_ups=True))
        return self.get(run.id)

    def get(self, run_id: int) -> Run:
        row = _ONE.run(self._context, run_id=run_id).fetchone()
        return rows.run(rows.found(row, "run", run_id))

    def of_campaign(self, campaign_id: int, states: Collection[RunState] = ()) -> list_of[Run]:
        if not states:
            found = _OF_CAMPAIGN.run(self._context, campaign_id=campaign_id).fetchall()
            return [rows.run(row) for row in found]
        theirs = select_runs().where(runs.c.campaign_id == campaign_id)
        theirs = theirs.where(runs.c.state.in_([str(state) for state in states]))
        return [rows.run(row) for row in self._connection.execute(theirs.order_by(runs.c.id))]

    def reached_after(
        self, run_id: int, unreached: Collection[DeliveryState]
    ) -> list_of[tuple[str, int | None]]:
        this = select(runs.c.campaign_id).where(runs.c.id == run_id).scalar_subquery()
        later = select(runs.c.id).where(runs.c.campaign_id == this, runs.c.id > run_id)
        states = [str(state) for state in unreached]
        statement = (
            select(deliveries.c.target, deliveries.c.contact_id)
            .where(deliveries.c.run_id.in_(later))
            .where(or_(deliveries.c.state.not_in(states), deliveries.c.parts_done > 0))
            .distinct()
        )
        return [(row.target, row.contact_id) for row in self._connection.execute(statement)]

    def latest(self, campaign_id: int, limit: int) -> list_of[Run]:
        theirs = select_runs().where(runs.c.campaign_id == campaign_id)
        statement = theirs.order_by(runs.c.id.desc()).limit(limit)
        return [rows.run(row) for row in self._connection.execute(statement)]

    def set_window(self, run_id: int, opens_at: Instant | None, closes_at: Instant | None) -> None:
        statement = update(runs).where(runs.c.id == run_id)
        self._connection.execute(statement.values(opens_at=opens_at, closes_at=closes_at))

    def move(
        self, run_id: int, event: str, *, at: Instant, reason: str = "", summary: str = ""
    ) -> RunState | None:
        # Commands come from the campaign to its runs; so does everybody, or two could deadlock.
        campaign_id = select(runs.c.campaign_id).where(runs.c.id == run_id).scalar_subquery()
        self._connection.execute(
            select(campaigns.c.id)
            .where(campaigns.c.id == campaign_id)
            .with_for_update(key_share=True)
        )
        state = next_state(self._connection, runs, RUN, run_id, event)
        if state is None:
            return None
        values: dict[str, Any] = {
            "state": state.value,
            "reason": storable(reason),
            "summary": storable(summary),
            "finished_at": at if state in RUN_OVER else None,
        }
        if state is RunState.RUNNING:
            values["started_at"] = func.coalesce(runs.c.started_at, at)
        self._connection.execute(update(runs).where(runs.c.id == run_id).values(values))
        return state

    def counts(self, run_id: int, account_id: int | None = None) -> dict[DeliveryState, int]:
        if account_id is None:
            found = _COUNTS.run(self._context, run_id=run_id).fetchall()
        else:
            found = _COUNTS_ON.run(self._context, run_id=run_id, account_id=account_id).fetchall()
        return _every_state({state: int(n) for state, n in found})

    def goes_on(self, run_id: int) -> bool:
        return _LEFT.run(self._context, run_id=run_id).fetchone() is not None

    def accounts(self, run_id: int) -> dict[int, dict[DeliveryState, int]]:
        statement = (
            select(counters.c.account_id, counters.c.state, counters.c.n)
            .where(counters.c.run_id == run_id)
            .order_by(counters.c.account_id)
        )
        found: dict[int, dict[str, int]] = {}
        for account_id, state, n in self._connection.execute(statement):
            found.setdefault(account_id, {})[state] = n
        return {account_id: _every_state(counts) for account_id, counts in found.items()}

    def last_fired_for(self, campaign_id: int) -> Instant:
        latest = select(func.max(runs.c.fired_for)).where(runs.c.campaign_id == campaign_id)
        at: Instant | None = self._connection.execute(latest).scalar()
        return at or 0

    def left_on(self, first: Collection[int] = ()) -> dict[int, int | None]:
        found = _LEFT_ON.run(self._context, likely=listed(self._context, first))
        return dict(found.fetchall())

    def overdue(self, closed_before_at: Instant) -> list_of[int]:
        found = _OVERDUE.run(self._context, closed_before_at=closed_before_at)
        return [row[0] for row in found.fetchall()]

    def undelivered(self, run_id: int) -> list_of[Undelivered]:
        count = func.count().label("n")
        by = (deliveries.c.account_id, deliveries.c.state, deliveries.c.reason)
        statement = (
            select(*by, count)
            .where(deliveries.c.run_id == run_id, deliveries.c.state != DeliveryState.SENT.value)
            .group_by(*by)
            .order_by(count.desc(), *by)
        )
        return [
            Undelivered(account_id, DeliveryState(state), reason, n)
            for account_id, state, reason, n in self._connection.execute(statement)
        ]

    def awaiting_proof(self, run_id: int) -> bool:
        statement = (
            select(deliveries.c.id)
            .where(
                deliveries.c.run_id == run_id,
                deliveries.c.state == rows.spelled(DeliveryState.UNKNOWN),
                deliveries.c.due_at.is_not(None),
            )
            .limit(1)
        )
        return self._connection.execute(statement).first() is not None


def _left() -> ColumnElement[bool]:
    """A counter of what is to be sent, and something that it counts."""
    return and_(counters.c.state.in_([rows.spelled(state) for state in WAITING]), counters.c.n > 0)


def _left_on(on_postgresql: bool) -> Select[Any]:
    # Looked for where it was found before: only where that is used up all have to be gone through.
    anywhere = select(counters.c.account_id).where(counters.c.run_id == runs.c.id, _left())
    there = anywhere.where(among(counters.c.account_id, "likely", on_postgresql=on_postgresql))
    one = literal_column("1", Integer)
    account_id = func.coalesce(
        there.limit(one).scalar_subquery(), anywhere.limit(one).scalar_subquery()
    )
    return (
        select(runs.c.id, account_id)
        .join_from(runs, campaigns, campaigns.c.id == runs.c.campaign_id)
        .where(
            runs.c.state == rows.spelled(RunState.RUNNING),
            campaigns.c.state == rows.spelled(CampaignState.RUNNING),
            campaigns.c.kind != "direct",
            ~runs.c.follow_ups,
        )
        .order_by(runs.c.id)
    )


_LEFT_ON = Prepared(_left_on)
_BY_NAME = Prepared(lambda _: select(*rows.CAMPAIGN).where(campaigns.c.name == bindparam("name")))
_OF_CAMPAIGN = Prepared(
    lambda _: (
        select_runs().where(runs.c.campaign_id == bindparam("campaign_id")).order_by(runs.c.id)
    )
)
_ONE = Prepared(lambda _: select_runs().where(runs.c.id == bindparam("run_id")))
_COUNTS = Prepared(
    lambda _: (
        select(counters.c.state, func.sum(counters.c.n))
        .where(counters.c.run_id == bindparam("run_id"))
        .group_by(counters.c.state)
    )
)
_LEFT = Prepared(
    lambda _: (
        select(counters.c.n)
        .where(counters.c.run_id == bindparam("run_id"), _left())
        .limit(literal_column("1"))
    )
)
_COUNTS_ON = Prepared(
    lambda _: select(counters.c.state, counters.c.n).where(
        counters.c.account_id == bindparam("account_id"), counters.c.run_id == bindparam("run_id")
    )
)
_UNDER_WAY = (RunState.WAITING, RunState.RUNNING, RunState.PAUSED)
_OVERDUE = Prepared(
    lambda _: (
        select(runs.c.id)
        .where(
            runs.c.closes_at.is_not(None),
            runs.c.closes_at < bindparam("closed_before_at"),
            runs.c.state.in_([rows.spelled(state) for state in _UNDER_WAY]),
        )
        .order_by(runs.c.id)
    )
)


def select_runs() -> Select[Any]:
    """Runs with what the lane needs of their campaigns."""
    return select(*rows.RUN).join_from(runs, campaigns, campaigns.c.id == runs.c.campaign_id)


def _every_state(counts: Mapping[str, int]) -> dict[DeliveryState, int]:
    return {state: counts.get(state.value, 0) for state in DeliveryState}
