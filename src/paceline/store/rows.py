"""From rows to records: how the columns of each table become what the engine knows.

Rows are plain tuples in the order of the column lists here, whether SQLAlchemy or a driver's own
cursor fetched them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Text,
    and_,
    case,
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from paceline.core.enclosures import Enclosed
from paceline.core.errors import NotFoundError
from paceline.core.states import AccountState, CampaignState, DeliveryState, RunState
from paceline.engine.ports.inbox import Received
from paceline.engine.ports.records import (
    Account,
    Campaign,
    Delivery,
    Event,
    LaneRow,
    LedgerRow,
    Media,
    ProcessRow,
    Run,
    Upload,
)
from paceline.store.schema import (
    accounts,
    campaigns,
    deliveries,
    events,
    lanes,
    ledger,
    media,
    policies,
    processes,
    run_accounts,
    runs,
    suppressions,
    uploads,
)

Row = Sequence[Any]

_STATES = {state.value: state for state in DeliveryState}
_NO_FIELDS: Mapping[str, str] = MappingProxyType({})

DELIVERY_NAMES = (
    "id, run_id, account_id, position, target, fields, content, action, reply, state, "
    "scheduled_at, due_at, expires_at, recipient_hours, parts_done, attempts, retries, reason, "
    "provider_id, sent_at, contact_id, step, delivered_at, read_at"
)
LEDGER_NAMES = (
    "delivery_id, part, attempt, kind, account_id, run_id, action, at, intent_at, started_at, "
    "slots, policy_id, generation, outcome, code, reason, provider_id, latency_us"
)

_POSITION = {True: "strpos", False: "instr"}
_DOMAIN = "substr(d.target, {}(d.target, '@'))"
_OTHERS = "(s.confirmation_id IS NULL OR s.confirmation_id <> d.id)"


def suppressed_by(*, postgresql: bool) -> str:
    """Which suppressions ``s`` keep a delivery ``d`` from being sent: that of its target, and that
    of the domain it is in. Without an @ in it the second is the first again. One that was asked for
    lets the delivery pass that confirms it, and no other."""
    return f"s.address IN (d.target, {_DOMAIN.format(_POSITION[postgresql])}) AND {_OTHERS}"


def is_suppressed(*, postgresql: bool) -> str:
    """Whether any of them does, as a look that is taken once for each delivery. As EXISTS it may be
    planned as a table of all that are suppressed. On SQLite two looks: for a list of two, even of
    two values, it lays out a table of its own each time."""
    if postgresql:
        listed = suppressed_by(postgresql=True)
        return f"(SELECT 1 FROM suppressions s WHERE {listed} LIMIT 1) IS NOT NULL"
    looks = (
        f"(SELECT 1 FROM suppressions s WHERE s.address = {address} AND {_OTHERS}) IS NOT NULL"
        for address in ("d.target", _DOMAIN.format(_POSITION[False]))
    )
    return f"({' OR '.join(looks)})"


class Domain(FunctionElement[str]):
    """The same, of a column."""

    inherit_cache = True
    type = Text()


@compiles(Domain)
def _spell_domain(element: Domain, compiler: Any, **options: Any) -> str:
    column = compiler.process(element.clauses, **options)
    position = _POSITION[compiler.dialect.name == "postgresql"]
    return f"substr({column}, {position}({column}, '@'))"


HELD_BACK = or_(
    suppressions.c.confirmation_id.is_(None), suppressions.c.confirmation_id != deliveries.c.id
)
"""Every delivery but the one that confirms the suppression."""
SUPPRESSED = exists(literal(1)).where(
    suppressions.c.address.in_([deliveries.c.target, Domain(deliveries.c.target)]), HELD_BACK
)
IS_SUPPRESSED: ColumnElement[bool] = SUPPRESSED.label("suppressed")

ACCOUNT = (
    *(
        accounts.c[name]
        for name in (
            "id",
            "name",
            "provider",
            "address",
            "settings",
            "policy_name",
            "overrides",
            "policy_id",
        )
    ),
    policies.c.body,
    *(
        accounts.c[name]
        for name in (
            "state",
            "state_reason",
            "state_until_at",
            "warm_since_at",
            "created_at",
            "removed_at",
            "answering",
        )
    ),
)
CAMPAIGN = tuple(campaigns.c)
RUN = (
    runs.c.id,
    runs.c.campaign_id,
    campaigns.c.name,
    campaigns.c.kind,
    runs.c.state,
    runs.c.total,
    runs.c.window,
    runs.c.opens_at,
    runs.c.closes_at,
    runs.c.priority,
    func.coalesce(runs.c.content, campaigns.c.content),
    runs.c.reason,
    runs.c.started_at,
    runs.c.finished_at,
    runs.c.summary,
    exists(literal(1)).where(run_accounts.c.run_id == runs.c.id).label("pooled"),
    runs.c.fired_for,
    runs.c.follow_ups,
)
_earlier = deliveries.alias("earlier")
# Whoever has answered the beginning of a message has got that.
_enough = and_(deliveries.c.bidden, _earlier.c.state == "failed", _earlier.c.parts_done > 0)
_become = case((_enough, "sent"), else_=_earlier.c.state)
BEFORE = select(_become).where(_earlier.c.id == deliveries.c.after_id).scalar_subquery()
DELIVERY = (
    *(deliveries.c[name] for name in DELIVERY_NAMES.split(", ")),
    IS_SUPPRESSED,
    BEFORE.label("has_become"),
)
LANE = tuple(lanes.c)
PROCESS = tuple(processes.c)
LEDGER = tuple(ledger.c[name] for name in LEDGER_NAMES.split(", "))
UPLOAD = tuple(uploads.c)
MEDIA = (media.c.id, media.c.name, media.c.mime, media.c.size)
EVENT = tuple(events.c)


@lru_cache(maxsize=4_096)
def shared(text: str) -> Any:
    """A stored value that many rows have in common, decoded once: nobody changes a record."""
    return json.loads(text)


def account(row: Row) -> Account:
    """Accounts and runs hardly ever change, and every lane that begins reads its own: the same row
    is the same record, which nobody changes."""
    return _account(tuple(row))


@lru_cache(maxsize=4_096)
def _account(row: tuple[Any, ...]) -> Account:
    return Account(
        id=row[0],
        name=row[1],
        provider=row[2],
        address=row[3],
        settings=shared(row[4]),
        policy_name=row[5],
        overrides=shared(row[6]),
        policy_id=row[7],
        policy=shared(row[8]),
        state=AccountState(row[9]),
        state_reason=row[10],
        state_until_at=row[11],
        warm_since_at=row[12],
        created_at=row[13],
        removed_at=row[14],
        answering=shared(row[15]),
    )


def campaign(row: Row) -> Campaign:
    return Campaign(
        id=row[0],
        name=row[1],
        kind=row[2],
        state=CampaignState(row[3]),
        content=json.loads(row[4]),
        settings=json.loads(row[5]),
        reason=row[6],
        created_at=row[7],
        launched_at=row[8],
        finished_at=row[9],
    )


def run(row: Row) -> Run:
    return _run(tuple(row))


@lru_cache(maxsize=1_024)
def _run(row: tuple[Any, ...]) -> Run:
    return Run(
        id=row[0],
        campaign_id=row[1],
        campaign=row[2],
        kind=row[3],
        state=RunState(row[4]),
        total=row[5],
        window=row[6],
        opens_at=row[7],
        closes_at=row[8],
        priority=row[9],
        content=shared(row[10]),
        reason=row[11],
        started_at=row[12],
        finished_at=row[13],
        summary=row[14],
        pooled=bool(row[15]),
        fired_for=row[16],
        follow_ups=bool(row[17]),
    )


def delivery(row: Row) -> Delivery:
    # Read for every message: by place rather than by name, which takes several times as long.
    values = list(row)
    values[5] = _NO_FIELDS if row[5] == "{}" else json.loads(row[5])
    if row[6] is not None:
        values[6] = json.loads(row[6])
    values[8] = bool(row[8])
    values[9] = _STATES[row[9]]
    values[24] = bool(row[24])
    if row[25] is not None:
        values[25] = _STATES[row[25]]
    return Delivery._make(values)


def lane(row: Row) -> LaneRow:
    return LaneRow(*row)


def process(row: Row) -> ProcessRow:
    return ProcessRow(*row)


def ledger_row(row: Row) -> LedgerRow:
    return LedgerRow(*row)


def upload(row: Row) -> Upload:
    return Upload(*row)


def media_of(row: Row) -> Media:
    return Media(*row)


def received(row: Row) -> Received:
    found = Received(*row)
    files = json.loads(row[-1]) if row[-1] is not None else ()
    return found._replace(files=tuple(map(Enclosed.from_mapping, files)))


def event(row: Row) -> Event:
    values = list(row)
    values[7] = json.loads(row[7])
    return Event(*values)


def spelled(state: StrEnum) -> ColumnElement[str]:
    """A state written out in the statement: a partial index is not used for a bound value."""
    return literal_column(f"'{state.value}'")


def found(row: Row | None, noun: str, key: object) -> Row:
    """The row, or an error that says what does not exist."""
    if row is None:
        raise NotFoundError(f"{noun} {key} does not exist")
    return row
