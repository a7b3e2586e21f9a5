"""A process that is `paceline up` with accounts whose provider reports to it.

As a program: listens on a free port of this machine and prints it with the paths that are reported
to; when its input ends, it looks whether all that came is there once, prints how much processor
time it has used, and ends.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import Any

from bench import reports, scenes
from bench.serving import quiet_end, run_as_service, while_serving
from bench.threads import ThreadBook, cpu_used_s
from paceline import logs
from paceline.app import App
from paceline.config import Settings
from paceline.engine.clock import SystemClock
from paceline.engine.commands.accounts import House
from paceline.engine.ports import Store


async def _serve(store: Store, ours: House, url: str, accounts: int, found: dict[str, Any]) -> None:
    paths = reports.add_accounts(store, ours, accounts)
    loop = asyncio.get_running_loop()
    serving: asyncio.Future[str] = loop.create_future()

    async def until_input_ends() -> None:
        port = int((await serving).rpartition(":")[2])
        before_s = cpu_used_s()
        print(json.dumps({"port": port, "paths": paths}), flush=True)
        await loop.run_in_executor(None, sys.stdin.buffer.read)
        found["cpu_s"] = cpu_used_s() - before_s

    app = App(Settings(database=url, port=0), store, SystemClock(), ours)
    await while_serving(app, until_input_ends, serving.set_result)


def _check(store: Store, count: int) -> None:
    """Everything was kept, once, and waits in its conversation; else a figure means nothing."""
    with store.read() as tx:
        kept = tx.inbox.latest(limit=count + 1)
    names = {one.provider_id for one in kept}
    waiting = sum(one.conversation_id is not None and one.turn_id is None for one in kept)
    if (len(kept), len(names), waiting) != (count, count, count):
        raise AssertionError(f"{count} were reported: {len(kept)}, {len(names)}, {waiting}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("accounts", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    quiet_end()
    # What a service started by a machine says and how: it is part of the price.
    logs.configure("info", "json")
    book = ThreadBook(profiled=asked.profile)
    book.watch()
    found: dict[str, Any] = {}
    with scenes.opened(asked.url) as store:
        work = _serve(store, reports.house(), asked.url, asked.accounts, found)
        book.keep("loop", lambda: run_as_service(work))
        _check(store, asked.count)
    found["threads_s"] = {name: round(spent_s, 3) for name, spent_s in book.cpu_s.items()}
    if asked.profile:
        found["profiles"] = book.profiles()
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
