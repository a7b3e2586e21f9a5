"""Broken twins of the engine: the real one with one thing taken away, and what that must break.

A checker that never speaks up proves nothing. So for every promise there are engines here that
break it, in a world where that soon shows. ``test_twins.py`` sees that the real one passes there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import ANY

import pytest

from paceline.core import frequency_gate, gates
from paceline.core import outcome as outcomes
from paceline.core import usage as usages
from paceline.core.durations import Span
from paceline.core.instants import SECOND
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.usage import Usage
from paceline.engine import (
    calls,
    leases,
    media,
    memory,
    outbox,
    recovery,
    sender,
    settling,
)
from paceline.engine.ports import Found
from paceline.sim import operators
from paceline.sim.weather import CLIMATES, Faults
from paceline.sim.worlds import World
from paceline.store import ledger, path, path_sqlite
from tests.sim.evidence import replace as replaced
from tests.sim.small import (
    APART,
    BATCHED,
    BUSY,
    CAPPED,
    CLOSING,
    OFTEN,
    ORDERED,
    PARTED,
    PICTURES,
    RATE,
    SLOW,
    SOON,
    SPACED,
    THROTTLED,
    WINDOWED,
)

Break = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Twin:
    """An engine that breaks a promise, where that shows, and how many seeds that may take."""

    breaks: Break
    promise: str
    world: World
    within: int
    first: int = 0
    faults: Faults = "heavy"
    provokes: Break | None = None
    """A hardship that both engines meet, the broken one and the real one."""

    @property
    def name(self) -> str:
        return self.breaks.__name__.replace("_", " ")


# ---------------------------------------------------------------------- hardships


def _a_store_that_hangs(patch: pytest.MonkeyPatch) -> None:
    """Now and then a visit to the store takes longer than it takes others to lose patience."""
    hanging = replace(CLIMATES["heavy"], slow=1 / 12, slowest_us=60 * SECOND)
    patch.setitem(CLIMATES, "heavy", hanging)


def _slow_store(patch: pytest.MonkeyPatch) -> None:
    """Every fourth visit to the store takes a few seconds."""
    slow = replace(CLIMATES["heavy"], slow=1 / 4, slowest_us=6 * SECOND)
    patch.setitem(CLIMATES, "heavy", slow)


# ---------------------------------------------------------------------- never twice


def a_doubt_is_sent_again_without_asking(patch: pytest.MonkeyPatch) -> None:
    async def never_heard_of_it(*_: Any) -> Found:
        return Found("absent")

    patch.setattr(recovery, "_ask", never_heard_of_it)


def an_outcome_is_dropped_when_the_store_is_away(patch: pytest.MonkeyPatch) -> None:
    doubt = outbox.Outbox.doubt

    def forgetful(self: outbox.Outbox) -> None:
        self._waiting.clear()
        doubt(self)

    patch.setattr(outbox.Outbox, "doubt", forgetful)


def the_intent_comes_after_the_effect(patch: pytest.MonkeyPatch) -> None:
    async def start(self: sender.Sender, flight: settling.Flight) -> bool:
        message = await self._prepare(flight)
        if message is None:
            return False
        now, known = self._clock.now(), self._memory
        used = usages.spend(known.usage, known.policy, flight.ask, now, self._rng)
        flight.term = self._context.lease.term
        await self._launch(flight, message)
        return await self._intend(flight, message, used, now, starts=True)

    patch.setattr(sender.Sender, "start", start)


def a_refused_intent_is_taken_for_granted(patch: pytest.MonkeyPatch) -> None:
    submit = outbox.Outbox.submit

    async def credulous(self: outbox.Outbox, intent: Any, begins: Any = None) -> bool:
        await submit(self, intent, begins)
        return True

    patch.setattr(outbox.Outbox, "submit", credulous)


def the_first_part_is_taken_for_the_last(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(settling.Flight, "last_part", property(lambda _: True))


def no_answer_is_taken_for_a_yes(patch: pytest.MonkeyPatch) -> None:
    settle = settling.settle

    def hopeful(flight: settling.Flight, outcome: Outcome, **around: Any) -> settling.Settled:
        if outcome.kind is OutcomeKind.UNKNOWN:
            outcome = outcomes.accepted("surely")
        return settle(flight, outcome, **around)

    patch.setattr(memory, "settle", hopeful)


# ---------------------------------------------------------------------- never over


def restored(patch: pytest.MonkeyPatch, change: Callable[[Usage], Usage]) -> None:
    """Whatever a lane takes over from its predecessor's usage is changed."""
    usage = memory.Snapshot.usage

    def changed(self: memory.Snapshot, known: Usage | None = None) -> Usage:
        return usage(self, known) if known is not None else change(usage(self))

    patch.setattr(memory.Snapshot, "usage", changed)


def usage_is_forgotten_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    restored(patch, lambda _: Usage())


def caps_are_counted_from_memory_only(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ledger.Ledger, "counts", lambda *_: {})


def pace_is_counted_from_the_intent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(usages, "started", lambda usage, *_, **__: usage)


def nobody_asks_when_somebody_was_written_to(patch: pytest.MonkeyPatch) -> None:
    """Neither before a message is chosen nor in its intent."""
    patch.setattr(frequency_gate.FrequencyGate, "earliest", lambda _, at, *rest: at)
    patch.setattr(path, "spared", lambda _, units: units)


# ---------------------------------------------------------------------- never impatient, wasteful


def nobody_waits_when_asked_to(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(usages, "hold", lambda usage, *_, **__: usage)


def files_are_uploaded_for_every_message(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(media, "_good", lambda *_: False)


# ---------------------------------------------------------------------- never out of hours


def hours_are_asked_only_at_the_claim(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(calls, "forbidden", lambda *_: None)


def hours_are_asked_as_of_the_intent(patch: pytest.MonkeyPatch) -> None:
    forbidden = calls.forbidden
    patch.setattr(
        calls, "forbidden", lambda flight, policy, _: forbidden(flight, policy, flight.intent_at)
    )


# ---------------------------------------------------------------------- never too close


def spacing_is_redrawn_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    restored(patch, lambda usage: usage._replace(gap_us=0))


def the_batch_begins_anew_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    restored(patch, lambda usage: usage._replace(batch_position=0))


def a_part_that_failed_is_left_out(patch: pytest.MonkeyPatch) -> None:
    settlement = settling._settlement

    def onwards(flight: settling.Flight, *rest: Any) -> Any:
        next_part = min(flight.part + 1, len(flight.content.parts) - 1)
        return replaced(settlement(flight, *rest), parts_done=next_part)

    patch.setattr(settling, "_settlement", onwards)


def parts_follow_at_once(patch: pytest.MonkeyPatch) -> None:
    draw = Span.draw

    def nothing(self: Span, rng: Any) -> int:
        return 0 if self == Span.parse("5s..9s") else draw(self, rng)

    patch.setattr(Span, "draw", nothing)


# ---------------------------------------------------------------------- never to the suppressed


def suppression_is_asked_only_at_the_plan(patch: pytest.MonkeyPatch) -> None:
    guarded = path_sqlite._BEFORE_INTENDING
    start = guarded.index("AND NOT EXISTS")
    end = guarded.index("\n", start)
    patch.setattr(path_sqlite, "_BEFORE_INTENDING", guarded[:start] + guarded[end:])
    patch.setattr(gates.SuppressionGate, "earliest", lambda _, at, *rest: at)


# ---------------------------------------------------------------------- never by two


def _lanes_seem(patch: pytest.MonkeyPatch, other: Callable[[Any], tuple[Any, ...]]) -> None:
    def judge(units: Any, lanes: Any, gate: Any) -> Any:
        return real(units, {account_id: other(row) for account_id, row in lanes.items()}, gate)

    real = path._judge
    patch.setattr(path, "_judge", judge)


def the_generation_is_not_asked(patch: pytest.MonkeyPatch) -> None:
    _lanes_seem(patch, lambda row: (row[0], ANY, ANY, *row[3:]))


def the_lease_is_never_doubted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(leases.ProcessLease, "safe_at", lambda self, us, now: self.joined)


def the_term_of_the_lease_is_ignored(patch: pytest.MonkeyPatch) -> None:
    def extend(self: leases.ProcessLease, asked: tuple[int, int]) -> None:
        kept, self.term = self.term, 0
        real(self, asked)
        self.term = kept

    real = leases.ProcessLease.extend
    patch.setattr(leases.ProcessLease, "extend", extend)


# ---------------------------------------------------------------------- never against orders


def only(*orders: str) -> Break:
    """Operators who give no other orders than these."""

    def insistent(patch: pytest.MonkeyPatch) -> None:
        menu = operators.Operators._menu

        def short(self: operators.Operators) -> list[Any]:
            return [(name, what) for name, what in menu(self) if name.startswith(orders)]

        patch.setattr(operators.Operators, "_menu", short)

    return insistent


def a_paused_account_goes_on(patch: pytest.MonkeyPatch) -> None:
    _lanes_seem(patch, lambda row: (*row[:5], True))
    patch.setattr(gates.StatusGate, "earliest", lambda _, at, *rest: at)


def a_stop_is_not_heard(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(path_sqlite, "why_stopped", lambda _: None)
    refresh = memory.LaneMemory.refresh

    def deaf(self: memory.LaneMemory, *args: Any, **named: Any) -> None:
        refresh(self, *args, **named)
        self.stopped = False

    patch.setattr(memory.LaneMemory, "refresh", deaf)


# ---------------------------------------------------------------------- never stuck


def nobody_takes_stock_after_a_crash(patch: pytest.MonkeyPatch) -> None:
    async def all_is_well(_: Any, snapshot: memory.Snapshot, *__: Any) -> memory.Snapshot:
        return snapshot

    patch.setattr(recovery, "take_stock", all_is_well)


def a_parked_lane_is_never_woken(patch: pytest.MonkeyPatch) -> None:
    park = outbox.Outbox.park

    async def for_ever(self: outbox.Outbox, rest: Any) -> Any:
        return await park(self, replaced(rest, delay_us=None))

    patch.setattr(outbox.Outbox, "park", for_ever)


TWINS = (
    Twin(a_doubt_is_sent_again_without_asking, "never twice", RATE, 4),
    Twin(an_outcome_is_dropped_when_the_store_is_away, "never twice", RATE, 4),
    Twin(the_intent_comes_after_the_effect, "never unrecorded", RATE, 1),
    Twin(a_refused_intent_is_taken_for_granted, "never unrecorded", RATE, 6),
    Twin(the_first_part_is_taken_for_the_last, "never lost", PARTED, 1),
    Twin(no_answer_is_taken_for_a_yes, "never lost", RATE, 16, first=1),
    Twin(usage_is_forgotten_at_a_restart, "never over", SLOW, 4),
    Twin(caps_are_counted_from_memory_only, "never over", CAPPED, 4),
    Twin(pace_is_counted_from_the_intent, "never over", RATE, 2),
    Twin(nobody_asks_when_somebody_was_written_to, "never over", OFTEN, 2),
    Twin(nobody_waits_when_asked_to, "never impatient", THROTTLED, 2),
    Twin(files_are_uploaded_for_every_message, "never wasteful", PICTURES, 1),
    Twin(hours_are_asked_only_at_the_claim, "never out of hours", CLOSING, 8, provokes=_slow_store),
    Twin(hours_are_asked_as_of_the_intent, "never out of hours", WINDOWED, 8, provokes=_slow_store),
    Twin(spacing_is_redrawn_at_a_restart, "never too close", SPACED, 4),
    Twin(the_batch_begins_anew_at_a_restart, "never too close", BATCHED, 4),
    Twin(a_part_that_failed_is_left_out, "never too close", PARTED, 2),
    Twin(parts_follow_at_once, "never too close", APART, 2),
    Twin(
        suppression_is_asked_only_at_the_plan,
        "never to the suppressed",
        ORDERED,
        4,
        provokes=only("suppresses"),
    ),
    Twin(the_generation_is_not_asked, "never by two", RATE, 6),
    Twin(the_lease_is_never_doubted, "never by two", BUSY, 10, provokes=_a_store_that_hangs),
    Twin(the_term_of_the_lease_is_ignored, "never by two", BUSY, 4, first=4),
    Twin(
        a_paused_account_goes_on,
        "never against orders",
        ORDERED,
        4,
        provokes=only("pauses lane", "resumes lane"),
    ),
    Twin(
        a_stop_is_not_heard,
        "never against orders",
        ORDERED,
        4,
        provokes=only("stops", "lets go on"),
    ),
    Twin(nobody_takes_stock_after_a_crash, "never stuck", SOON, 4),
    Twin(a_parked_lane_is_never_woken, "never stuck", CAPPED, 2),
)
