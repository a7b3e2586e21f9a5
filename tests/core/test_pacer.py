"""The pacer: what the gates say together, for whom, until when, and in which words."""

from datetime import date, timedelta
from typing import Any

import pytest

from paceline.core.gates import DELIVERY_GATES, account_gates
from paceline.core.hours import Hours
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, parse_instant
from paceline.core.model import Ask, Go, Refuse, Standing, Verdict, Wait
from paceline.core.pacer import HORIZON_US, Pacer
from paceline.core.policy import Policy
from paceline.core.states import AccountState
from paceline.core.usage import Usage

NOW = parse_instant("2026-02-16T11:00:00Z")  # a Monday
TODAY_AT = parse_instant("2026-02-16T00:00:00Z")
MAIL = Ask(action="email", run_id=7)
REPLY = Ask(action="email", run_id=7, reply=True)


def pacer_of(standing: Standing | None = None, **settings: Any) -> Pacer:
    return Pacer(Policy.from_mapping(settings), standing or Standing())


def ask(text: Ask = MAIL, usage: Usage | None = None, now: int = NOW, **settings: Any) -> Verdict:
    return pacer_of(**settings).verdict(now, usage or Usage(), text)


def test_nothing_shut_is_go() -> None:
    assert ask() == Go()
    assert ask(REPLY) == Go()


def test_the_verdict_changes_nothing_and_is_always_the_same() -> None:
    usage = Usage(tat_at=NOW + HOUR, last_at=NOW, day_at=TODAY_AT, day={"email": 20})
    before = repr(usage)
    pacer = pacer_of(rate="1/h", daily={"email": 20}, spacing="5m")
    verdicts = {repr(pacer.verdict(NOW, usage, MAIL)) for _ in range(5)}
    assert len(verdicts) == 1
    assert repr(usage) == before


# ---------------------------------------------------------------------- account states


@pytest.mark.parametrize("state", [AccountState.PAUSED, AccountState.SUSPENDED])
@pytest.mark.parametrize("text", [MAIL, REPLY], ids=["campaign", "reply"])
def test_a_paused_or_suspended_account_waits_for_a_person(state: AccountState, text: Ask) -> None:
    pacer = pacer_of(Standing(state, reason="by an operator"), rate="1/s")
    verdict = pacer.verdict(NOW, Usage(tat_at=NOW + DAY), text)
    assert verdict == Wait(None, "status", f"account is {state}: by an operator")


def test_a_cooling_account_waits_until_it_has_cooled_down() -> None:
    pacer = pacer_of(Standing(AccountState.COOLING_DOWN, NOW + HOUR))
    assert pacer.verdict(NOW, Usage(), REPLY) == Wait(
        NOW + HOUR, "status", "account is cooling down"
    )
    assert pacer.verdict(NOW + HOUR, Usage(), REPLY) == Go()
    endless = pacer_of(Standing(AccountState.COOLING_DOWN))
    assert endless.verdict(NOW, Usage(), MAIL) == Wait(None, "status", "account is cooling down")


def test_a_reached_limit_is_enforced_by_the_cap_so_that_a_raised_cap_opens_it() -> None:
    standing = Standing(AccountState.LIMIT_REACHED, NOW + DAY)
    usage = Usage(day_at=TODAY_AT, day={"email": 20})
    held = pacer_of(standing, daily={"email": 20}).verdict(NOW, usage, MAIL)
    assert held == Wait(TODAY_AT + DAY, "daily", "daily cap reached (20/20)")
    assert pacer_of(standing, daily={"email": 21}).verdict(NOW, usage, MAIL) == Go()


# ---------------------------------------------------------------------- the fixed point


def test_what_is_told_is_the_gate_that_opens_last() -> None:
    usage = Usage(
        tat_at=NOW + MINUTE, last_at=NOW, gap_us=5 * MINUTE, day_at=TODAY_AT, day={"email": 1}
    )
    settings: dict[str, Any] = {"rate": "1/min", "spacing": "5m"}
    assert ask(MAIL, usage, **settings) == Wait(
        NOW + 5 * MINUTE, "spacing", "spacing 5m since the last message"
    )
    capped = ask(MAIL, usage, daily={"email": 1}, hours="10:00-18:00 UTC", **settings)
    assert capped == Wait(TODAY_AT + 34 * HOUR, "daily", "daily cap reached (1/1)")


def test_gates_that_push_each_other_along_meet_at_the_first_common_instant() -> None:
    """Spacing ends after closing time; the morning after is a Saturday; Monday it is."""
    friday_at = parse_instant("2026-02-20T17:58", "UTC")
    usage = Usage(last_at=friday_at, gap_us=10 * MINUTE)
    verdict = ask(MAIL, usage, friday_at + SECOND, hours="Mon-Fri 09:00-18:00 UTC", spacing="10m")
    monday_at = parse_instant("2026-02-23T09:00", "UTC")
    # The gap would be over in ten minutes; the weekend is not the gap's.
    why = "outside business hours (Mon-Fri 09:00-18:00 UTC)"
    assert verdict == Wait(monday_at, "hours", why)


def test_hours_and_a_window_that_never_meet_are_refused_within_the_horizon() -> None:
    text = MAIL._replace(window=Hours.parse("18:00-20:00 UTC"))
    verdict = ask(text, hours="09:00-18:00 UTC")
    assert isinstance(verdict, Refuse)
    assert verdict.gate == "horizon"
    assert verdict.why.startswith("no instant within 400 days suits every gate (last shut: ")
    theirs = MAIL._replace(recipient_hours=Hours.parse("Sat 10:00-12:00 Asia/Tokyo"))
    assert isinstance(ask(theirs, hours="Mon-Fri 00:00-24:00 UTC"), Refuse)
    assert ask(text._replace(reply=True), hours="09:00-18:00 UTC") == Go()


def test_hours_and_a_window_that_meet_only_weeks_later_are_found() -> None:
    """Tuesdays alone would do, and the next eleven of them are blacked out."""
    tuesdays = [date(2026, 2, 17) + timedelta(weeks=n) for n in range(11)]
    text = MAIL._replace(window=Hours.parse("Tue 09:00-10:00, Wed 18:00-19:00 UTC"))
    verdict = ask(text, hours="09:00-17:00 UTC", blackout=[str(day) for day in tuesdays])
    assert isinstance(verdict, Wait)
    assert verdict.until_at == parse_instant("2026-05-05T09:00:00Z")
    assert ask(text, now=verdict.until_at, hours="09:00-17:00 UTC") == Go()


def test_hours_that_change_every_few_minutes_are_still_followed_to_the_end_of_the_week() -> None:
    even = " ".join(f"{h:02}:{m:02}-{h:02}:{m + 1:02}" for h in range(24) for m in range(0, 58, 2))
    odd = " ".join(f"{h:02}:{m:02}-{h:02}:{m + 1:02}" for h in range(24) for m in range(1, 58, 2))
    text = MAIL._replace(window=Hours.parse(f"Mon-Sat {odd}, Sun 05:00-05:01 UTC"))
    verdict = ask(text, hours=f"{even} UTC")
    assert isinstance(verdict, Wait)
    assert verdict.until_at == parse_instant("2026-02-22T05:00:00Z")


@pytest.mark.parametrize("years", [2, 30])
def test_a_long_wait_is_no_contradiction(years: int) -> None:
    """Nothing is refused, and so lost, because one gate alone opens late."""
    later_at = NOW + years * 365 * DAY
    assert later_at - NOW > HORIZON_US
    held = ask(MAIL, Usage(hold_until_at=later_at), hours="Mon-Fri 09:00-18:00 UTC")
    assert isinstance(held, Wait)
    assert held.until_at is not None and later_at <= held.until_at <= later_at + 4 * DAY
    planned = ask(MAIL._replace(not_before_at=later_at))
    assert planned == Wait(later_at, "not-before", "scheduled for later")
    cooling = pacer_of(Standing(AccountState.COOLING_DOWN, later_at)).verdict(NOW, Usage(), MAIL)
    assert isinstance(cooling, Wait) and cooling.until_at == later_at


# ---------------------------------------------------------------------- closing and expiry


def test_a_window_that_skips_refuses_after_closing_and_not_before() -> None:
    closes_at = NOW + HOUR
    text = MAIL._replace(window=Hours.window(9, 12, "UTC"), closes_at=closes_at)
    assert ask(text) == Go()
    assert ask(text, now=closes_at - 1) == Go()
    assert ask(text, now=closes_at) == Refuse("window", "delivery window closed")
    assert ask(text, now=closes_at + DAY) == Refuse("window", "delivery window closed")


@pytest.mark.parametrize(
    ("usage", "settings", "gate", "why"),
    [
        (Usage(hold_until_at=NOW + DAY, hold_reason="away"), {}, "hold", "away"),
        (
            Usage(day_at=TODAY_AT, day={"email": 5}),
            {"daily": {"email": 5}},
            "daily",
            "daily cap reached (5/5)",
        ),
        (Usage(tat_at=NOW + 2 * HOUR), {"rate": "1/h"}, "rate", "rate limit 1/h"),
    ],
)
def test_what_would_come_too_late_is_given_up_when_its_time_is_over_and_not_before(
    usage: Usage, settings: dict[str, Any], gate: str, why: str
) -> None:
    """A raised limit may still save it, so it waits for its end and is refused only then."""
    ends_at = NOW + HOUR
    for name, text in (
        ("window", MAIL._replace(closes_at=ends_at)),
        ("expiry", MAIL._replace(expires_at=ends_at)),
        ("expiry", MAIL._replace(expires_at=ends_at, closes_at=ends_at + MINUTE)),
    ):
        verdict = ask(text, usage, **settings)
        assert verdict == Wait(ends_at, gate, f"{why}; its {name} ends first")
        assert isinstance(ask(text, usage, ends_at - 1, **settings), Wait)
        refused = ask(text, usage, ends_at, **settings)
        assert isinstance(refused, Refuse) and refused.gate == name


def test_a_window_that_does_not_open_again_before_it_closes_is_refused_at_once() -> None:
    text = MAIL._replace(window=Hours.window(9, 10, "UTC"), closes_at=NOW + 2 * HOUR)
    assert ask(text) == Refuse("window", "outside send window (09:00-10:00 UTC)")
    backwards = MAIL._replace(opens_at=NOW + HOUR, closes_at=NOW + MINUTE)
    assert isinstance(ask(backwards), Refuse)


def test_expiry() -> None:
    text = MAIL._replace(expires_at=NOW + 1)
    assert ask(text) == Go()
    assert ask(text, now=NOW + 1) == Refuse("expiry", "expired at 2026-02-16 11:00 UTC")
    assert isinstance(ask(text._replace(reply=True), now=NOW + 1), Refuse)


def test_a_reply_is_not_given_up_for_a_window_it_ignores() -> None:
    text = REPLY._replace(closes_at=NOW - DAY, expires_at=NOW + HOUR)
    held = Usage(hold_until_at=NOW + 2 * HOUR, hold_reason="away")
    assert ask(text) == Go()
    assert ask(text, held) == Wait(NOW + HOUR, "hold", "away; its expiry ends first")
    assert ask(text._replace(expires_at=None), held) == Wait(NOW + 2 * HOUR, "hold", "away")


def test_the_suppressed_are_refused_before_anything_else_is_asked() -> None:
    usage = Usage(hold_until_at=NOW + DAY)
    for text in (MAIL, REPLY):
        verdict = ask(text._replace(suppressed=True), usage, rate="1/h")
        assert verdict == Refuse("suppression", "recipient is suppressed")
    paused = pacer_of(Standing(AccountState.PAUSED))
    assert isinstance(paused.verdict(NOW, Usage(), MAIL._replace(suppressed=True)), Refuse)


def test_frequency_and_the_recipients_hours_make_one_delivery_wait() -> None:
    text = MAIL._replace(contacted=(NOW - HOUR,))
    assert ask(text, per_recipient="1/day") == Wait(
        NOW + 23 * HOUR, "frequency", "recipient was contacted already (at most 1/day)"
    )
    tokyo = MAIL._replace(recipient_hours=Hours.parse("09:00-17:00 Asia/Tokyo"))
    verdict = ask(tokyo)
    assert isinstance(verdict, Wait) and verdict.gate == "recipient-hours"


# ---------------------------------------------------------------------- replies

IN_THE_WAY: dict[str, tuple[Usage, dict[str, Any], Ask]] = {
    "hours": (Usage(), {"hours": "18:00-19:00 UTC"}, MAIL),
    "window": (Usage(), {}, MAIL._replace(window=Hours.window(18, 19, "UTC"))),
    "closed window": (Usage(), {}, MAIL._replace(closes_at=NOW - 1)),
    "spacing": (Usage(last_at=NOW, gap_us=HOUR), {"spacing": "1h"}, MAIL),
    "batch": (Usage(last_at=NOW, batch_position=2), {"batch": "2 then 1h"}, MAIL),
    "frequency": (Usage(), {"per_recipient": "1/day"}, MAIL._replace(contacted=(NOW - 1,))),
    "recipient": (Usage(), {}, MAIL._replace(recipient_hours=Hours.parse("Sat 09:00-10:00 UTC"))),
    "daily": (Usage(day_at=TODAY_AT, day={"email": 1}), {"daily": {"email": 1}}, MAIL),
    "warm-up": (Usage(day_at=TODAY_AT, day={"email": 1}), {"warmup": "1 +1%/day to 1"}, MAIL),
}
NEVER_IGNORED: dict[str, tuple[Usage, dict[str, Any], Ask]] = {
    "rate": (Usage(tat_at=NOW + HOUR), {"rate": "1/h"}, MAIL),
    "hold": (Usage(hold_until_at=NOW + HOUR), {}, MAIL),
    "suppression": (Usage(), {}, MAIL._replace(suppressed=True)),
    "expiry": (Usage(), {}, MAIL._replace(expires_at=NOW)),
    "not-before": (Usage(), {}, MAIL._replace(not_before_at=NOW + 1)),
}


@pytest.mark.parametrize("name", IN_THE_WAY)
def test_replies_ignore(name: str) -> None:
    usage, settings, text = IN_THE_WAY[name]
    assert ask(text, usage, **settings) != Go()
    assert ask(text._replace(reply=True), usage, **settings) == Go()


@pytest.mark.parametrize("name", NEVER_IGNORED)
def test_replies_never_ignore(name: str) -> None:
    usage, settings, text = NEVER_IGNORED[name]
    assert ask(text._replace(reply=True), usage, **settings) == ask(text, usage, **settings) != Go()


def test_replies_have_a_cap_of_their_own() -> None:
    usage = Usage(day_at=TODAY_AT, day={"reply": 3}, week_at=TODAY_AT, week={"reply": 3})
    assert ask(REPLY, usage, daily={"email": 1}) == Go()
    daily = ask(REPLY, usage, daily={"reply": 3})
    assert daily == Wait(TODAY_AT + DAY, "daily", "daily cap reached (3/3)")
    weekly = ask(REPLY, usage, weekly={"reply": 3})
    assert weekly == Wait(TODAY_AT + 7 * DAY, "weekly", "weekly cap reached (3/3)")


# ---------------------------------------------------------------------- parts and explaining


def test_a_further_part_needs_a_token_and_nothing_else_but_an_account_that_is_not_held() -> None:
    pacer = pacer_of(rate="1/s burst 2", hours="18:00-19:00 UTC", spacing="1h")
    usage = Usage(tat_at=NOW + 3 * SECOND, last_at=NOW, gap_us=HOUR)
    assert pacer.token_at(NOW, usage) == NOW + 2 * SECOND
    assert pacer.token_at(NOW + MINUTE, usage) == NOW + MINUTE
    assert pacer.token_at(NOW, usage._replace(hold_until_at=NOW + HOUR)) == NOW + HOUR
    assert pacer_of().token_at(NOW, usage) == NOW
    assert pacer_of().token_at(NOW, usage._replace(hold_until_at=NOW + HOUR)) == NOW + HOUR


def test_explain_lists_every_gate_with_its_own_instant_and_words() -> None:
    settings: dict[str, Any] = {
        "rate": "1/min",
        "hours": "Mon-Fri 09:00-18:00 UTC",
        "spacing": "5m",
        "batch": "75 then 30s",
        "daily": {"email": 20},
        "weekly": {"email": 0},
        "per_recipient": "1/day",
    }
    pacer = pacer_of(Standing(AccountState.PAUSED, reason="holiday"), **settings)
    usage = Usage(
        tat_at=NOW + MINUTE,
        last_at=NOW,
        gap_us=5 * MINUTE,
        day_at=TODAY_AT,
        day={"email": 20},
        hold_until_at=NOW + 1,
        hold_reason="throttled by the provider: slow down",
    )
    views = pacer.explain(NOW, usage, MAIL)
    every = (*DELIVERY_GATES, *account_gates(pacer.policy, pacer.standing))
    assert sorted(view.gate for view in views) == sorted(gate.name for gate in every)
    shut = {view.gate: (view.opens_at, view.why) for view in views if not view.open}
    assert shut == {
        "status": (None, "account is paused: holiday"),
        "hold": (NOW + 1, "throttled by the provider: slow down"),
        "daily": (TODAY_AT + DAY, "daily cap reached (20/20)"),
        "weekly": (None, "weekly cap 0 leaves no room for 1 send"),
        "spacing": (NOW + 5 * MINUTE, "spacing 5m since the last message"),
        "rate": (NOW + MINUTE, "rate limit 1/min"),
    }
    assert [view.open for view in views] == sorted(view.open for view in views)
    assert all(view.why == "open" and view.opens_at == NOW for view in views if view.open)


def test_explain_agrees_with_the_verdict() -> None:
    for usage, settings, text in [*IN_THE_WAY.values(), *NEVER_IGNORED.values()]:
        pacer = pacer_of(**settings)
        for one in (text, text._replace(reply=True)):
            open_now = all(view.open for view in pacer.explain(NOW, usage, one))
            assert open_now == (pacer.verdict(NOW, usage, one) == Go())
