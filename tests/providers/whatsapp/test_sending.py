"""Sending: what is handed over, what is fetched before, and what is refused beforehand."""

import pytest

from paceline.core.errors import ProviderError
from paceline.core.instants import DAY
from paceline.core.outcome import OutcomeKind
from paceline.engine.ports import Group, Grouped, Media, Resolver, Uploaded
from paceline.providers.whatsapp import handles
from paceline.providers.whatsapp.driver import LONGEST_TEXT, WhatsAppDriver
from paceline.providers.whatsapp.wire import Acknowledged, Draft, GroupChanged, LibraryError
from tests.providers.whatsapp.scripted import CLASS, FAMILY, NEWSROOM
from tests.providers.whatsapp.stage import (
    ANNA,
    ANNA_JID,
    PICTURE,
    START,
    Stage,
    brief,
    message,
)

K = OutcomeKind


def test_a_text_to_a_group(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        outcome = await driver.send(message(FAMILY.jid, "Hello"))
        assert outcome.kind is K.ACCEPTED and outcome.provider_id
        assert scene.whatsapp.sent == [(FAMILY.jid, Draft("Hello"))]

    scene.play(send)
    assert scene.whatsapp.wires[0].session == scene.folder / "team.session"
    assert scene.whatsapp.wires[0].closed


def test_a_text_to_a_person(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        assert (await driver.send(message(ANNA))).kind is K.ACCEPTED
        assert (await driver.send(message(ANNA_JID))).kind is K.ACCEPTED

    scene.play(send)
    assert [jid for jid, _ in scene.whatsapp.sent] == [ANNA_JID, ANNA_JID]
    assert scene.whatsapp.called("group") == []


def test_a_group_is_asked_about_once(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        for target in (FAMILY.jid, CLASS.jid, FAMILY.jid, FAMILY.jid):
            assert (await driver.send(message(target))).kind is K.ACCEPTED

    scene.play(send)
    assert scene.whatsapp.called("group") == [FAMILY.jid, CLASS.jid]


def test_groups_that_were_listed_are_not_asked_about(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        grouped: Grouped = driver
        assert await grouped.groups() == [
            Group(CLASS.jid, "class of 2026", 30),
            Group(FAMILY.jid, "Family", 12),
            Group(NEWSROOM.jid, "Newsroom", 800, may_send=False),
        ]
        assert (await driver.send(message(FAMILY.jid))).kind is K.ACCEPTED

    scene.play(send)
    assert scene.whatsapp.called("group") == []


def test_what_has_changed_is_asked_about_again(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        await driver.send(message(FAMILY.jid))
        scene.whatsapp.groups = [FAMILY._replace(may_send=False)]
        assert (await driver.send(message(FAMILY.jid))).kind is K.ACCEPTED
        scene.whatsapp.say(GroupChanged(FAMILY.jid))
        assert (await driver.send(message(FAMILY.jid))).code == "not-admin"

    scene.play(send)


def test_after_a_refusal_a_group_is_asked_about_again(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        await driver.send(message(FAMILY.jid))
        scene.whatsapp.fails("send", "server returned error 403")
        assert (await driver.send(message(FAMILY.jid))).kind is K.REJECTED
        await driver.send(message(FAMILY.jid))

    scene.play(send)
    assert scene.whatsapp.called("group") == [FAMILY.jid, FAMILY.jid]


def test_no_more_groups_are_remembered_than_that(
    scene: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paceline.providers.whatsapp.driver.MOST_GROUPS", 1)

    async def send(driver: WhatsAppDriver) -> None:
        for target in (FAMILY.jid, CLASS.jid, FAMILY.jid):
            await driver.send(message(target))

    scene.play(send)
    assert scene.whatsapp.called("group") == [FAMILY.jid, CLASS.jid, FAMILY.jid]


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        ("failed to get group info: that group does not exist", K.REJECTED, "no-such-group"),
        ("you're not participating in that group", K.REJECTED, "not-in-group"),
        ("info query timed out", K.TRANSIENT, "timeout"),
        ("info query returned status 429: rate-overlimit", K.THROTTLED, "rate-overlimit"),
    ],
)
def test_a_group_that_cannot_be_asked_about(
    scene: Stage, text: str, kind: OutcomeKind, code: str
) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        scene.whatsapp.fails("group", text)
        assert brief(await driver.send(message(FAMILY.jid))) == (kind, code)
        assert scene.whatsapp.sent == []
        assert (await driver.send(message(FAMILY.jid))).kind is K.ACCEPTED

    scene.play(send)


def test_who_may_not_write_is_told_before_anything_is_sent(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        outcome = await driver.send(message(NEWSROOM.jid))
        assert (outcome.kind, outcome.code) == (K.REJECTED, "not-admin")
        assert outcome.reason == "only admins may write to Newsroom"

    scene.play(send)
    assert scene.whatsapp.called("send") == []


def test_what_cannot_be_sent_is_refused_at_once(scene: Stage) -> None:
    cases = [
        (message("anna@example.com"), "target"),
        (message("status@broadcast"), "target"),
        (message(action="email"), "action"),
        (message(text="  \n"), "text"),
        (message(text="x" * (LONGEST_TEXT + 1)), "text"),
        (message(text="broken \ud800 pair"), "text"),
        (message(media="a" * 64), "media-expired"),
        (message(handle="media-7"), "media-expired"),
    ]

    async def send(driver: WhatsAppDriver) -> None:
        for sent, code in cases:
            outcome = await driver.send(sent)
            assert (outcome.kind, outcome.code) == (K.REJECTED, code), outcome

    scene.play(send)
    assert scene.whatsapp.calls == []


# ---------------------------------------------------------------------- files


async def upload(driver: WhatsAppDriver, media: Media = PICTURE) -> str:
    answer = await driver.upload(media, b"\x89PNG here")
    assert isinstance(answer, Uploaded) and answer.expires_at == START + 7 * DAY
    return answer.handle


@pytest.mark.parametrize(
    ("name", "mime", "kind"),
    [
        ("poster.png", "image/png", "image"),
        ("film.mp4", "video/mp4", "video"),
        ("menu.pdf", "application/pdf", "document"),
    ],
)
def test_a_file_is_uploaded_once_and_sent_to_many(
    scene: Stage, name: str, mime: str, kind: str
) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        handle = await upload(driver, Media("a" * 64, name, mime, 9))
        for target in (FAMILY.jid, CLASS.jid, ANNA):
            outcome = await driver.send(message(target, "See you", handle=handle))
            assert outcome.kind is K.ACCEPTED

    scene.play(send)
    assert scene.whatsapp.called("upload") == [(kind, b"\x89PNG here")]
    drafts = {draft for _, draft in scene.whatsapp.sent}
    assert len(drafts) == 1, "the same message to everybody"
    draft = drafts.pop()
    assert (draft.text, draft.kind, draft.mime, draft.name) == ("See you", kind, mime, name)
    assert draft.file is not None and draft.file.key == b"k" * 32


def test_a_handle_outlives_the_account_being_closed(scene: Stage) -> None:
    handle = scene.play(upload)

    async def send(driver: WhatsAppDriver) -> None:
        assert (await driver.send(message(handle=handle))).kind is K.ACCEPTED

    scene.play(send)
    assert len(scene.whatsapp.called("upload")) == 1


def test_an_upload_that_has_expired_is_told_as_gone(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        handle = await upload(driver)
        await scene.clock.sleep(7 * DAY)
        outcome = await driver.send(message(handle=handle))
        assert outcome.handle_gone

    scene.play(send)


def test_a_file_that_a_phone_could_not_fetch_is_gone(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        handle, other = await upload(driver), await upload(driver)
        outcome = await driver.send(message(handle=handle))
        scene.whatsapp.say(Acknowledged(("never heard of", outcome.provider_id or ""), "failed", 0))
        assert (await driver.send(message(handle=handle))).handle_gone
        assert (await driver.send(message(handle=other))).kind is K.ACCEPTED

    scene.play(send)


def test_a_file_that_is_too_large_is_not_uploaded(
    scene: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(handles.LARGEST, "image", 2**20)

    async def send(driver: WhatsAppDriver) -> None:
        outcome = await driver.upload(PICTURE, b"x" * (2**20 + 1))
        assert not isinstance(outcome, Uploaded)
        assert (outcome.kind, outcome.code) == (K.REJECTED, "media")
        assert outcome.reason == "poster.png has 1.0 MiB, and WhatsApp takes 1 MiB"

    scene.play(send)
    assert scene.whatsapp.calls == []


def test_an_upload_that_fails_is_an_outcome(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        scene.whatsapp.fails("upload", "upload failed with status code 413")
        assert brief(await driver.upload(PICTURE, b"x")) == (K.REJECTED, "upload-413")
        scene.whatsapp.fails("upload", "failed to execute request: EOF")
        assert brief(await driver.upload(PICTURE, b"x")) == (K.TRANSIENT, "failed")

    scene.play(send)


# ---------------------------------------------------------------------- numbers


def test_a_number_is_looked_up_once(scene: Stage) -> None:
    scene.whatsapp.spelled = {"+5511987654321": "551187654321@s.whatsapp.net"}

    async def send(driver: WhatsAppDriver) -> None:
        resolver: Resolver = driver
        for _ in range(2):
            found = await resolver.resolve(message("+5511987654321"))
            assert found == "551187654321@s.whatsapp.net"
        assert (await driver.send(message(str(found)))).kind is K.ACCEPTED

    scene.play(send)
    assert scene.whatsapp.called("look_up") == ["+5511987654321"]
    assert scene.whatsapp.sent[0][0] == "551187654321@s.whatsapp.net"


def test_a_number_that_is_not_on_whatsapp(scene: Stage) -> None:
    scene.whatsapp.strangers = {ANNA}

    async def send(driver: WhatsAppDriver) -> None:
        outcome = await driver.resolve(message(ANNA))
        assert not isinstance(outcome, str)
        assert (outcome.kind, outcome.code) == (K.REJECTED, "not-on-whatsapp")

    scene.play(send)


def test_a_look_up_that_fails_leaves_nothing_in_doubt(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        scene.whatsapp.fails("look_up", "info query timed out")
        outcome = await driver.resolve(message(ANNA))
        assert not isinstance(outcome, str) and outcome.kind is K.TRANSIENT

    scene.play(send)


def test_groups_and_nonsense_are_not_looked_up(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        for target in (FAMILY.jid, "98765432101234@lid", "anna@example.com"):
            assert await driver.resolve(message(target)) == target

    scene.play(send)
    assert scene.whatsapp.calls == []


def test_nobody_is_looked_up_where_that_is_not_wanted(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        assert not driver.capabilities.resolves
        assert await driver.resolve(message(ANNA)) == ANNA

    scene.play(send, look_up=False)
    assert scene.whatsapp.calls == []


# ---------------------------------------------------------------------- the rest


def test_what_was_sent_cannot_be_asked_for(scene: Stage) -> None:
    async def ask(driver: WhatsAppDriver) -> None:
        assert (await driver.find(message(), START)).finding == "unclear"
        able = driver.capabilities
        assert not able.finds and not able.proves_absence and able.groups and able.media

    scene.play(ask)


def test_groups_that_cannot_be_listed(scene: Stage) -> None:
    async def ask(driver: WhatsAppDriver) -> None:
        scene.whatsapp.will("groups", LibraryError("info query timed out"))
        with pytest.raises(ProviderError, match="team: the groups could not be listed: no answer"):
            await driver.groups()

    scene.play(ask)
