"""Ways to answer that are held, and who waits for them."""

from __future__ import annotations

from paceline.core.instants import MINUTE
from paceline.engine.ports.held_ways import HeldWay
from tests.store.scene import T0, Scene
from tests.store.test_talking import account_of, begin, write

BROKE = "no credit left"


def test_a_way_is_held_once_and_tried_by_one(scene: Scene) -> None:
    with scene.store.write() as tx:
        assert tx.held_ways.list() == []
        assert tx.held_ways.hold("help", BROKE, T0, T0 + MINUTE)
        assert not tx.held_ways.hold("help", "no such model", T0 + 1, T0 + 2)
        held = tx.held_ways.find("help")
        assert held == HeldWay("help", "no such model", T0, 0, T0 + MINUTE)
        assert tx.held_ways.list() == [held]
        assert tx.held_ways.put_off(held, T0 + 5)
        assert not tx.held_ways.put_off(held, T0 + 9), "somebody else was faster"
        tried = held._replace(tries=1, try_at=T0 + 5)
        assert tx.held_ways.find("help") == tried
        assert tx.held_ways.release("help", T0 - 1) is None, "another one of that name"
        assert tx.held_ways.release("help", T0) == tried
        assert tx.held_ways.release("help") is None
        assert not tx.held_ways.put_off(tried, T0 + 9), "it goes on"
        assert tx.held_ways.hold("help", BROKE, T0 + 5, T0 + MINUTE)
        assert not tx.held_ways.put_off(held, T0 + 9), "that was another one"


def test_nothing_is_due_in_a_way_that_is_held(scene: Scene) -> None:
    number, other = write(scene, "a"), write(scene, "b", chat="+1")
    with scene.store.write() as tx:
        tx.accounts.update(account_of(scene), answering={"way": "help"})
        tx.conversations.change(other, first_at=T0 - 9, last_at=T0, due_at=T0 + 4)

        def due(anyway_at: int = T0) -> list[int]:
            return [one.id for one in tx.conversations.due(T0 + 9, 9, ["help"], anyway_at)]

        assert due() == [other, number]
        tx.held_ways.hold("sales", BROKE, T0, T0)
        assert due() == [other, number], "another way"
        tx.held_ways.hold("help", BROKE, T0, T0 + 5)
        assert due() == due(T0 + 4) == []
        assert due(T0 + 5) == [other, number], "nobody has tried it for so long"
        assert tx.held_ways.longest_due("help", T0 + 9) == other
        assert tx.held_ways.longest_due("help", T0 + 3) is None
        assert tx.held_ways.longest_due("sales", T0 + 9) is None
        held = tx.held_ways.find("help")
        assert tx.held_ways.overdue(T0, 9) == [(other, held)]
        assert tx.held_ways.overdue(T0 + 1, 9) == [(other, held), (number, held)]
        assert tx.held_ways.overdue(T0 + 1, 1) == [(other, held)]
        tx.conversations.change(number, mode="human")
        assert tx.held_ways.overdue(T0 + 1, 9) == [(other, held)]
    begin(scene, other)
    with scene.store.write() as tx:
        tx.conversations.change(other, first_at=T0, last_at=T0, due_at=T0)
        assert tx.held_ways.longest_due("help", T0 + 9) is None
        assert tx.held_ways.overdue(T0 + 1, 9) == []
