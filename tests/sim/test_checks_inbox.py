"""The checkers of what comes back, each by itself: what it must report, and what it must not."""

from collections.abc import Sequence
from typing import Any

import pytest

from paceline.core.address import entries_for
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.states import DeliveryState
from paceline.engine.ports import Alert, Event, Inbound, Returned
from paceline.engine.ports.audit import Watched
from paceline.engine.ports.inbox import Received
from paceline.sim.checks import Evidence
from paceline.sim.checks.messages import UNDER_WAY_US
from paceline.sim.correspondence import Correspondence
from paceline.sim.mailboxes import AWAY, REFUSED
from paceline.sim.post import Answered, Box, Click, Mail, MailKind
from paceline.sim.register import Entry
from paceline.sim.witness import Heard
from tests.sim.evidence import DELIVERY, NOON, broken, call, effect, evidence, replace

ANNA = "anna@house.example"
LATER = NOON + HOUR
READER = "process-0"

BOUNCED = replace(DELIVERY, target=ANNA, state=DeliveryState.BOUNCED)
SENT = replace(DELIVERY, target=ANNA)
EVENT = Event(1, LATER, "delivery.returned", "came back", delivery_id=1)
TOLD = Alert(1, "k", "account.complaints", "spam", (), 1, LATER, LATER, None, None, account_id=1)


def mail(kind: MailKind, number: int = 1, at: int = LATER) -> Mail:
    if kind in ("answer", "note"):
        news: Any = Inbound(
            "m1", ANNA, ANNA, "yes", at, answers="sim-1-0", automatic=kind == "note"
        )
    else:
        news = Returned("bounced", ANNA, "no", 0, "5.1.1", "sim-1-0")
    return Mail(number, at, kind, ANNA, "sim-1-0", news)


def entry(cursor: int | str = 0, **changes: Any) -> Entry:
    """A commit of whoever reads the mailbox."""
    named = {name: changes.pop(name) for name in list(changes) if name in Watched._fields}
    watched = Watched(str(cursor), 1, held=True, problem="")._replace(**named)
    given = {"at": LATER, "by": READER, "accounts": {1: "active"}, **changes}
    return Entry(watches={1: watched}, **given)


def world(
    entries: Sequence[Entry],
    *pieces: Mail,
    delivery: Any = BOUNCED,
    events: Sequence[Event] = (),
    clicks: Sequence[Click] = (),
    answered: Sequence[Answered] = (),
    **changes: Any,
) -> Evidence:
    box = Box(list(pieces), list(answered))
    seen = call(1, target=ANNA)
    given = {"deliveries": [delivery], **changes}
    return evidence(seen, post=Correspondence({"lane-0": box}, entries, clicks, events), **given)


BEGUN = entry(0, at=NOON)
TAKEN = entry(1, suppressed={ANNA: "bounce"}, bounced=(1,))


def test_a_letter_that_came_back_and_was_taken_in() -> None:
    assert broken(world([BEGUN, TAKEN], mail("hard"), events=[EVENT])) == set()


# ---------------------------------------------------------------------- never unheard


@pytest.mark.parametrize(
    "forgotten", [{"bounced": ()}, {"suppressed": {}}, {"suppressed": {"@other.example": "bounce"}}]
)
def test_a_letter_that_came_back_and_nothing_followed(forgotten: dict[str, Any]) -> None:
    kept = replace(TAKEN, **forgotten)
    assert "never unheard" in broken(world([BEGUN, kept], mail("hard"), delivery=SENT))


def test_what_follows_a_commit_later_is_too_late() -> None:
    read = entry(1)
    later = replace(TAKEN, at=LATER + SECOND)
    found = broken(world([BEGUN, read, later], mail("hard"), events=[EVENT]))
    assert found == {"never unheard"}


def test_somebody_whose_whole_domain_is_suppressed_need_not_be_so_again() -> None:
    domain = entry(0, suppressed={entries_for(ANNA)[1]: "operator"}, by=None)
    taken = replace(TAKEN, suppressed={})
    assert broken(world([BEGUN, domain, taken], mail("hard"), events=[EVENT])) == set()


def test_what_lay_there_before_anybody_looked_is_no_news() -> None:
    assert broken(world([entry(1)], mail("hard"), delivery=SENT)) == set()


def test_mail_that_nobody_has_read() -> None:
    assert broken(world([BEGUN], mail("delayed"), delivery=SENT)) == {"never unheard"}
    assert broken(world([BEGUN, entry(1)], mail("delayed"), delivery=SENT)) == set()


def test_a_mailbox_that_was_read_by_two() -> None:
    pieces = (mail("delayed"), mail("delayed", 2))
    taken = entry(1, generation=2, by="process-1")
    stale = entry(2, generation=2)
    assert broken(world([BEGUN, taken, stale], *pieces, delivery=SENT)) == {"never unheard"}
    heir = entry(2, generation=2, by="process-1")
    assert broken(world([BEGUN, taken, heir], *pieces, delivery=SENT)) == set()


def test_a_mailbox_that_was_read_backwards() -> None:
    pieces = (mail("delayed"), mail("delayed", 2))
    back = [BEGUN, entry(2), entry(1), entry(2)]
    assert broken(world(back, *pieces, delivery=SENT)) == {"never unheard"}


def kept(**changes: Any) -> Received:
    row = Received(1, 1, "m1", ANNA, ANNA, "", "yes", "text", False, False, 1, LATER, LATER)
    return row._replace(**changes)


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ((kept(),), set()),
        ((), {"never unheard"}),
        ((kept(delivery_id=None),), {"never unheard"}),
        ((kept(automatic=True),), {"never unheard"}),
        ((kept(), kept(provider_id="m2")), {"never misled"}),
    ],
)
def test_an_answer_is_kept_as_what_it_is(rows: tuple[Received, ...], found: set[str]) -> None:
    taken = entry(1, received=rows)
    assert broken(world([BEGUN, taken], mail("answer"), delivery=SENT)) == found


def test_whoever_was_told_to_be_unsubscribed() -> None:
    click = Click(NOON, ANNA, "link", answered_at=LATER)
    event = replace(EVENT, kind="recipient.unsubscribed")
    done = entry(0, suppressed={ANNA: "unsubscribe"}, at=LATER)
    given = {"delivery": SENT, "clicks": [click], "events": [event]}
    assert broken(world([BEGUN, done], **given)) == set()
    late = replace(done, at=LATER + 1)
    assert broken(world([BEGUN, late], **given)) == {"never unheard"}


# ---------------------------------------------------------------------- never misled


def test_a_bounce_of_which_nobody_knows() -> None:
    made_up = replace(mail("hard"), kind="forged")
    found = broken(world([BEGUN, TAKEN], made_up, events=[EVENT]))
    assert found == {"never misled"}


def test_a_bounce_that_is_known_before_it_came() -> None:
    early = [BEGUN, replace(TAKEN, at=LATER - 1)]
    assert broken(world(early, mail("hard"), events=[EVENT])) == {"never misled"}


def test_a_soft_bounce_is_no_reason_to_suppress_anybody() -> None:
    assert "never misled" in broken(world([BEGUN, TAKEN], mail("soft"), events=[EVENT]))
    soft = replace(TAKEN, suppressed={})
    assert broken(world([BEGUN, soft], mail("soft"), events=[EVENT])) == set()
    by_hand = replace(TAKEN, suppressed={ANNA: "operator"})
    assert broken(world([BEGUN, by_hand], mail("soft"), events=[EVENT])) == set()


def test_a_bounce_at_once_needs_no_mail() -> None:
    refused = effect(call(1, target=ANNA), accepted=False, answer="bounced")
    assert broken(world([BEGUN, replace(TAKEN, watches={})], effects=[refused])) == set()


@pytest.mark.parametrize("times", [0, 2])
def test_a_bounce_that_is_not_told_once(times: int) -> None:
    found = broken(world([BEGUN, TAKEN], mail("hard"), events=[EVENT] * times))
    assert found == {"never misled"}


@pytest.mark.parametrize(("count", "found"), [(1, set()), (2, {"never misled"})])
def test_a_complaint_counts_once(count: int, found: set[str]) -> None:
    told = replace(TOLD, count=count)
    taken = entry(2, suppressed={ANNA: "complaint"}, alerts={1: told})
    events = [replace(EVENT, kind="recipient.complained")]
    pieces = (mail("complaint"), mail("complaint", 2))
    assert broken(world([BEGUN, taken], *pieces, delivery=SENT, events=events)) == found


def test_whoever_was_only_asked_to_come_back() -> None:
    grey = effect(call(1, target=ANNA), accepted=False, answer="transient", code="greylisted")
    failed = replace(SENT, state=DeliveryState.FAILED)
    assert broken(world([BEGUN], delivery=failed, effects=[grey])) == {"never misled"}
    waiting = replace(SENT, state=DeliveryState.SKIPPED)
    assert broken(world([BEGUN], delivery=waiting, effects=[grey])) == set()
    refused = replace(grey, answer="rejected", code="5.7.1")
    assert broken(world([BEGUN], delivery=failed, effects=[refused])) == set()


# ---------------------------------------------------------------------- what was promised before


def test_a_greylisted_letter_waits_and_keeps_nobody_waiting() -> None:
    heard = Heard(NOON, NOON, READER, "lane-0", "sim-1-0", 1, 5 * MINUTE, alone=True)
    grey = effect(call(1), accepted=False, answer="transient")
    soon, other = call(1, MINUTE), call(2, MINUTE)
    early = evidence(call(1), soon, heard=[heard], effects=[grey, effect(soon)])
    assert broken(early) == {"never impatient"}
    assert broken(evidence(call(1), other, heard=[heard])) == set()


def test_what_came_back_is_not_followed_up() -> None:
    second = replace(SENT, id=2, step=2)
    soft = replace(TAKEN, suppressed={})
    given = {
        "delivery": BOUNCED,
        "deliveries": [BOUNCED, second],
        "parts": {(1, 1): 1, (1, 2): 1},
        "waits": {(1, 2): MINUTE},
        "planned": 2,
        "events": [EVENT],
    }
    for after_us, found in ((UNDER_WAY_US, set()), (UNDER_WAY_US + 1, {"never ahead of its step"})):
        calls = [call(1, target=ANNA), call(2, HOUR + after_us, target=ANNA)]
        followed = replace(
            world([BEGUN, soft], mail("soft"), **given),
            calls=calls,
            effects=[effect(one) for one in calls],
        )
        assert broken(followed) == found


def busy(letters: int, bounced: int, state: str, alerts: dict[int, Alert]) -> Evidence:
    """So many letters in an hour, of which so many have come back in one commit."""
    calls = [call(number, number * SECOND, target=ANNA) for number in range(1, letters + 1)]
    back = tuple(range(1, bounced + 1))
    pieces = [
        replace(mail("soft", number), key=f"sim-{number}-0", number=number) for number in back
    ]
    taken = entry(bounced, bounced=back, accounts={1: state}, alerts=alerts)
    given = evidence(
        *calls,
        policy={"bounce_pause": "10%", "zone": "UTC"},
        post=Correspondence({"lane-0": Box(pieces)}, [BEGUN, taken], [], [EVENT] * bounced),
    )
    deliveries = [
        replace(one, state=DeliveryState.BOUNCED) if one.id in back else one
        for one in given.deliveries
    ]
    return replace(given, deliveries=deliveries)


PAUSED = {1: replace(TOLD, kind="account.bounces")}


@pytest.mark.parametrize(
    ("letters", "bounced", "state", "found"),
    [
        (30, 3, "active", set()),
        (30, 4, "active", {"never careless"}),
        (19, 4, "active", set()),
        (30, 4, "paused", set()),
        (30, 3, "paused", {"never careless"}),
        (19, 4, "paused", {"never careless"}),
    ],
)
def test_too_many_that_came_back_in_a_day(
    letters: int, bounced: int, state: str, found: set[str]
) -> None:
    alerts = PAUSED if state == "paused" else {}
    assert broken(busy(letters, bounced, state, alerts)) == found


def test_an_account_that_is_paused_for_its_bounces_is_told_of() -> None:
    assert broken(busy(30, 4, "paused", {})) == {"never untold"}


def test_nothing_starts_from_an_account_that_was_paused() -> None:
    paused = replace(BEGUN, accounts={1: "paused"}, at=NOON - UNDER_WAY_US - 1)
    active = replace(BEGUN, at=LATER)
    assert broken(world([paused, active], delivery=SENT)) == {"never careless"}
    under_way = replace(paused, at=NOON - UNDER_WAY_US)
    assert broken(world([under_way, active], delivery=SENT)) == set()


# ---------------------------------------------------------------------- never untold


FAILING = Alert(7, "m", "mailbox.failing", "it fails", (), 1, NOON, NOON, None, None, account_id=1)
OPEN = {7: FAILING}
OVER = {7: replace(FAILING, cleared_at=LATER)}
GOOD = entry(0, at=NOON + HOUR)


def failing(problem: str, after_us: int, alerts: dict[int, Alert], **spread: Any) -> Evidence:
    """A mailbox that could not be read twice, so long apart, and can be after that."""
    at = NOON + after_us
    entries = [
        BEGUN,
        entry(0, problem=problem, held=False, at=NOON, alerts=OPEN if problem == REFUSED else {}),
        entry(0, problem=problem, generation=2, at=at, alerts=OPEN if problem == REFUSED else {}),
        entry(0, problem=problem, generation=2, held=False, at=at, alerts=alerts),
        entry(0, generation=3, at=at + 1, alerts=OVER),
    ]
    told = [Answered(NOON, READER, problem), Answered(at, READER, problem)]
    return world(entries, delivery=SENT, answered=told, ended_at=NOON + DAY, **spread)


@pytest.mark.parametrize(
    ("problem", "after_us", "alerts", "found"),
    [
        (AWAY, 15 * MINUTE - 1, {}, set()),
        (AWAY, 15 * MINUTE, {}, {"never untold"}),
        (AWAY, 15 * MINUTE, OPEN, set()),
        (AWAY, 15 * MINUTE - 1, OPEN, {"never untold"}),
        (REFUSED, MINUTE, OPEN, set()),
        (REFUSED, MINUTE, {}, {"never untold"}),
    ],
)
def test_a_mailbox_that_cannot_be_read(
    problem: str, after_us: int, alerts: dict[int, Alert], found: set[str]
) -> None:
    assert broken(failing(problem, after_us, alerts)) == found


def test_nobody_outside_knows_how_late_it_is_by_a_wrong_clock() -> None:
    assert broken(failing(AWAY, 15 * MINUTE, {}, spread_us=MINUTE)) == set()
    assert broken(failing(AWAY, 16 * MINUTE, {}, spread_us=MINUTE)) == {"never untold"}


def test_whoever_could_not_write_down_that_it_was_read_has_nothing_to_tell() -> None:
    given = failing(AWAY, HOUR, {})
    assert given.post is not None
    given.post.boxes["lane-0"].answered.append(Answered(NOON + HOUR, READER, ""))
    assert broken(given) == set()


def test_a_mailbox_that_can_be_read_again_is_over_it() -> None:
    stays = [BEGUN, entry(0, at=LATER, generation=2, alerts=OPEN)]
    assert broken(world(stays, delivery=SENT)) == {"never untold"}
    fails = [BEGUN, entry(0, problem=REFUSED, held=False, alerts=OPEN)]
    assert broken(world(fails, delivery=SENT)) == {"never untold"}, "to the end"
