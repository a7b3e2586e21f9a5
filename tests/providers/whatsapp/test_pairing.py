"""Pairing, step by step: codes to scan or to type, and how it ends."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.providers.whatsapp.errors import BANS
from paceline.providers.whatsapp.pairing import (
    ROUNDS,
    Paired,
    PairingStep,
    ScanCode,
    Scanned,
    TypeCode,
)
from paceline.providers.whatsapp.wire import (
    Came,
    LibraryError,
    PairingOver,
    QrCode,
    Standing,
    WireError,
    WireEvent,
    WireRefused,
)
from paceline.sim.loop import run_virtual
from tests.providers.whatsapp.scripted import OWN, READY
from tests.providers.whatsapp.stage import ANNA, START, Stage, account

CUT = Standing("offline")
SUCCESS = PairingOver("success")


@pytest.fixture
def fresh(tmp_path: Path) -> Stage:
    return Stage(tmp_path, paired=False)


def pair(scene: Stage, *told: Sequence[WireEvent] | WireError, phone: str | None = None) -> list:  # type: ignore[type-arg]
    """The steps when WhatsApp tells this, one connection after the other."""
    scene.whatsapp.connects.extend(told)

    async def whole() -> list[PairingStep]:
        return [step async for step in scene.provider.pair(account(), phone)]

    return run_virtual(whole(), start_at=START)


def test_a_code_is_scanned(fresh: Stage) -> None:
    codes = [QrCode("2@one"), QrCode("2@two")]
    steps = pair(fresh, [*codes, SUCCESS, SUCCESS, CUT, READY])
    assert steps == [ScanCode("2@one"), ScanCode("2@two"), Scanned(), Paired(OWN, 3)]
    assert [wire.closed for wire in fresh.whatsapp.wires] == [True]
    assert fresh.whatsapp.wires[0].session == fresh.folder / "team.session"


def test_a_code_is_typed(fresh: Stage) -> None:
    steps = pair(fresh, [QrCode("2@one"), QrCode("2@two"), SUCCESS, READY], phone="+4915112345678")
    assert steps == [TypeCode("ABCD-EFGH"), Scanned(), Paired(OWN, 3)]
    assert fresh.whatsapp.called("pair") == ["+4915112345678"]


def test_when_the_codes_run_out_there_are_new_ones(fresh: Stage) -> None:
    timeout = PairingOver("timeout")
    steps = pair(fresh, [QrCode("2@one"), timeout], [QrCode("2@two"), SUCCESS, READY])
    assert steps == [ScanCode("2@one"), ScanCode("2@two"), Scanned(), Paired(OWN, 3)]
    assert [wire.closed for wire in fresh.whatsapp.wires] == [True, True]


def test_a_library_that_falls_silent_is_asked_again(fresh: Stage) -> None:
    steps = pair(fresh, [QrCode("2@one")], [QrCode("2@two"), SUCCESS, READY])
    assert steps == [ScanCode("2@one"), ScanCode("2@two"), Scanned(), Paired(OWN, 3)]


def test_some_time_it_is_enough(fresh: Stage) -> None:
    with pytest.raises(ProviderError, match="team: no code was scanned; try again: paceline"):
        pair(fresh, *[[QrCode("2@one"), PairingOver("timeout")]] * ROUNDS)
    assert len(fresh.whatsapp.wires) == ROUNDS
    assert all(wire.closed for wire in fresh.whatsapp.wires)


def test_an_account_that_is_paired_already(scene: Stage) -> None:
    chatter = Came("3EB0A", ANNA, ANNA, "Hello", "text", START)
    assert pair(scene, [chatter, READY]) == [Paired(OWN, 3, before=True)]


@pytest.mark.parametrize(
    ("told", "error", "text"),
    [
        ([QrCode("2@x"), PairingOver("error", "invalid device identity HMAC")], ProviderError,
         "team: not paired: WhatsApp refused it (invalid device identity HMAC)"),
        ([PairingOver("err-client-outdated")], ProviderError, "team: not paired: neonize is too"),
        ([QrCode("2@x"), PairingOver("err-scanned-without-multidevice")], ProviderError,
         "team: not paired: WhatsApp on the phone is too old"),
        ([PairingOver("err-new")], ProviderError, "team: not paired: WhatsApp says err-new"),
        ([Standing("banned", BANS[2])], ProviderRefused,
         "team: banned by WhatsApp: blocked by too many people"),
        ([Standing("ended", "no such host")], ProviderError, "team: offline: no such host"),
        ([QrCode("2@x"), SUCCESS, CUT], ProviderError,
         "team: WhatsApp did not finish the pairing"),
        (WireRefused("another process uses it", "in-use"), ProviderError,
         "team: in use: another process"),
        (WireRefused("No module named 'neonize'", "not-installed"), ProviderRefused,
         "team: WhatsApp needs the extra"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_said_in_one_line(
    fresh: Stage, told: list[WireEvent] | WireError, error: type[ProviderError], text: str
) -> None:
    with pytest.raises(error) as caught:
        pair(fresh, told)
    assert str(caught.value).startswith(text)
    assert all(wire.closed for wire in fresh.whatsapp.wires)


def test_a_number_that_whatsapp_does_not_take(fresh: Stage) -> None:
    fresh.whatsapp.will("pair", LibraryError("info query returned status 400: bad-request"))
    with pytest.raises(ProviderError, match="team: info query returned status 400: bad-request"):
        pair(fresh, [QrCode("2@one")], phone="+4915112345678")


def test_who_stops_leaves_nothing_behind(fresh: Stage) -> None:
    fresh.whatsapp.connects.append([QrCode("2@one")])

    async def begin() -> None:
        steps = fresh.provider.pair(account())
        assert await anext(steps) == ScanCode("2@one")
        waiting = asyncio.ensure_future(anext(steps))
        await asyncio.wait({waiting}, timeout=1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await steps.aclose()

    run_virtual(begin(), start_at=START)
    assert fresh.whatsapp.wires[0].closed
