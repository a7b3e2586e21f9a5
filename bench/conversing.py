"""A process that is `paceline up` with very many conversations, all of them in flight at once.

As a program: lets so many people write, waits until an answer to each of them is being made, and
only then lets the answers be made; prints how long that took and what it took of memory. Whoever
makes them is in the same process, and does nothing but wait.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import sys
import time
from collections import Counter
from typing import Any
from unittest.mock import patch

from bench import scenes
from bench.serving import quiet_end, run_as_service, while_serving
from bench.threads import cpu_used_s
from paceline import logs
from paceline.app import App
from paceline.config import Settings
from paceline.core.instants import MINUTE
from paceline.engine.answering import Answers
from paceline.engine.clock import SystemClock
from paceline.engine.commands import returns
from paceline.engine.ports import Account, Inbound, Store
from paceline.engine.ports.answering import Answer, Burst
from paceline.interpreter import memory_taken
from paceline.providers.sandbox import MemoryEffects

WAY = "shop"
FIRST = 50
"""Conversations that are answered beforehand: the first of everything takes memory, too."""
AT_A_TIME = 500
ACCOUNTS = 20
LOOK_EVERY_S = 0.05
WITHIN_S = 900


class Patient:
    """Answers nobody before so many have asked."""

    def __init__(self) -> None:
        self.waits_for = 0
        self.asked = 0
        self.all_asked = asyncio.Event()
        self.may_answer = asyncio.Event()

    def begin(self, count: int) -> None:
        self.waits_for, self.asked = count, 0
        self.all_asked.clear()
        self.may_answer.clear()

    async def answer(self, burst: Burst) -> Answer:
        self.asked += 1
        if self.asked >= self.waits_for:
            self.all_asked.set()
        await self.may_answer.wait()
        return Answer(f"re: {burst.text}")

    async def close(self) -> None:
        return None


def write(store: Store, accounts: list[Account], first: int, count: int) -> None:
    """So many people write two messages each."""
    for start in range(first, first + count, AT_A_TIME):
        with store.write() as tx:
            for number in range(start, min(start + AT_A_TIME, first + count)):
                chat = f"+3460{number:07}"
                said = [Inbound(f"{chat}-{n}", chat, chat, f"part {n}", 0) for n in range(2)]
                account = accounts[number % len(accounts)]
                returns.take_in(tx, account, said, SystemClock().now())


async def _converse(store: Store, url: str, count: int, found: dict[str, Any]) -> None:
    clock, effects, patient = SystemClock(), MemoryEffects(), Patient()
    made = scenes.add_accounts(store, ACCOUNTS, {})
    listens = {"way": WAY, "quiet_us": 0, "max_wait_us": MINUTE}
    with store.write() as tx:
        for account in made:
            tx.accounts.update(account.id, answering=listens)
        accounts = [tx.accounts.get(account.id) for account in made]
    settings = Settings(database=url, port=0, answering_at_once=max(count, FIRST))
    app = App(settings, store, clock, scenes.house(clock, effects))

    async def round_of(first: int, number: int) -> tuple[float, int]:
        patient.begin(number)
        await asyncio.to_thread(write, store, accounts, first, number)
        began_s = time.perf_counter()
        await patient.all_asked.wait()
        gc.collect()
        taken = memory_taken()
        found["begun_s"] = round(time.perf_counter() - began_s, 1)
        patient.may_answer.set()
        while not await asyncio.to_thread(_is_over, store, effects, first + number):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_EVERY_S)
        return time.perf_counter() - began_s, taken

    async def conversing() -> None:
        async with asyncio.timeout(WITHIN_S):
            await round_of(0, FIRST)
            gc.collect()
            before, cpu_s = memory_taken(), cpu_used_s()
            seconds, taken = await round_of(FIRST, count)
        found["seconds"] = round(seconds, 2)
        found["kb_each"] = round((taken - before) / count / 1024, 2)
        found["cpu_ms"] = round((cpu_used_s() - cpu_s) * 1_000 / count, 2)

    with patch("paceline.app.make_answers", lambda *_: {WAY: Answers(patient)}):
        await while_serving(app, conversing)
    sent = Counter(effect.target for effect in effects.all() if effect.accepted)
    found["in_flight"] = patient.asked
    found["answered_once"] = sum(times == 1 for times in sent.values()) - FIRST
    found["twice"] = sum(times > 1 for times in sent.values())


def _is_over(store: Store, effects: MemoryEffects, count: int) -> bool:
    if len(effects.all()) < count:
        return False
    with store.read() as tx:
        return not tx.turns.active() and not tx.conversations.list(waiting=True, limit=1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("count", type=int)
    asked = parser.parse_args()
    quiet_end()
    logs.configure("warning", "json")
    found: dict[str, Any] = {"count": asked.count}
    with scenes.opened(asked.url) as store:
        run_as_service(_converse(store, asked.url, asked.count, found))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
