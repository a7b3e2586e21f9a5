"""``paceline account pair``: codes on the terminal, and one line at the end."""

import asyncio
import os
import signal
from functools import partialmethod
from pathlib import Path

import pytest
import segno

from paceline.cli.pairing import MARGIN, picture
from paceline.providers.whatsapp import provider as providers
from paceline.providers.whatsapp.provider import WhatsAppProvider
from paceline.providers.whatsapp.wire import PairingOver, QrCode, Standing, WireEvent, WireRefused
from tests.cli.conftest import CommandLine
from tests.providers.whatsapp.scripted import FAMILY, OWN, READY, ScriptedWhatsApp, ScriptedWire

PAIR = ("account", "pair", "team")
SUCCESS = PairingOver("success")


@pytest.fixture
def whatsapp(monkeypatch: pytest.MonkeyPatch) -> ScriptedWhatsApp:
    world = ScriptedWhatsApp()
    monkeypatch.setattr(providers, "installed", lambda: True)
    scripted = partialmethod(WhatsAppProvider.__init__, make_wire=world.make)
    monkeypatch.setattr(WhatsAppProvider, "__init__", scripted)
    return world


@pytest.fixture
def team(paceline: CommandLine, whatsapp: ScriptedWhatsApp) -> CommandLine:
    paceline.ok("account", "add", "team", "--provider", "whatsapp", "--policy", "whatsapp-new")
    return paceline


def test_a_code_to_scan(team: CommandLine, whatsapp: ScriptedWhatsApp) -> None:
    whatsapp.connects.append([QrCode("2@one"), QrCode("2@two"), SUCCESS, READY])
    answer = team.ok(*PAIR)
    assert picture("2@one") in answer.out and picture("2@two") in answer.out
    assert "On the phone: WhatsApp, Linked devices, Link a device. Then scan this" in answer.out
    assert answer.out.endswith(f"team is paired as {OWN}, 3 groups found\n")
    assert answer.err == "connecting to WhatsApp …\n"
    assert whatsapp.wires[0].session == Path("whatsapp/team.session"), "beside the database"
    assert whatsapp.wires[0].closed


def test_a_code_to_type(team: CommandLine, whatsapp: ScriptedWhatsApp) -> None:
    whatsapp.connects.append([QrCode("2@one"), SUCCESS, READY])
    whatsapp.groups = [FAMILY]
    answer = team.ok(*PAIR, "--phone", "+49 151 12345678")
    assert "ABCD-EFGH" in answer.out and "█" not in answer.out
    assert answer.out.endswith(f"team is paired as {OWN}, 1 group found\n")
    assert whatsapp.called("pair") == ["+4915112345678"]


def test_an_account_that_was_paired_before(team: CommandLine, whatsapp: ScriptedWhatsApp) -> None:
    assert team.ok(*PAIR).out == f"team was paired already as {OWN}, 3 groups found\n"


def test_a_suspended_account_is_told_how_to_go_on(
    team: CommandLine, whatsapp: ScriptedWhatsApp
) -> None:
    suspend(team)
    lines = team.ok(*PAIR).out.splitlines()
    assert lines[-1] == "team is suspended; let it go on with: paceline account resume team"


def suspend(team: CommandLine) -> None:
    from paceline.app import open_app
    from paceline.config import load

    with open_app(load()) as house, house.store.write() as tx:
        found = tx.accounts.find("team")
        assert found is not None
        tx.accounts.move(found.id, "suspend", reason="logged out")


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        ([Standing("ended", "no such host")], "paceline: team: offline: no such host"),
        ([QrCode("2@x"), PairingOver("error", "bad HMAC")],
         "paceline: team: not paired: WhatsApp refused it (bad HMAC)"),
        (WireRefused("another process uses its session team.session", "in-use"),
         "paceline: team: in use: another process uses its session team.session"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_one_line(
    team: CommandLine,
    whatsapp: ScriptedWhatsApp,
    told: list[WireEvent] | WireRefused,
    complaint: str,
) -> None:
    whatsapp.connects.append(told)
    answer = team(*PAIR)
    assert answer.code == 1
    assert answer.err.splitlines()[-1] == complaint


def test_who_cannot_be_paired(team: CommandLine) -> None:
    team.ok("account", "add", "sales", "--provider", "sandbox")
    complaint = team.refused("account", "pair", "sales")
    assert "accounts of sandbox are not paired, only those of whatsapp" in complaint
    assert "no account named 'teem', did you mean 'team'?" in team.refused(
        "account", "pair", "teem"
    )


def test_a_number_that_is_none(team: CommandLine, whatsapp: ScriptedWhatsApp) -> None:
    assert "--phone: '12' has no country code" in team.refused(*PAIR, "--phone", "12")
    assert whatsapp.wires == []


def test_without_the_extra_it_is_said_how_to_get_it(
    paceline: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(providers, "find_spec", lambda name: None)
    complaint = paceline.refused("account", "add", "team", "--provider", "whatsapp")
    assert complaint == (
        "paceline: WhatsApp needs the extra 'whatsapp', which is not installed here; install it "
        "with: scripts/install --whatsapp (or: pip install 'paceline[whatsapp]')"
    )


def test_ctrl_c_stops_it(
    team: CommandLine, whatsapp: ScriptedWhatsApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupted(self: ScriptedWire) -> None:
        self.listener(QrCode("2@one"))
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGINT)

    monkeypatch.setattr(ScriptedWire, "connect", interrupted)
    # Whoever starts the tests in the background has them ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert team(*PAIR).code == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert whatsapp.wires[0].closed


def test_the_picture_is_the_code() -> None:
    code = "2@" + "x" * 150
    lines = picture(code).splitlines()
    light = {"█": (1, 1), "▀": (1, 0), "▄": (0, 1), " ": (0, 0)}
    drawn: list[list[int]] = []
    for line in lines:
        drawn += [[light[block][half] for block in line] for half in (0, 1)]
    wanted = [
        [0 if dark else 1 for dark in row] for row in segno.make_qr(code).matrix_iter(border=MARGIN)
    ]
    assert drawn[: len(wanted)] == wanted
