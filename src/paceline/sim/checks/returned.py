"""What comes back: never unheard, and never misled.

Judged from what lay in the mailboxes, from the provider's own log, and from the tables as every
commit left them. A piece of mail is taken in by the commit that moves the cursor of its mailbox
past it, so whatever follows from it stands in the tables by then, or never will.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from paceline.core.address import entries_for
from paceline.core.instants import Instant
from paceline.core.states import DeliveryState
from paceline.engine.ports import Inbound
from paceline.engine.ports.audit import Watched
from paceline.engine.ports.inbox import Received
from paceline.providers.mail.replies import GREYLISTED
from paceline.sim.checks.evidence import Evidence, Violation, words
from paceline.sim.checks.messages import UNDER_WAY_US
from paceline.sim.correspondence import Correspondence
from paceline.sim.post import Mail, number_in
from paceline.sim.register import Entry

K = TypeVar("K")

UNHEARD = "never unheard"
MISLED = "never misled"
AHEAD = "never ahead of its step"

SUPPRESSED_BY = ("bounce", "complaint", "unsubscribe")
"""Sources of suppressions that are somebody else's word."""


def unheard(evidence: Evidence) -> Iterator[Violation]:
    """Whatever comes is taken in, in its order, by one process at a time; what follows from it
    stands in the tables in the same commit; and in the calm nothing is left."""
    post = evidence.post
    if post is None:
        return
    known = _Known()
    readers = {number: _Reader(name) for number, name in evidence.accounts.items()}
    for entry in post.entries:
        known.take_in(entry)
        for account_id, watched in entry.watches.items():
            reader = readers[account_id]
            since = reader.place
            yield from reader.turn(entry, watched)
            if since is None or reader.place is None:
                continue  # what was there before anybody looked is no news
            for mail in post.boxes[reader.account].mail[since : reader.place]:
                yield from _followed(mail, account_id, known, entry)
    for reader in readers.values():
        yield from reader.left(evidence, post)
    for click in post.clicks:
        if click.answered_at is not None and not known.covered(click.target, click.answered_at):
            text = f"{click.target} was told to be unsubscribed, and is not"
            yield Violation(UNHEARD, text, click.answered_at)


@dataclass
class _Known:
    """What stands in the tables, as of an entry."""

    suppressed_at: dict[str, Instant] = field(default_factory=dict)
    bounced: set[int] = field(default_factory=set)
    received: dict[tuple[int, str], Received] = field(default_factory=dict)

    def take_in(self, entry: Entry) -> None:
        for address in entry.suppressed:
            self.suppressed_at.setdefault(address, entry.at)
        self.bounced.update(entry.bounced)
        for row in entry.received:
            self.received[row.account_id, row.provider_id] = row

    def covered(self, target: str, at: Instant) -> bool:
        noted = self.suppressed_at
        return any(noted[entry] <= at for entry in entries_for(target) if entry in noted)


@dataclass
class _Reader:
    """Whoever reads one mailbox."""

    account: str
    place: int | None = None
    generation: int = 0
    holder: object = None

    def turn(self, entry: Entry, watched: Watched) -> Iterator[Violation]:
        if watched.generation != self.generation:
            self.generation, self.holder = watched.generation, entry.by
        place = number_in(watched.cursor)
        if place == self.place:
            return
        if entry.by is not self.holder:
            text = f"the mailbox of {self.account} was read by one who had lost it"
            yield Violation(UNHEARD, text, entry.at, (self.account,))
        if place is None or place < (self.place or 0):
            text = f"the mailbox of {self.account} was at {self.place}, and is at {place} again"
            yield Violation(UNHEARD, text, entry.at, (self.account,))
        self.place = place

    def left(self, evidence: Evidence, post: Correspondence) -> Iterator[Violation]:
        box = post.boxes.get(self.account)
        if box is not None and len(box.mail) != (self.place or 0):
            text = f"of {len(box.mail)} in the mailbox of {self.account} {self.place} were read"
            yield Violation(UNHEARD, text, evidence.ended_at, (self.account,))


def _followed(mail: Mail, account_id: int, known: _Known, entry: Entry) -> Iterator[Violation]:
    """What follows from a piece of mail, in the commit that took it in."""
    what = None
    if mail.kind in ("hard", "soft") and mail.delivery_id not in known.bounced:
        what = f"delivery {mail.delivery_id} came back, and is not bounced"
    elif mail.kind in ("hard", "complaint") and not known.covered(mail.target, entry.at):
        what = f"{mail.target} is not suppressed, after a {mail.kind} report"
    elif mail.kind in ("answer", "note"):
        what = _kept(mail, account_id, known)
    if what is not None:
        yield Violation(UNHEARD, what, entry.at, _about(mail))


def _kept(mail: Mail, account_id: int, known: _Known) -> str | None:
    assert isinstance(mail.news, Inbound), "people write messages"
    row = known.received.get((account_id, mail.news.provider_id))
    if row is None:
        return f"{mail.news.provider_id} is read, and not kept"
    if (row.delivery_id, row.automatic) != (mail.delivery_id, mail.kind == "note"):
        return f"{mail.news.provider_id} is kept as something else"
    return None


def _about(mail: Mail) -> tuple[str, ...]:
    return (str(mail.delivery_id),)


# ---------------------------------------------------------------------- nothing without a cause


def misled(evidence: Evidence) -> Iterator[Violation]:
    """Nothing follows from what nobody has said, and nothing twice from what somebody has said
    twice; and who was only asked to come back later is not given up."""
    post = evidence.post
    if post is None:
        return
    causes = _Causes(evidence, post)
    for entry in post.entries:
        yield from causes.of(entry)
    yield from _once(evidence, post, causes)
    yield from _given_up(evidence)


class _Causes:
    """What was said, and since when."""

    def __init__(self, evidence: Evidence, post: Correspondence) -> None:
        self.refused: dict[int, Instant] = {}
        """Deliveries that bounced at once."""
        self._returned: dict[int, Instant] = {}
        self._by_address: dict[tuple[str, str], Instant] = {}
        """By source and address."""
        self._messages: set[tuple[str, str]] = set()
        self._names = evidence.accounts
        for effect in evidence.effects:
            if effect.kind == "send" and effect.answer == "bounced":
                number = int(effect.key.rsplit("-", 2)[1])
                self.refused.setdefault(number, effect.at)
                self._by_address.setdefault(("bounce", effect.target), effect.at)
        for account, box in post.boxes.items():
            for mail in box.mail:
                self._note(account, mail)
        for click in post.clicks:
            self._by_address.setdefault(("unsubscribe", click.target), click.at)

    def _note(self, account: str, mail: Mail) -> None:
        if isinstance(mail.news, Inbound):
            self._messages.add((account, mail.news.provider_id))
        if mail.kind in ("hard", "soft"):
            _since(self._returned, mail.delivery_id, mail.at)
        if mail.kind in ("hard", "complaint"):
            source = "bounce" if mail.kind == "hard" else "complaint"
            _since(self._by_address, (source, mail.target), mail.at)

    def of(self, entry: Entry) -> Iterator[Violation]:
        for number in entry.bounced:
            said = [at for at in (self.refused.get(number), self._returned.get(number)) if at]
            if not said or min(said) > entry.at:
                text = f"delivery {number} is bounced, and nobody had said so"
                yield Violation(MISLED, text, entry.at, (str(number),))
        for address, source in entry.suppressed.items():
            said_at = self._by_address.get((source, address))
            if source in SUPPRESSED_BY and (said_at is None or said_at > entry.at):
                text = f"{address} is suppressed by a {source} of which nobody knows"
                yield Violation(MISLED, text, entry.at)
        for row in entry.received:
            if (self._names[row.account_id], row.provider_id) not in self._messages:
                text = f"{row.provider_id} is kept, and never came"
                yield Violation(MISLED, text, entry.at)


def _since(known: dict[K, Instant], what: K, at: Instant) -> None:
    known[what] = min(at, known.get(what, at))


def _once(evidence: Evidence, post: Correspondence, causes: _Causes) -> Iterator[Violation]:
    """Everything is told and counted once, however often it was said."""
    bounced = [number for entry in post.entries for number in entry.bounced]
    sources = Counter(source for entry in post.entries for source in entry.suppressed.values())
    expected = {
        "delivery.returned": sum(number not in causes.refused for number in bounced),
        "recipient.complained": sources["complaint"],
        "recipient.unsubscribed": sources["unsubscribe"],
    }
    told = Counter(event.kind for event in post.events)
    for kind, count in expected.items():
        if told[kind] != count:
            text = f"{kind} was told {told[kind]} times, and happened {count} times"
            yield Violation(MISLED, text, evidence.ended_at)
    alerts = post.entries[-1].alerts.values() if post.entries else ()
    raised = sum(alert.count for alert in alerts if alert.kind == "account.complaints")
    if raised != sources["complaint"]:
        text = f"{sources['complaint']} have complained, and alerts say {raised}"
        yield Violation(MISLED, text, evidence.ended_at)


def _given_up(evidence: Evidence) -> Iterator[Violation]:
    """A house that greylists takes the letter of whoever comes again. Where nothing else was ever
    said of one, it has arrived in the end."""
    said: dict[int, list[str]] = defaultdict(list)
    for effect in evidence.effects:
        if effect.kind == "send":
            said[int(effect.key.rsplit("-", 2)[1])].append(effect.code)
    calls = Counter(call.delivery_id for call in evidence.calls)
    for delivery in evidence.deliveries:
        codes = said[delivery.id]
        asked_only = set(codes) == {GREYLISTED} and len(codes) == calls[delivery.id]
        if asked_only and delivery.state in (DeliveryState.FAILED, DeliveryState.BOUNCED):
            text = f"delivery {delivery.id} was greylisted, and is {delivery.state}"
            yield Violation(MISLED, text, evidence.ended_at, (str(delivery.id),))


# ---------------------------------------------------------------------- what follows a bounce


def followed_up(evidence: Evidence) -> Iterator[Violation]:
    """Nothing follows a message from the moment it is written down that it came back."""
    if evidence.post is None:
        return
    bounced_at = {number: entry.at for entry in evidence.post.entries for number in entry.bounced}
    before = _before(evidence)
    for call in evidence.calls:
        since_at = bounced_at.get(before.get(call.delivery_id, 0))
        if since_at is not None and call.at > since_at + UNDER_WAY_US:
            text = f"{call.key} follows a message that came back at {since_at}"
            yield Violation(AHEAD, text, call.at, words(call))


def _before(evidence: Evidence) -> dict[int, int]:
    """By delivery, the one that it follows."""
    places = {(one.run_id, one.position, one.step): one.id for one in evidence.deliveries}
    steps: Sequence[tuple[int, int | None]] = [
        (one.id, places.get((one.run_id, one.position, one.step - 1)))
        for one in evidence.deliveries
    ]
    return {number: before for number, before in steps if before is not None}


__all__ = ["followed_up", "misled", "unheard"]
