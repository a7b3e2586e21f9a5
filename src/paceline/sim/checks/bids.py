"""Never unbidden: a follow-up goes out exactly when somebody answered in its time, once.

Judged by what people really wrote and by what the provider took: which message is the campaign's,
and which one its follow-up, is told by their words. When a message was begun, and when that it had
arrived was written down, is read in the tables, for nobody who answers in between does so in vain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

from paceline.core.instants import SECOND, Instant
from paceline.providers.sandbox.effects import Effect
from paceline.sim.checks.evidence import Evidence, Violation
from paceline.sim.checks.hearing import Chat, Hearing
from paceline.sim.minutes import Proceedings
from paceline.sim.talk import FOLLOW_UP, OPENING, Wrote
from paceline.sim.witness import Seen

UNBIDDEN = "never unbidden"

CLOCKS_US = 2 * SECOND
"""What is allowed for clocks, as the documentation has it."""


def unbidden(evidence: Evidence) -> Iterator[Violation]:
    if evidence.talks is None or not evidence.talks.talk.within_us:
        return
    bidding = _Bidding(evidence, evidence.talks)
    yield from _for_nothing(bidding)
    yield from _more_than_once(bidding)
    if evidence.came_to_rest:
        yield from _forgotten(bidding)


class _Bidding:
    """What a campaign sent to whom, and what they wrote."""

    def __init__(self, evidence: Evidence, talks: Proceedings) -> None:
        self.evidence = evidence
        self.hearing = Hearing(evidence, talks)
        self.minutes = talks.minutes
        self.places = {row.provider_id: row.conversation_id for row in talks.kept}
        self.texts = talks.texts
        self.within_us = talks.talk.within_us
        self.followed = {
            (call.account, call.target) for call in evidence.calls if self.says(call.key, FOLLOW_UP)
        }
        """Whom somebody tried to send a follow-up."""

    def says(self, key: str, word: str) -> bool:
        return self.texts.get(key, "").startswith(word)

    def taken(self, word: str) -> Iterator[Effect]:
        """What the provider took that says so."""
        for key, held in sorted(self.evidence.accepted.items()):
            if self.says(key, word):
                yield from held

    @cached_property
    def openings(self) -> dict[Chat, list[Effect]]:
        found: dict[Chat, list[Effect]] = defaultdict(list)
        for effect in self.taken(OPENING):
            found[effect.account, effect.target].append(effect)
        return found

    @cached_property
    def wrote(self) -> dict[Chat, list[Wrote]]:
        """What may bid a follow-up: what people wrote themselves, and nothing that is STOP, or that
        says that it answers something else."""
        found: dict[Chat, list[Wrote]] = defaultdict(list)
        for one in self.hearing.answerable:
            other = one.answers is not None and not (
                self.says(one.answers, OPENING) or self.says(one.answers, FOLLOW_UP)
            )
            if one.wish != "stop" and not other and one.number in self.hearing.came:
                found[one.account, one.chat].append(one)
        return found

    def call_of(self, effect: Effect) -> Seen:
        """The one that brought it."""
        calls = (call for call in self.evidence.calls if call.key == effect.key)
        return max((call for call in calls if call.at <= effect.called_at), key=lambda one: one.at)

    def may_bid(self, one: Wrote, opening: Effect) -> bool:
        """Whether it came in time, in whichever way clocks and what was in doubt are read."""
        slack_us = CLOCKS_US + self.evidence.spread_us
        call = self.call_of(opening)
        intent_at = None if call.facts is None else call.facts.intent_at
        begun_at = call.at if intent_at is None else min(call.at, intent_at)
        delivery = self.evidence.by_id[call.delivery_id]
        known_at = max(opening.at, delivery.sent_at or self.evidence.ended_at)
        return begun_at - slack_us <= one.told_at <= known_at + self.within_us + slack_us

    def was_muted(self, one: Wrote, since_at: Instant) -> bool:
        """Whether nobody was to answer them there, then or later: that calls follow-ups off."""
        place = self.places.get(one.name)
        ends = [*(minute.at for minute in self.minutes[1:]), self.evidence.ended_at]
        stood = (minute.modes.get(place or 0) for minute in self.minutes)
        return any(
            mode == "muted" and until_at >= since_at
            for mode, until_at in zip(stood, ends, strict=False)
        )

    def has_to_bid(self, one: Wrote, opening: Effect) -> bool:
        """Whether it came in time in every way. A clock that was set back makes what people write
        seem older, and what was sent as well."""
        spread_us = self.evidence.spread_us
        set_back_us = spread_us if spread_us > CLOCKS_US else 0
        earliest_at = opening.at + set_back_us
        latest_at = opening.at + self.within_us - spread_us
        return one.wish is None and earliest_at <= one.at and one.told_at <= latest_at


def _for_nothing(bidding: _Bidding) -> Iterator[Violation]:
    """Nobody is sent a follow-up who has not answered the campaign there, in time, before it."""
    for effect in bidding.taken(FOLLOW_UP):
        chat = (effect.account, effect.target)
        called_at = bidding.call_of(effect).at
        openings = [one for one in bidding.openings[chat] if one.at <= called_at]
        known = [
            one for one in bidding.wrote[chat] if bidding.hearing.came[one.number].at <= called_at
        ]
        if not openings:
            yield _about(effect, "has had no message of the campaign from there")
        elif not any(bidding.may_bid(one, opening) for one in known for opening in openings):
            yield _about(effect, f"answered at {[one.told_at for one in known]}, never in time")


def _more_than_once(bidding: _Bidding) -> Iterator[Violation]:
    first: dict[str, Effect] = {}
    for effect in sorted(bidding.taken(FOLLOW_UP), key=lambda one: one.at):
        if first.setdefault(effect.target, effect).key != effect.key:
            yield _about(effect, f"has one already: {first[effect.target].key}")


def _about(effect: Effect, why: str) -> Violation:
    text = f"{effect.key} is a follow-up to {effect.target}, who {why}"
    return Violation(UNBIDDEN, text, effect.at, (effect.target, effect.key.rsplit("-", 2)[1]))


def _forgotten(bidding: _Bidding) -> Iterator[Violation]:
    """Whoever answered in time is sent one, or at least somebody has tried: what becomes of it then
    is for other checkers to say. But for those who wanted none of it or were muted, and for what
    was cancelled.
    """
    evidence, hearing = bidding.evidence, bidding.hearing
    cancelled = any(silence.for_good for silence in evidence.silences)
    for chat, openings in sorted(bidding.openings.items()):
        if chat in bidding.followed or cancelled:
            continue
        for one in bidding.wrote[chat]:
            answered = [opening.at for opening in openings if bidding.has_to_bid(one, opening)]
            if not answered or bidding.was_muted(one, min(answered)):
                continue
            # What STOP has called off stays so, whatever else they write.
            if not hearing.was_out(one.chat, min(answered), evidence.ended_at):
                yield _left_out(one, hearing.came[one.number].at)
                break


def _left_out(one: Wrote, came_at: Instant) -> Violation:
    text = f"{one.chat} answered in time with message {one.number}, and is sent no follow-up"
    return Violation(UNBIDDEN, text, came_at, (one.chat, str(one.number)))


__all__ = ["unbidden"]
