"""Broken twins of what follows from a provider's answers: holds, ways back, alerts and notices.

The others, and what a twin is, are in ``twins.py``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from paceline.core import usage as usages
from paceline.core.holds import NO_HOLDS, Holds
from paceline.core.instants import HOUR, MINUTE, SECOND, Instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.usage import Usage
from paceline.engine import alerts, lane_writes, memory, outbox, settling, teller
from paceline.engine.chooser import Chooser
from paceline.engine.notice import Notice, notice_of
from paceline.engine.ports import Alert, LaneResult, Tx
from paceline.sim import attention, weather
from paceline.sim.mailing import Mailing
from paceline.sim.weather import CLIMATES, Commit
from paceline.sim.worlds import World
from paceline.store.alerts import Alerts
from tests.sim.small import quick
from tests.sim.twins import Twin, only, restored

# ---------------------------------------------------------------------- small worlds


def _signalled(
    signals: dict[str, dict[str, Any]],
    provider: dict[str, Any],
    *,
    accounts: int = 2,
    targets: int = 26,
    **policy: Any,
) -> World:
    """A few lanes at providers that say something now and then, and people who are told of it."""
    policy = {"rate": "20/min", "timeout": "10s", "bounce_pause": "100%", **policy}
    settings = {"retry_after": "none", **provider}
    world = quick(policy, accounts=accounts, targets=targets, mood="none", provider=settings)
    return replace(
        world,
        signals=signals,
        lasts_us=4 * MINUTE,
        calm_us=12 * HOUR,
        processes=2,
        poll_us=20 * SECOND,
    )


def _rule(scope: str, lasts: str, ramp: Any = "none") -> dict[str, Any]:
    return {"scope": scope, "for": lasts, "ramp": ramp}


ASKED = _signalled(
    {"* rejected": _rule("account", "2m")}, {"reject_at": (2, 4, 6, 8, 10)}, targets=20
)
STRANGERS = _signalled({"* rejected": _rule("new contacts", "3m")}, {"reject_at": (3, 12)})
"""Everybody is written to for the first time."""
FRIENDS = replace(
    _signalled(
        {"* rejected": _rule("new contacts", "6m"), "* transient": _rule("new contacts", "20s")},
        {"reject_at": (6,), "transient_at": (8, 10)},
    ),
    mailings=(
        Mailing("first", ("lane-0", "lane-1"), 10, audience="friend"),
        Mailing("second", ("lane-0", "lane-1"), 24, audience="friend", launched_after_us=MINUTE),
    ),
)
"""Whoever has had the first message may have the second, and one of them brings a weaker signal."""
SLOWLY = _signalled(
    {"* rejected": _rule("account", "20s", {"slow_by": 4, "recover": "8m"})}, {"reject_at": (3,)}
)
WAITING = _signalled({"* rejected": _rule("campaign", "3m")}, {"reject_at": (3, 9)})
STRICTER = replace(
    _signalled({}, {"reject_at": tuple(range(3, 60, 3))}, targets=40, rate="8/min"),
    operated=True,
)
"""Somebody says in the middle of it that a refusal stops the account."""
TRIPPED = replace(
    _signalled(
        {"* rejected": _rule("campaign", "until resumed")}, {"reject_at": (3, 6)}, targets=12
    ),
    calm_us=2 * HOUR,
)
BANNED = _signalled({}, {"ban_after": 2, "ban_for": "40s"}, targets=16)
THROTTLED = _signalled({}, {"throttle_at": (3, 4, 5, 6)}, targets=12)
STUBBORN = replace(
    _signalled({}, {"throttle_at": (9, 10)}),
    mailings=(
        Mailing("theirs", ("lane-0", "lane-1"), 2, audience="stubborn"),
        Mailing("all", ("lane-0", "lane-1"), 60, audience="friend"),
    ),
)
"""Some are always throttled, whoever else gets through; and for a while the account is, too."""
OUTAGE = replace(
    _signalled(
        {"* rejected": _rule("account", "until resumed")},
        {"reject_at": (3,), "latency": "0s"},
        accounts=4,
        targets=20,
    ),
    calm_us=2 * HOUR,
)
"""It strikes all accounts at about the same moment."""


# ---------------------------------------------------------------------- hardships


def _says_that_a_refusal_stops_the_account(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attention, "draw_signal", lambda _: "* rejected")
    patch.setattr(attention, "draw_rule", lambda _: _rule("account", "90s"))
    only("sets")(patch)


def _answers_of_the_store_are_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(CLIMATES, "heavy", replace(CLIMATES["heavy"], commits=((Commit.UNHEARD, 1 / 8),)))


def _processes_die_when_they_tell(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(weather, "RINGS", ((weather.Ring.CRASH_BEFORE, 1 / 2),))


# ---------------------------------------------------------------------- never heedless


def holds_are_forgotten_at_a_restart(patch: pytest.MonkeyPatch) -> None:
    def forgotten(usage: Usage) -> Usage:
        return usage._replace(hold_until_at=0, hold_reason="", holds=NO_HOLDS, throttled_at=None)

    restored(patch, forgotten)


def a_hold_grows_with_every_restart(patch: pytest.MonkeyPatch) -> None:
    restored(patch, lambda usage: usage._replace(hold_until_at=usage.hold_until_at + 5 * MINUTE))


def strangers_are_taken_for_friends(patch: pytest.MonkeyPatch) -> None:
    async def acquainted(_: Chooser, delivery: Any, ask: Any) -> Any:
        return ask

    patch.setattr(Chooser, "_acquainted", acquainted)


def a_weaker_signal_ends_a_longer_hold(patch: pytest.MonkeyPatch) -> None:
    def newcomers(self: Holds, until_at: Instant, reason: str) -> Holds:
        return self._replace(newcomers_until_at=until_at, newcomers_reason=reason)

    patch.setattr(Holds, "newcomers", newcomers)


def the_way_back_is_at_full_pace(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(usages, "_slowed_us", lambda usage, policy, interval_us, at: interval_us)


def a_campaign_that_should_wait_goes_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Holds, "run", lambda self, *_: self)


def a_change_of_the_table_is_not_heard(patch: pytest.MonkeyPatch) -> None:
    refresh = memory.LaneMemory.refresh

    def deaf(self: memory.LaneMemory, *args: Any, **named: Any) -> None:
        known = getattr(self, "signals", None)
        refresh(self, *args, **named)
        self.signals = known or self.signals

    patch.setattr(memory.LaneMemory, "refresh", deaf)


# ---------------------------------------------------------------------- never untold


def an_alert_is_raised_twice(patch: pytest.MonkeyPatch) -> None:
    put = Alerts.put

    def twice(self: Alerts, alert: Any, at: Instant) -> None:
        put(self, alert, at)
        put(self, alert, at)

    patch.setattr(Alerts, "put", twice)


def an_alert_comes_after_its_cause(patch: pytest.MonkeyPatch) -> None:
    """In a transaction of its own: a crash in between loses it."""
    alert, submit = lane_writes._alert, outbox.Outbox._submit_alone
    left: list[tuple[Any, ...]] = []
    patch.setattr(lane_writes, "_alert", lambda tx, *about: left.append(about))

    async def later(self: outbox.Outbox, *unit: Any) -> LaneResult:
        left.clear()
        result = await submit(self, *unit)
        raised = left[:]

        def work(tx: Tx) -> None:
            for about in raised:
                alert(tx, *about)

        await self._context.journal.write(work)
        return result

    patch.setattr(outbox.Outbox, "_submit_alone", later)


def an_answer_is_carried_out_again_when_its_commit_was_not_heard(
    patch: pytest.MonkeyPatch,
) -> None:
    patch.setattr(lane_writes, "_is_written", lambda *_: False)


def what_a_dead_process_was_telling_is_never_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(teller, "ABANDONED_US", 10_000 * HOUR)


def every_throttle_is_said_to_be_about_its_recipient(patch: pytest.MonkeyPatch) -> None:
    def alone(outcome: Outcome, *_: object) -> Outcome:
        throttled = outcome.kind is OutcomeKind.THROTTLED
        return outcome._replace(kind=OutcomeKind.TRANSIENT) if throttled else outcome

    patch.setattr(settling, "read_alone", alone)


def throttles_in_a_row_are_nobodys_concern(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(settling, "SETBACKS_TOLD", 1_000)


def nobody_writes_down_that_it_was_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Alerts, "told", lambda *_: None)


def of_many_only_the_first_is_told(patch: pytest.MonkeyPatch) -> None:
    def first(tx: Tx, group: list[Alert]) -> Notice:
        return notice_of(group[0])

    patch.setattr(teller, "notice_of_many", first)


def what_is_resumed_stays_on_the_list(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(alerts, "clear", lambda *_: None)
    patch.setattr(Alerts, "clear", lambda *_, **__: 0)


HEED = "never heedless"
TOLD = "never untold"

SIGNAL_TWINS = (
    Twin(holds_are_forgotten_at_a_restart, HEED, ASKED, 4, first=1),
    Twin(a_hold_grows_with_every_restart, HEED, ASKED, 4, first=1),
    Twin(strangers_are_taken_for_friends, HEED, STRANGERS, 1),
    Twin(a_weaker_signal_ends_a_longer_hold, HEED, FRIENDS, 4),
    Twin(the_way_back_is_at_full_pace, HEED, SLOWLY, 1),
    Twin(a_campaign_that_should_wait_goes_on, HEED, WAITING, 1),
    Twin(
        a_change_of_the_table_is_not_heard,
        HEED,
        STRICTER,
        4,
        first=2,
        provokes=_says_that_a_refusal_stops_the_account,
    ),
    Twin(an_alert_is_raised_twice, TOLD, TRIPPED, 1),
    Twin(an_alert_comes_after_its_cause, TOLD, TRIPPED, 1),
    Twin(
        an_answer_is_carried_out_again_when_its_commit_was_not_heard,
        TOLD,
        BANNED,
        6,
        first=3,
        provokes=_answers_of_the_store_are_lost,
    ),
    Twin(every_throttle_is_said_to_be_about_its_recipient, HEED, STUBBORN, 1),
    Twin(throttles_in_a_row_are_nobodys_concern, TOLD, THROTTLED, 2),
    Twin(
        what_a_dead_process_was_telling_is_never_told,
        TOLD,
        TRIPPED,
        4,
        provokes=_processes_die_when_they_tell,
    ),
    Twin(nobody_writes_down_that_it_was_told, TOLD, TRIPPED, 4, first=1),
    Twin(of_many_only_the_first_is_told, TOLD, OUTAGE, 1),
    Twin(what_is_resumed_stays_on_the_list, TOLD, TRIPPED, 1),
)
