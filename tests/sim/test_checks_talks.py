"""The checkers of conversations, each by itself: what it must report, and what it must not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from paceline.core.instants import MINUTE, SECOND
from paceline.core.states import TurnState
from paceline.core.turns import Patience
from paceline.engine.ports.audit import ActiveTurn
from paceline.engine.ports.conversations import Conversation, Turn
from paceline.engine.ports.inbox import Received
from paceline.sim.checks import Evidence, talks
from paceline.sim.checks.hearing import Hearing
from paceline.sim.minutes import Minute, Proceedings
from paceline.sim.talk import Asked, ByHand, Reached, Talk, Telling, Wrote
from tests.sim.evidence import NOON, broken, call, evidence, replace

ANNA = "anna"
LINE = "lane-0"
QUIET = 8 * SECOND
OUT_OF_TURN = {"never out of turn"}


def wrote(number: int, after_s: int = 0, text: str = "", **changes: Any) -> Wrote:
    at = NOON + after_s * SECOND
    return Wrote(number, at, LINE, ANNA, text or f"word {number}", told_at=at, **changes)


def kept(one: Wrote, turn: int | None = 1) -> Received:
    return Received(
        one.number + 1,
        1,
        one.name,
        one.chat,
        one.chat,
        "",
        one.text,
        one.kind,
        False,
        False,
        None,
        one.told_at,
        one.at,
        1,
        turn,
    )


TALKING = Conversation(1, 1, ANNA, "auto", "", None, None, None, NOON, NOON)
TURN = Turn(1, 1, TurnState.DONE, "process-0", 1, None, 1, 1, "", NOON, NOON)
ACTIVE = ActiveTurn(1, 1, "thinking", "process-0", 1, NOON + 15 * SECOND, NOON, None)
FIRST, SECOND_ONE = wrote(0), wrote(1, 2)


def minute(after_s: int = 0, *active: ActiveTurn, **changes: Any) -> Minute:
    at = NOON + after_s * SECOND
    given = {"modes": {1: "auto"}, "alerts": frozenset[str](), "by_engine": True, **changes}
    return Minute(at=at, database_at=at, active=active, **given)


def asked(*numbers: int | None, after_s: int = 10, **changes: Any) -> Asked:
    at = NOON + after_s * SECOND
    return replace(Asked(at, "process-0", "turn-1", LINE, ANNA, numbers), **changes)


def reached(*numbers: int, after_s: int = 12, delivery: int = 1, key: str = "turn-1") -> Reached:
    return Reached(NOON + after_s * SECOND, LINE, ANNA, delivery, key, numbers)


def world(messages: Sequence[Wrote] = (FIRST, SECOND_ONE), **changes: Any) -> Evidence:
    """Anna wrote twice, and had one answer; what is different goes by its name."""
    about = {name: changes.pop(name) for name in list(changes) if name not in PROCEEDINGS}
    told = [Telling(one.at, "process-0", (one.number,), one.at) for one in messages]
    coming = [minute(0), *(minute(one.number * 2, received=(one.name,)) for one in messages)]
    given: dict[str, Any] = {
        "wrote": messages,
        "tellings": told,
        "asked": [asked(*(one.number for one in messages))],
        "reached": [reached(*(one.number for one in messages))],
        "by_hand": [],
        "minutes": [*coming, minute(10, ACTIVE), minute(20)],
        "kept": [kept(one) for one in messages],
        "conversations": [TALKING],
        "turns": [TURN],
        **changes,
    }
    patience = {LINE: Patience(QUIET, MINUTE)}
    told_of = Proceedings(Talk(1, (ANNA,), patience), **given)
    calls = about.pop("calls", [call(1, 11 * SECOND, target=ANNA)])
    return evidence(*calls, talks=told_of, **about)


PROCEEDINGS = Proceedings.__dataclass_fields__


def test_one_answer_to_what_was_written_is_as_it_should_be() -> None:
    assert broken(world()) == set()


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (asked(1, 0), "out of order"),
        (asked(0, 0, 1), "twice"),
        (asked(0, 1, None), "never written"),
        (asked(0, 1, after_s=9), "before they had paused"),
        (replace(asked(0, 1), chat="ben"), "of somebody else"),
    ],
)
def test_whoever_answers_is_told_what_was_written_once_and_in_order(
    question: Asked, why: str
) -> None:
    assert broken(world(asked=[question])) == OUT_OF_TURN, why


def test_whoever_never_pauses_is_answered_all_the_same() -> None:
    # A minute after the first one, though the last came only just now.
    messages = [FIRST, wrote(1, 59)]
    questions, answers = [asked(0, 1, after_s=60)], [reached(0, 1, after_s=62)]
    assert broken(world(messages, asked=questions, reached=answers)) == set()


def test_clocks_that_differ_excuse_a_turn_that_begins_early() -> None:
    assert broken(world(asked=[asked(0, 1, after_s=9)], spread_us=2 * SECOND)) == set()


@pytest.mark.parametrize("strange", ["group", "automatic", "from_us"])
def test_what_is_nobodys_to_answer_is_not_asked_about(strange: Any) -> None:
    odd = replace(SECOND_ONE, strange=strange)
    assert broken(world([FIRST, odd])) == OUT_OF_TURN
    given = {"asked": [asked(0)], "reached": [reached(0)]}
    assert broken(world([FIRST, odd], kept=[kept(FIRST), kept(odd, None)], **given)) == set()


def test_a_message_is_answered_once_and_so_is_a_turn() -> None:
    again = reached(0, after_s=14, delivery=2)
    assert broken(world(reached=[reached(0, 1), again])) == OUT_OF_TURN
    second = replace(TURN, id=2, delivery_id=2)
    other = reached(1, after_s=14, delivery=2, key="turn-2")
    answers = {"reached": [reached(0, 1), other], "turns": [TURN, second]}
    assert broken(world(**answers)) == OUT_OF_TURN


def test_what_was_taken_in_first_is_answered_first() -> None:
    second = replace(TURN, id=2, delivery_id=2)
    rows = [kept(FIRST, 2), kept(SECOND_ONE, 1)]
    questions = [asked(1), asked(0, key="turn-2", after_s=12)]
    answers = [reached(1), reached(0, after_s=14, delivery=2, key="turn-2")]
    given = {"kept": rows, "asked": questions, "reached": answers, "turns": [TURN, second]}
    calls = {"calls": [call(1, 11 * SECOND), call(2, 13 * SECOND)]}
    assert broken(world(**given, **calls)) == OUT_OF_TURN


@pytest.mark.parametrize(
    ("state", "mode", "lost"),
    [
        (TurnState.HANDED, "human", False),
        (TurnState.HANDED, "auto", True),
        (TurnState.DISCARDED, "human", True),
        (TurnState.DONE, "auto", True),
    ],
)
def test_what_is_not_answered_is_left_to_a_person(state: Any, mode: Any, lost: bool) -> None:
    given = world(
        reached=[],
        turns=[replace(TURN, state=state, delivery_id=None)],
        conversations=[replace(TALKING, mode=mode)],
    )
    assert broken(given) == ({"never lost"} if lost else set())


def test_who_has_nothing_to_say_has_answered() -> None:
    silent = asked(0, 1, silent=True)
    assert broken(world(asked=[silent], reached=[])) == set()


def test_a_message_is_kept_once() -> None:
    answered = {"asked": [asked(0)], "reached": [reached(0)]}
    assert broken(world(kept=[kept(FIRST)], **answered)) == {"never lost"}
    assert broken(world(kept=[kept(FIRST), kept(FIRST), kept(SECOND_ONE)])) == {"never lost"}


def test_what_was_called_off_is_not_answered_and_not_missed() -> None:
    stop = wrote(1, 2, "STOP", wish="stop")
    given = {"asked": [asked(0)], "kept": [kept(FIRST), kept(stop)]}
    assert broken(world([FIRST, stop], reached=[], calls=[], **given)) == set()
    late = {"calls": [call(1, MINUTE, target=ANNA)], "reached": [reached(0, after_s=61)]}
    found = broken(world([FIRST, stop], **given, **late))
    assert found == {"never out of turn", "never to the suppressed"}


def test_the_last_wish_counts_and_not_the_one_that_is_told_last() -> None:
    start, stop = wrote(1, 2, "START", wish="start"), wrote(2, 5, "STOP", wish="stop")
    told_late = [minute(0), minute(0, received=(FIRST.name,)), minute(6, received=(stop.name,))]
    told_late += [minute(8, received=(start.name,)), minute(10, ACTIVE), minute(20)]
    given = {"minutes": told_late, "asked": [asked(0, 1)], "reached": [reached(0, 1)]}
    messages = [FIRST, start, stop]
    late = {"calls": [call(1, MINUTE, target=ANNA)]}
    assert "never to the suppressed" in broken(world(messages, **given, **late))
    meant = replace(start, told_at=NOON + 9 * SECOND)
    messages = [FIRST, meant, stop]
    assert "never to the suppressed" not in broken(world(messages, **given, **late))


def test_what_was_said_to_be_taken_is_written_down() -> None:
    missing = Telling(NOON, "process-0", (0,), NOON, missing=(0,))
    other = Telling(NOON, "process-0", (1,), NOON)
    assert broken(world(tellings=[missing, other])) == {"never unheard"}


# ---------------------------------------------------------------------- by the tables


def _minutes(*later: Minute) -> list[Minute]:
    coming = [minute(0), minute(0, received=(FIRST.name,)), minute(2, received=(SECOND_ONE.name,))]
    return [*coming, minute(10, ACTIVE), *later, minute(60)]


@pytest.mark.parametrize(
    ("later", "wrong"),
    [
        (minute(11, ACTIVE, replace(ACTIVE, id=2)), True),
        (
            minute(11, ACTIVE, replace(ACTIVE, id=2, conversation_id=2), modes={1: "auto", 2: ""}),
            False,
        ),
        (minute(24, replace(ACTIVE, generation=2)), True),
        (minute(25, replace(ACTIVE, generation=2)), False),
        (minute(24, replace(ACTIVE, generation=2, started_at=NOON + 11 * MINUTE)), True),
        (minute(11, replace(ACTIVE, delivery_id=1), modes={1: "human"}, by_engine=False), True),
        (
            minute(
                11,
                replace(ACTIVE, delivery_id=1, owner="a person"),
                modes={1: "human"},
                by_engine=False,
            ),
            False,
        ),
    ],
)
def test_one_turn_at_a_time_held_by_whoever_has_its_lease(later: Minute, wrong: bool) -> None:
    assert broken(world(minutes=_minutes(later))) == (OUT_OF_TURN if wrong else set())


@pytest.mark.parametrize(("place", "wrong"), [(3, False), (4, True)])
def test_a_person_waits_for_the_answer_that_is_being_made(place: int, wrong: bool) -> None:
    hand = ByHand(NOON + 10 * SECOND, 1, 1, place)
    given = world(by_hand=[hand], minutes=_minutes())
    assert broken(given) == (OUT_OF_TURN if wrong else set())


def test_who_needs_a_person_is_told_of_in_the_same_commit() -> None:
    human = minute(11, modes={1: "human"})
    assert broken(world(minutes=_minutes(human))) == {"never untold"}
    told = replace(human, alerts=frozenset({"conversation.person:1"}))
    assert broken(world(minutes=_minutes(told))) == set()
    by_a_person = replace(human, by_engine=False)
    assert broken(world(minutes=_minutes(by_a_person))) == set()
    still = replace(minute(12), alerts=told.alerts)
    assert broken(world(minutes=_minutes(told, still))) == {"never untold"}


# ---------------------------------------------------------------------- never stuck


def test_in_fair_weather_somebody_is_asked_in_time() -> None:
    late = {"asked": [asked(0, 1, after_s=200)], "reached": [reached(0, 1, after_s=202)]}
    assert broken(world(**late, calm_at=NOON + MINUTE)) == set()
    assert broken(world(**late, calm_at=NOON)) == {"never stuck"}
    busy = replace(ACTIVE, id=2)
    blocked = [*_minutes(minute(12, busy)), minute(150, busy), minute(190)]
    assert broken(world(**late, minutes=blocked, calm_at=NOON)) == set()
    held = [*_minutes(minute(12, held=True)), minute(150, held=True), minute(190)]
    assert broken(world(**late, minutes=held, calm_at=NOON)) == set(), "nobody is answered then"


def test_what_waits_to_the_end_is_told() -> None:
    waiting = [replace(TALKING, first_at=NOON)]
    assert broken(world(conversations=waiting, came_to_rest=False)) == {"never stuck"}


@pytest.mark.parametrize(
    ("wish", "resent", "wrong"),
    [("stop", {1}, False), ("stop", set[int](), True), (None, {1}, True)],
)
def test_what_was_in_doubt_is_sent_again_by_who_knows(
    wish: Any, resent: set[int], wrong: bool
) -> None:
    """Its turn was over because they had asked for nothing more; later they have."""
    messages = [FIRST, wrote(1, 2, wish=wish), wrote(2, 4, wish=wish and "start"), wrote(3, 6)]
    later = reached(3, after_s=20, delivery=2, key="turn-2")
    busy = [(ACTIVE,), (ACTIVE,), (), ()]
    coming = [
        minute(one.number * 2, *active, received=(one.name,))
        for one, active in zip(messages, busy, strict=True)
    ]
    given = world(
        messages,
        reached=[later, reached(0, after_s=40)],
        turns=[TURN, TURN._replace(id=2, delivery_id=2)],
        minutes=[*coming[:2], minute(3), *coming[2:]],
        resent=frozenset(resent),
    )
    assert given.talks is not None
    found = list(talks._overtaken(Hearing(given, given.talks)))
    assert bool(found) == wrong
