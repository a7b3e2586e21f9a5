"""How a world with mail goes on: its nights, the people who unsubscribe, and what has to come to
its end besides deliveries.
"""

from __future__ import annotations

import asyncio

from paceline.core.instants import DAY, MINUTE, SECOND, Instant
from paceline.engine.ports import Event, Tx
from paceline.sim.post import Click, Post, number_in
from paceline.sim.post_office import PostOffice
from paceline.sim.stage import Stage

IMPATIENT_US = 4 * MINUTE
"""How long somebody waits on average who was not told that they are unsubscribed."""
TOLD_OF = ("delivery.returned", "recipient.complained", "recipient.unsubscribed")
"""Events that are told once each."""


def open_the_office(stage: Stage, office: PostOffice) -> None:
    """From here on people who want to unsubscribe find somebody who answers."""
    asked: set[asyncio.Task[None]] = set()

    def clicked(click: Click) -> None:
        stage.clicking += 1
        asking = asyncio.get_running_loop().create_task(
            _unsubscribe(stage, click), context=stage.around.outside
        )
        asked.add(asking)
        asking.add_done_callback(asked.discard)

    office.clicked = clicked


async def _unsubscribe(stage: Stage, click: Click) -> None:
    """As people do: until the page says that it is done."""
    weather, token = stage.around.weather, click.link.rpartition("/")[2]
    while True:
        there = [process for _, process in sorted(stage.processes.items()) if process.alive]
        if there and await weather.choose(there).unsubscribe(token):
            click.answered_at = stage.around.clock.now()
            stage.around.trace.note("reader", "is told", f"that {click.target} is unsubscribed")
            stage.clicking -= 1
            return
        await asyncio.sleep(weather.after(IMPATIENT_US) / SECOND)


async def keep_hours(stage: Stage, post: Post) -> None:
    """Power from the hour at which the world began, for so long each day. Mail comes all the same.

    Now and then somebody forgets to say so to the machines beforehand.
    """
    while post.open_us:
        await asyncio.sleep(post.open_us / SECOND)
        stage.dark_until_at = stage.around.clock.now() + DAY - post.open_us
        rude = not stage.around.weather.clear and stage.around.weather.choose([True, False])
        for _, process in sorted(stage.processes.items()):
            if rude:
                process.crash("with the lights")
            else:
                process.begin_to_stop()
        await asyncio.sleep((DAY - post.open_us) / SECOND)


def unread(stage: Stage, tx: Tx) -> int:
    """How many have something to say that nobody has taken in, or are about to say it."""
    office = stage.office
    if office is None:
        return 0
    places = {watch.account_id: number_in(watch.cursor) for watch in tx.watches.list()}
    behind = sum(
        places.get(account.id) != len(office.boxes[account.name].mail)
        for account in tx.accounts.list()
    )
    return behind + stage.clicking + (office.next_at is not None)


def next_mail_at(stage: Stage) -> Instant | None:
    return None if stage.office is None else stage.office.next_at


def told(tx: Tx) -> list[Event]:
    """What was told of what came back."""
    return tx.events.latest(kinds=TOLD_OF, limit=100_000)


__all__ = ["keep_hours", "next_mail_at", "open_the_office", "told", "unread"]
