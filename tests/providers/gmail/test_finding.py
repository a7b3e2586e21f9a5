"""Looking for a letter whose answer was lost: what is found is sent, what is not proves nothing."""

import pytest

from paceline.core.outcome import OutcomeKind
from paceline.engine.ports import Driver, Found
from paceline.providers.mail.ids import id_of
from tests.providers.gmail.fake import ALIAS, USER, FakeGmail, error
from tests.providers.gmail.stage import letter, play
from tests.providers.loopback import HTML, JSON, Scripted

UNCLEAR = Found("unclear")
LOST = Scripted(drops="read", takes=True)


@pytest.mark.parametrize("settings", [{}, {"from_address": ALIAS}], ids=["own", "alias"])
def test_a_lost_letter_is_found_by_its_own_id(fake: FakeGmail, settings: dict[str, str]) -> None:
    async def scene(driver: Driver) -> Found:
        await driver.send(letter(key="home-6-0"))
        fake.script.append(LOST)
        assert (await driver.send(letter())).kind is OutcomeKind.UNKNOWN
        return await driver.find(letter(), 0)

    found = play(fake.settings(**settings), scene)
    assert found == Found("present", fake.sent[1].id)
    (search,) = fake.searches()
    own_id = id_of("home-7-0", "example.com").strip("<>")
    assert search.query == {
        "q": f"rfc822msgid:{own_id}",
        "includeSpamTrash": "true",
        "maxResults": "5",
    }


def test_what_is_not_shown_yet_is_unclear(fake: FakeGmail) -> None:
    async def scene(driver: Driver) -> list[Found]:
        fake.script.append(LOST)
        await driver.send(letter())
        fake.lags = True
        early = await driver.find(letter(), 0)
        fake.lags = False
        return [early, await driver.find(letter(), 0)]

    assert play(fake.settings(), scene) == [UNCLEAR, Found("present", fake.sent[0].id)]


@pytest.mark.parametrize(
    "scripted",
    [
        Scripted(200, b"{}", JSON),
        Scripted(200, b'{"messages": []}', JSON),
        Scripted(200, b'{"messages": [null, {"id": null}, "x"]}', JSON),
        Scripted(200, b'{"messages": {"id": "x"}}', JSON),
        Scripted(200, b"<html>", HTML),
        Scripted(500, b"", HTML),
        Scripted(drops="read"),
        error(403, "rateLimitExceeded", "Quota exceeded"),
        error(403, "insufficientPermissions", "Metadata scope does not support 'q' parameter"),
    ],
)
def test_nothing_usable_is_unclear(fake: FakeGmail, scripted: Scripted) -> None:
    fake.answers[f"{USER}/messages"] = scripted
    assert play(fake.settings(), lambda driver: driver.find(letter(), 0)) == UNCLEAR


def test_a_token_is_replaced_for_a_search_as_well(fake: FakeGmail) -> None:
    async def scene(driver: Driver) -> Found:
        await driver.send(letter())
        fake.revoke()
        return await driver.find(letter(), 0)

    assert play(fake.settings(), scene) == Found("present", fake.sent[0].id)
    assert len(fake.issued) == 2


def test_without_a_token_it_is_unclear(fake: FakeGmail) -> None:
    async def scene(driver: Driver) -> Found:
        await driver.send(letter())
        fake.revoke()
        fake.later_token_answers.append(Scripted(503, b"", HTML))
        return await driver.find(letter(), 0)

    assert play(fake.settings(), scene) == UNCLEAR
