"""The checker of alerts: what it must report, and the near miss that it must let pass."""

from typing import Any

from paceline.core.instants import HOUR
from paceline.engine.ports import Alert
from paceline.sim.attention import Table
from paceline.sim.checks import Evidence
from paceline.sim.checks.alerts import ABANDONED_US, AGAIN_US, PATIENCE_US, QUIET_US, untold
from paceline.sim.chronicle import Page
from paceline.sim.phone import Rung, numbers_in
from tests.sim.evidence import MINUTE, NOON, SECOND, call, evidence, replace
from tests.sim.test_checks_signals import page, row

TOLD = {"never untold"}
CALM_AT = NOON + 10 * MINUTE


def alert(number: int = 1, kind: str = "campaign.signal", **changes: Any) -> Alert:
    about = {"run_id": 1} if kind.startswith("campaign.") else {}
    raised = Alert(number, f"{kind}:1", kind, "it: so", (), 1, NOON, NOON, None, None, 1, **about)
    return replace(raised, **changes)


def seen(*pages: Page, **changes: Any) -> set[str]:
    calm = page(NOON - MINUTE)
    known: dict[str, Any] = {"pages": [calm, *pages], "tables": [Table(0, {})], "calm_at": CALM_AT}
    given: Evidence = evidence(**(known | changes))
    return {violation.invariant for violation in untold(given)}


def paused(at: int = NOON, *alerts: Alert, **changes: Any) -> Page:
    found = {one.id: one for one in alerts}
    return page(at, runs={1: "paused", 2: "running"}, alerts=found, **changes)


def rung(after_us: int, *numbers: int, well: bool = True) -> Rung:
    return Rung(NOON + after_us, "process-0", "title", "text", numbers or (1,), well)


SOON = [rung(SECOND)]
NOTED = paused(NOON + 2 * SECOND, alert(told_at=NOON))


def test_a_campaign_that_stops_without_a_word() -> None:
    assert seen(paused()) == TOLD
    assert seen(paused(NOON, alert()), rung=SOON) == set()
    assert seen(paused(by_engine=False)) == set(), "who stopped it knows"
    # A word that comes later could have been lost in between.
    assert seen(paused(), paused(NOON + SECOND, alert()), rung=SOON) == TOLD


def test_an_account_that_stops_without_a_word() -> None:
    for state, told in (("suspended", True), ("paused", True), ("limit_reached", False)):
        stopped = page(NOON, accounts={1: (state, 1, False), 2: ("active", 1, False)})
        assert seen(stopped) == (TOLD if told else set()), state
        if told:
            known = replace(stopped, alerts={1: alert(kind=f"account.{state}")})
            assert seen(known, rung=SOON) == set()


def test_more_alerts_than_causes() -> None:
    assert seen(paused(NOON, alert(count=2)), rung=SOON) == TOLD
    both = (alert(), alert(2, "campaign.breaker"))
    assert seen(paused(NOON, *both), rung=[rung(SECOND, 1, 2)]) == TOLD
    again = paused(NOON + SECOND, alert(count=2))
    assert seen(paused(NOON, alert()), again, rung=SOON) == TOLD


def test_an_account_that_is_banned_once_more() -> None:
    cooling = {1: ("cooling_down", 1, False), 2: ("active", 1, False)}
    first = page(NOON, accounts=cooling, alerts={1: alert(kind="account.cooling_down")})
    twice = replace(first, at=NOON + 1, alerts={1: alert(kind="account.cooling_down", count=2)})
    assert seen(first, twice, rung=SOON) == TOLD
    banned = replace(twice, rows=(row(call(1), "banned"),))
    assert seen(first, banned, rung=SOON) == set()


def test_an_account_is_held_back_from_the_third_time_on() -> None:
    def refused(times: int, *, raised: bool, accepted: bool = False) -> set[str]:
        calls = [call(number, number * MINUTE) for number in range(1, times + 1)]
        pages = [page(one.at - SECOND, row(one)) for one in calls]
        pages += [page(one.at, row(one, "unavailable")) for one in calls]
        pages.sort(key=lambda one: one.at)
        if accepted:
            pages.insert(1, page(NOON, row(call(9), "accepted")))
        if raised:
            pages[-1] = replace(pages[-1], alerts={1: alert(kind="account.throttled")})
        effects = [
            replace(one, answer="unavailable", code="unavailable", accepted=False)
            for one in evidence(*calls).effects
        ]
        return seen(*pages, calls=calls, effects=effects, rung=SOON if raised else [])

    assert refused(2, raised=False) == refused(3, raised=True) == set()
    assert refused(2, raised=True) == refused(3, raised=False) == TOLD


def test_reasons_that_were_not_given_or_not_often_enough() -> None:
    policy = {"breaker": {"above": "40%", "samples": 5}}
    fails = tuple(row(call(number), "rejected", reason="no") for number in range(1, 4))

    def told(*reasons: tuple[str, int]) -> set[str]:
        tripped = paused(NOON, alert(kind="campaign.breaker", reasons=reasons), rows=fails)
        return seen(tripped, policy=policy, rung=SOON)

    assert told(("no", 3)) == set()
    assert told(("no", 4)) == told(("gone", 3)) == TOLD
    assert told(("no", 2)) == told() == TOLD, "two of five trip no breaker"


def test_an_alert_outlives_its_cause_or_does_not_live_as_long() -> None:
    resumed = page(NOON + MINUTE, by_engine=False, alerts={1: alert()})
    assert seen(paused(NOON, alert()), resumed, rung=SOON) == TOLD
    cleared = {1: alert(cleared_at=NOON + MINUTE)}
    assert seen(paused(NOON, alert()), replace(resumed, alerts=cleared), rung=SOON) == set()
    ended = paused(NOON + MINUTE, cleared[1])
    assert seen(paused(NOON, alert()), ended, rung=SOON) == TOLD
    by_hand = replace(ended, by_engine=False)
    assert seen(paused(NOON, alert()), by_hand, rung=SOON) == set()
    assert seen(paused(NOON, alert()), paused(NOON + MINUTE), rung=SOON) == TOLD, "it is gone"


def test_nobody_is_held_back_for_a_quiet_hour() -> None:
    rows = tuple(row(call(number), "unavailable") for number in range(1, 4))
    raised = page(NOON, *rows, alerts={1: alert(kind="account.throttled")})

    def over(quiet_us: int) -> set[str]:
        cleared = alert(kind="account.throttled", cleared_at=NOON + quiet_us)
        return seen(raised, page(NOON + quiet_us, alerts={1: cleared}), rung=SOON)

    assert over(QUIET_US) == set()
    assert over(QUIET_US - 1) == TOLD


def test_an_alert_of_which_nobody_is_told() -> None:
    raised = paused(NOON, alert())
    assert seen(raised, ended_at=CALM_AT + PATIENCE_US) == set()
    assert seen(raised, ended_at=CALM_AT + PATIENCE_US + 1) == TOLD
    assert seen(raised, ended_at=CALM_AT + HOUR, rung=SOON) == set()
    # Somebody has seen to it before.
    gone = page(NOON + MINUTE, by_engine=False, alerts={1: alert(cleared_at=NOON + MINUTE)})
    assert seen(raised, gone, ended_at=CALM_AT + HOUR) == set()
    assert seen(raised, NOTED) == TOLD, "it is written down as told, and never rang"
    assert seen(raised, NOTED, rung=[rung(SECOND, well=False)]) == TOLD
    assert seen(raised, NOTED, rung=[rung(SECOND, 1, 2)]) == TOLD, "there is no second one"


def test_an_alert_that_is_told_again_for_nothing() -> None:
    raised, soon = paused(NOON, alert()), [rung(SECOND), rung(5 * SECOND)]
    noted_late = paused(NOON + 6 * SECOND, alert(told_at=NOON))
    assert seen(raised, noted_late, rung=soon) == TOLD, "two have set out at once"
    died = [rung(SECOND, well=False), rung(5 * SECOND)]
    assert seen(raised, noted_late, rung=died) == set()
    # Whoever told it first did not live to say so, as far as the tables know.
    unheard = [rung(SECOND), rung(ABANDONED_US)]
    later = paused(NOON + ABANDONED_US + SECOND, alert(told_at=NOON + ABANDONED_US))
    assert seen(raised, later, rung=unheard) == set()
    assert seen(raised, NOTED, later, rung=unheard) == TOLD


def test_in_fair_weather_whoever_tells_lives_to_say_so() -> None:
    raised, after_us = paused(NOON, alert()), CALM_AT - NOON
    twice = [rung(after_us), rung(after_us + 5 * MINUTE)]
    assert seen(raised, rung=twice) == TOLD
    early = [rung(after_us - 1), rung(after_us + 5 * MINUTE)]
    assert seen(raised, rung=early) == set()


def test_what_goes_on_is_told_again_after_an_hour() -> None:
    rows = tuple(row(call(number), "unavailable") for number in range(1, 4))
    kind = "account.throttled"
    raised = page(NOON, *rows, alerts={1: alert(kind=kind)})
    noted = page(NOON + SECOND, alerts={1: alert(kind=kind, told_at=NOON)})
    more = row(call(4), "unavailable")
    again = page(NOON + MINUTE, more, alerts={1: alert(kind=kind, told_at=NOON, count=2)})

    def told(second_us: int, *pages: Page) -> set[str]:
        twice = [rung(SECOND // 2), rung(second_us)]
        return seen(raised, noted, *pages, rung=twice, calm_at=NOON + 9 * HOUR)

    assert told(AGAIN_US, again) == set()
    assert told(AGAIN_US - 1, again) == TOLD
    assert told(AGAIN_US) == TOLD, "nothing has happened since"


def test_wrong_clocks_may_tell_twice() -> None:
    raised, soon = paused(NOON, alert()), [rung(SECOND), rung(5 * SECOND)]
    noted = paused(NOON + 6 * SECOND, alert(told_at=NOON))
    assert seen(raised, noted, rung=soon, spread_us=ABANDONED_US) == set()


def test_what_a_notice_is_about_is_read_off_its_words() -> None:
    assert numbers_in("x\nSee: paceline alerts; when it is seen to: paceline alert clear 7") == (7,)
    many = "x\nAlerts 3, 7-9. See: paceline alerts; when one is seen to: paceline alert clear ID"
    assert numbers_in(many) == (3, 7, 8, 9)
    assert numbers_in("nothing of the kind") == ()
