"""Ways to answer that are held: no credit left, a key that is not taken, a service that is gone.

Whoever finds out that nobody will be answered in a way holds it as a whole, in the database, so
that no process asks in vain: what people write stays due, in its order. The way is tried again
after growing pauses, by one question of one process; once that is answered all the others are.
Whoever has waited for nearly a day is a person's to answer, while channels still take it.
"""

from __future__ import annotations

from paceline.core.durations import print_duration
from paceline.core.instants import HOUR, MINUTE, Instant
from paceline.engine import alerts, conversations
from paceline.engine.conversations import Holder
from paceline.engine.ports import Account, Tx
from paceline.engine.ports.held_ways import HeldWay
from paceline.engine.questions import Question

PAUSES_US = (MINUTE, 5 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR)
"""Before the first try, and between two; the last one from then on."""
LONGEST_US = 23 * HOUR
"""For so long somebody waits. A person then has an hour left in which WhatsApp still takes an
answer."""


def way_of(account: Account) -> str:
    """The way in which an account is answered; empty where people answer."""
    return str(account.answering.get("way", ""))


def of_account(tx: Tx, account: Account) -> HeldWay | None:
    """Why nobody who writes to it is answered just now."""
    way = way_of(account)
    return tx.held_ways.find(way) if way else None


def hold_back(tx: Tx, question: Question, reason: str, at: Instant) -> bool:
    """Nobody will be answered in the way of this question, which waits again, as all others do;
    False where its turn was not ours any more."""
    conversation = tx.conversations.hold(question.turn.conversation_id)
    ours = conversations.put_back(tx, question, conversation, reason, at)
    way = way_of(question.account)
    if tx.held_ways.hold(way, reason, at, at + PAUSES_US[0]) or question.tries:
        alerts.responder_fails(tx, way, reason, at)
    return ours


def let_wait(tx: Tx, question: Question, at: Instant) -> bool:
    """Its way was found to be held before it was asked, or between two tries."""
    conversation = tx.conversations.hold(question.turn.conversation_id)
    reason = f"{way_of(question.account)} is held"
    return conversations.put_back(tx, question, conversation, reason, at)


def may_be_tried(held: HeldWay, now: Instant) -> bool:
    # What lies further ahead than any pause was written by a clock that was wrong.
    return not now < held.try_at <= now + PAUSES_US[-1]


def try_with(
    tx: Tx, held: HeldWay, conversation_id: int, by: Holder, at: Instant
) -> Question | None:
    """Ask whether a way answers again, with what waits in a conversation; None where another
    process does, or there is nothing to ask any more."""
    # Conversations before ways, as whoever holds one does it.
    tx.conversations.hold(conversation_id)
    pause_us = PAUSES_US[min(held.tries + 1, len(PAUSES_US) - 1)]
    if not tx.held_ways.put_off(held, at + pause_us):
        return None
    question = conversations.begin(tx, conversation_id, by.name, by.lease_us, at, by.history)
    if question is None or way_of(question.account) != held.way:
        return question  # it is answered in another way by now
    return question._replace(tries=held)


def release(tx: Tx, way: str, at: Instant) -> HeldWay | None:
    """Somebody has seen to it: all that waits is answered. What it was held for; None if it was
    not."""
    # The way before its alert, as whoever holds it does it.
    released = tx.held_ways.release(way)
    alerts.responder_works(tx, way, at)
    return released


def works(tx: Tx, tried: HeldWay, at: Instant) -> HeldWay | None:
    """It answers again, as a try has found out: the same, unless it has been let go of since. One
    that was held anew is another matter: whoever did that has asked later than this try."""
    released = tx.held_ways.release(tried.way, tried.since_at)
    if released is not None:
        alerts.responder_works(tx, tried.way, at)
    return released


def tidy(tx: Tx, at: Instant) -> None:
    """Let go of ways in which no account is answered any more, and end alerts of ways that are not
    held: none would be tried, so nobody would ever find out that they work."""
    # Alerts first: whoever raises one has held its way in the same transaction.
    told = [one for one in tx.alerts.list() if one.kind == alerts.RESPONDER]
    used = {way_of(account) for account in tx.accounts.list()}
    held = {one.way: one for one in tx.held_ways.list()}
    for way in sorted(held.keys() - used):
        works(tx, held[way], at)
    keys = {alerts.responder_key(way) for way in held}
    for one in told:
        if one.key not in keys:
            # Unless it was raised again this very moment.
            tx.alerts.clear(at, keys=[one.key], quiet_since_at=one.last_at)


def give_up(tx: Tx, held: HeldWay, conversation_id: int, by: Holder, at: Instant) -> bool:
    """Somebody has waited for too long: a person has to answer."""
    question = conversations.begin(tx, conversation_id, by.name, by.lease_us, at, by.history)
    if question is None:
        return False
    reason = f"nobody was answered by {held.way} for {print_duration(LONGEST_US)}: {held.reason}"
    return conversations.hand_over(tx, question, reason, at)
