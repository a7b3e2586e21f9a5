"""Procrastinate, as its own documentation runs it: a worker, a no-op, a lock for each account.

Runs in the peers' environment and imports nothing of ours. As a program it either defers
(``defer``) or works until nothing is left (``work``) and prints when it began and ended.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import signal
import sys
import time

import procrastinate

CONNECTIONS = 20
CHUNK = 1_000


def make_app(url: str) -> procrastinate.App:
    connector = procrastinate.PsycopgConnector(
        conninfo=url, min_size=CONNECTIONS, max_size=CONNECTIONS
    )
    return procrastinate.App(connector=connector)


async def defer(app: procrastinate.App, count: int, locks: int) -> None:
    """A fresh schema with so many waiting, dealt out over the locks in turn."""
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        waiting = [
            procrastinate.jobs.Job(
                id=None,
                queue="default",
                lock=f"account-{number % locks}",
                queueing_lock=None,
                task_name="send",
                task_kwargs={"target": f"target-{number}"},
            )
            for number in range(count)
        ]
        for first in range(0, count, CHUNK):
            await app.job_manager.batch_defer_jobs_async(waiting[first : first + CHUNK])


async def work(app: procrastinate.App, concurrency: int) -> dict[str, float]:
    done = 0

    @app.task(name="send")
    async def send(target: str) -> None:
        nonlocal done
        done += 1

    async with app.open_async():
        began = time.time()
        # Finished ones are kept, as they are by default: a record is what we keep, too.
        await app.run_worker_async(concurrency=concurrency, wait=False, listen_notify=False)
        ended = time.time()
    return {"began": began, "ended": ended, "done": done}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("what", choices=["defer", "work"])
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--locks", type=int, default=200)
    parser.add_argument("--concurrency", type=int, default=20)
    asked = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    logging.basicConfig(level=logging.WARNING)
    app = make_app(asked.url)
    if asked.what == "defer":
        asyncio.run(defer(app, asked.count, asked.locks))
        json.dump({"deferred": asked.count}, sys.stdout)
    else:
        json.dump(asyncio.run(work(app, asked.concurrency)), sys.stdout)


if __name__ == "__main__":
    main()
