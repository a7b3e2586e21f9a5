"""The error table against the wire facts, and what each code leads to in the end."""

import re
from pathlib import Path

import pytest

from paceline.core.instants import DAY, MINUTE, SECOND, parse_instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.policy import Policy
from paceline.core.retry import Consequence, consequence
from paceline.core.signals import DEFAULT_SIGNALS, Scope
from paceline.engine.ports import Driver
from paceline.providers.answers import Answer
from paceline.providers.whatsapp_cloud.errors import (
    BY_STATUS,
    ERRORS,
    RANGES,
    TABLE,
    kind_of,
    read_refusal,
)
from tests.providers.loopback import HTML, Scripted, said
from tests.providers.whatsapp_cloud.fake import KEY, NUMBER, FakeMeta, error, no_such
from tests.providers.whatsapp_cloud.stage import file, kept, message, play, send

K = OutcomeKind
NOW = parse_instant("2026-11-15T09:00:00Z")
PAGE = Path(__file__).parents[3] / "docs" / "providers" / "whatsapp-cloud.md"

AUTHORISATION = {0, 3, 10, 190, *range(200, 300)}
THROTTLING = {4, 80007, 130429, 131056}
BACK_OFF = {131048, 131049, 131064, 368, 131031}
PERMANENT = {100, 131008, 131009, 131026, 131047, 131051, 131030, *range(132000, 132100)}
PASSING = {2, 131000, 131016}

# Every code that the published table of an independent client lists for sending.
PUBLISHED = {
    0, 3, 10, 190, 4, 80007, 130429, 131048, 131056, 133016, 131064, 368, 131031, 130497, 130472,
    131026, 131047, 131051, 131052, 131053, 131030, 131009, 131008, 132000, 132001, 132005, 132007,
    132008, 132012, 132015, 132016, 132068, 132069, 135000, 131000, 131005, 131016, 131021, 131042,
    131045, 131057, 131050, 137000, 131062, 131063, 131037, 131049,
}  # fmt: skip


def kinds(codes: set[int]) -> set[OutcomeKind]:
    return {kind_of(400, str(code)) for code in codes}


def test_the_table_says_what_the_wire_facts_say() -> None:
    assert kinds(AUTHORISATION) == {K.UNAUTHORISED}
    assert kinds(THROTTLING) == {K.THROTTLED}
    assert kinds(PERMANENT) == {K.REJECTED}
    assert kinds(PASSING) == {K.UNAVAILABLE, K.TRANSIENT}
    assert kinds(BACK_OFF) == {K.EXHAUSTED, K.TRANSIENT, K.BANNED}


def test_every_published_code_has_its_row() -> None:
    assert {str(code) for code in PUBLISHED} <= set(TABLE.by_code)
    assert len(TABLE.by_code) == len(ERRORS), "a code is listed twice"


def test_a_code_that_nobody_knows_is_tried_again() -> None:
    """Below 500 it was refused, so nothing went out; from there on nobody can tell."""
    assert kind_of(400, "999999") is kind_of(404, "131999") is K.TRANSIENT
    assert kind_of(500, "999999") is K.UNKNOWN
    assert kind_of(400, "300") is kind_of(400, "199") is kind_of(400, "133000") is K.TRANSIENT


def test_the_page_shows_the_whole_table() -> None:
    text = PAGE.read_text()
    codes = re.findall(r"^\| (\d{3}) \| `(\d+)` \| (\w+) \|", text, re.M)
    assert codes == [(str(row.status), row.code, row.kind.value) for row in ERRORS]
    ranges = re.findall(r"^\|  \| `(\d+)`–`(\d+)` \| (\w+) \|", text, re.M)
    assert ranges == [(str(one.first), str(one.last), one.kind.value) for one in RANGES]
    statuses = re.findall(r"^\| (\d{3}) \|  \| (\w+) \|", text, re.M)
    assert statuses == [(str(status), kind.value) for status, kind in BY_STATUS.items()]


# ---------------------------------------------------------------------- what follows from a code


def follows(code: int, status: int = 400, retries: int = 0) -> Consequence:
    """What the engine makes of this answer, with the table of signals as it is by default."""
    outcome = read_refusal(Answer(status, {}, error(code, status).body), NOW)
    rule = DEFAULT_SIGNALS.rule_for("whatsapp_cloud", "message", outcome)
    return consequence(outcome, retries=retries, setbacks=0, policy=Policy(), now=NOW, rule=rule)


@pytest.mark.parametrize("code", sorted(THROTTLING - {131056}))
def test_too_fast_holds_the_account_and_slows_it(code: int) -> None:
    result = follows(code)
    assert (result.event, result.hold_until_at, result.slows) == ("retry", NOW + MINUTE, True)


def test_too_many_to_one_person_waits_six_seconds_and_nobody_else_waits() -> None:
    result = follows(131056)
    assert result == Consequence("retry", NOW + 6 * SECOND, result.reason)
    assert not result.slows and result.hold_until_at is None


@pytest.mark.parametrize("code", [131048, 131064])
def test_a_number_in_disrepute_leaves_strangers_alone_for_a_day(code: int) -> None:
    result = follows(code)
    assert result.scope is Scope.NEW_CONTACTS and result.hold_until_at == NOW + DAY
    assert result.ramp is not None and result.account_event is None
    assert (result.event, result.climbs) == ("retry", False)
    assert result.due_at is not None and result.due_at >= parse_instant("2026-11-16T00:00:00Z")


@pytest.mark.parametrize(("code", "status"), [(368, 403), (131031, 403)])
def test_a_number_that_is_blocked_is_suspended(code: int, status: int) -> None:
    result = follows(code, status)
    assert (result.event, result.account_event) == ("retry", "suspend")


@pytest.mark.parametrize("code", [0, 190, 10, 299, 131042, 133010])
def test_whoever_is_not_let_in_is_suspended_and_nobody_is_given_up(code: int) -> None:
    result = follows(code)
    assert (result.event, result.account_event) == ("retry", "suspend")


def test_somebody_who_has_had_enough_is_tried_again_after_days_and_not_for_ever() -> None:
    assert follows(131049).due_at == NOW + DAY
    assert follows(131049, retries=2).due_at == NOW + DAY
    last = follows(131049, retries=3)
    assert last.event == "fail" and "(after 3 retries)" in last.reason
    assert follows(131049).hold_until_at is None, "nobody else waits"


@pytest.mark.parametrize("code", [2, 131016, 131057])
def test_an_outage_uses_up_nobody_s_retries(code: int) -> None:
    result = follows(code, 503)
    assert (result.event, result.climbs) == ("retry", False)
    assert result.hold_until_at == NOW + 20 * SECOND


@pytest.mark.parametrize("code", [131047, 131026, 131050, 132005, 100])
def test_one_person_who_cannot_be_reached_fails_alone(code: int) -> None:
    result = follows(code)
    assert (result.event, result.suppresses, result.pauses_run) == ("fail", False, False)
    assert result.account_event is None and result.hold_until_at is None


@pytest.mark.parametrize("code", [131063, 132000, 132001, 132015, 132016])
def test_a_template_that_nobody_can_be_sent_pauses_the_campaign(code: int) -> None:
    """It would cost the campaign all its people, one after the other."""
    result = follows(code)
    assert result.event == "fail" and result.pauses_run


# ---------------------------------------------------------------------- on the wire


def test_the_code_decides_and_not_the_status(fake: FakeMeta) -> None:
    assert send(fake, message(), error(130429, 500)).kind is K.THROTTLED
    assert send(fake, message(), error(131047, 500)).kind is K.REJECTED
    assert send(fake, message(), error(190, 400)).kind is K.UNAUTHORISED
    worded = said(400, {"error": {"code": "131056", "message": "x"}})
    assert send(fake, message(), worded).retry_after_us == 6 * SECOND


def test_the_words_are_kept_and_each_said_once(fake: FakeMeta) -> None:
    outcome = send(fake, message(), error(131047))
    assert (outcome.kind, outcome.code) == (K.REJECTED, "131047")
    assert outcome.reason == "(#131047) Told in words: The details of 131047."
    twice = error(131026, message="Undeliverable", error_data={"details": "Undeliverable"})
    assert send(fake, message(), twice).reason == "Undeliverable"
    assert send(fake, message(), error(131026, message=None, error_data=7)).reason == "131026"


def test_somebody_who_has_not_written_lately_needs_a_template(fake: FakeMeta) -> None:
    """Refused before a run, and by Meta as well: it fails with its reason, and is not tried on."""
    fake.talking = set()
    outcome = send(fake, message())
    assert (outcome.kind, outcome.code) == (K.REJECTED, "131047")
    assert "Re-engagement" in outcome.reason and not fake.messages
    fake.talking = {message().target}
    assert send(fake, message()).kind is K.ACCEPTED


def test_a_number_that_is_gone_costs_nobody_their_message(fake: FakeMeta) -> None:
    async def scene(driver: Driver) -> Outcome:
        fake.number = None
        return await driver.send(message())

    outcome = play(fake.settings(), scene)
    assert (outcome.kind, outcome.code) == (K.UNAUTHORISED, "100")
    assert "does not exist" in outcome.reason


def test_a_token_that_meta_repeats_is_not_written_down(fake: FakeMeta) -> None:
    echoed = error(190, 401, message=f"Malformed access token {KEY}")
    assert send(fake, message(), echoed).reason.startswith("Malformed access token (secret)")


def test_a_gateway_that_gave_up_leaves_a_doubt(fake: FakeMeta) -> None:
    for status in (500, 502, 504, 524):
        page = Scripted(status, b"<html>Gateway</html>", HTML, takes=True)
        assert send(fake, message(), page).kind is K.UNKNOWN


@pytest.mark.parametrize(
    "odd", [{"error": "no"}, {"error": {}}, {"error": {"code": True}}, {"error": {"code": -5}}, {}]
)
def test_an_error_that_is_none_refuses_nobody(fake: FakeMeta, odd: object) -> None:
    assert send(fake, message(), said(400, odd)).kind is K.TRANSIENT


def test_how_long_to_wait_is_asked_of_meta_first(fake: FakeMeta) -> None:
    asked = error(130429, 429, headers={"Retry-After": "90"})
    assert send(fake, message(), asked).retry_after_us == 90 * SECOND
    asked = error(131056, headers={"Retry-After": "9"})
    assert send(fake, message(), asked).retry_after_us == 9 * SECOND


# ---------------------------------------------------------------------- files that are gone


@pytest.mark.parametrize("code", [131052, 131053])
def test_a_file_that_meta_cannot_use_is_uploaded_again(fake: FakeMeta, code: int) -> None:
    outcome = send(fake, file(kept(fake)), error(code))
    assert outcome.handle_gone and f"(#{code})" in outcome.reason
    assert send(fake, message(), error(code)).code == str(code), "there was no file"


@pytest.mark.parametrize("code", [100, 131008, 131009])
def test_a_file_that_is_gone_is_found_out_by_asking(fake: FakeMeta, code: int) -> None:
    handle = kept(fake)
    assert send(fake, file(handle), error(code)).code == str(code), "it is there"
    fake.files.clear()
    assert send(fake, file(handle), error(code)).handle_gone
    asked = [
        call for call in fake.calls if call.method == "GET" and "phone_number_id" in call.query
    ]
    assert [call.query for call in asked] == [{"phone_number_id": NUMBER}] * 2
    assert send(fake, file(handle), error(131026)).code == "131026", "that is about the person"


def test_what_cannot_be_found_out_is_tried_again(fake: FakeMeta) -> None:
    handle = kept(fake)
    (media_id,) = fake.files
    unclear = (
        Scripted(502, b"<html>", HTML),
        Scripted(drops="read"),
        Scripted(200, b"<html>", HTML),
        error(190, 401),
    )
    for told in unclear:
        fake.answers[f"/{media_id}"] = told
        outcome = send(fake, file(handle), error(100))
        assert (outcome.kind, outcome.code) == (K.TRANSIENT, "100")
    fake.answers[f"/{media_id}"] = no_such(media_id)
    assert send(fake, file(handle), error(100)).handle_gone


def test_a_question_takes_no_longer_than_it_may(
    fake: FakeMeta, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message was refused already; it must not fall into doubt because nobody says why."""
    monkeypatch.setattr("paceline.providers.whatsapp_cloud.driver.ASK_WITHIN_S", 0.2)
    handle = kept(fake)
    (media_id,) = fake.files
    fake.answers[f"/{media_id}"] = Scripted(hangs=True)
    assert send(fake, file(handle), error(100)).kind is K.TRANSIENT
