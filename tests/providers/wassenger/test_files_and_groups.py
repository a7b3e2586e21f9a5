"""Files that are handed over once, and the groups a number is in."""

from typing import Any

import pytest

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import DAY, MINUTE, SECOND, iso, parse_instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.ports import Group, Media, Uploaded
from paceline.providers.wassenger.groups import PAGE
from tests.providers.loopback import HTML, Scripted, said
from tests.providers.remote import CLOCK
from tests.providers.wassenger.fake import DEVICE, GROUP, OWN, FakeWassenger, error
from tests.providers.wassenger.stage import play

K = OutcomeKind
PAPER = Media("a" * 64, "offer “1”.pdf", "application/pdf", 9)
CONTENT = b"\r\n--%PDF\x00\xff\r\n"


def upload(fake: FakeWassenger, content: bytes = CONTENT, **settings: Any) -> Uploaded | Outcome:
    fake.now = CLOCK.now
    return play(fake.settings(**settings), lambda driver: driver.upload(PAPER, content))


@pytest.mark.parametrize("wraps", [True, False])
def test_a_file_is_a_form_with_our_name_and_its_time(fake: FakeWassenger, wraps: bool) -> None:
    fake.wraps = wraps
    before_at = CLOCK.now()
    uploaded = upload(fake, keep_files="7d")
    (call,) = fake.uploaded()
    assert call.query == {"reference": PAPER.id, "expiration": "7d"}
    (kept,) = fake.files.values()
    assert (kept["filename"], kept["mime"], kept["content"]) == (PAPER.name, PAPER.mime, CONTENT)
    assert isinstance(uploaded, Uploaded) and uploaded.handle == kept["id"]
    assert uploaded.expires_at is not None
    assert before_at + 7 * DAY <= uploaded.expires_at <= CLOCK.now() + 7 * DAY


def test_what_the_answer_says_of_its_time_counts_and_else_what_was_asked(
    fake: FakeWassenger,
) -> None:
    fake.uploads.append(said(201, [{"id": "f1", "expiresAt": "2030-01-01T00:00:00.000Z"}]))
    assert upload(fake) == Uploaded("f1", parse_instant("2030-01-01T00:00:00Z"))
    fake.uploads.append(said(201, [{"id": "f1", "expiresAt": "some day"}]))
    uploaded = upload(fake)
    assert isinstance(uploaded, Uploaded) and uploaded.expires_at is not None
    assert abs(uploaded.expires_at - CLOCK.now() - 30 * DAY) < MINUTE


def test_a_file_that_is_there_already_is_used(fake: FakeWassenger) -> None:
    first, again = upload(fake), upload(fake)
    assert isinstance(again, Uploaded) and again == first
    assert len(fake.files) == 1


def test_one_that_was_kept_for_another_time_says_so(fake: FakeWassenger) -> None:
    soon_at = (CLOCK.now() + 10 * MINUTE) // SECOND * SECOND
    fake.files["f9"] = {"id": "f9", "content": CONTENT, "expiresAt": iso(soon_at)}
    assert upload(fake) == Uploaded("f9", soon_at)
    del fake.files["f9"]["expiresAt"]
    assert upload(fake) == Uploaded("f9", None), "the next send will tell"
    fake.answers["/files/f9"] = Scripted(drops="read")
    assert upload(fake) == Uploaded("f9", None), "it said itself that it has it"


@pytest.mark.parametrize(
    "told", [said(404, {"status": 404}), said(200, {"expiresAt": "2020-01-01T00:00:00Z"})]
)
def test_a_file_that_is_and_is_not_there_is_tried_again(
    fake: FakeWassenger, told: Scripted
) -> None:
    fake.uploads.append(error(409, meta={"file": "f9"}))
    fake.answers["/files/f9"] = told
    outcome = upload(fake)
    assert isinstance(outcome, Outcome) and outcome.kind is K.TRANSIENT


@pytest.mark.parametrize(
    ("scripted", "kind"),
    [
        (error(409), K.TRANSIENT),
        (error(409, meta={"file": None}), K.TRANSIENT),
        (error(409, meta="f9"), K.TRANSIENT),
        (error(401), K.UNAUTHORISED),
        (error(413), K.REJECTED),
        (Scripted(413, b"<html>", HTML), K.REJECTED),
        (error(415), K.REJECTED),
        (error(429), K.THROTTLED),
        (error(503, "device_not_connected"), K.UNAVAILABLE),
        (Scripted(502, b"<html>", HTML), K.UNKNOWN),
        (Scripted(drops="read"), K.UNKNOWN),
        (said(201, []), K.TRANSIENT),
        (said(201, [{"id": None}]), K.TRANSIENT),
        (Scripted(204), K.TRANSIENT),
    ],
    ids=lambda value: str(value)[:60],
)
def test_an_upload_that_fails_is_an_outcome(
    fake: FakeWassenger, scripted: Scripted, kind: OutcomeKind
) -> None:
    fake.uploads.append(scripted)
    outcome = upload(fake)
    assert isinstance(outcome, Outcome) and outcome.kind is kind
    assert outcome.reason


def test_a_file_that_whatsapp_never_takes_is_not_even_sent(
    fake: FakeWassenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paceline.providers.wassenger.driver.LARGEST_FILE", 2**20)
    outcome = upload(fake, b"x" * (2**20 + 1))
    assert isinstance(outcome, Outcome)
    assert (outcome.kind, outcome.code) == (K.REJECTED, "media")
    assert not fake.uploaded()


# ---------------------------------------------------------------------- groups


def groups(fake: FakeWassenger, **settings: Any) -> list[Group]:
    return play(fake.settings(**settings), lambda driver: driver.groups())


def test_groups_are_told_as_targets(fake: FakeWassenger) -> None:
    us, them = {"phone": OWN, "isAdmin": True}, {"phone": "+15551234567", "isAdmin": True}
    lid = {"wid": f"{OWN[1:]}@c.us", "admin": True}
    only_admins = {"permissions": {"send": "admins"}}
    fake.groups = [
        {"wid": GROUP, "name": "Team\n A", "totalParticipants": 12},
        {"id": "447362053576-1500000000@G.US", "name": "B", "participants": [us, them]},
        {"wid": "1@g.us", "name": "Closed", "isReadOnly": True},
        {"wid": "2@g.us", "name": "Ours", "participants": [us, them], **only_admins},
        {"wid": "3@g.us", "name": "Theirs", "participants": [them, "odd", {}], **only_admins},
        {"wid": "4@g.us", "name": "Unclear", **only_admins},
        {"wid": "5@g.us", "participants": [lid], **only_admins},
        {"wid": "99@newsletter", "name": "A channel"},
        {"name": "Nothing"},
        "odd",
    ]  # fmt: skip
    assert groups(fake) == [
        Group(GROUP, "Team A", 12),
        Group("447362053576-1500000000@g.us", "B", 2),
        Group("1@g.us", "Closed", None, may_send=False),
        Group("2@g.us", "Ours", 2),
        Group("3@g.us", "Theirs", 3, may_send=False),
        Group("4@g.us", "Unclear", None, may_send=False),
        Group("5@g.us", "", 1),
    ]


@pytest.mark.parametrize("count", [0, 1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE])
def test_all_pages_are_read(fake: FakeWassenger, count: int) -> None:
    fake.groups = [{"wid": f"{number}@g.us", "name": f"G{number}"} for number in range(count)]
    assert [group.name for group in groups(fake)] == [f"G{number}" for number in range(count)]


@pytest.mark.parametrize("holds", [1, 20, 50])
def test_pages_may_be_smaller_than_was_asked(fake: FakeWassenger, holds: int) -> None:
    """And one may hold channels only, which are left out, with groups after it."""
    channels = [{"wid": f"{number}@newsletter"} for number in range(holds)]
    fake.groups = [*channels, *({"wid": f"{number}@g.us", "name": "G"} for number in range(60))]
    fake.most_listed = holds
    assert len(groups(fake)) == 60


def test_a_list_that_comes_again_ends(fake: FakeWassenger) -> None:
    same = [{"wid": f"{number}@g.us", "name": "G"} for number in range(PAGE)]
    fake.answers[f"/devices/{DEVICE}/groups"] = said(200, same)
    assert len(groups(fake)) == PAGE
    assert len(fake.calls) == 3


def test_a_list_that_never_ends_is_no_list(
    fake: FakeWassenger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paceline.providers.wassenger.driver.MOST_PAGES", 3)
    fake.groups = [{"wid": f"{number}@g.us", "name": "G"} for number in range(9 * PAGE)]
    with pytest.raises(ProviderError, match="the list of groups does not end"):
        groups(fake)


@pytest.mark.parametrize(
    ("scripted", "refused"),
    [
        (error(401), True),
        (error(404), True),
        (error(400), False),
        (Scripted(502, b"<html>", HTML), False),
        (said(200, {"groups": []}), False),
        (Scripted(drops="read"), False),
    ],
    ids=lambda value: str(value)[:50],
)
def test_not_being_told_is_no_empty_list(
    fake: FakeWassenger, scripted: Scripted, refused: bool
) -> None:
    """Or every group of the number would be taken for left."""
    fake.answers[f"/devices/{DEVICE}/groups"] = scripted
    with pytest.raises(ProviderError) as told:
        groups(fake)
    assert isinstance(told.value, ProviderRefused) == refused
