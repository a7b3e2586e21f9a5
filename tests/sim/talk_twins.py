"""Broken twins of what converses with people: hooks, turns, answers, and people who take over.

The others, and what a twin is, are in ``twins.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from sqlalchemy import text, true

from paceline.core.instants import MILLISECOND, MINUTE, SECOND
from paceline.core.turns import Patience
from paceline.engine import alerts, answering, conversations, opting_out
from paceline.engine.commands import returns
from paceline.engine.ports import Tx
from paceline.engine.ports.answering import Answer
from paceline.engine.ports.conversations import Conversation, Replied, Turn
from paceline.engine.ports.inbox import Received
from paceline.engine.ports.questions import Matter
from paceline.engine.questions import Question
from paceline.engine.replying import send_answer
from paceline.engine.reporting import ReportDesk
from paceline.sim import weather
from paceline.sim.loop import OWNER
from paceline.sim.talk import Mind, Talk
from paceline.sim.weather import CLIMATES, Ask, Commit
from paceline.sim.worlds import Sender, World
from paceline.store import inbox, listening, questions, talking
from paceline.store.base import Subject
from paceline.store.prepared import Prepared
from tests.sim.small import START
from tests.sim.twins import Twin, only

# ---------------------------------------------------------------------- small worlds

PEOPLE = ("ann", "ben", "cleo")


def _talked(
    minds: Mapping[Mind, int] | None = None,
    *,
    on_newer: str = "wait",
    provider: dict[str, Any] | None = None,
    operated: bool = False,
    **talk: Any,
) -> World:
    """A minute in which three people write to one account, and two processes answer."""
    patience = Patience(4 * SECOND, 12 * SECOND, "redo" if on_newer == "redo" else "wait")
    policy = {"rate": "60/min burst 3", "timeout": "10s", "retry": "5s doubling", "concurrency": 3}
    given = {
        "seed": 1,
        "people": PEOPLE,
        "patience": {"line": patience},
        "minds": minds or {Mind.PROMPT: 1},
        "rest_us": (3 * SECOND, 20 * SECOND),
        "most": 3,
        "after_us": 10 * SECOND,
        "look_every_us": 2 * SECOND,
        **talk,
    }
    return World(
        "talked",
        START,
        lasts_us=MINUTE,
        calm_us=20 * MINUTE,
        senders=(Sender("line", policy, settings={"latency": "50ms..1s", **(provider or {})}),),
        mailings=(),
        processes=2,
        fleet=True,
        poll_us=3 * SECOND,
        park_after_us=20 * SECOND,
        operated=operated,
        talk=Talk(**given),
        rests=True,
    )


PLAIN = _talked()
SLOW = _talked({Mind.PROMPT: 1, Mind.SLOW: 1})
LONGER = replace(PLAIN, lasts_us=2 * MINUTE)
CROWDED = replace(SLOW, lasts_us=2 * MINUTE, processes=3)
EAGER = replace(
    _talked({Mind.PROMPT: 2, Mind.SLOW: 1}, on_newer="redo", rest_us=(SECOND, 6 * SECOND)),
    lasts_us=90 * SECOND,
)
SHUFFLED = _talked(hooks=((MILLISECOND, 3 * SECOND),), together=0.6)
TWICE = _talked(twice=0.8)
HELPLESS = _talked({Mind.PROMPT: 2, Mind.REFUSES: 1})
LEAVING = replace(_talked(stops=0.4), lasts_us=90 * SECOND)
UNDECIDED = replace(
    _talked(
        stops=0.7,
        most=1,
        rest_us=(6 * SECOND, 14 * SECOND),
        hooks=((MILLISECOND, 200 * MILLISECOND), (15 * SECOND, 30 * SECOND)),
    ),
    lasts_us=3 * MINUTE,
)
"""What they want is told late, and in any order."""
ATTENDED = _talked({Mind.PROMPT: 2, Mind.SLOW: 1}, operated=True)
REFUSED = _talked(provider={"transient_rate": 0.4}, rest_us=(SECOND, 8 * SECOND))


# ---------------------------------------------------------------------- hardships


def _in(climate: dict[str, Any], asks: tuple[tuple[Ask, float], ...] = ()) -> Any:
    def provoke(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(weather, "ASKS", asks)
        patch.setitem(
            CLIMATES, "heavy", replace(CLIMATES["heavy"], restart_us=5 * SECOND, **climate)
        )

    return provoke


_processes_sleep_over_questions = _in({"standstill_us": MINUTE}, ((Ask.STANDSTILL, 1 / 2),))
_processes_die_over_questions = _in({}, ((Ask.CRASH, 1 / 4),))
_processes_die_all_the_time = _in(
    {"commits": ((Commit.CRASH_AFTER, 1 / 15),), "turns_per_crash": 500}
)
_a_slow_store = _in({"slow": 1 / 3, "slowest_us": 4 * SECOND, "turns_per_crash": 500})
clocks_differ = _in({"step_every_us": 10 * SECOND, "farthest_step_us": 40 * SECOND})
_people_interfere = only("takes", "mutes", "answers", "hands")


def _people_interfere_often(patch: pytest.MonkeyPatch) -> None:
    _people_interfere(patch)
    patch.setitem(CLIMATES, "heavy", replace(CLIMATES["heavy"], operator_every_us=3 * SECOND))


# ---------------------------------------------------------------------- one turn at a time


def a_second_turn_begins_while_one_is_active(patch: pytest.MonkeyPatch) -> None:
    """Neither does anybody look, nor does the database mind."""
    begin = talking.Turns.begin
    _unattended(patch, talking._UNATTENDED[:2])

    def unguarded(self: talking.Turns, *given: Any) -> Turn | None:
        self._connection.execute(text("DROP INDEX IF EXISTS uq_turns_active"))
        return begin(self, *given)

    patch.setattr(talking.Turns, "begin", unguarded)


def whoever_has_lost_a_turn_answers_all_the_same(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(talking, "_held", lambda turn: (talking.turns.c.id == turn.id,))


def leases_are_told_by_ones_own_clock(patch: pytest.MonkeyPatch) -> None:
    for name in ("begin", "stale", "take_over", "again", "renew"):
        patch.setattr(talking.Turns, name, by_own_clock(getattr(talking.Turns, name)))


def by_own_clock(method: Callable[..., Any]) -> Callable[..., Any]:
    """A subject of the store that takes the clock of whoever asks for the database's."""

    def told(self: Subject, *given: Any) -> Any:
        owner, context = OWNER.get(), self._context
        if owner is None:
            return method(self, *given)
        true_at, context.__dict__["now"] = context.now, owner.now()  # type: ignore[attr-defined]
        try:
            return method(self, *given)
        finally:
            context.__dict__["now"] = true_at

    return told


def a_turn_that_was_left_stays_so(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(talking.Turns, "stale", lambda *_: [])


def _unattended(patch: pytest.MonkeyPatch, conditions: Any) -> None:
    """What is due, by other conditions; put together anew, and by nobody else."""
    patch.setattr(talking, "_UNATTENDED", conditions)
    patch.setattr(talking, "_DUE", Prepared(talking._due))


def a_turn_is_over_when_its_answer_is_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(talking, "_OVER", true())
    # Put together anew, and by nobody else: statements are kept.
    patch.setattr(talking, "_REPLIED", Prepared(talking._REPLIED._build))

    def end(tx: Tx, replied: Replied, at: int) -> None:
        tx.turns.move(replied.turn, "finish", at)

    patch.setattr(conversations, "end", end)


def nobody_waits_until_they_have_paused(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Patience, "due_at", lambda self, first_at, last_at: first_at)


# ---------------------------------------------------------------------- each message once, in order


def a_hook_is_answered_before_the_message_is_written(patch: pytest.MonkeyPatch) -> None:
    write = ReportDesk._write

    async def soon(self: ReportDesk, *given: Any) -> Any:
        writing = asyncio.ensure_future(write(self, *given))
        writing.add_done_callback(lambda done: done.cancelled() or done.exception())
        return False, returns.TakenIn()

    patch.setattr(ReportDesk, "_write", soon)


def what_is_told_twice_is_said_twice(patch: pytest.MonkeyPatch) -> None:
    values_of, numbers = inbox.values_of, count(1)

    def anew(*given: Any) -> dict[str, Any]:
        values = values_of(*given)
        return {**values, "provider_id": f"{values['provider_id']}/{next(numbers)}"}

    patch.setattr(inbox, "values_of", anew)
    patch.setattr(listening, "values_of", anew)
    patch.setattr(inbox.Inbox, "has", lambda *_: True)


def messages_are_answered_in_whatever_order(patch: pytest.MonkeyPatch) -> None:
    matter = questions._matter

    def reversed_(turn: Turn, talk: Conversation, taken: Sequence[Received], *rest: Any) -> Matter:
        return matter(turn, talk, taken[::-1], *rest)

    patch.setattr(questions, "_matter", reversed_)


def the_answer_is_sent_before_its_turn_is_moved(patch: pytest.MonkeyPatch) -> None:
    async def hasty(self: answering.Answerer, question: Question, made: Answer) -> None:
        now, turn = self._clock.now(), question.turn

        def send(tx: Tx) -> int | None:
            to = tx.conversations.hold(turn.conversation_id)
            if not tx.turns.renew(turn, answering.LEASE_US):
                return None
            return send_answer(
                tx, question.account, to, made.text, self._providers, now, of=question.turn
            )

        delivery_id = await self._journal.write(send, alone=True)
        if delivery_id is not None:
            await self._journal.write(
                lambda tx: tx.turns.move(turn, "reply", now, delivery_id=delivery_id)
            )

    patch.setattr(answering.Answerer, "_send", hasty)


def what_is_made_anew_is_not_asked_about(patch: pytest.MonkeyPatch) -> None:
    """What came meanwhile is taken into the turn, and the old answer is sent."""
    redo = conversations.redo

    def forgetful(*given: Any) -> None:
        redo(*given)

    patch.setattr(conversations, "redo", forgetful)


def what_was_handed_back_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(conversations, "_let_unanswered_wait", lambda *_: None)


# ---------------------------------------------------------------------- people


def a_machine_answers_where_a_person_does(patch: pytest.MonkeyPatch) -> None:
    hold = talking.Conversations.hold
    _unattended(patch, talking._UNATTENDED[1:])

    def meddling(self: talking.Conversations, number: int) -> Conversation:
        held = hold(self, number)
        return held if OWNER.get() is None else held._replace(mode="auto")

    patch.setattr(talking.Conversations, "hold", meddling)


def a_person_answers_without_looking(patch: pytest.MonkeyPatch) -> None:
    active = talking.Turns.active

    def blind(self: talking.Turns, *given: Any) -> list[Turn]:
        return active(self, *given) if OWNER.get() is not None else []

    patch.setattr(talking.Turns, "active", blind)


def nobody_is_told_that_a_person_has_to_answer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(alerts, "needs_a_person", lambda *_: None)


# ---------------------------------------------------------------------- opting out


def stop_is_a_word_like_any_other(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(returns, "obey", lambda *_: None)


def what_came_before_stop_waits_for_start(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(conversations, "_leave_unanswered", lambda *_: None)


def start_counts_whenever_it_is_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(opting_out, "_wrote_stop_since", lambda *_: False)


OUT_OF_TURN = "never out of turn"
SUPPRESSED = "never to the suppressed"

TALK_TWINS = (
    Twin(a_second_turn_begins_while_one_is_active, OUT_OF_TURN, SLOW, 6),
    Twin(
        whoever_has_lost_a_turn_answers_all_the_same,
        "never lost",
        EAGER,
        8,
        provokes=_processes_sleep_over_questions,
    ),
    Twin(
        leases_are_told_by_ones_own_clock, OUT_OF_TURN, CROWDED, 8, provokes=clocks_differ, first=1
    ),
    Twin(
        a_turn_that_was_left_stays_so,
        "never stuck",
        PLAIN,
        8,
        provokes=_processes_die_over_questions,
    ),
    Twin(a_turn_is_over_when_its_answer_is_written, OUT_OF_TURN, REFUSED, 6),
    Twin(nobody_waits_until_they_have_paused, OUT_OF_TURN, PLAIN, 6),
    Twin(
        a_hook_is_answered_before_the_message_is_written,
        "never unheard",
        PLAIN,
        8,
        provokes=_a_slow_store,
    ),
    Twin(what_is_told_twice_is_said_twice, OUT_OF_TURN, TWICE, 6),
    Twin(messages_are_answered_in_whatever_order, OUT_OF_TURN, SHUFFLED, 6),
    Twin(
        the_answer_is_sent_before_its_turn_is_moved,
        OUT_OF_TURN,
        LONGER,
        8,
        first=1,
        provokes=_processes_die_all_the_time,
    ),
    Twin(what_is_made_anew_is_not_asked_about, "never lost", EAGER, 6),
    Twin(what_was_handed_back_is_forgotten, "never lost", HELPLESS, 6, first=1),
    Twin(
        a_machine_answers_where_a_person_does,
        OUT_OF_TURN,
        ATTENDED,
        8,
        first=1,
        provokes=_people_interfere_often,
    ),
    Twin(
        a_person_answers_without_looking,
        OUT_OF_TURN,
        ATTENDED,
        8,
        provokes=_people_interfere_often,
    ),
    Twin(nobody_is_told_that_a_person_has_to_answer, "never untold", HELPLESS, 6, first=1),
    Twin(stop_is_a_word_like_any_other, SUPPRESSED, LEAVING, 6),
    Twin(what_came_before_stop_waits_for_start, OUT_OF_TURN, LEAVING, 6),
    Twin(start_counts_whenever_it_is_told, SUPPRESSED, UNDECIDED, 6),
)
