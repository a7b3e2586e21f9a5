"""Names that are longer than an index takes: whoever is kept under one is found by it."""

from __future__ import annotations

from random import Random

import pytest

from paceline.core.outcome import accepted
from paceline.core.states import DeliveryState
from paceline.engine.ports import Inbound
from paceline.engine.ports.listening import Heard
from paceline.engine.ports.receipts import Early
from tests.store.scene import T0, Scene, settlement

LONG = "".join(map(chr, Random(7).choices(range(0x4E00, 0x9FFF), k=900)))
"""At random, for PostgreSQL would pack anything else until it fits into an index."""
KEPT = LONG[:666]
WIDEST = "".join(map(chr, Random(8).choices(range(0x20000, 0x2A6DF), k=500)))
"""As long as an address may be, in characters of four bytes each."""


@pytest.mark.parametrize(("name", "kept"), [(LONG, KEPT), (WIDEST, WIDEST)])
def test_what_is_written_by_many_at_once(scene: Scene, name: str, kept: str) -> None:
    ann = scene.account()
    said = Inbound(name, name, name, "hi", T0)
    with scene.store.write() as tx:
        talk = tx.listening.hold({(ann, name): T0})[ann, name]
        assert talk.chat == kept and talk == tx.conversations.hear(ann, name, T0)
        assert tx.conversations.find(ann, name) == tx.conversations.find(ann, kept) == talk
        assert tx.listening.open({(ann, name): T0})[ann, name] == talk
        (number,) = tx.listening.add([Heard(ann, said, T0, talk.id)])
        assert number is not None
        assert tx.listening.add([Heard(ann, said, T0, talk.id)]) == [None]
        assert tx.inbox.add(ann, said, None, T0) is None and tx.inbox.has(ann, name)
        assert [one.id for one in tx.inbox.written_since({name}, T0 - 1)] == [number]
        looked = tx.listening.look([ann], [], messages=[(ann, name)], chats=[(ann, name)])
        assert (looked.known, looked.held) == ({(ann, name)}, {(ann, name): talk})


def test_who_is_muted(scene: Scene) -> None:
    ann, ben = scene.account(), scene.account()
    with scene.store.write() as tx:
        tx.muting.add({LONG}, T0, None)
        assert tx.muting.among({LONG}) == {LONG} and tx.muting.of({LONG}).keys() == {KEPT}
        assert tx.conversations.hear(ann, "chat-1", T0, {LONG}).mode == "muted"
        opened = tx.listening.open({(ben, "chat-2"): T0}, {(ben, "chat-2"): {LONG}})
        assert opened[ben, "chat-2"].mode == "muted"
        made = tx.conversations.hear(ben, LONG, T0)
        assert tx.muting.conversations({LONG}) == [made]
        assert tx.muting.remove({LONG}) == 1


def test_how_far_a_message_got(scene: Scene) -> None:
    lane, run_id, number = scene.on_its_way()
    with scene.store.write() as tx:
        tx.receipts.keep(lane.account_id, LONG, 7, read=False)
        tx.receipts.keep(lane.account_id, LONG, 9, read=True)
    scene.settle(lane, settlement(number, run_id, outcome=accepted(LONG)))
    with scene.store.read() as tx:
        assert tx.receipts.named(lane.account_id, LONG) == number
        assert tx.receipts.known(9) == [Early(number, lane.account_id, KEPT, 7, 9)]


def test_what_was_in_doubt_and_is_known_by_its_name(scene: Scene) -> None:
    lane, run_id, number = scene.on_its_way()
    scene.settle(lane, settlement(number, run_id, DeliveryState.UNKNOWN))
    with scene.store.write() as tx:
        tx.deliveries.move(number, "accept", at=T0, provider_id=LONG)
        assert tx.receipts.named(lane.account_id, LONG) == number
