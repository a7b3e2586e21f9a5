"""The error table against the wire facts, in WATI's own words, and whose fault a refusal was."""

import re
from pathlib import Path
from typing import Any

import pytest

from paceline.core.instants import SECOND, parse_instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.policy import Policy
from paceline.core.retry import Consequence, consequence
from paceline.core.signals import DEFAULT_SIGNALS, Scope
from paceline.engine.ports import Driver, Message
from paceline.providers.answers import Answer
from paceline.providers.wati.errors import BY_STATUS, ERRORS, TABLE, WORDS, read_refusal
from tests.providers.loopback import HTML, Scripted, said
from tests.providers.wati.fake import KEY, SAYS, STANDING, FakeWati, answer_of, error
from tests.providers.wati.stage import LONG, message, play, send, send_file, template

K = OutcomeKind
NOW = parse_instant("2026-11-15T09:00:00Z")
PAGE = Path(__file__).parents[3] / "docs" / "providers" / "wati.md"

# As the wire facts list them.
FACTS = {
    401: K.UNAUTHORISED,
    403: K.UNAUTHORISED,
    404: K.REJECTED,
    409: K.REJECTED,
    429: K.THROTTLED,
    500: K.UNKNOWN,
    502: K.UNKNOWN,
    504: K.UNKNOWN,
}


def read(scripted: Scripted) -> Outcome:
    return read_refusal(Answer(scripted.status, scripted.headers, scripted.body), NOW)


def test_the_table_has_everything_that_is_known() -> None:
    assert {status: TABLE.kind_of(status, "") for status in FACTS} == FACTS
    assert len({row.code for row in ERRORS}) == len(ERRORS), "a code is listed twice"
    assert set(WORDS.values()) <= {row.code for row in ERRORS}
    assert set(SAYS) == {row.code for row in ERRORS}, "every one of them is played"


def test_the_page_shows_the_whole_table() -> None:
    text = PAGE.read_text()
    codes = re.findall(r"^\| (\d{3}) \| `([\w-]+)` \| (\w+) \|", text, re.M)
    assert codes == [(str(row.status), row.code, row.kind.value) for row in ERRORS]
    statuses = re.findall(r"^\| (\d{3}) \|  \| (\w+) \|", text, re.M)
    assert statuses == [(str(status), kind.value) for status, kind in BY_STATUS.items()]


@pytest.mark.parametrize("words", list(WORDS))
@pytest.mark.parametrize(
    "told",
    [
        lambda words: {"result": False, "info": words},
        lambda words: {"success": False, "error": {"message": words}},
        lambda words: {"ok": False, "errors": [words]},
        lambda words: {"success": True, "recipients": [{"errors": [{"message": words}]}]},
    ],
)
def test_its_words_are_known_wherever_they_stand(words: str, told: Any) -> None:
    outcome = read(said(200, told(f"Sorry, {words.upper()}.")))
    assert outcome.code == WORDS[words]
    assert outcome.reason == f"Sorry, {words.upper()}."


@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        ("(#131047) Re-engagement message", "131047", K.REJECTED),
        ("Failed with 131056: pair rate limit", "131056", K.THROTTLED),
        ("(#190) Error validating access token", "190", K.UNAUTHORISED),
        ("(#131031) Account has been locked", "131031", K.BANNED),
        ("Order 13104712 is not there", "refused", K.TRANSIENT),
        ("(#7777777) no such number", "refused", K.TRANSIENT),
        ("Try again in 100 seconds", "refused", K.TRANSIENT),
    ],
)
def test_whatsapp_s_own_numbers_mean_what_they_mean(
    words: str, code: str, kind: OutcomeKind
) -> None:
    outcome = read(said(200, {"result": False, "message": words}))
    assert (outcome.code, outcome.kind, outcome.reason) == (code, kind, words)


@pytest.mark.parametrize("row", list(SAYS))
def test_a_no_is_a_no_for_every_kind_of_message(fake: FakeWati, row: str) -> None:
    fake.templates["order_ready"] = ()
    kinds = {one.code: one.kind for one in ERRORS}
    outcomes = [send(fake, sent, answer_of(row)) for sent in (message(text=LONG), template())]
    for outcome in [*outcomes, send_file(fake, "", answer_of(row))]:
        assert (outcome.kind, outcome.code) == (kinds[row], row)
        assert outcome.reason and not fake.messages


def test_a_gateway_that_gave_up_leaves_a_doubt(fake: FakeWati) -> None:
    for status in (500, 502, 504, 524):
        page = Scripted(status, b"<html>Gateway</html>", HTML, takes=True)
        assert send(fake, message(), page).kind is K.UNKNOWN
    assert send(fake, message(), error(500)).kind is K.UNKNOWN, "it may have taken it by then"


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (403, b"", K.UNAUTHORISED),
        (403, b"{}", K.UNAUTHORISED),
        (403, b"<html>Just a moment</html>", K.TRANSIENT),
        (400, b"", K.TRANSIENT),
        (400, b"{}", K.REJECTED),
        (401, b"", K.UNAUTHORISED),
        (414, b"<html>", K.REJECTED),
    ],
)
def test_wati_may_say_no_without_a_word(status: int, body: bytes, kind: OutcomeKind) -> None:
    assert read(Scripted(status, body)).kind is kind


def test_how_long_to_wait_is_asked_of_wati_first(fake: FakeWati) -> None:
    asked = error(429, headers={"Retry-After": "90"})
    assert send(fake, message(), asked).retry_after_us == 90 * SECOND
    assert send(fake, message(), error(429)).retry_after_us is None


def followed(outcome: Outcome) -> Consequence:
    rule = DEFAULT_SIGNALS.rule_for("wati", "message", outcome)
    return consequence(outcome, retries=0, setbacks=0, policy=Policy(), now=NOW, rule=rule)


def test_too_fast_waits_a_minute_and_a_used_up_plan_until_tomorrow() -> None:
    fast = followed(read(error(429)))
    assert (fast.event, fast.hold_until_at, fast.slows) == ("retry", NOW + 60 * SECOND, True)
    plan = followed(read(answer_of("usage-limit")))
    assert plan.event == "retry" and plan.hold_until_at != fast.hold_until_at


@pytest.mark.parametrize("row", ["132000", "132001"])
def test_a_template_that_nobody_can_be_sent_pauses_its_campaign(row: str) -> None:
    rule = DEFAULT_SIGNALS.rule_for("wati", "message", read(answer_of(row)))
    assert rule is not None and rule.scope is Scope.CAMPAIGN


# ---------------------------------------------------------------------- whose fault it was


def gone(fake: FakeWati, told: Scripted | None, sent: Message) -> Outcome:
    """A message is answered with 404, and then somebody asks how the account stands."""

    async def scene(driver: Driver) -> Outcome:
        fake.script.append(error(404))
        if told is not None:
            fake.answers[STANDING] = told
        return await driver.send(sent)

    return play(fake.settings(), scene)


def test_a_person_without_a_conversation_is_refused(fake: FakeWati) -> None:
    outcome = gone(fake, None, message())
    assert (outcome.kind, outcome.code) == (K.REJECTED, "http-404")


@pytest.mark.parametrize(
    ("told", "kind", "reason"),
    [
        (Scripted(404), K.UNAUTHORISED, "no such tenant"),
        (Scripted(401), K.UNAUTHORISED, "token refused"),
        (said(403, {"message": "Not yours"}), K.UNAUTHORISED, "token refused: Not yours"),
        (error(429), K.TRANSIENT, "Told in words: 404."),
        (Scripted(502, b"<html>", HTML), K.TRANSIENT, "Told in words: 404."),
        (Scripted(drops="read"), K.TRANSIENT, "Told in words: 404."),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_tenant_in_trouble_costs_nobody_their_message(
    fake: FakeWati, told: Scripted, kind: OutcomeKind, reason: str
) -> None:
    outcome = gone(fake, told, message())
    assert outcome.kind is kind and reason in outcome.reason


def test_a_question_takes_no_longer_than_it_may(
    fake: FakeWati, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message was refused already; it must not fall into doubt because nobody says why."""
    monkeypatch.setattr("paceline.providers.wati.driver.ASK_WITHIN_S", 0.2)
    assert gone(fake, Scripted(hangs=True), message()).kind is K.TRANSIENT


def test_a_token_in_a_refusal_is_not_written_down(fake: FakeWati) -> None:
    outcome = send(fake, message(), said(200, {"result": False, "info": f"odd {KEY}"}))
    assert outcome.reason == "odd (secret)"
