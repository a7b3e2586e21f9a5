"""Letters whose answer was lost, looked for where their server keeps what was sent: over real
connections to a mail server and to a mailbox."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from paceline.core import retry
from paceline.core.errors import InputError
from paceline.core.instants import MILLISECOND, MINUTE, Instant
from paceline.core.outcome import OutcomeKind
from paceline.core.states import DeliveryState
from paceline.engine import recovery, settling
from paceline.engine.ports import Found, Message
from paceline.providers.mail import dns
from paceline.providers.mail.letters import Sender, message_id
from paceline.providers.mail.sent import SentFolder
from paceline.providers.smtp import driver as smtp_driver
from paceline.providers.smtp import read_settings
from paceline.providers.smtp.driver import SmtpDriver
from paceline.providers.smtp.settings import able
from tests.providers.mail import imap_server
from tests.providers.mail.imap_server import ImapServer
from tests.providers.remote import NOTE
from tests.providers.smtp import fake as fakes
from tests.providers.smtp.fake import USER, FakeServer
from tests.providers.smtp.live import PEOPLE, LiveWorld
from tests.providers.smtp.stage import CLOCK, letter, play

SENT = "Sent Items"
QUOTED = f'"{SENT}"'
FLAGGED = f'* LIST (\\HasNoChildren \\Sent) "/" "{SENT}"'
UNCLEAR, ABSENT = Found("unclear"), Found("absent")
LONG_AGO = 11 * MINUTE


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    with fakes.running(FakeServer()) as server:
        yield server


@pytest.fixture
def imap() -> Iterator[ImapServer]:
    with imap_server.running(ImapServer()) as server:
        server.make(QUOTED)
        yield server
    # Whatever was cut off has let go of its thread.
    for thread in threading.enumerate():
        if thread.name == "paceline-imap":
            thread.join(10)
            assert not thread.is_alive()


def own_id(message: Message) -> str:
    return message_id(message.key, Sender(USER))


def copy_of(message: Message, *headers: str) -> bytes:
    """A letter as its server keeps it."""
    lines = [f"From: {USER}", f"Message-ID: {own_id(message)}", *headers, "", "Hello"]
    return "\r\n".join(lines).encode()


def look(
    fake: FakeServer, settings: dict[str, Any], message: Message, ago_us: int = LONG_AGO
) -> Found:
    since_at: Instant = CLOCK.now() - ago_us
    return play(fake.settings(**settings), lambda driver: driver.find(message, since_at))


# ---------------------------------------------------------------------- what is found


def test_the_folder_that_the_server_marks(fake: FakeServer, imap: ImapServer) -> None:
    sent = letter()
    imap.append(copy_of(letter(key="home-8-0")), QUOTED)
    imap.append(copy_of(sent), QUOTED)
    imap.script.append(imap_server.Step("LIST", before=FLAGGED))
    before = imap.flags(QUOTED)
    assert look(fake, imap.settings(), sent) == Found("present", own_id(sent))
    # Nothing there was touched.
    assert imap.flags(QUOTED) == before and imap.count("SELECT") == 0


def test_one_that_marks_its_folders_only_when_asked(fake: FakeServer, imap: ImapServer) -> None:
    sent = letter()
    imap.append(copy_of(sent), QUOTED)
    told = "* CAPABILITY IMAP4rev1 SPECIAL-USE"
    imap.script.extend([imap_server.Step("CAPABILITY", "OK done", before=told)] * 2)
    imap.script.append(imap_server.Step("LIST (SPECIAL-USE)", "OK done", before=FLAGGED))
    assert look(fake, imap.settings(), sent).finding == "present"


def test_the_folder_that_the_settings_name(fake: FakeServer, imap: ImapServer) -> None:
    sent = letter()
    imap.append(copy_of(sent), QUOTED)
    assert look(fake, imap.settings(sent_folder=SENT), sent).finding == "present"
    assert imap.count("LIST") == 0


def test_a_letter_that_goes_on_with_it_is_another_one(fake: FakeServer, imap: ImapServer) -> None:
    sent = letter()
    follows = copy_of(letter(key="home-77-0"), f"References: {own_id(sent)}")
    imap.append(follows, QUOTED)
    assert look(fake, imap.settings(sent_folder=SENT), sent) == UNCLEAR


# ---------------------------------------------------------------------- what is not


@pytest.mark.parametrize(
    ("more", "ago_us", "found"),
    [
        ({}, LONG_AGO, UNCLEAR),
        ({"sent_complete": True}, LONG_AGO, ABSENT),
        ({"sent_complete": True}, 9 * MINUTE, UNCLEAR),
    ],
    ids=["nobody says that all is kept", "all is kept", "it may still be on its way there"],
)
def test_absence_is_proof_only_where_the_settings_say_so_and_then_not_at_once(
    fake: FakeServer, imap: ImapServer, more: dict[str, Any], ago_us: int, found: Found
) -> None:
    assert look(fake, imap.settings(sent_folder=SENT, **more), letter(), ago_us) == found


def test_a_server_that_keeps_no_such_folder_proves_nothing(
    fake: FakeServer, imap: ImapServer
) -> None:
    assert look(fake, imap.settings(sent_complete=True), letter()) == UNCLEAR
    named = imap.settings(sent_folder="Gone", sent_complete=True)
    assert look(fake, named, letter()) == UNCLEAR


@pytest.mark.parametrize(
    "step",
    [
        imap_server.Step("LOGIN", "NO [AUTHENTICATIONFAILED] Invalid credentials"),
        imap_server.Step("LOGIN", drops=True),
        imap_server.Step("EXAMINE", "NO [UNAVAILABLE] not now"),
        imap_server.Step("EXAMINE", drops=True),
        imap_server.Step("UID SEARCH", "NO [SERVERBUG] no"),
        imap_server.Step("UID SEARCH", "BAD what"),
        imap_server.Step("UID SEARCH", drops=True),
    ],
    ids=lambda step: f"{step.at} {step.answer or 'drops'}",
)
def test_not_being_told_is_no_proof(
    fake: FakeServer, imap: ImapServer, step: imap_server.Step
) -> None:
    imap.script.append(step)
    settings = imap.settings(sent_folder=SENT, sent_complete=True)
    assert look(fake, settings, letter()) == UNCLEAR


def test_nobody_is_there(fake: FakeServer) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        server = ImapServer()
        server.port = taken.getsockname()[1]
        assert look(fake, server.settings(sent_complete=True), letter()) == UNCLEAR


def test_a_server_that_keeps_silent_is_not_waited_for(
    fake: FakeServer, imap: ImapServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for longer than a search may take, and its thread ends with it."""
    monkeypatch.setattr(SentFolder.__init__, "__kwdefaults__", {"within_s": 0.3})
    imap.script.append(imap_server.Step("UID SEARCH", hangs=True))
    settings = imap.settings(sent_folder=SENT, sent_complete=True)
    assert look(fake, settings, letter()) == UNCLEAR


def test_whoever_is_called_off_leaves_no_connection(fake: FakeServer, imap: ImapServer) -> None:
    async def scene(driver: SmtpDriver) -> None:
        imap.script.append(imap_server.Step("UID SEARCH", hangs=True))
        call = asyncio.ensure_future(driver.find(letter(), 0))
        await imap.until("UID")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    play(fake.settings(**imap.settings(sent_folder=SENT)), scene)


# ---------------------------------------------------------------------- the settings


def test_what_an_account_can_do_follows_from_its_settings(
    fake: FakeServer, imap: ImapServer
) -> None:
    def can(**more: Any) -> tuple[bool, bool]:
        found = able(read_settings(fake.settings(**more)))
        return found.finds, found.proves_absence

    assert can() == (False, False)
    assert can(**imap.settings()) == (True, False)
    assert can(**imap.settings(sent_complete=True)) == (True, True)


@pytest.mark.parametrize("key", [{"sent_folder": "Sent"}, {"sent_complete": True}])
def test_a_folder_of_no_mailbox_is_refused(fake: FakeServer, key: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="imap_host is missing"):
        read_settings(fake.settings(**key))


def test_whoever_checks_the_account_is_told(
    fake: FakeServer, imap: ImapServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def advice(*_: str) -> list[str]:
        return ["SPF: looked up"]

    monkeypatch.setattr(dns, "advice", advice)

    def told(**more: Any) -> str:
        return play(fake.settings(**imap.settings(**more)), lambda driver: driver.advise())[-1]

    assert told(sent_folder=SENT) == f"sent: a letter in doubt is looked for in {SENT}"
    assert "marks no folder" in told()
    assert told(sent_folder="Gone").startswith("sent: letters cannot be looked for: ")
    wrong = told(imap_password="wrong-password")
    assert wrong.startswith("sent: letters cannot be looked for: ") and "wrong-p" not in wrong


# ---------------------------------------------------------------------- the whole way


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider is asked about a doubt within a second, and not within half a minute."""
    asks = (300 * MILLISECOND, 600 * MILLISECOND, 900 * MILLISECOND)
    monkeypatch.setattr(retry, "ASK_AFTER_US", asks)
    monkeypatch.setattr(settling, "ASK_AFTER_US", asks)
    monkeypatch.setattr(recovery, "CLEAN_UP_US", 50 * MILLISECOND)
    monkeypatch.setattr(smtp_driver, "ANSWERED_WITHIN_US", 0)


def delivered(world: LiveWorld) -> dict[str, tuple[str, int]]:
    page = world.read(lambda tx: tx.deliveries.page(run_id=1, after_id=0))
    return {one.target: (str(one.state), one.attempts) for one in page}


def test_an_answer_that_was_lost_is_found_among_what_was_sent(
    live: LiveWorld, imap: ImapServer, soon: None
) -> None:
    """Taken, and the connection lost before the answer to it: in doubt, then sent. Once."""
    first = PEOPLE[0].address

    async def script(world: LiveWorld) -> None:
        world.connect(imap.settings(sent_folder=SENT))
        world.fake.script.append(fakes.Step("content", drops=True, takes=True, after=first))
        world.campaign(targets=PEOPLE[:3], parts=NOTE, action="email")
        process = world.lively()
        await world.until_so(lambda: world.counts() == {"sent": 2, "unknown": 1})
        (taken,) = [one for one in world.fake.letters if one.recipient == first]
        await asyncio.to_thread(imap.append, taken.raw, QUOTED)
        await world.until_so(lambda: world.counts() == {"sent": 3})
        await process.stop()
        assert delivered(world)[first] == (DeliveryState.SENT, 1)
        kinds = world.read(lambda tx: [row.outcome for row in tx.ledger.of_delivery(1)])
        assert kinds == [None, OutcomeKind.UNKNOWN, "accepted"]

    live.play(script)
    assert live.received() == Counter({person.address: 1 for person in PEOPLE[:3]})


def test_one_that_never_arrived_is_sent_again_where_all_is_kept(
    live: LiveWorld, imap: ImapServer, soon: None
) -> None:
    first = PEOPLE[0].address

    async def script(world: LiveWorld) -> None:
        world.connect(imap.settings(sent_folder=SENT, sent_complete=True))
        world.fake.script.append(fakes.Step("content", drops=True, after=first))
        world.campaign(targets=PEOPLE[:2], parts=NOTE, action="email")
        await world.send_all()
        assert delivered(world)[first] == (DeliveryState.SENT, 2)

    live.play(script)
    assert live.received() == Counter({person.address: 1 for person in PEOPLE[:2]})


@pytest.mark.parametrize(
    "more", [{"imap_password": "wrong"}, {"sent_folder": "Gone"}], ids=["kept out", "no folder"]
)
def test_without_proof_it_stays_in_doubt(
    live: LiveWorld, imap: ImapServer, soon: None, more: dict[str, Any]
) -> None:
    async def script(world: LiveWorld) -> None:
        settings = {"sent_folder": SENT, "sent_complete": True} | more
        world.connect(imap.settings(**settings))
        world.fake.script.append(fakes.Step("content", drops=True, takes=True))
        world.campaign(targets=PEOPLE[:1], parts=NOTE, action="email")
        await world.leave_to_a_person()
        assert world.counts() == {"unknown": 1}
        assert world.account_now().state == "active"

    live.play(script)
    assert live.received() == Counter({PEOPLE[0].address: 1})
