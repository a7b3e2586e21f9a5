"""The groups of an imaginary account: as many as it is told, the same in every process."""

import pytest

from paceline.core.address import guess_kind, normalise
from paceline.core.errors import InputError, ProviderError
from paceline.engine.ports import Group
from paceline.providers.sandbox import SandboxDriver, read_settings
from tests.providers.stage import Stage


def groups(**settings: object) -> list[Group]:
    stage = Stage()

    async def scene() -> list[Group]:
        driver = await stage.open(**settings)
        assert isinstance(driver, SandboxDriver)
        return await driver.groups()

    return stage.play(scene)


@pytest.mark.parametrize(
    ("written", "numbers", "printed"),
    [
        ("1..3", range(1, 4), "1..3"),
        ("7", range(7, 8), "7"),
        (7, range(7, 8), "7"),
        (" 2 .. 2 ", range(2, 3), "2"),
        ("none", range(0), "none"),
    ],
)
def test_they_are_numbers_from_one_to_another(
    written: object, numbers: range, printed: str
) -> None:
    settings = read_settings({"groups": written})
    assert settings.groups == numbers
    assert settings.to_mapping()["groups"] == printed
    assert read_settings(settings.to_mapping()) == settings


@pytest.mark.parametrize("written", ["3..1", "a", "1..", "", "-3..2", "1..999999999", True, 1.5])
def test_what_is_no_range_is_refused(written: object) -> None:
    with pytest.raises(InputError, match=r"^groups: "):
        read_settings({"groups": written})


def test_they_are_groups_as_whatsapp_writes_them() -> None:
    found = groups(groups="1..1000", read_only_groups="999..2000")
    assert len({group.id for group in found}) == 1_000
    for group in found:
        assert guess_kind(group.id) == "group" and normalise("group", group.id) == group.id
        assert group.size is not None and group.size >= 2
    assert [group.name for group in found if not group.may_send] == ["Group 999", "Group 1000"]
    assert groups() == []


def test_accounts_whose_numbers_overlap_have_groups_in_common() -> None:
    first = {group.id for group in groups(groups="1..3")}
    second = {group.id for group in groups(groups="3..5")}
    assert len(first & second) == 1


def test_a_sandbox_that_is_away_does_not_tell() -> None:
    stage = Stage()
    away = ["2026-11-15T09:00:01Z..2026-11-15T10:00:00Z"]

    async def scene() -> None:
        driver = await stage.open(groups="1..3", unavailable=away)
        await stage.clock.sleep_until(stage.start_at + 2_000_000)
        assert isinstance(driver, SandboxDriver)
        with pytest.raises(ProviderError, match="the sandbox is away"):
            await driver.groups()

    stage.play(scene)
