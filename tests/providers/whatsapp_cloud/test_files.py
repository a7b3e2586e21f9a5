"""Files: uploaded once, kept for thirty days, sent as what they are."""

import pytest

from paceline.core.instants import DAY
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.ports import Driver, Media, Uploaded
from paceline.providers.whatsapp_cloud.handles import unpack
from tests.providers.loopback import HTML, Scripted, said
from tests.providers.remote import CLOCK, patience
from tests.providers.whatsapp_cloud.fake import KEY, FakeMeta, error, no_such
from tests.providers.whatsapp_cloud.stage import file, media, play

K = OutcomeKind
MIB = 1024 * 1024


def upload(
    fake: FakeMeta, what: Media, content: bytes = b"PNG", *script: Scripted
) -> Uploaded | Outcome:
    fake.uploads.extend(script)
    return play(fake.settings(), lambda driver: driver.upload(what, content), patience(fake))


def test_a_file_is_uploaded_as_meta_takes_it(fake: FakeMeta) -> None:
    before = CLOCK.now()
    made = upload(fake, media("menu “1”.pdf", "application/pdf"), b"\r\n--\x00")
    assert isinstance(made, Uploaded) and made.expires_at is not None
    assert before + 30 * DAY <= made.expires_at <= CLOCK.now() + 30 * DAY
    ((media_id, kept),) = fake.files.items()
    assert (kept["mime"], kept["content"]) == ("application/pdf", b"\r\n--\x00")
    found = unpack(made.handle)
    assert found is not None
    assert (found.id, found.kind, found.name) == (media_id, "document", "menu “1”.pdf")
    (call,) = fake.uploaded()
    assert call.headers["authorization"] == f"Bearer {KEY}" and not call.query


@pytest.mark.parametrize(
    ("mime", "most"),
    [("image/png", 5), ("video/mp4", 16), ("audio/ogg", 16), ("application/pdf", 100)],
)
def test_what_is_too_large_is_not_uploaded(fake: FakeMeta, mime: str, most: int) -> None:
    refused = upload(fake, media("a", mime), bytes(most * MIB + 1))
    assert isinstance(refused, Outcome) and (refused.kind, refused.code) == (K.REJECTED, "media")
    assert f"WhatsApp takes {most} as" in refused.reason
    assert not fake.uploaded()


@pytest.mark.parametrize(
    ("scripted", "kind"),
    [
        (error(100, message="(#100) Param file must be a file of a known type"), K.REJECTED),
        (error(190, 401), K.UNAUTHORISED),
        (no_such("106540352242922", "post"), K.UNAUTHORISED),
        (error(130429, 429), K.THROTTLED),
        (error(131016, 500), K.UNAVAILABLE),
        (error(131053), K.REJECTED),
        (Scripted(413, b"<html>", HTML), K.REJECTED),
        (Scripted(502, b"<html>", HTML), K.UNKNOWN),
        (Scripted(200, b"<html>", HTML), K.TRANSIENT),
        (said(200, {}), K.TRANSIENT),
        (said(200, {"id": None}), K.TRANSIENT),
        (Scripted(drops="read"), K.UNKNOWN),
        (Scripted(hangs=True), K.UNKNOWN),
    ],
    ids=lambda value: str(value)[:50],
)
def test_an_upload_that_fails_is_an_outcome(
    fake: FakeMeta, scripted: Scripted, kind: OutcomeKind
) -> None:
    refused = upload(fake, media(), b"PNG", scripted)
    assert isinstance(refused, Outcome), refused
    assert refused.kind is kind and refused.reason
    assert not fake.files


def test_a_token_in_a_refusal_is_not_written_down(fake: FakeMeta) -> None:
    refused = upload(fake, media(), b"PNG", error(100, message=f"odd {KEY}"))
    assert isinstance(refused, Outcome) and KEY not in refused.reason


def test_one_upload_is_sent_many_times_and_replaced_when_it_is_gone(fake: FakeMeta) -> None:
    async def scene(driver: Driver) -> list[Outcome]:
        first = await driver.upload(media(), b"PNG")
        assert isinstance(first, Uploaded)
        found = [await driver.send(file(first.handle)) for _ in range(3)]
        fake.files.clear()
        found.append(await driver.send(file(first.handle)))
        again = await driver.upload(media(), b"PNG")
        assert isinstance(again, Uploaded) and again.handle != first.handle
        return [*found, await driver.send(file(again.handle))]

    *sent, gone, last = play(fake.settings(), scene)
    assert [one.kind for one in [*sent, last]] == [K.ACCEPTED] * 4
    assert gone.handle_gone and len(fake.uploaded()) == 2


def test_nobody_can_be_asked_for_a_message(fake: FakeMeta) -> None:
    async def scene(driver: Driver) -> str:
        sent = file(None)
        return (await driver.find(sent, 0)).finding

    assert play(fake.settings(), scene) == "unclear"
    assert not fake.sends()
