"""How reminders and their runs are written: lines and tables for people, shapes for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from paceline.cli import output, shapes
from paceline.core.instants import Instant
from paceline.core.states import DeliveryState
from paceline.engine import fleet
from paceline.engine.commands.reminders import Made
from paceline.engine.ports import Tx
from paceline.engine.reminder_view import ReminderView, RunView
from paceline.engine.stopping import Stop, stopped

TARGETS = ("target", "targets")


class Standstill(NamedTuple):
    """What keeps everything from being sent, whatever it is."""

    stop: Stop | None
    running: bool

    def note(self) -> None:
        if self.stop is not None:
            output.note(output.stop_text(self.stop))
        if not self.running:
            output.note(fleet.NOBODY_RUNS)


def standstill(tx: Tx) -> Standstill:
    return Standstill(stopped(tx), fleet.is_running(tx))


def tell(made: Made) -> None:
    for warning in made.warnings:
        output.note(warning)
    output.tell_unreachable(made.unreachable, nouns=TARGETS)


def say_next(view: ReminderView) -> None:
    zone = view.reminder.zone
    if view.firings:
        first, *more = [output.wall_text(at, zone) for at in view.firings]
        due = " (due)" if view.due else ""
        rest = f", then {more[0]}, …" if more else ""
        output.say(f"fires next at {first} {zone}{due}{rest}")


def next_text(view: ReminderView) -> str:
    """Its next firing, in a column."""
    if not view.firings:
        return "-"
    return f"{when(view.firings[0], view.reminder.zone)}{' (due)' if view.due else ''}"


def firings_text(view: ReminderView) -> str:
    zone = view.reminder.zone
    told = [output.wall_text(at, zone) for at in view.firings]
    if view.due:
        told[0] += " (due)"
    return ", ".join(told) or "never"


def state(view: ReminderView) -> str:
    if view.campaign.state == "paused":
        return "paused"
    if not view.reminder.enabled:
        return "disabled"
    return "enabled" if view.reminder.next_at is not None else "done"


def when(at: Instant | None, zone: str) -> str:
    return "-" if at is None else f"{output.wall_text(at, zone)} {zone}"


def whom(view: ReminderView) -> str:
    audience = view.spec.campaign.audience.get("audience")
    told = output.plural(view.targets, "target", "targets")
    return told if audience is None else f"audience {audience} ({told} now)"


def said(part: dict[str, Any]) -> str:
    text = str(part.get("text") or part.get("caption") or part.get("kind", ""))
    return text if len(text) <= 60 else f"{text[:59]}…"


def progress(entry: RunView) -> str:
    sent, total = entry.counts[DeliveryState.SENT], sum(entry.counts.values())
    return f"{entry.run.state}, {sent} of {total}" if total else str(entry.run.state)


def show_runs(found: Sequence[RunView], zone: str) -> None:
    output.show_table(
        ("RUN", "FIRED FOR", "STARTED", "STATE", "SENT", "TOTAL", ""),
        [
            (
                entry.run.id,
                when(entry.run.fired_for, zone) if entry.run.fired_for else "by hand",
                _started(entry, zone),
                output.state_text(entry.run.state),
                entry.counts[DeliveryState.SENT],
                sum(entry.counts.values()),
                _note_on(entry),
            )
            for entry in found
        ],
        right=("RUN", "SENT", "TOTAL"),
        empty="it has not fired yet",
    )


def _started(entry: RunView, zone: str) -> str:
    at = entry.run.started_at
    return "-" if at is None else output.wall_text(at, zone)


def _note_on(entry: RunView) -> str:
    if entry.waits_for:
        return f"waits for {entry.waits_for}"
    return entry.run.summary or entry.run.reason


def shape(view: ReminderView, stop: Stop | None) -> dict[str, Any]:
    """As JSON has it."""
    return {
        "name": view.reminder.name,
        "state": state(view),
        "rule": view.reminder.rule,
        "zone": view.reminder.zone,
        "next": [shapes.instant(at) for at in view.firings],
        "due": view.due,
        "targets": view.targets,
        "away": list(view.away),
        "settings": dict(view.campaign.settings),
        "content": list(view.campaign.content),
        "runs": [run_shape(entry, stop) for entry in view.runs],
        "stopped": shapes.stop(stop),
    }


def run_shape(entry: RunView, stop: Stop | None) -> dict[str, Any]:
    run = entry.run
    return {
        "id": run.id,
        "state": run.state.value,
        "fired_for": shapes.instant(run.fired_for),
        "started_at": shapes.instant(run.started_at),
        "finished_at": shapes.instant(run.finished_at),
        "closes_at": shapes.instant(run.closes_at),
        "delivered": entry.counts[DeliveryState.SENT],
        "total": sum(entry.counts.values()),
        "counts": shapes.counts(entry.counts),
        "waits_for": entry.waits_for,
        "summary": run.summary,
        "stopped": shapes.stop(stop),
    }
