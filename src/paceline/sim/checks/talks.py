"""Never out of turn: each message in one turn and one reply, in order, and nobody is forgotten.

Judged by what people really wrote, by what was asked of whoever answers, and by what has reached
them. What stands in the tables on the way is judged in ``turns.py``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from paceline.core.instants import SECOND, Instant
from paceline.core.states import TurnState
from paceline.sim.checks.evidence import Evidence, Violation
from paceline.sim.checks.hearing import Chat, Hearing, Reply
from paceline.sim.checks.messages import SHOWN, UNDER_WAY_US
from paceline.sim.talk import Asked, Wrote

OUT_OF_TURN = "never out of turn"


def out_of_turn(evidence: Evidence) -> Iterator[Violation]:
    if evidence.talks is None:
        return
    hearing = Hearing(evidence, evidence.talks)
    for asked in evidence.talks.asked:
        yield from _misasked(hearing, asked)
    yield from _too_early(hearing)
    yield from _answered_twice(hearing)
    yield from _overtaken(hearing)
    yield from _called_off(hearing)


def _misasked(hearing: Hearing, asked: Asked) -> Iterator[Violation]:
    """Whoever answers is told what was written there, each once, in the order in which it was."""
    numbers = [number for number in asked.numbers if number is not None]
    about = (asked.key, asked.chat)

    def wrong(what: str) -> Violation:
        return Violation(OUT_OF_TURN, f"{asked.key} was asked about {what}", asked.at, about)

    if len(numbers) != len(asked.numbers):
        yield wrong("what nobody had written")
    if len(set(numbers)) != len(numbers):
        yield wrong(f"the same twice: {numbers}")
    wrote = [hearing.talks.wrote[number] for number in numbers]
    for one in wrote:
        if one.strange or (one.account, one.chat) != (asked.account, asked.chat):
            yield wrong(f"message {one.number}, which is nobody's to answer there")
    known = [one for one in wrote if one.number in hearing.came]
    if [one.number for one in known] != numbers:
        yield wrong("what had not been taken in")
    # Of what bears the same time, nobody knows more than which was told first.
    right = sorted(known, key=lambda one: (one.told_at, hearing.came[one.number].order))
    if known != right:
        yield wrong(f"{numbers}, which is not the order in which it was written")


def _too_early(hearing: Hearing) -> Iterator[Violation]:
    """Nobody is interrupted: a turn begins when they have paused, or have not for long."""
    begun: set[str] = set()
    for asked in hearing.talks.asked:
        came = [hearing.told_at[one] for one in asked.numbers if one in hearing.came]
        if asked.key in begun or not came:
            continue
        begun.add(asked.key)
        patience = hearing.talks.patience_of(asked.account)
        due_at = min(max(came) + patience.quiet_us, min(came) + patience.max_wait_us)
        if asked.at + hearing.evidence.spread_us < due_at:
            text = f"{asked.key} was asked at {asked.at}, but they might go on until {due_at}"
            yield Violation(OUT_OF_TURN, text, asked.at, (asked.key, asked.chat))


def _answered_twice(hearing: Hearing) -> Iterator[Violation]:
    """One reply for every message and every turn, and to nothing that is not its turn's."""
    to_message: dict[int, Reply] = {}
    to_turn: dict[int, Reply] = {}
    for reply in hearing.replies:
        turn = reply.turn
        if turn is None:
            if not reply.by_hand:
                text = f"delivery {reply.delivery_id} is an answer, and no turn knows it"
                yield _about(reply, text)
        elif to_turn.setdefault(turn.id, reply).delivery_id != reply.delivery_id:
            yield _about(reply, f"turn {turn.id} has a second reply")
        elif not set(reply.numbers) <= set(hearing.taken.get(turn.id, ())):
            took = sorted(hearing.taken.get(turn.id, ()))
            yield _about(reply, f"turn {turn.id} took {took}, its reply is to {reply.numbers}")
        for number in reply.numbers:
            first = to_message.setdefault(number, reply)
            if first.delivery_id != reply.delivery_id:
                text = f"message {number} is answered by {first.delivery_id} and once more"
                yield _about(reply, text)


def _overtaken(hearing: Hearing) -> Iterator[Violation]:
    """What was taken in first is answered first."""
    latest: dict[Chat, tuple[int, int]] = defaultdict(lambda: (-1, -1))
    for reply in hearing.replies:
        orders = [(hearing.came[one].order, one) for one in reply.numbers if one in hearing.came]
        if not orders or _was_in_doubt(hearing, reply):
            continue
        before = latest[reply.chat]
        if min(orders) < before:
            text = f"the reply to message {min(orders)[1]} came after the one to {before[1]}"
            yield _about(reply, text)
        latest[reply.chat] = max(before, *orders)


def _was_in_doubt(hearing: Hearing, reply: Reply) -> bool:
    """Whether nobody knew what had become of it when its turn was handed to a person: they had it
    sent again, or it was still on its way."""
    turn, resent = reply.turn, reply.delivery_id in hearing.talks.resent
    if turn is None:
        return False
    ended_at = hearing.ended.get(turn.id, reply.at)
    if turn.state is not TurnState.HANDED:
        # Whoever wanted no answer then needed no person either.
        return resent and hearing.was_out(reply.chat[1], ended_at, ended_at)
    return resent or reply.at > ended_at


def _called_off(hearing: Hearing) -> Iterator[Violation]:
    """What somebody wrote before they wanted no answer is not answered, whatever they want then."""
    stops: dict[Chat, list[tuple[int, int]]] = defaultdict(list)
    for wishes in hearing.wishes.values():
        for came, one in wishes:
            if one.wish == "stop":
                stops[one.account, one.chat].append((came.order, came.at))
    started: dict[int, int] = {}
    for call in hearing.evidence.calls:
        started.setdefault(call.delivery_id, call.at)
    for reply in hearing.replies:
        for order, at in stops.get(reply.chat, ()):
            under_way = started[reply.delivery_id] <= at + UNDER_WAY_US
            mine = [one for one in reply.numbers if one in hearing.came]
            called_off = [one for one in mine if hearing.came[one].order <= order]
            if called_off and not under_way and not reply.by_hand:
                text = f"message {called_off[0]} is answered, and was called off at {at}"
                yield _about(reply, text)


def _about(reply: Reply, text: str) -> Violation:
    return Violation(OUT_OF_TURN, text, reply.at, (str(reply.delivery_id), reply.chat[1]))


# ---------------------------------------------------------------------- nothing is lost


def lost(evidence: Evidence) -> Iterator[Violation]:
    """What somebody wrote is answered, left to a person, or called off by themselves."""
    if evidence.talks is None:
        return
    hearing = Hearing(evidence, evidence.talks)
    answered = {number for reply in hearing.replies for number in reply.numbers}
    for one in hearing.answerable:
        rows = hearing.kept.get(one.number, ())
        what = None
        if len(rows) != 1:
            what = f"is kept {len(rows)} times"
        elif one.number not in answered and not _is_left(hearing, one):
            turn = hearing.turn_of(one.number)
            where = "in no turn" if turn is None else f"in turn {turn.id}, which is {turn.state}"
            what = f"is not answered: it is {where}"
        if what is not None and evidence.came_to_rest:
            text = f"message {one.number} of {one.chat} to {one.account} {what}"
            yield Violation("never lost", text, evidence.ended_at, (one.chat, str(one.number)))


def _is_left(hearing: Hearing, one: Wrote) -> bool:
    """Whether a message rightly has no answer."""
    turn = hearing.turn_of(one.number)
    conversation = hearing.conversations.get((one.account, one.chat))
    if conversation is None:
        return False
    if conversation.mode != "auto" and (turn is None or turn.state is TurnState.HANDED):
        return True
    until_at = hearing.evidence.ended_at
    if turn is not None:
        if turn.state is not TurnState.HANDED:  # what a person has may be called off later
            until_at = hearing.ended.get(turn.id, until_at)
        if turn.delivery_id in hearing.talks.resent:
            return True  # a person who knew of the doubt has seen to it, and to what came of that
        if turn.state is TurnState.DONE and _had_nothing_to_say(hearing, one, turn.id):
            return True
    return hearing.was_out(one.chat, hearing.came[one.number].at, until_at)


def _had_nothing_to_say(hearing: Hearing, one: Wrote, turn_id: int) -> bool:
    return any(
        asked.silent and asked.key == f"turn-{turn_id}" and one.number in asked.numbers
        for asked in hearing.talks.asked
    )


def unheard(evidence: Evidence) -> Iterator[Violation]:
    """What a process says it has taken is written down."""
    for telling in evidence.talks.tellings if evidence.talks is not None else ():
        if telling.missing:
            text = f"{telling.process} said that it had taken message {telling.missing[0]}"
            about = (telling.process, str(telling.missing[0]))
            yield Violation("never unheard", text, telling.answered_at or telling.at, about)


def to_the_unwilling(evidence: Evidence) -> Iterator[Violation]:
    """Nobody is written to after the last that was heard of them is that they want none of it."""
    if evidence.talks is None:
        return
    hearing = Hearing(evidence, evidence.talks)
    for call in evidence.calls:
        intended_at = call.at - UNDER_WAY_US
        told = [came.at for came, _ in hearing.wishes.get(call.target, ())]
        since = [intended_at, *(at for at in told if intended_at < at <= call.at)]
        if all(hearing.last_wish(call.target, at) == "stop" for at in since):
            text = f"{call.key} went to {call.target}, who wrote that they want none"
            yield Violation("never to the suppressed", text, call.at, (call.target, call.key))


# ---------------------------------------------------------------------- nobody waits for ever

SLACK_US = 20 * SECOND
"""From when a turn is due until somebody is asked, in fair weather: processes look every few
seconds, and have few to answer at a time."""


def stuck(evidence: Evidence) -> Iterator[Violation]:
    if evidence.talks is None:
        return
    hearing = Hearing(evidence, evidence.talks)
    if not evidence.came_to_rest:
        left = [
            one
            for one in evidence.talks.conversations
            if one.mode == "auto" and one.first_at is not None
        ]
        ids = [one.id for one in left]
        active = [turn.id for turn in evidence.talks.minutes[-1].active]
        if ids or active:
            text = f"conversations {ids[:SHOWN]} still wait, turns {active[:SHOWN]} are not over"
            yield Violation("never stuck", text, evidence.ended_at)
        return
    begun: set[str] = set()
    first_asked: dict[int, Asked | None] = {}
    for asked in evidence.talks.asked:
        # What a turn took along that was active already has waited for nothing else.
        first = None if asked.key in begun else asked
        begun.add(asked.key)
        for number in asked.numbers:
            if number is not None:
                first_asked.setdefault(number, first)
    for one in hearing.answerable:
        came, first = hearing.came.get(one.number), first_asked.get(one.number)
        if came is None or came.at < evidence.calm_at or first is None:
            continue
        due_at = _free_at(hearing, one, first) + SLACK_US
        due_at += evidence.talks.patience_of(one.account).max_wait_us
        if first.at > due_at:
            text = f"nobody was asked about message {one.number} of {one.chat} until {first.at}"
            yield Violation("never stuck", text, due_at, (one.chat, str(one.number)))


def _free_at(hearing: Hearing, one: Wrote, first: Asked) -> Instant:
    """When nothing stood in the way of a message's turn any more: another turn, a person, or that
    nobody is answered at all for the time being."""
    came = hearing.came[one.number]
    conversation = hearing.conversations[one.account, one.chat]
    free_at, blocked = came.at, False
    for minute in hearing.talks.minutes[came.minute :]:
        if minute.at > first.at:
            break
        if blocked:
            free_at = minute.at
        others = (
            turn.conversation_id == conversation.id and f"turn-{turn.id}" != first.key
            for turn in minute.active
        )
        theirs = minute.modes.get(conversation.id, "auto") != "auto"
        blocked = any(others) or theirs or minute.held
    return free_at


__all__ = ["lost", "out_of_turn", "stuck", "to_the_unwilling", "unheard"]
