"""Files that are kept at hand, the groups a number is in, and people who are looked up."""

from typing import Any

import pytest

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.ports import Group, Media
from paceline.providers.waha.driver import WahaDriver
from paceline.providers.waha.files import Files
from paceline.providers.waha.groups import PAGE
from tests.providers.loopback import HTML, Scripted, said
from tests.providers.remote import patience
from tests.providers.waha.fake import (
    CHAT,
    GROUP,
    OWN,
    OWN_LID,
    SESSION,
    FakeWaha,
    error,
    failure,
    not_working,
)
from tests.providers.waha.stage import hand_over, media, message, picture, play

K = OutcomeKind


def test_a_file_is_read_once_and_travels_with_every_message(fake: FakeWaha) -> None:
    """WAHA keeps none: what is saved is the reading and the packing, not the way."""

    async def scene(driver: WahaDriver) -> None:
        handle = await hand_over(driver)
        assert not [call for call in fake.calls if call.method == "POST"], "nothing was uploaded"
        for number in range(3):
            outcome = await driver.send(picture(handle, key=f"home-{number}-0"))
            assert outcome.kind is K.ACCEPTED

    play(fake.settings(), scene)
    assert len(fake.messages) == len(fake.sends()) == 3
    assert all("data" in call.json()["file"] for call in fake.sends())


def test_a_file_that_waha_never_takes_is_not_even_kept(
    fake: FakeWaha, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paceline.providers.waha.driver.LARGEST_FILE", 2**20)
    outcome = play(fake.settings(), lambda driver: driver.upload(media(), b"x" * (2**20 + 1)))
    assert isinstance(outcome, Outcome)
    assert (outcome.kind, outcome.code) == (K.REJECTED, "media")
    assert "1.0 MiB, and WAHA takes 1" in outcome.reason


def test_the_files_that_were_used_last_are_kept() -> None:
    files = Files(most=100)
    for name in "abc":
        files.take(Media(name, name, "text/plain", 30), b"x" * 30)
        assert files.get("a") is not None
    assert files.get("b") is None and files.get("c") is not None
    files.take(Media("d", "d", "text/plain", 300), b"x" * 300)
    assert files.get("d") is not None, "one is kept whatever its size"
    assert files.get("a") is None and files.get("c") is None


def test_the_same_file_twice_is_kept_once() -> None:
    files = Files(most=100)
    for _ in range(5):
        assert files.take(Media("a", "a", "text/plain", 60), b"x" * 60) == "a"
    assert files.take(Media("b", "b", "text/plain", 10), b"x" * 10) == "b"
    assert files.get("a") is not None and files.get("b") is not None


# ---------------------------------------------------------------------- groups


def groups(fake: FakeWaha, **settings: Any) -> list[Group]:
    return play(fake.settings(**settings), lambda driver: driver.groups())


def member(jid: str, phone: str = "", *, admin: bool = False) -> dict[str, Any]:
    return {"JID": jid, "PhoneNumber": phone, "IsAdmin": admin, "IsSuperAdmin": False}


ANNA = "4915112345678@s.whatsapp.net"
US = OWN.replace("c.us", "s.whatsapp.net")


def test_groups_are_told_as_targets(fake: FakeWaha) -> None:
    fake.groups = [
        {"JID": GROUP, "Name": "Team\n A", "Participants": [member(US), member(ANNA)]},
        {"JID": "447362053576-1500000000@G.US", "Name": "B", "ParticipantCount": 900},
        {"JID": "10000001@g.us", "Name": "Ours", "IsAnnounce": True,
         "Participants": [member(US, admin=True), member(ANNA)]},
        {"JID": "10000002@g.us", "Name": "Theirs", "IsAnnounce": True,
         "Participants": [member(US), member(ANNA, admin=True)]},
        {"JID": "10000003@g.us", "Name": "Unclear", "IsAnnounce": True},
        {"JID": "10000004@g.us", "Participants": [member(OWN_LID, US, admin=True)],
         "IsAnnounce": True},
        {"JID": "10000005@g.us", "Name": "Hidden", "Participants": [member(OWN_LID), "odd", {}]},
        {"JID": "10000006@g.us", "Name": "Left", "Participants": [member(ANNA)]},
        {"JID": "99@newsletter", "Name": "A channel"},
        {"Name": "Nothing"},
    ]  # fmt: skip
    assert groups(fake) == [
        Group(GROUP, "Team A", 2),
        Group("447362053576-1500000000@g.us", "B", 900),
        Group("10000001@g.us", "Ours", 2),
        Group("10000002@g.us", "Theirs", 2, may_send=False),
        Group("10000003@g.us", "Unclear", None, may_send=False),
        Group("10000004@g.us", "", 1),
        Group("10000005@g.us", "Hidden", 2),
    ]


def test_noweb_tells_them_as_a_table(fake: FakeWaha) -> None:
    fake.engine = "NOWEB"
    us = {"id": OWN_LID, "phoneNumber": US, "admin": "superadmin"}
    them = {"id": "5@lid", "phoneNumber": ANNA, "admin": "admin"}
    fake.groups = [
        {"id": GROUP, "subject": "Ours", "size": 7, "announce": True, "participants": [us, them]},
        {"id": "10000002@g.us", "subject": "Theirs", "announce": True,
         "participants": [{**us, "admin": None}, them]},
        {"id": "10000003@g.us", "subject": "Open", "announce": False, "participants": [us]},
    ]  # fmt: skip
    assert groups(fake) == [
        Group(GROUP, "Ours", 7),
        Group("10000002@g.us", "Theirs", 2, may_send=False),
        Group("10000003@g.us", "Open", 1),
    ]


def test_webjs_tells_them_as_chats(fake: FakeWaha) -> None:
    fake.engine = "WEBJS"

    def chat(name: str, *people: dict[str, Any], **more: Any) -> dict[str, Any]:
        wid = {"server": "g.us", "user": name, "_serialized": f"{name}@g.us"}
        inner = {"id": wid, "subject": f"G{name}", "announce": False, "participants": people}
        return {"id": wid, "isGroup": True, "groupMetadata": inner | more, "isReadOnly": False}

    us = {"id": {"_serialized": OWN}, "isAdmin": False, "isSuperAdmin": False}
    fake.groups = [
        chat("10000001", us),
        chat("10000002", us, announce=True) | {"isReadOnly": True},
        chat("10000003", us | {"isAdmin": True}, announce=True),
        chat("10000004") | {"isReadOnly": True},
    ]
    assert groups(fake, own_ids=False) == [
        Group("10000001@g.us", "G10000001", 1),
        Group("10000002@g.us", "G10000002", 1, may_send=False),
        Group("10000003@g.us", "G10000003", 1),
        Group("10000004@g.us", "G10000004", None, may_send=False),
    ]


@pytest.mark.parametrize("me", [{"id": OWN}, {"lid": OWN_LID}, {}])
def test_who_does_not_know_itself_has_left_nothing(fake: FakeWaha, me: dict[str, Any]) -> None:
    """Members may be told by the one id or by the other. Not to find ours among them proves that
    we are none of them only where both are known."""
    fake.me = me
    fake.groups = [{"JID": GROUP, "Name": "Ours?", "Participants": [member(ANNA)]}]
    assert groups(fake) == [Group(GROUP, "Ours?", 1)]


@pytest.mark.parametrize("count", [0, 1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE])
@pytest.mark.parametrize("engine", ["GOWS", "NOWEB"])
def test_all_pages_are_read(fake: FakeWaha, count: int, engine: str) -> None:
    fake.engine = engine
    fake.groups = [
        {"JID": f"1203630{n:05}@g.us", "id": f"1203630{n:05}@g.us", "Name": f"G{n}"}
        for n in range(count)
    ]
    assert [group.name for group in groups(fake)] == [f"G{number}" for number in range(count)]


def test_a_waha_that_knows_no_pages_tells_all_at_once(fake: FakeWaha) -> None:
    fake.knows_pages = False
    fake.groups = [{"JID": f"1203630{n:05}@g.us", "Name": "G"} for n in range(5 * PAGE)]
    assert len(groups(fake)) == 5 * PAGE
    assert len(fake.asked("/groups")) == 2


def test_a_list_that_never_ends_is_no_list(fake: FakeWaha, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paceline.providers.waha.driver.MOST_PAGES", 3)
    fake.groups = [{"JID": f"1203630{n:05}@g.us", "Name": "G"} for n in range(9 * PAGE)]
    with pytest.raises(ProviderError, match="the list of groups does not end"):
        groups(fake)


@pytest.mark.parametrize(
    ("scripted", "refused", "reason"),
    [
        (error(401), True, "shop: token refused: "),
        (error(404), False, "shop: offline: "),
        (error(400), False, "shop: offline: "),
        (not_working("STARTING"), False, "shop: offline: WAHA says"),
        (not_working("SCAN_QR_CODE"), True, "shop: not paired: WAHA says"),
        (Scripted(502, b"<html>", HTML), False, "shop: offline: "),
        (said(200, {"groups": []}), False, "shop: offline: "),
        (said(200, {"statusCode": 500}), False, "shop: offline: "),
        (said(200, ["odd"]), False, "shop: offline: "),
        (said(200, "[]"), False, "shop: offline: "),
        (Scripted(drops="read"), False, "no answer from WAHA: "),
    ],
    ids=lambda value: str(value)[:50],
)
def test_not_being_told_is_no_empty_list(
    fake: FakeWaha, scripted: Scripted, refused: bool, reason: str
) -> None:
    """Or every group of the number would be taken for left."""
    fake.answers[f"/{SESSION}/groups"] = scripted
    with pytest.raises(ProviderError, match=f"^{reason}") as told:
        groups(fake)
    assert isinstance(told.value, ProviderRefused) == refused


# ---------------------------------------------------------------------- people


def resolve(fake: FakeWaha, target: str, **settings: Any) -> str | Outcome:
    made = fake.settings(**settings)
    return play(made, lambda driver: driver.resolve(message(target)), patience(fake))


def test_a_number_is_looked_up_once(fake: FakeWaha) -> None:
    fake.chats["5511987654321"] = "551187654321@c.us"

    async def scene(driver: WahaDriver) -> list[str | Outcome]:
        return [await driver.resolve(message("+55 11 98765-4321")) for _ in range(3)]

    assert play(fake.settings(), scene) == ["551187654321@c.us"] * 3
    (call,) = fake.asked("/contacts/check-exists")
    assert call.query == {"session": SESSION, "phone": "5511987654321"}
    assert not fake.messages


def test_only_so_many_people_are_remembered(
    fake: FakeWaha, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paceline.providers.waha.driver.MOST_PEOPLE", 2)

    async def scene(driver: WahaDriver) -> None:
        for number in (1, 2, 3, 3, 2, 1):
            await driver.resolve(message(f"+4915112345{number:03}"))

    play(fake.settings(), scene)
    assert len(fake.asked("/contacts/check-exists")) == 4


def test_a_number_that_is_not_on_whatsapp_bounces(fake: FakeWaha) -> None:
    fake.chats[CHAT.removesuffix("@c.us")] = None
    outcome = resolve(fake, CHAT)
    assert isinstance(outcome, Outcome)
    assert (outcome.kind, outcome.code) == (K.BOUNCED, "not_on_whatsapp")


@pytest.mark.parametrize("target", [GROUP, "111222333444555@lid", "nobody at all"])
def test_only_numbers_are_looked_up(fake: FakeWaha, target: str) -> None:
    assert resolve(fake, target) == target
    assert resolve(fake, "+4915112345678", look_up=False) == "+4915112345678"
    assert not fake.asked("/contacts/check-exists")


@pytest.mark.parametrize(
    ("scripted", "expected"),
    [
        (error(404, "Cannot GET /api/contacts/check-exists"), CHAT),
        (error(501, "The method is not implemented by 'X' engine."), CHAT),
        (said(200, {"numberExists": True}), CHAT),
        (said(200, {"numberExists": True, "chatId": "5@lid"}), "5@lid"),
        (said(200, {"numberExists": True, "chatId": GROUP}), CHAT),
        (said(200, {"numberExists": "yes"}), K.TRANSIENT),
        (said(200, []), K.TRANSIENT),
        (Scripted(200, b"<html>", HTML), K.TRANSIENT),
        (error(401), K.UNAUTHORISED),
        (error(429), K.THROTTLED),
        (not_working("STARTING"), K.UNAVAILABLE),
        (failure("timed out"), K.TRANSIENT),
        (Scripted(502, b"<html>", HTML), K.TRANSIENT),
        (Scripted(drops="read"), K.TRANSIENT),
        (Scripted(hangs=True), K.TRANSIENT),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_look_up_that_fails_leaves_nothing_in_doubt(
    fake: FakeWaha, scripted: Scripted, expected: str | OutcomeKind
) -> None:
    fake.answers["/contacts/check-exists"] = scripted
    found = resolve(fake, CHAT)
    assert (found.kind if isinstance(found, Outcome) else found) == expected
    if isinstance(found, Outcome):
        assert found.reason
