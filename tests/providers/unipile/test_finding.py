"""What became of a message without an answer: found where it is, and never said to be absent."""

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND, parse_instant
from paceline.core.outcome import OutcomeKind
from paceline.engine.ports import Driver, Found, Message
from paceline.providers.unipile.finding import MOST_PAGES, PAGE, SLACK_US
from tests.providers.loopback import HTML, Scripted
from tests.providers.remote import patience
from tests.providers.unipile.fake import FakeUnipile, error
from tests.providers.unipile.stage import kind_for, letter, message, play

AT = parse_instant("2026-11-15T09:00:00Z")
UNCLEAR = Found("unclear")
ALL = [
    message(),
    message(target="chat:77"),
    message("inmail", subject="An idea"),
    message("connection_request"),
    letter(),
]


def lose(fake: FakeUnipile, sent: Message, *, takes: bool = True) -> None:
    """Send something whose answer is lost."""

    async def scene(driver: Driver) -> None:
        fake.script.append(error(504, "request_timeout", takes=takes))
        assert (await driver.send(sent)).kind is OutcomeKind.UNKNOWN

    fake.now = lambda: AT
    play(fake.settings(kind_for(sent)), scene)


def find(fake: FakeUnipile, sent: Message, since_at: int = AT) -> Found:
    return play(
        fake.settings(kind_for(sent)), lambda driver: driver.find(sent, since_at), patience(fake)
    )


@pytest.mark.parametrize("sent", ALL, ids=lambda sent: f"{sent.action} to {sent.target}")
def test_what_went_out_is_found(fake: FakeUnipile, sent: Message) -> None:
    lose(fake, sent)
    assert find(fake, sent) == Found("present", "id-1")


@pytest.mark.parametrize("sent", ALL, ids=lambda sent: f"{sent.action} to {sent.target}")
def test_what_did_not_go_out_is_never_called_absent(fake: FakeUnipile, sent: Message) -> None:
    lose(fake, sent, takes=False)
    assert find(fake, sent) == UNCLEAR


@pytest.mark.parametrize("sent", ALL, ids=lambda sent: f"{sent.action} to {sent.target}")
def test_lists_lag_behind(fake: FakeUnipile, sent: Message) -> None:
    lose(fake, sent)
    fake.lags = True
    assert find(fake, sent) == UNCLEAR
    fake.lags = False
    assert find(fake, sent).finding == "present"


@pytest.mark.parametrize("sent", ALL, ids=lambda sent: f"{sent.action} to {sent.target}")
@pytest.mark.parametrize(
    "scripted",
    [
        error(401, "disconnected_account"),
        error(429, "too_many_requests"),
        Scripted(502, b"<html>", HTML),
        Scripted(200, b"nonsense"),
        Scripted(200, b'{"items": {"a": 1}, "cursor": 7}'),
        Scripted(200, b'{"items": [null, 5, "x", {"id": null}, {"headers": [1, {"name": 2}]}]}'),
        Scripted(200, b'{"items": [], "cursor": "again"}'),
        Scripted(hangs=True),
        Scripted(drops="read"),
    ],
    ids=["refused", "throttled", "html", "nonsense", "shape", "odd", "endless", "hangs", "drops"],
)
def test_not_being_told_is_unclear(fake: FakeUnipile, sent: Message, scripted: Scripted) -> None:
    lose(fake, sent)
    for path in (
        "/users/invite/sent",
        "/emails",
        "/chats/77/messages",
        "/chats/of-ACoAA-anna/messages",
    ):
        fake.answers[path] = scripted
    before = len(fake.calls)
    assert find(fake, sent) == UNCLEAR
    assert len(fake.calls) - before <= MOST_PAGES + 2


@pytest.mark.parametrize("sent", [message(), message("inmail"), message(target="chat:77")])
def test_other_words_are_another_message(fake: FakeUnipile, sent: Message) -> None:
    lose(fake, sent)
    other = sent._replace(part=sent.part._replace(text="Hello Bob"))
    assert find(fake, other) == UNCLEAR
    spaced = sent._replace(part=sent.part._replace(text=" Hello\r\nAnna "))
    assert find(fake, spaced).finding == "present", "what is around the words may change on its way"


@pytest.mark.parametrize(
    ("age_us", "finding"),
    [(0, "present"), (SLACK_US, "present"), (SLACK_US + SECOND, "unclear"), (24 * HOUR, "unclear")],
)
def test_the_same_words_from_earlier_are_another_message(
    fake: FakeUnipile, age_us: int, finding: str
) -> None:
    """As when the same person was written to last month."""
    lose(fake, message())
    assert find(fake, message(), AT + age_us).finding == finding


@pytest.mark.parametrize(
    "shown",
    [
        {"is_sender": 0},
        {"is_sender": None},
        {"timestamp": None},
        {"timestamp": "just now"},
        {"timestamp": "2026-11-15T08:00:00.000Z"},
        {"text": None},
    ],
    ids=str,
)
def test_what_the_other_side_wrote_is_not_ours(fake: FakeUnipile, shown: dict[str, object]) -> None:
    lose(fake, message())
    fake.sent[0]["shown"] = shown
    assert find(fake, message()) == UNCLEAR


def test_an_email_is_known_by_its_key_alone(fake: FakeUnipile) -> None:
    lose(fake, letter())
    assert find(fake, letter(key="home-8-0")) == UNCLEAR, "as like as two eggs, but not the same"
    assert find(fake, letter(text="changed since")).finding == "present"
    fake.sent[0]["headers"][0]["name"] = "x-paceline-key"
    assert find(fake, letter()).finding == "present"
    query = fake.calls[-1].query
    assert query["after"] == "2026-11-15T08:59:30.000Z"


def test_an_invitation_is_found_by_either_name(fake: FakeUnipile) -> None:
    lose(fake, message("connection_request"))
    body = b'{"items": [{"id": "9", "invited_user_id": "b", "invited_user_public_id": "anna"}]}'
    fake.answers["/users/invite/sent"] = Scripted(200, body)
    assert find(fake, message("connection_request", "anna")) == Found("present", "9")
    assert find(fake, message("connection_request", "carl")) == UNCLEAR


def test_lists_are_read_page_by_page_and_not_for_ever(fake: FakeUnipile) -> None:
    def invited(number: int) -> dict[str, object]:
        return {"kind": "invitation", "id": f"i-{number}", "target": f"ACoAA-{number}"}

    fake.sent = [invited(number) for number in range(MOST_PAGES * PAGE + 1)]
    assert find(fake, message("connection_request", "ACoAA-450")) == Found("present", "i-450")
    assert [call.query.get("cursor") for call in fake.calls[-5:]] == [
        None, "100", "200", "300", "400",
    ]  # fmt: skip
    beyond = message("connection_request", f"ACoAA-{MOST_PAGES * PAGE}")
    assert find(fake, beyond) == UNCLEAR


def test_instants_are_asked_for_to_the_millisecond(fake: FakeUnipile) -> None:
    lose(fake, letter())
    find(fake, letter(), AT + MINUTE + 123_456)
    assert fake.calls[-1].query["after"] == "2026-11-15T09:00:30.123Z"
