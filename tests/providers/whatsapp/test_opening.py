"""Opening an account: what is wrong with it is said in one line, and how it stands is kept up."""

import asyncio
from pathlib import Path
from typing import get_args

import pytest

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import HOUR
from paceline.core.outcome import OutcomeKind
from paceline.engine.ports import Driver
from paceline.providers.whatsapp.driver import WhatsAppDriver
from paceline.providers.whatsapp.errors import BANS, LOGOUTS, STANDINGS
from paceline.providers.whatsapp.wire import (
    QrCode,
    Standing,
    StandingState,
    WireError,
    WireEvent,
    WireLost,
    WireRefused,
)
from paceline.sim.loop import run_virtual
from tests.providers.whatsapp.scripted import READY
from tests.providers.whatsapp.stage import ANNA, START, Stage, brief, message

K = OutcomeKind

BANNED = Standing("banned", BANS[1], "temporary-ban", HOUR)


async def nothing(driver: Driver) -> None:
    """Open, and close again."""


@pytest.mark.parametrize(
    ("told", "error", "text"),
    [
        ([QrCode("2@abc")], ProviderRefused,
         "team: not paired; pair it with: paceline account pair team"),
        ([Standing("logged_out", LOGOUTS[2])], ProviderRefused,
         "team: logged out: the device was removed on the phone; "
         "pair it again with: paceline account pair team"),
        ([Standing("offline"), Standing("logged_out", LOGOUTS[4])], ProviderRefused,
         "team: logged out: the phone itself was logged out; "),
        ([BANNED], ProviderRefused,
         "team: banned by WhatsApp: sent to too many people who do not know the number, "
         "until 2026-11-15T10:00:00Z"),
        ([Standing("outdated")], ProviderRefused,
         "team: too old for WhatsApp; install a newer neonize"),
        ([Standing("replaced")], ProviderRefused, "team: used elsewhere; see to it that only one"),
        ([Standing("ended", "failed to dial: no such host")], ProviderError,
         "team: offline: failed to dial: no such host"),
        ([], ProviderError, "team: offline: no answer from WhatsApp within 60 s"),
        ([Standing("offline")], ProviderError, "team: offline: no answer from WhatsApp within 60"),
        (WireLost("its process crashed (panic: x)", handed_over=False), ProviderError,
         "team: offline: its process crashed (panic: x)"),
        (WireRefused("another process uses its session team.session", "in-use"), ProviderError,
         "team: in use: another process uses its session team.session"),
        (WireRefused("ModuleNotFoundError: No module named 'neonize'", "not-installed"),
         ProviderRefused, "team: WhatsApp needs the extra 'whatsapp'"),
        (WireRefused("ImportError: failed to find libmagic.", "not-installed"), ProviderRefused,
         "team: the library libmagic is missing; install it, on Debian"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(
    scene: Stage, told: list[WireEvent] | WireError, error: type[ProviderError], text: str
) -> None:
    scene.whatsapp.connects.append(told)
    with pytest.raises(error) as caught:
        scene.play(nothing)
    assert type(caught.value) is error
    assert str(caught.value).startswith(text) and "\n" not in str(caught.value)
    assert all(wire.closed for wire in scene.whatsapp.wires)


def test_without_a_session_nothing_is_started(tmp_path: Path) -> None:
    scene = Stage(tmp_path, paired=False)
    with pytest.raises(ProviderRefused, match="team: not paired; pair it with: paceline account"):
        scene.play(nothing)
    assert scene.whatsapp.wires == []
    assert list(tmp_path.iterdir()) == []


def test_who_is_told_to_stop_opening_leaves_nothing_behind(scene: Stage) -> None:
    scene.whatsapp.connects.append([])

    async def begin() -> None:
        opening = asyncio.ensure_future(scene.open())
        await asyncio.wait({opening}, timeout=1)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    run_virtual(begin(), start_at=START)
    assert scene.whatsapp.wires[0].closed


@pytest.mark.parametrize(
    ("standing", "kind", "code"),
    [
        (Standing("logged_out", LOGOUTS[2], "logged-out"), K.UNAUTHORISED, "logged-out"),
        (Standing("replaced"), K.UNAUTHORISED, "replaced"),
        (Standing("outdated"), K.UNAUTHORISED, "outdated"),
        (BANNED, K.BANNED, "temporary-ban"),
    ],
)
def test_what_befalls_an_open_account_is_answered_to_the_next_message(
    scene: Stage, standing: Standing, kind: OutcomeKind, code: str
) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        scene.whatsapp.say(standing)
        assert brief(await driver.send(message(ANNA))) == (kind, code)
        # Then the connection ends, too, which must not hide why.
        scene.whatsapp.say(Standing("offline"))
        scene.whatsapp.say(Standing("ended", "the connection has ended"))
        assert brief(await driver.send(message(ANNA))) == (kind, code)
        assert brief(await driver.resolve(message(ANNA))) == (kind, code)
        with pytest.raises(ProviderError):
            await driver.groups()

    scene.play(send)
    assert scene.whatsapp.calls == []


def test_a_ban_that_lasts_is_over_when_it_is(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        scene.whatsapp.say(BANNED)
        await scene.clock.sleep(HOUR // 2)
        outcome = await driver.send(message(ANNA))
        assert (outcome.kind, outcome.retry_after_us) == (K.BANNED, HOUR // 2)
        await scene.clock.sleep(HOUR // 2)
        assert (await driver.send(message(ANNA))).kind is K.ACCEPTED

    scene.play(send)
    assert len(scene.whatsapp.wires) == 2, "whoever was banned connects anew"


def test_a_ban_that_goes_on_is_told_again(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        scene.whatsapp.say(BANNED)
        await scene.clock.sleep(HOUR)
        scene.whatsapp.connects.append([BANNED])
        outcome = await driver.send(message(ANNA))
        assert (outcome.kind, outcome.retry_after_us) == (K.BANNED, HOUR)

    scene.play(send)


def test_an_account_that_was_logged_out_meanwhile(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        scene.whatsapp.wires[-1].crash()
        scene.whatsapp.connects.append([Standing("logged_out", LOGOUTS[2], "logged-out")])
        assert brief(await driver.send(message(ANNA))) == (K.UNAUTHORISED, "logged-out")
        assert scene.whatsapp.wires[-1].closed, "nothing is kept that is of no use"

    scene.play(send)


def test_a_session_that_is_gone_meanwhile(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        scene.whatsapp.wires[-1].crash()
        (scene.folder / "team.session").unlink()
        assert brief(await driver.send(message(ANNA))) == (K.UNAUTHORISED, "unpaired")

    scene.play(send)


def test_an_installation_that_broke_meanwhile(scene: Stage) -> None:
    async def send(driver: WhatsAppDriver) -> None:
        scene.whatsapp.wires[-1].crash()
        scene.whatsapp.connects.append(WireRefused("No module named 'neonize'", "not-installed"))
        outcome = await driver.send(message(ANNA))
        assert brief(outcome) == (K.UNAUTHORISED, "refused")
        assert "scripts/install --whatsapp" in outcome.reason
        scene.whatsapp.connects.append(WireRefused("another process uses it", "in-use"))
        assert brief(await driver.send(message(ANNA))) == (K.UNAVAILABLE, "offline")
        scene.whatsapp.connects.append([READY])
        assert (await driver.send(message(ANNA))).kind is K.ACCEPTED

    scene.play(send)


def test_every_state_has_its_meaning() -> None:
    assert {*STANDINGS, "ready"} == set(get_args(StandingState))
