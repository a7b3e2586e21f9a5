"""Messages of many people, taken in at once: as one by one, in a few statements for all of them.

Most of what is reported are messages that ask for nothing but an answer. What comes from somebody
who was written to by a campaign that minds whether they answer is taken in by itself, and so is
everything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Literal, NamedTuple

from paceline.core.address import canonical
from paceline.core.instants import Instant
from paceline.core.opting_out import OptOut
from paceline.engine import conversations
from paceline.engine.callers import muted_as
from paceline.engine.commands import returns
from paceline.engine.commands.hooking import Stored, place_of
from paceline.engine.commands.returns import TakenIn
from paceline.engine.muted import learn
from paceline.engine.people import ERASURE_KEY, hashed
from paceline.engine.ports import Account, Inbound, News, Tx
from paceline.engine.ports.conversations import Conversation
from paceline.engine.ports.listening import Chat, Heard, Looked, Waiting

NotHere = Literal["changed", "by itself"]
"""Why a report was not taken in with the others: whoever reports has to be let in anew; or it may
bid a follow-up, for which lanes are held before any conversation is."""


class Reported(NamedTuple):
    """Messages that came in one report, in order."""

    by: Stored
    """What whoever reports was let in by."""
    messages: tuple[Inbound, ...]
    at: Instant


def current(tx: Tx, by: Stored) -> Account | None:
    """The account that somebody was let in by, as it is now; None where it is not what it was."""
    number = by.account.id
    looked = tx.listening.look([number], [place_of(number)])
    return looked.accounts[number] if by.is_current(looked) else None


def messages_in(news: Sequence[News], words: OptOut) -> tuple[Inbound, ...] | None:
    """Them, where there is nothing else in a report, and nothing that needs to be looked into by
    itself."""
    found = tuple(one for one in news if isinstance(one, Inbound) and one.answers is None)
    alike = len(found) == len(news) and not returns.passes_the_fence(news, words)
    return found if alike else None


def take_in(tx: Tx, reports: Sequence[Reported]) -> list[TakenIn | NotHere]:
    """What each report came to."""
    names = [frozenset(_names(report)) for report in reports]
    numbers = {report.by.account.id for report in reports}
    every = [(one.by.account.id, said) for one in reports for said in one.messages]
    looked = tx.listening.look(
        numbers,
        [*map(place_of, numbers), ERASURE_KEY],
        frozenset().union(*names),
        {(number, said.provider_id) for number, said in every},
        {(number, said.chat) for number, said in every if conversations.is_theirs(said)},
    )
    minded = looked.minded | _minded_veiled(tx, looked, frozenset().union(*names))
    came_to: list[TakenIn | NotHere] = ["changed"] * len(reports)
    plain: dict[int, tuple[Account, Reported]] = {}
    for place, report in enumerate(reports):
        if report.by.is_current(looked):
            came_to[place] = "by itself"
            if minded.isdisjoint(names[place]):
                plain[place] = (looked.accounts[report.by.account.id], report)
    for place, count in zip(plain, _hear(tx, list(plain.values()), looked), strict=True):
        came_to[place] = TakenIn(received=count)
    return came_to


def _names(report: Reported) -> Iterator[Chat]:
    """All that those who wrote are called."""
    for one in report.messages:
        if conversations.is_theirs(one):
            for name in (one.chat, one.sender, *one.also):
                if name:
                    yield report.by.account.id, canonical(name)


def _minded_veiled(tx: Tx, looked: Looked, names: frozenset[Chat]) -> frozenset[Chat]:
    """The same of those who were erased, and are known by a name that says nothing."""
    if ERASURE_KEY not in looked.settings:
        return frozenset()
    key = bytes.fromhex(looked.settings[ERASURE_KEY])
    veiled = {(number, hashed(key, name)): (number, name) for number, name in names}
    return frozenset(veiled[one] for one in tx.listening.minded(veiled))


def _hear(tx: Tx, reports: Sequence[tuple[Account, Reported]], looked: Looked) -> list[int]:
    """Put what was said into the inbox and into its conversations; how much of each report was
    new."""
    new, counts, seen = list[_New](), [0] * len(reports), set(looked.known)
    for place, (account, report) in enumerate(reports):
        # Whatever one person has written stays in order, as where a report comes by itself.
        for message in sorted(report.messages, key=attrgetter("chat")):
            if (account.id, message.provider_id) not in seen:
                seen.add((account.id, message.provider_id))
                theirs = conversations.is_theirs(message)
                new.append(_New(place, account, message, report.at, theirs))
    held = _held(tx, new, looked.held)
    _learn(tx, new, held)
    heard = [
        Heard(one.account.id, one.message, one.at, held[one.chat].id if one.theirs else None)
        for one in new
    ]
    hoped = _changed(new, held)
    numbers = tx.listening.add(heard, [_waiting(one) for one in hoped.values()])
    added = [one for one, number in zip(new, numbers, strict=True) if number is not None]
    if len(added) < len(new):
        # Another process was told of some, too, and was faster: they change nothing here.
        stands = {chat: held[chat] for chat in hoped} | _changed(added, held)
        tx.listening.let_wait([_waiting(one) for one in stands.values()])
    for one in added:
        counts[one.place] += 1
    return counts


def _held(
    tx: Tx, new: Sequence[_New], known: Mapping[Chat, Conversation]
) -> Mapping[Chat, Conversation]:
    """The conversations of all who have written, some of them for the first time."""
    begun: dict[Chat, Instant] = {}
    names: dict[Chat, set[str]] = {}
    for one in new:
        if one.theirs and one.chat not in known:
            begun.setdefault(one.chat, one.at)
            names.setdefault(one.chat, set()).update(muted_as(one.account, one.message))
    return {**known, **tx.listening.open(begun, names)} if begun else known


def _learn(tx: Tx, new: Sequence[_New], held: Mapping[Chat, Conversation]) -> None:
    """What else those are called whom nobody answers; mostly there are none."""
    names: dict[int, set[str]] = {}
    for one in new:
        if one.theirs and held[one.chat].mode == "muted":
            theirs = muted_as(one.account, one.message)
            names.setdefault(held[one.chat].id, set()).update(theirs)
    if names:
        learn(tx, names, max(one.at for one in new))


def _changed(heard: Sequence[_New], held: Mapping[Chat, Conversation]) -> dict[Chat, Conversation]:
    """How conversations stand once this was said in them."""
    changed: dict[Chat, Conversation] = {}
    for one in heard:
        if one.theirs:
            before = changed.get(one.chat, held[one.chat])
            changed[one.chat] = conversations.heard_in(before, one.account, one.at)
    return changed


def _waiting(one: Conversation) -> Waiting:
    return Waiting(one.id, one.heard_at, one.first_at, one.last_at, one.due_at)


class _New(NamedTuple):
    """A message that nobody has reported before."""

    place: int
    """Of its report."""
    account: Account
    message: Inbound
    at: Instant
    theirs: bool

    @property
    def chat(self) -> Chat:
        return self.account.id, self.message.chat
