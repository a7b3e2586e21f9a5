"""Who is muted: nobody answers them, neither a responder nor a campaign's follow-up.

A mute is about answers. What campaigns and reminders have planned goes on, for that is no answer;
whoever is to get nothing at all is suppressed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from paceline.core.address import canonical
from paceline.core.instants import Instant
from paceline.core.states import DeliveryState
from paceline.engine.ports import Delivery, Tx
from paceline.engine.ports.conversations import Conversation

REASON = "they are muted: nobody answers them"
"""Why a follow-up is skipped."""

WAITS = (DeliveryState.PLANNED, DeliveryState.READY)


def is_muted(tx: Tx, account_id: int, names: Collection[str]) -> bool:
    """Whether nobody answers here whoever has these names. A conversation that there is says so
    itself: it may be answered again though they are muted elsewhere."""
    talks = tx.muting.conversations(names, account_id)
    if talks:
        return any(one.mode == "muted" for one in talks)
    return bool(tx.muting.of(names))


def learn(tx: Tx, heard: Mapping[int, Collection[str]], at: Instant) -> None:
    """People who are muted were heard of, each in one of these conversations: whatever else they
    are called is muted with them. All that is learned is written down in one go."""
    learned: dict[str, int] = {}
    for number, names in sorted(heard.items()):
        known = tx.muting.of(names)
        alone = {name for name, by in known.items() if by is None}
        new = alone | (set(names) - known.keys()) if known else alone
        by = next((one for one in known.values() if one is not None), number)
        learned |= dict.fromkeys(new, by)
    if learned:
        tx.muting.learn(learned, at)


def names_in(tx: Tx, conversation_id: int, chat: str) -> frozenset[str]:
    """All that whoever a conversation is with is known under: what they wrote from there, and all
    addresses of the contacts who have one of these."""
    written = {chat, *tx.muting.names_in(conversation_id)}
    called = written | {canonical(name) for name in written}
    owners = tx.contacts.owners(sorted(called))
    people = tx.contacts.several(sorted(set(owners.values()))).values()
    return frozenset(called | {one.address for person in people for one in person.addresses})


def call_off(
    tx: Tx,
    talks: Collection[Conversation],
    names: Collection[str],
    at: Instant,
    *,
    everywhere: bool,
) -> None:
    """Skip the follow-ups that wait for whoever these conversations are with, and has these names;
    from the accounts of these, or from all. It holds lanes, so it comes before any conversation is
    held."""
    here = {one.account_id for one in talks}
    # Before it is read what waits: whoever bids one holds the lane until it can be seen here; or is
    # behind this one, and sees that they are muted.
    for number in sorted(here.union(tx.bids.writers(names) if everywhere else ())):
        tx.lanes.touch(number, at)
    waiting = [
        row.id
        for name in sorted(names)
        for row in tx.waiting.of_target(name)
        if tx.runs.get(row.run_id).follow_ups and (everywhere or row.account_id in here)
    ]
    # They may have bidden it by a name that nobody has written down: a profile besides its id.
    _skip(tx, {*waiting, *tx.bids.bidden_in([one.id for one in talks])}, at)


def take_back(tx: Tx, talk: Conversation, received_id: int, at: Instant) -> None:
    """Skip what somebody has bidden who was muted in the very moment: by a message that is in this
    conversation now. The lane is held since they bade it."""
    _skip(tx, tx.bids.bidden_in([talk.id], received_id), at)


def _skip(tx: Tx, waiting: Iterable[int], at: Instant) -> None:
    for number in sorted(waiting):
        # What has set out is on its way, and stays so.
        if tx.deliveries.get(number).state in WAITS:
            tx.deliveries.move(number, "skip", at=at, reason=REASON)


def was_skipped(row: Delivery) -> bool:
    """Whether a follow-up was not sent because they were muted: then they may bid it again."""
    return row.state is DeliveryState.SKIPPED and row.reason == REASON
