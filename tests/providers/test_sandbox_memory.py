"""Opening, looking up and uploading: whatever the sandbox remembers, it remembers from its log."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from paceline.core.errors import InputError, ProviderError, ProviderRefused
from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.ports import Driver, Found, Media, Provider, Uploaded
from paceline.providers.sandbox import FileEffects
from tests.providers.stage import START, Stage, account, message

PICTURE = Media("f" * 64, "poster.png", "image/png", 3)


def test_it_is_a_provider() -> None:
    provider: Provider = Stage().provider
    assert provider.name == "sandbox"
    assert provider.capabilities.actions == {
        "message", "email", "connection_request", "inmail", "reply",
    }  # fmt: skip
    can = provider.capabilities
    assert (can.media, can.groups, can.receipts) == (True, True, False)
    assert (can.finds, can.proves_absence) == (True, True)


@pytest.mark.parametrize(
    ("settings", "finds", "proves"),
    [
        ({}, True, True),
        ({"proves_absence": False}, True, False),
        ({"finds": False}, False, False),
    ],
)
def test_an_account_may_be_able_to_do_less(
    settings: dict[str, Any], finds: bool, proves: bool
) -> None:
    stage = Stage()
    driver = stage.play(lambda: stage.open(**settings))
    assert (driver.capabilities.finds, driver.capabilities.proves_absence) == (finds, proves)
    assert driver.capabilities.channel == "sandbox"


def test_opening_checks_settings_credentials_and_outages() -> None:
    away = ["2026-11-15T09:00Z..2026-11-15T09:10Z"]
    stage = Stage()
    with pytest.raises(InputError, match="no such setting"):
        stage.play(lambda: stage.provider.open(account(nonsense=1)))
    with pytest.raises(ProviderRefused, match="refuses the credentials of first"):
        stage.play(lambda: stage.open(unauthorised=True))
    with pytest.raises(ProviderError, match="is away"):
        stage.play(lambda: stage.open(unavailable=away))


def test_credentials_that_turned_bad_are_refused_at_the_door() -> None:
    stage = Stage()
    stage.send_all([message("k1")], unauthorised_after=1)
    with pytest.raises(ProviderRefused):
        stage.play(lambda: stage.open(unauthorised_after=1))
    stage.play(stage.open)


async def finding(stage: Stage, key: str, after_us: int = 0, **settings: Any) -> Found:
    driver = await stage.open(**settings)
    await stage.clock.sleep_until(START + after_us)
    return await driver.find(message(key), 0)


@pytest.mark.parametrize(
    ("key", "settings", "expected"),
    [
        ("held", {}, "present"),
        ("timed out", {}, "present"),
        ("lost", {}, "absent"),
        ("bounced", {}, "absent"),
        ("never sent", {}, "absent"),
        ("held", {"proves_absence": False}, "present"),
        ("lost", {"proves_absence": False}, "unclear"),
        ("never sent", {"proves_absence": False}, "unclear"),
        ("held", {"finds": False}, "unclear"),
        ("never sent", {"finds": False}, "unclear"),
    ],
)
def test_finding_a_message_again(key: str, settings: dict[str, Any], expected: str) -> None:
    stage = Stage()
    stage.send_all(
        [
            message("held"),
            message("timed out", "timeout@example.com"),
            message("lost", "lost@example.com"),
            message("bounced", "bounce@example.com"),
        ],
        timeout_latency="0s",
    )
    found = stage.play(lambda: finding(stage, key, **settings))
    assert found.finding == expected
    held = {e.key: e.provider_id for e in stage.accepted()}
    assert found.provider_id == (held[key] if expected == "present" else None)


@pytest.mark.parametrize(("word", "later"), [("timeout", "present"), ("lost", "absent")])
def test_reads_lag_behind_writes(word: str, later: str) -> None:
    stage = Stage()
    stage.send_all([message("k1", f"{word}@example.com")], timeout_latency="0s")
    for after_us, expected in [(0, "unclear"), (MINUTE - 1, "unclear"), (MINUTE, later)]:
        found = stage.play(partial(finding, stage, "k1", after_us, find_lag="1m"))
        assert found.finding == expected


def test_nothing_is_certain_during_an_outage() -> None:
    stage = Stage()
    stage.send_all([message("k1")])
    away = ["2026-11-15T09:01Z..2026-11-15T09:02Z"]
    found = stage.play(lambda: finding(stage, "k1", MINUTE, unavailable=away))
    assert found == Found("unclear")


def test_accounts_do_not_find_each_other_s_messages() -> None:
    stage = Stage()
    stage.send_all([message("k1")])

    async def scene() -> Found:
        driver = await stage.open("second")
        return await driver.find(message("k1"), 0)

    assert stage.play(scene) == Found("absent")


async def uploaded(driver: Driver) -> Uploaded:
    answer = await driver.upload(PICTURE, b"png")
    assert isinstance(answer, Uploaded)
    return answer


def test_an_upload_is_recorded_and_can_be_sent_again_and_again() -> None:
    stage = Stage()

    async def scene() -> tuple[Uploaded, list[Outcome]]:
        driver = await stage.open()
        upload = await uploaded(driver)
        sends = [message(f"k{n}", media=PICTURE.id, handle=upload.handle) for n in (1, 2)]
        return upload, [await driver.send(each) for each in sends]

    upload, outcomes = stage.play(scene)
    assert [o.kind for o in outcomes] == [OutcomeKind.ACCEPTED] * 2
    first, *sends = stage.effects.all()
    assert upload.expires_at is None
    assert (first.kind, first.key, first.part.size) == ("upload", PICTURE.id, 3)
    assert (first.accepted, first.provider_id) == (True, upload.handle)
    assert [(e.part.media, e.part.handle) for e in sends] == [(PICTURE.id, upload.handle)] * 2


def test_a_handle_expires() -> None:
    stage = Stage()

    async def scene() -> list[str]:
        driver = await stage.open(handle_expires="1h")
        upload = await uploaded(driver)
        assert upload.expires_at == START + HOUR
        codes = []
        for second in (0, 3599, 3600):
            await stage.clock.sleep_until(START + second * SECOND)
            sent = message(f"k{second}", media=PICTURE.id, handle=upload.handle)
            codes.append((await driver.send(sent)).code)
        again = await uploaded(driver)
        sent = message("again", media=PICTURE.id, handle=again.handle)
        assert again.handle != upload.handle
        return [*codes, (await driver.send(sent)).code]

    assert stage.play(scene) == ["", "", "media-expired", ""]


def test_media_must_have_been_uploaded_by_the_same_account() -> None:
    stage = Stage()

    async def scene() -> list[tuple[OutcomeKind, str]]:
        first, second = await stage.open("first"), await stage.open("second")
        upload = await uploaded(first)
        answers = [
            await first.send(message("k1", media=PICTURE.id)),
            await first.send(message("k2", media=PICTURE.id, handle="made up")),
            await second.send(message("k3", media=PICTURE.id, handle=upload.handle)),
        ]
        return [(answer.kind, answer.code) for answer in answers]

    refused = OutcomeKind.REJECTED
    assert stage.play(scene) == [
        (refused, "media-missing"), (refused, "media-unknown"), (refused, "media-unknown"),
    ]  # fmt: skip


def test_uploads_take_time_and_may_fail() -> None:
    stage = Stage()

    async def scene() -> list[Uploaded | Outcome]:
        driver = await stage.open(upload_latency="2s", upload_failure_at=[1])
        answers = [await driver.upload(PICTURE, b"png") for _ in range(2)]
        assert stage.clock.now() == START + 4 * SECOND
        return answers

    failed, fine = stage.play(scene)
    assert isinstance(failed, Outcome)
    assert (failed.kind, failed.code) == (OutcomeKind.TRANSIENT, "upload")
    assert isinstance(fine, Uploaded)
    assert [(e.kind, e.accepted) for e in stage.effects.all()] == [
        ("upload", False), ("upload", True),
    ]  # fmt: skip


def test_a_banned_account_uploads_nothing() -> None:
    stage = Stage()

    async def scene() -> Uploaded | Outcome:
        driver = await stage.open(ban_after=1)
        await driver.send(message("k1"))
        await driver.send(message("k2"))
        return await driver.upload(PICTURE, b"png")

    answer = stage.play(scene)
    assert isinstance(answer, Outcome)
    assert answer.kind is OutcomeKind.BANNED


def test_a_ban_that_begins_with_an_upload_ends_as_well() -> None:
    """Found by the simulator: it began anew with every file that was to be uploaded, for ever."""
    stage = Stage()

    async def scene() -> list[Uploaded | Outcome]:
        driver = await stage.open(ban_after=1, ban_for="1h")
        await driver.send(message("k1"))
        found = [await driver.upload(PICTURE, b"png")]
        await stage.clock.sleep_until(START + 10 * MINUTE)
        found.append(await driver.send(message("k2")))
        await stage.clock.sleep_until(START + HOUR)
        return [*found, await driver.upload(PICTURE, b"png")]

    begins, goes_on, over = stage.play(scene)
    assert isinstance(begins, Outcome) and isinstance(goes_on, Outcome)
    assert (begins.retry_after_us, goes_on.retry_after_us) == (HOUR, 50 * MINUTE)
    assert isinstance(over, Uploaded)


def test_two_processes_know_of_each_other_s_sends(tmp_path: Path) -> None:
    one = Stage(FileEffects(tmp_path / "effects.jsonl"))
    other = Stage(FileEffects(tmp_path / "effects.jsonl"))
    limits = {"quota_per_day": 3, "throttle_at": [2]}
    found = []
    for turn, stage in enumerate([one, other, one, other, one]):
        found += stage.send_all([message(f"k{turn}")], **limits)
    assert [o.kind.value for o in found] == [
        "accepted", "throttled", "accepted", "accepted", "exhausted",
    ]  # fmt: skip
    assert one.play(lambda: finding(one, "k3")).finding == "present"


DOOMED = """
import asyncio, sys
from paceline.engine.clock import SystemClock
from paceline.providers.sandbox import FileEffects, SandboxProvider
from tests.providers.stage import account, message

async def main():
    provider = SandboxProvider(SystemClock(), FileEffects(sys.argv[1]))
    driver = await provider.open(account(latency="0s", timeout_latency="1h"))
    call = asyncio.create_task(driver.send(message("k1", "timeout@example.com")))
    await asyncio.gather(call, driver.send(message("k2")), say_when_sent(driver))

async def say_when_sent(driver):
    while (await driver.find(message("k1"), 0)).finding != "present":
        pass
    print("sent", flush=True)

asyncio.run(main())
"""


def test_after_a_kill_the_next_process_finds_what_was_sent(tmp_path: Path) -> None:
    path = tmp_path / "effects.jsonl"
    root = Path(__file__).resolve().parents[2]
    doomed = subprocess.Popen(
        [sys.executable, "-c", DOOMED, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(root)},
    )
    try:
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == "sent\n"
    finally:
        doomed.kill()
        doomed.communicate(timeout=60)
    assert doomed.returncode == -signal.SIGKILL

    heir = Stage(FileEffects(path), start_at=START)
    assert heir.play(lambda: finding(heir, "k1")).finding == "present"
    assert heir.play(lambda: finding(heir, "never sent")).finding == "absent"
