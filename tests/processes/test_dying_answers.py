"""Four processes answer what comes in over real HTTP: once, whoever of them dies, and when."""

from __future__ import annotations

from paceline.core.states import TurnState
from paceline.engine.ports import Tx
from tests.processes.service import eventually
from tests.processes.shop import NAMES, Shop, shop

__all__ = ["shop"]


def test_a_process_that_dies_while_it_answers_is_taken_over_from(shop: Shop) -> None:
    with shop.open() as up:
        shop.model.takes_its_time.clear()
        shop.hear("Are you there?")
        assert shop.model.await_calls(1)
        (turn,) = shop.installation.look(lambda tx: tx.turns.active())
        (owner,) = [one for one, name in zip(up, NAMES, strict=True) if name == turn.owner]
        owner.kill()
        shop.model.takes_its_time.set()
        others = [one for one in up if one is not owner]
        shop.hear("Hello?", by=others[0])
        eventually(shop.at_rest, "everything answered")
        assert shop.told() == ["re: Are you there?", "re: Hello?"]
        after = shop.installation.look(lambda tx: tx.turns.get(turn.id))
        assert (after.state, after.owner != turn.owner) == (TurnState.DONE, True)
        log = "".join(line for one in others for line in one.log)
        assert "stale cleaned" in log or after.attempts == 2
    assert shop.installation.run("verify").returncode == 0


def test_a_process_that_dies_while_its_answer_is_on_its_way_sends_it_once(shop: Shop) -> None:
    """WATI has taken it, and whoever sent it never hears of that."""
    with shop.open() as up:
        shop.wati.may_answer.clear()
        shop.hear("Are you there?")
        eventually(lambda: bool(shop.told()), "the provider has it")
        owner = shop.installation.look(lambda tx: _sender(tx, "shop"))
        (dying,) = [one for one, name in zip(up, NAMES, strict=True) if name == owner]
        dying.kill()
        shop.wati.may_answer.set()
        other = next(one for one in up if one is not dying)
        shop.hear("Hello?", by=other)
        eventually(lambda: len(shop.told()) == 2, "the next one is answered")
        eventually(shop.at_rest, "everything answered")
        assert shop.told() == ["re: Are you there?", "re: Hello?"]
    assert shop.installation.run("verify").returncode == 0


def _sender(tx: Tx, name: str) -> str:
    """The process that has an account's lane."""
    account = tx.accounts.find(name)
    assert account is not None
    owner = tx.lanes.get(account.id).owner
    (process,) = [one for one in tx.processes.list() if one.id == owner]
    return process.name
