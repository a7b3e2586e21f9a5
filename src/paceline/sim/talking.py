"""How a world in which people are conversed with goes on: who answers the door, and what has to
come to its end besides deliveries.
"""

from __future__ import annotations

from paceline.engine.ports import Tx
from paceline.sim.customers import Exchange
from paceline.sim.minutes import Proceedings
from paceline.sim.stage import Stage
from paceline.sim.talk import Telling

EVERYTHING = 100_000


def open_the_exchange(stage: Stage, exchange: Exchange) -> None:
    """From here on people write, and what they write is told to whoever is there."""

    async def report(account: str, body: bytes, numbers: tuple[int, ...]) -> bool:
        there = [process for _, process in sorted(stage.processes.items()) if process.alive]
        if not there:
            return False
        weather, clock = stage.around.weather, stage.around.clock
        process = weather.choose(there)
        telling = Telling(clock.now(), process.name, numbers)
        exchange.tellings.append(telling)
        if not await process.report(account, body, exchange.talk.impatient_us):
            return False
        telling.answered_at = clock.now()
        telling.missing = _missing(stage, exchange, account, numbers)
        return True

    exchange.report = report
    accounts = [sender.name for sender in stage.world.senders]
    until_at = stage.around.clock.now() + stage.world.lasts_us + exchange.talk.after_us
    exchange.begin(accounts, until_at)


def _missing(
    stage: Stage, exchange: Exchange, account: str, numbers: tuple[int, ...]
) -> tuple[int, ...]:
    with stage.around.store.read() as tx:
        found = tx.accounts.find(account)
        assert found is not None
        return tuple(
            number for number in numbers if not tx.inbox.has(found.id, exchange.wrote[number].name)
        )


def unsettled(stage: Stage, tx: Tx) -> int:
    """How much is yet to be said, told, or answered by whoever was set up to."""
    exchange = stage.exchange
    if exchange is None:
        return 0
    waiting = tx.conversations.list(waiting=True, limit=EVERYTHING)
    ours = sum(one.mode == "auto" for one in waiting)
    return exchange.writing + exchange.telling + ours + len(tx.turns.active())


def proceedings(stage: Stage) -> Proceedings | None:
    exchange, minutes = stage.exchange, stage.minutes
    if exchange is None or minutes is None:
        return None
    with stage.around.store.read() as tx:
        conversations = tx.conversations.list(limit=EVERYTHING)
        turns = [
            turn for one in conversations for turn in tx.turns.of_conversation(one.id, EVERYTHING)
        ]
        kept = tx.inbox.latest(limit=EVERYTHING)[::-1]
    return Proceedings(
        exchange.talk,
        exchange.wrote,
        exchange.tellings,
        exchange.asked,
        exchange.reached,
        stage.operators.by_hand,
        minutes.entries,
        kept,
        conversations,
        turns,
        frozenset(stage.operators.resent),
        exchange.texts,
    )


__all__ = ["open_the_exchange", "proceedings", "unsettled"]
