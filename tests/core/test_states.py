"""The state machines: the design's states, nothing but their tables, and diagrams of all of it."""

from enum import StrEnum
from typing import Any

import pytest

from paceline.core.errors import IllegalTransition
from paceline.core.states import ACCOUNT, CAMPAIGN, DELIVERY, MACHINES, RUN, DeliveryState, Machine

STATES = {
    "delivery": "planned ready sending sent failed bounced skipped unknown cancelled",
    "account": "active paused limit_reached cooling_down suspended",
    "campaign": "draft scheduled running paused finished cancelled",
    "run": "waiting running paused success partial failed missed cancelled",
    "turn": "thinking replying done handed discarded",
}
STARTS = {
    "delivery": "planned",
    "account": "active",
    "campaign": "draft",
    "run": "waiting",
    "turn": "thinking",
}
RESTING = {
    "delivery": {"bounced", "skipped", "cancelled"},
    "account": set(),
    "campaign": {"cancelled"},
    "run": {"missed", "cancelled"},
    "turn": {"done", "handed", "discarded"},
}
named = pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)


def events_of(machine: Machine[Any]) -> set[str]:
    return {event for _, event in machine.table}


@named
def test_a_machine_has_the_states_of_the_design_and_no_other(machine: Machine[Any]) -> None:
    assert " ".join(type(machine.start)) == STATES[machine.name]
    assert machine.start == STARTS[machine.name]
    assert machine.resting == RESTING[machine.name]


@named
def test_every_state_can_be_reached_from_the_start(machine: Machine[Any]) -> None:
    reached: set[StrEnum] = {machine.start}
    for _ in machine.table:
        reached |= {after for (state, _), after in machine.table.items() if state in reached}
    assert reached == set(type(machine.start))


@named
def test_every_pair_of_state_and_event_is_in_the_table_or_is_refused(machine: Machine[Any]) -> None:
    before = dict(machine.table)
    for state in type(machine.start):
        for event in [*events_of(machine), "explode", ""]:
            if (state, event) in before:
                assert machine.next(state, event) is before[state, event]
            else:
                with pytest.raises(IllegalTransition) as refused:
                    machine.next(state, event)
                assert str(refused.value).startswith(f"{machine.name} is {state}: cannot {event} ")
    assert dict(machine.table) == before


def test_a_refusal_says_what_is_possible() -> None:
    with pytest.raises(IllegalTransition) as refused:
        DELIVERY.next(DeliveryState.PLANNED, "accept")
    assert str(refused.value) == (
        "delivery is planned: cannot accept (possible: cancel, release, skip)"
    )
    with pytest.raises(IllegalTransition, match=r"\(possible: nothing\)"):
        DELIVERY.next(DeliveryState.SKIPPED, "retry")


@named
def test_sources_are_the_states_that_know_an_event(machine: Machine[Any]) -> None:
    for event in events_of(machine):
        for state in type(machine.start):
            assert (state in machine.sources(event)) == ((state, event) in machine.table)
    assert machine.sources("explode") == ()


@named
def test_the_diagram_lists_every_transition_once(machine: Machine[Any]) -> None:
    lines = machine.diagram().splitlines()
    expected = [f"    {a} --> {b}: {event}" for (a, event), b in machine.table.items()]
    expected += [f"    [*] --> {machine.start}", *(f"    {s} --> [*]" for s in machine.resting)]
    assert lines[0] == "stateDiagram-v2"
    assert sorted(lines[1:]) == sorted(expected)


def test_the_paths_the_design_names() -> None:
    def path(machine: Machine[Any], *events: str) -> str:
        state = machine.start
        for event in events:
            state = machine.next(state, event)
        return str(state)

    assert path(DELIVERY, "release", "intend", "accept") == "sent"
    assert path(DELIVERY, "release", "intend", "accept", "bounce") == "bounced"
    assert path(DELIVERY, "release", "intend", "lose") == "unknown"
    assert path(DELIVERY, "release", "intend", "lose", "accept") == "sent"
    assert path(DELIVERY, "release", "intend", "retry", "intend", "fail") == "failed"
    assert path(DELIVERY, "release", "skip") == "skipped"
    assert path(ACCOUNT, "reach_limit", "reopen") == "active"
    assert path(ACCOUNT, "cool_down", "suspend", "resume") == "active"
    assert path(CAMPAIGN, "schedule", "launch", "pause", "resume", "finish") == "finished"
    assert path(RUN, "start", "pause", "resume", "finish_some") == "partial"
    assert path(RUN, "miss") == "missed"


def test_a_message_that_left_never_becomes_ready_again() -> None:
    """Never twice: what was accepted, skipped or cancelled has no way back into the queue."""
    for state in ("sent", "bounced", "skipped", "cancelled"):
        reached = {DeliveryState(state)}
        for _ in DELIVERY.table:
            reached |= {b for (a, _), b in DELIVERY.table.items() if a in reached}
        assert DeliveryState.READY not in reached
        assert DeliveryState.SENDING not in reached
