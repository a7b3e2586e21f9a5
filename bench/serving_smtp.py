"""A process that is `paceline up` with accounts at a mail server of this machine.

As a program: serves a launched campaign until its run is finished: everything sent, settled and
counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys

from bench import scenes
from bench.serving import LOOK_EVERY_S, is_finished, quiet_end, run_as_service, while_serving
from paceline import logs
from paceline.app import App
from paceline.config import Settings
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Store
from paceline.providers.sandbox import MemoryEffects


async def _send_all(store: Store, url: str) -> None:
    clock = SystemClock()
    house = scenes.house(clock, MemoryEffects())
    app = App(Settings(database=url, port=0), store, clock, house)

    async def until_finished() -> None:
        while not await asyncio.to_thread(is_finished, store):  # noqa: ASYNC110
            await asyncio.sleep(LOOK_EVERY_S * 10)

    await while_serving(app, until_finished)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("count", type=int)
    asked = parser.parse_args()
    quiet_end()
    logs.configure("info", "json")
    with scenes.opened(asked.url) as store:
        run_as_service(_send_all(store, asked.url))
        scenes.check_sent(store, asked.count)
    json.dump({"count": asked.count}, sys.stdout)


if __name__ == "__main__":
    main()
