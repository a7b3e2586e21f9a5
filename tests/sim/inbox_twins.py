"""Broken twins of what takes in mail that comes back: bounces, complaints, answers, unsubscribing.

The others, and what a twin is, are in ``twins.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import update

from paceline.core import retry
from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.model import Content, Part, Step
from paceline.core.outcome import Outcome
from paceline.core.retry import Consequence
from paceline.engine import alerts, chooser
from paceline.engine.commands import returns as taking
from paceline.engine.ports import Account, Delivery, News, Returned, Tx
from paceline.engine.ports.inbox import Watch
from paceline.engine.unsubscribing import UnsubscribeDesk
from paceline.engine.unsubscribing import unsubscribe as unsubscribed
from paceline.engine.watching import Watcher
from paceline.providers.mail.replies import GREYLISTED
from paceline.sim import weather
from paceline.sim.post import Manner, Post, Reaction, Trouble
from paceline.sim.weather import CLIMATES, Read
from paceline.sim.worlds import World
from paceline.store import inbox, path_sqlite
from paceline.store.schema import watches
from tests.sim.campaign_twins import _told
from tests.sim.small import quick
from tests.sim.twins import Twin, suppression_is_asked_only_at_the_plan

# ---------------------------------------------------------------------- small worlds


def _posted(
    manners: Mapping[Manner, int],
    reactions: Mapping[Reaction, int] | None = None,
    *,
    letters: int = 16,
    troubles: Mapping[str, tuple[Trouble, ...]] | None = None,
    forged: int = 0,
    steps: tuple[Step, ...] = (),
    provider: dict[str, Any] | None = None,
    returns: tuple[int, int] = (SECOND, 8 * MINUTE),
    **policy: Any,
) -> World:
    """A quarter of an hour of letters from two accounts, and what comes back of them."""
    limits = {"spacing": "10s..30s", "timeout": "10s", "bounce_pause": "100%", **policy}
    world = quick(
        limits,
        accounts=2,
        targets=letters,
        mood="none",
        provider={"finds": False, **(provider or {})},
        action="email",
        domains=("house-0.example", "house-1.example"),
        steps=steps,
    )
    post = Post(
        seed=1,
        manners=manners,
        reactions=reactions or {Reaction.NOTHING: 1},
        returns=(returns,),
        forged=forged,
        troubles=troubles or {},
        look_every_us=MINUTE,
        wait_us=2 * MINUTE,
        lease_us=3 * MINUTE,
    )
    return replace(
        world,
        post=post,
        lasts_us=12 * MINUTE,
        calm_us=4 * HOUR,
        processes=2,
        poll_us=30 * SECOND,
        park_after_us=10 * SECOND,
        rests=True,
    )


LOST = _posted({Manner.LOST: 1})
STUFFED = _posted({Manner.STUFFED: 1}, steps=(Step(MINUTE, Content((Part("text", "again"),))),))
GREY = _posted({Manner.GREY: 1})
AWAKE = replace(GREY, park_after_us=10 * MINUTE)
"""Whoever is asked to wait is still there when it is over, and is judged by what it does then."""
DOUBTFUL = _posted({Manner.LOST: 1}, provider={"timeout_rate": 0.4, "timeout_latency": "30s"})
PROMPT = _posted(
    {Manner.LOST: 1},
    provider={"timeout_rate": 0.4, "timeout_latency": "30s"},
    returns=(SECOND, 8 * SECOND),
)
"""What comes back does so while the answer is still awaited."""
ANSWERING = _posted({Manner.WELL: 1}, {Reaction.ANSWER: 3, Reaction.NOTE: 1})
GRUMBLING = _posted({Manner.WELL: 1}, {Reaction.COMPLAINT: 1})
LEAVING = _posted(
    {Manner.WELL: 1},
    {Reaction.CLICK: 1},
    letters=30,
    steps=(Step(4 * MINUTE, Content((Part("text", "again"),))),),
)
FORGED = _posted({Manner.WELL: 1}, forged=12)
BOUNCING = _posted({Manner.WELL: 4, Manner.LOST: 1}, letters=56, bounce_pause="5%")
SHUT = _posted(
    {Manner.WELL: 1},
    {Reaction.ANSWER: 1},
    letters=4,
    troubles={
        "lane-0": (Trouble(MINUTE, 4 * MINUTE, "refused"),),
        "lane-1": (Trouble(2 * MINUTE, 3 * MINUTE, "refused"),),
    },
)


# ---------------------------------------------------------------------- hardships


def _processes_sleep_over_their_mail(patch: pytest.MonkeyPatch) -> None:
    """Longer than anybody keeps a mailbox for them."""
    patch.setattr(weather, "READS", ((Read.STANDSTILL, 1 / 3),))
    sleepy = replace(CLIMATES["heavy"], standstill_us=12 * MINUTE)
    patch.setitem(CLIMATES, "heavy", sleepy)


def _processes_die_over_their_mail(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(weather, "READS", ((Read.CRASH, 1 / 3),))
    dying = replace(CLIMATES["heavy"], slow=1 / 4, slowest_us=6 * SECOND, turns_per_crash=300)
    patch.setitem(CLIMATES, "heavy", dying)


# ---------------------------------------------------------------------- never unheard


def the_cursor_is_written_before_the_mail(patch: pytest.MonkeyPatch) -> None:
    take_in = Watcher._take_in

    async def hasty(
        self: Watcher, account: Account, held: Watch, cursor: str, news: list[News]
    ) -> Any:
        after = await self._journal.write(
            lambda tx: tx.watches.change(held, self._lease_us, cursor=cursor)
        )
        return (None, False) if after is None else await take_in(self, account, after, cursor, news)

    patch.setattr(Watcher, "_take_in", hasty)


def whoever_has_lost_a_mailbox_reads_on(patch: pytest.MonkeyPatch) -> None:
    def change(self: inbox.Watches, held: Watch, lease_us: int | None, **changes: Any) -> Any:
        until_at = None if lease_us is None else self._context.now + lease_us
        statement = update(watches).where(watches.c.account_id == held.account_id)
        return self._one(statement.values(lease_until_at=until_at, **changes).returning(*watches.c))

    patch.setattr(inbox.Watches, "change", change)


def _read_as(patch: pytest.MonkeyPatch, what: Callable[[Returned], Returned]) -> None:
    came_back = taking._came_back

    def misread(tx: Tx, account: Account, returned: Returned, at: int) -> Delivery | None:
        return came_back(tx, account, what(returned), at)

    patch.setattr(taking, "_came_back", misread)


def a_hard_bounce_suppresses_nobody(patch: pytest.MonkeyPatch) -> None:
    _read_as(patch, lambda returned: returned._replace(kind="failed"))


def a_bounce_of_a_letter_in_doubt_is_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(taking, "resolve_by_receipt", lambda *_: "nothing")


def a_bounce_that_comes_before_the_answer_is_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(taking, "come_early", lambda *_: False)


def complaints_count_only_in_the_mailbox_of_the_sender(patch: pytest.MonkeyPatch) -> None:
    take_in = taking.take_in

    def narrow(tx: Tx, account: Account, news: list[News], at: int) -> Any:
        def is_ours(one: News) -> bool:
            if not isinstance(one, Returned) or one.kind != "complaint":
                return True
            delivery = taking.delivery_named(tx, one.key)
            return delivery is not None and delivery.account_id == account.id

        return take_in(tx, account, [one for one in news if is_ours(one)], at)

    patch.setattr(taking, "take_in", narrow)


def one_answer_of_a_reading_is_kept(patch: pytest.MonkeyPatch) -> None:
    take_in = taking.take_in
    patch.setattr(
        taking, "take_in", lambda tx, account, news, at: take_in(tx, account, news[:1], at)
    )


def who_unsubscribes_is_told_before_it_is_done(patch: pytest.MonkeyPatch) -> None:
    async def soon(self: UnsubscribeDesk, token: str) -> bool:
        number = self._links.delivery_of(token)
        assert number is not None
        now = self._clock.now()
        writing = asyncio.ensure_future(
            self._journal.write(lambda tx: unsubscribed(tx, number, now))
        )
        writing.add_done_callback(lambda done: done.cancelled() or done.exception())
        return True

    patch.setattr(UnsubscribeDesk, "unsubscribe", soon)


# ---------------------------------------------------------------------- never misled


def a_soft_bounce_suppresses(patch: pytest.MonkeyPatch) -> None:
    _read_as(patch, lambda returned: returned._replace(kind="bounced"))


def a_complaint_counts_every_time_it_is_told(patch: pytest.MonkeyPatch) -> None:
    def again(tx: Tx, returned: Returned, at: int) -> bool:
        delivery = taking.delivery_named(tx, returned.key)
        if delivery is None:
            return False
        tx.suppressions.add(delivery.target, "complained of spam", "complaint", at)
        alerts.complained(tx, delivery, at)
        return True

    patch.setattr(taking, "_complained", again)


def anybody_is_believed_about_anybodys_letters(patch: pytest.MonkeyPatch) -> None:
    came_back = taking._came_back

    def credulous(tx: Tx, account: Account, returned: Returned, at: int) -> Delivery | None:
        delivery = taking.delivery_named(tx, returned.key)
        if delivery is not None and delivery.account_id is not None:
            account = tx.accounts.get(delivery.account_id)
        return came_back(tx, account, returned, at)

    patch.setattr(taking, "_came_back", credulous)


def whoever_greylists_is_given_up(patch: pytest.MonkeyPatch) -> None:
    of_delivery = retry._of_delivery

    def final(outcome: Outcome, *rest: Any) -> Consequence:
        if outcome.code == GREYLISTED:
            return Consequence("bounce", reason=outcome.reason, suppresses=True)
        return of_delivery(outcome, *rest)

    patch.setattr(retry, "_of_delivery", final)


# ---------------------------------------------------------------------- what was promised before


def a_greylisted_letter_is_tried_again_at_once(patch: pytest.MonkeyPatch) -> None:
    climb = retry._Ladder.next
    patch.setattr(retry._Ladder, "next", lambda *given: climb(*given[:3]))


def unsubscribing_is_asked_only_at_the_plan(patch: pytest.MonkeyPatch) -> None:
    suppression_is_asked_only_at_the_plan(patch)


def what_came_back_is_followed_up(patch: pytest.MonkeyPatch) -> None:
    """Neither called off, nor held back by its lane, nor by the intent."""
    _told(patch, "skip", ("'bounced', ", ""))
    _told(patch, "release", ("p.state = 'sent'", "p.state IN ('sent', 'bounced')"))
    patch.setattr(chooser, "SENT_OR_NONE", (*chooser.SENT_OR_NONE, "bounced"))
    guarded = path_sqlite._BEFORE_INTENDING
    assert "p.state = 'sent' OR" in guarded
    let_through = guarded.replace("p.state = 'sent' OR", "p.state IN ('sent', 'bounced') OR")
    patch.setattr(path_sqlite, "_BEFORE_INTENDING", let_through)


def what_comes_back_late_pauses_nobody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(taking, "look_at_bounces", lambda *_, **__: None)


def a_mailbox_that_refuses_us_is_nobodys_concern(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(alerts, "mailbox_fails", lambda *_: None)


def a_mailbox_that_can_be_read_again_stays_on_the_list(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(alerts, "mailbox_works", lambda *_: None)


UNHEARD = "never unheard"
MISLED = "never misled"

INBOX_TWINS = (
    Twin(the_cursor_is_written_before_the_mail, UNHEARD, LOST, 2),
    Twin(
        whoever_has_lost_a_mailbox_reads_on,
        UNHEARD,
        ANSWERING,
        4,
        provokes=_processes_sleep_over_their_mail,
    ),
    Twin(a_hard_bounce_suppresses_nobody, UNHEARD, LOST, 2),
    Twin(a_bounce_of_a_letter_in_doubt_is_ignored, UNHEARD, DOUBTFUL, 2),
    Twin(a_bounce_that_comes_before_the_answer_is_ignored, UNHEARD, PROMPT, 8),
    Twin(complaints_count_only_in_the_mailbox_of_the_sender, UNHEARD, GRUMBLING, 2),
    Twin(one_answer_of_a_reading_is_kept, UNHEARD, ANSWERING, 2),
    Twin(
        who_unsubscribes_is_told_before_it_is_done,
        UNHEARD,
        LEAVING,
        3,
        provokes=_processes_die_over_their_mail,
    ),
    Twin(a_soft_bounce_suppresses, MISLED, STUFFED, 2),
    Twin(a_complaint_counts_every_time_it_is_told, MISLED, GRUMBLING, 2),
    Twin(anybody_is_believed_about_anybodys_letters, MISLED, FORGED, 2),
    Twin(whoever_greylists_is_given_up, MISLED, GREY, 2),
    Twin(a_greylisted_letter_is_tried_again_at_once, "never impatient", AWAKE, 2),
    Twin(unsubscribing_is_asked_only_at_the_plan, "never to the suppressed", LEAVING, 8),
    Twin(what_came_back_is_followed_up, "never ahead of its step", STUFFED, 2),
    Twin(what_comes_back_late_pauses_nobody, "never careless", BOUNCING, 2),
    Twin(a_mailbox_that_refuses_us_is_nobodys_concern, "never untold", SHUT, 2),
    Twin(a_mailbox_that_can_be_read_again_stays_on_the_list, "never untold", SHUT, 2),
)
