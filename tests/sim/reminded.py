"""Evidence of reminders made by hand: one that fires at noon, to be changed one fact at a time."""

from __future__ import annotations

from typing import Any

from paceline.core.instants import HOUR
from paceline.core.states import DeliveryState, RunState
from paceline.providers.sandbox.provider import group_id
from paceline.sim.checks import Evidence
from paceline.sim.chronicle import Page
from paceline.sim.diary import Annals, Entry
from paceline.sim.reminding import Book, Reminding, Routine, Terms
from paceline.sim.worlds import Sender
from tests.sim.evidence import DELIVERY, NOON, RUN, evidence, replace

GROUPS = (group_id(1), group_id(2))
STANDUP = Reminding(
    {
        "name": "standup",
        "accounts": ["lane-0"],
        "cron": "0 12 * * *",
        "zone": "UTC",
        "window": "0-24",
        "parts": [{"text": "hello"}],
        "at_close": "skip",
        "before_open": "hold",
        "priority": 0,
    },
    GROUPS,
)
RUNNING = {1: "running", 2: "running"}
FIRED = replace(
    RUN, kind="reminder", campaign="standup", state=RunState.WAITING, total=2, fired_for=NOON
)
SENT = tuple(replace(DELIVERY, id=number, target=GROUPS[number - 1]) for number in (1, 2))
READY = tuple(replace(one, state=DeliveryState.READY, sent_at=None) for one in SENT)


def entry(page: int = 1, after_us: int = 0, **changes: Any) -> Entry:
    """What one commit has left of a run; changes of the run go by their names."""
    of_run = {name: changes.pop(name) for name in list(changes) if hasattr(RUN, name)}
    run = replace(FIRED, **of_run)
    states = [one.state for one in changes.get("deliveries", READY)]
    kept = Entry(
        page=page,
        at=NOON + after_us,
        new=True,
        run=run,
        deliveries=READY,
        counted={state: states.count(state) for state in DeliveryState},
        paused=False,
    )
    return replace(kept, **changes)


def page(after_us: int = 0, *rows: Any, **changes: Any) -> Page:
    accounts = {1: ("active", 1, False)}
    return replace(Page(NOON + after_us, True, 0, rows, accounts, RUNNING, {}), **changes)


def terms(after_us: int = -HOUR, number: int = 0, **changes: Any) -> Terms:
    at = NOON + after_us
    of_file = {name: changes.pop(name) for name in list(changes) if name in STANDUP.raw}
    reminding = replace(STANDUP, raw={**STANDUP.raw, **of_file})
    return replace(Terms(number, at, at, reminding), **changes)


OFF = terms(HOUR, 9, enabled=False)


def told(*entries: Entry, **changes: Any) -> Evidence:
    """A reminder of every noon, which somebody disables an hour later."""
    book = Book(by_hand=changes.pop("by_hand", {}), reassigned=changes.pop("reassigned", []))
    book.terms["standup"] = changes.pop("terms", [terms(), OFF])
    groups = {"groups": changes.pop("groups", "1..9")}
    annals = Annals(
        pages=changes.pop("pages", [page() for _ in range(12)]),
        entries=entries,
        book=book,
        routine=Routine((), synced=frozenset({"lane-0"})),
        senders={"lane-0": Sender("lane-0", {}, settings=groups)},
    )
    calls = changes.pop("calls", ())
    return evidence(*calls, annals=annals, **{"runs": {1: FIRED}, **changes})
