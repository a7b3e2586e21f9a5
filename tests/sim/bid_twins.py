"""Broken twins of what follows up on answers: what bids a follow-up, when, and how often.

The others, and what a twin is, are in ``twins.py``; how people are conversed with has its own in
``talk_twins.py``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from sqlalchemy import text

from paceline.core.instants import DAY, MILLISECOND, MINUTE, SECOND
from paceline.core.turns import Patience
from paceline.engine import bidding, conversations
from paceline.engine.bidding import Bid
from paceline.engine.commands import returns
from paceline.engine.ports import Account, Inbound, Tx
from paceline.engine.reporting import ReportDesk
from paceline.sim import weather
from paceline.sim.loop import OWNER
from paceline.sim.mailing import Mailing
from paceline.sim.talk import Mind, Talk
from paceline.sim.talk_worlds import answered
from paceline.sim.weather import CLIMATES, Commit
from paceline.sim.worlds import Sender, World
from paceline.store import bids
from tests.sim.small import START
from tests.sim.twins import Twin

# ---------------------------------------------------------------------- small worlds


def _followed_up(
    within_us: int = 20 * SECOND, provider: Any = None, targets: int = 6, **talk: Any
) -> World:
    """Two minutes in which a few people get a campaign's message and write, to it or of themselves;
    nobody else answers them."""
    news = Mailing("news", ("line",), targets, audience="person", launched_after_us=20 * SECOND)
    mailing = answered(news, within_us)
    given = {
        "seed": 1,
        "people": tuple(mailing.address(number) for number in range(mailing.targets)),
        "patience": {"line": Patience(4 * SECOND, 12 * SECOND)},
        "minds": {Mind.SILENT: 1},
        "rest_us": (15 * SECOND, 80 * SECOND),
        "most": 1,
        "reacts": 0.5,
        "within_us": within_us,
        "after_us": 10 * SECOND,
        **talk,
    }
    policy = {"rate": "60/min burst 3", "timeout": "10s", "retry": "5s doubling", "concurrency": 3}
    settings = {"latency": "50ms..1s", "timeout_latency": "20s", **(provider or {})}
    return World(
        "followed up",
        START,
        lasts_us=2 * MINUTE,
        calm_us=20 * MINUTE,
        senders=(Sender("line", policy, settings=settings),),
        mailings=(mailing,),
        processes=2,
        fleet=True,
        poll_us=3 * SECOND,
        park_after_us=20 * SECOND,
        operated=False,
        talk=Talk(**given),
        rests=True,
    )


PLAIN = _followed_up()
LATE = _followed_up(5 * SECOND, reacts=0.1)
EARLY = _followed_up(rest_us=(5 * SECOND, 60 * SECOND), hooks=((MILLISECOND, 40 * SECOND),))
"""What they write is told late: much of it was written before, and comes after."""
OFTEN = _followed_up(40 * SECOND, rest_us=(5 * SECOND, 15 * SECOND), twice=0.8)
DOUBTED = _followed_up(60 * SECOND, {"timeout_rate": 0.5}, reacts=0.9)
"""Half of what arrives is not known to have arrived."""
FLAKY = _followed_up(
    2 * SECOND,
    {"transient_at": list(range(1, 11)), "latency": "5s..9s"},
    targets=10,
    rest_us=(5 * SECOND, 40 * SECOND),
    reacts=0.0,
)
"""Everything has to be tried again, and people write meanwhile."""
CURT = _followed_up(curt=0.7)


# ---------------------------------------------------------------------- hardships


def _in(**climate: Any) -> Any:
    def provoke(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(weather, "ASKS", ())
        changed = {"step_every_us": 0, "restart_us": 5 * SECOND, **climate}
        patch.setitem(CLIMATES, "heavy", replace(CLIMATES["heavy"], **changed))

    return provoke


_clocks_are_right = _in()
_processes_die_all_the_time = _in(commits=((Commit.CRASH_AFTER, 1 / 8),))


# ---------------------------------------------------------------------- what bids


def however_late_they_answer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bidding, "parse_duration", lambda _: 400 * DAY)


def whenever_they_had_written(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bidding, "_began_at", lambda *_: 0)


def what_was_tried_in_vain_was_answered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(bidding, "_came_too_soon", lambda *_: False)


def each_answer_bids_another(patch: pytest.MonkeyPatch) -> None:
    """Neither does anybody look, nor does the database mind."""

    def unguarded(self: bids.Bids, *_: int) -> None:
        self._connection.execute(text("DROP INDEX IF EXISTS uq_deliveries_bidden"))

    patch.setattr(bids.Bids, "find", unguarded)


def a_machine_may_answer_for_them(patch: pytest.MonkeyPatch) -> None:
    received = returns._received
    patch.setattr(conversations, "is_theirs", lambda one: not one.from_us and not one.group)

    def credulous(tx: Tx, account: Account, message: Inbound, *given: Any) -> int | None:
        return received(tx, account, message._replace(automatic=False), *given)

    patch.setattr(returns, "_received", credulous)


def stop_is_an_answer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(returns, "wish_of", lambda *_: None)


# ---------------------------------------------------------------------- what is forgotten


def who_answers_what_is_on_its_way_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    reached = bids.Bids.reached

    def of_the_sent(self: bids.Bids, *given: Any) -> Any:
        return [one for one in reached(self, *given) if one.sent_at is not None]

    patch.setattr(bids.Bids, "reached", of_the_sent)


def _taken_up(take_up: Callable[..., int], bid: tuple[Any, ...], tx: Tx) -> int:
    return take_up(tx, *bid)


def it_is_made_when_the_answer_is_written_down(patch: pytest.MonkeyPatch) -> None:
    """In a transaction of its own, by the process that has written it down."""
    bidden: dict[object, list[tuple[Account, Bid, int]]] = defaultdict(list)
    take_up, write = bidding.take_up, ReportDesk._write

    def later(tx: Tx, *bid: Any) -> int:
        bidden[OWNER.get()].append(bid)
        return 0

    async def after_that(self: ReportDesk, *given: Any) -> Any:
        came_to = await write(self, *given)
        for bid in bidden.pop(OWNER.get(), []):
            await self._journal.write(partial(_taken_up, take_up, bid), alone=True)
        return came_to

    patch.setattr(returns, "take_up", later)
    patch.setattr(ReportDesk, "_write", after_that)


UNBIDDEN = "never unbidden"

BID_TWINS = (
    Twin(however_late_they_answer, UNBIDDEN, LATE, 6, provokes=_clocks_are_right),
    Twin(whenever_they_had_written, UNBIDDEN, EARLY, 6, provokes=_clocks_are_right),
    Twin(what_was_tried_in_vain_was_answered, UNBIDDEN, FLAKY, 8, provokes=_clocks_are_right),
    Twin(each_answer_bids_another, UNBIDDEN, OFTEN, 6, provokes=_clocks_are_right),
    Twin(a_machine_may_answer_for_them, UNBIDDEN, CURT, 6, provokes=_clocks_are_right),
    Twin(stop_is_an_answer, UNBIDDEN, CURT, 6, provokes=_clocks_are_right),
    Twin(
        who_answers_what_is_on_its_way_is_forgotten,
        UNBIDDEN,
        DOUBTED,
        6,
        first=1,
        provokes=_clocks_are_right,
    ),
    Twin(
        it_is_made_when_the_answer_is_written_down,
        UNBIDDEN,
        PLAIN,
        # It shows on three seeds in ten: only where nobody writes again whose answer was lost.
        16,
        first=1,
        provokes=_processes_die_all_the_time,
    ),
)
