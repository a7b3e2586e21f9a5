"""Three questions at once: whatever is answered to each of them, in whatever pieces, nothing of a
letter is written before all three are a yes, and the next letter is told nothing about this one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvloop

from paceline.core.outcome import Outcome, OutcomeKind
from paceline.engine.ports import Message
from paceline.providers.mail.letters import Letter
from paceline.providers.smtp import driver as drivers
from paceline.providers.smtp.driver import SmtpDriver
from paceline.providers.smtp.line import Access, Line, Timing
from paceline.providers.smtp.settings import read_settings
from tests.providers.smtp.certificates import Certificates
from tests.providers.smtp.fake import FakeServer, Step, running
from tests.providers.smtp.stage import HASTY, PATIENT, letter, play
from tests.providers.smtp.wire import At, WireServer, wired

pytestmark = pytest.mark.usefixtures("way")

K = OutcomeKind
NewLoop = Callable[[], asyncio.AbstractEventLoop]
NEXT = letter("ben@example.com", key="home-8-0", text="Next")
NOBODY = b"550 5.1.1 no such user\r\n"
BUSY = b"451 4.3.0 try later\r\n"
ENVELOPE = ["mail", "rcpt", "data"]


@pytest.fixture(
    params=[
        ("plain", asyncio.new_event_loop),
        ("plain", uvloop.new_event_loop),
        ("tls", asyncio.new_event_loop),
        ("tls", uvloop.new_event_loop),
    ],
    ids=["plain-asyncio", "plain-uvloop", "tls-asyncio", "tls-uvloop"],
)
def wire(request: pytest.FixtureRequest, trusted: Certificates) -> Iterator[Wire]:
    security, new_loop = request.param
    with wired(security, trusted.server if security == "tls" else None) as server:
        yield Wire(server, new_loop, trusted)


LETTER = Letter("<1@x.example>", b"Subject: x\r\n\r\nHello\r\n", "a@x.example", "b@x.example")


async def opened(server: WireServer) -> Line:
    access = Access(read_settings(server.settings()), "", "x.example", None)
    return await Line.open(access, PATIENT, 30)


def send_all(
    settings: dict[str, Any],
    letters: tuple[Message, ...],
    timing: Timing,
    new_loop: NewLoop,
) -> list[Outcome]:
    async def scene(driver: SmtpDriver) -> list[Outcome]:
        return [await driver.send(one) for one in letters]

    return play(settings, scene, timing, new_loop)


class Wire:
    """A server, and the loop that it is spoken to from."""

    def __init__(self, server: WireServer, new_loop: NewLoop, trusted: Certificates) -> None:
        self.server = server
        self._new_loop = new_loop
        self._more = {} if server.security == "plain" else {"ca_file": str(trusted.ca_file)}

    def send(
        self, *script: At, timing: Timing = PATIENT, letters: tuple[Message, ...] = (letter(), NEXT)
    ) -> list[Outcome]:
        """What becomes of letters, one after the other, when the server does as it is told."""
        server = self.server
        server.script.extend(script)
        outcomes = send_all(server.settings(**self._more), letters, timing, self._new_loop)
        server.await_ends(server.connections)
        return outcomes

    def only_the_next_arrived(self) -> bool:
        """Nothing of the first letter came, and all of the next."""
        sent = b"".join(self.server.reads)
        (arrived,) = self.server.letters
        return arrived.endswith(b"\r\nNext") and b"Hello" not in sent


def test_two_writes_for_a_letter(wire: Wire) -> None:
    outcomes = wire.send()
    assert [outcome.kind for outcome in outcomes] == [K.ACCEPTED] * 2
    heard = ["ehlo", *ENVELOPE, "content", *ENVELOPE, "content", "quit"]
    assert (wire.server.heard, wire.server.connections) == (heard, 1)
    _, first, content, second, more, _ = wire.server.reads
    assert first.startswith(b"MAIL FROM:<anna@shop.example> SIZE=")
    assert first.endswith(b"\r\nRCPT TO:<anna@example.com>\r\nDATA\r\n")
    assert b"RCPT TO:<ben@example.com>\r\nDATA\r\n" in second
    assert content.endswith(b"\r\nHello\r\n.\r\n") and more.endswith(b"\r\nNext\r\n.\r\n")


def test_one_by_one_where_it_is_not_offered(wire: Wire) -> None:
    wire.server.offers = b"250 wire\r\n"
    assert [outcome.kind for outcome in wire.send()] == [K.ACCEPTED] * 2
    reads = wire.server.reads[1:4]
    assert reads == [
        b"MAIL FROM:<anna@shop.example>\r\n",
        b"RCPT TO:<anna@example.com>\r\n",
        b"DATA\r\n",
    ]


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_encrypted_on_the_way(trusted: Certificates, new_loop: NewLoop) -> None:
    """What a server offers counts that is heard when the connection is encrypted."""
    fake = FakeServer()
    fake.pipelining = True
    fake.script.append(Step("rcpt", "550 5.1.1 no such user"))
    with running(fake, "starttls", trusted.server):
        settings = fake.settings(ca_file=str(trusted.ca_file))
        outcomes = send_all(settings, (letter(), NEXT), PATIENT, new_loop)
    assert [outcome.kind for outcome in outcomes] == [K.BOUNCED, K.ACCEPTED]
    assert [one.encrypted for one in fake.letters] == [True] and fake.connections == 1
    assert fake.commands()[2:7] == [*ENVELOPE, "rset", "mail"]


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 13])
def test_answers_in_odd_pieces(wire: Wire, piece: int) -> None:
    wire.server.piece = piece
    script = At("rcpt", b"250-2.1.5 one\r\n250-2.1.5 two\r\n250 2.1.5 three\r\n")
    assert [outcome.kind for outcome in wire.send(script)] == [K.ACCEPTED] * 2
    assert wire.server.connections == 1 and len(wire.server.letters) == 2


# ---------------------------------------------------------------------- a no


@pytest.mark.parametrize(
    ("script", "kind", "reason", "heard"),
    [
        ([At("mail", BUSY)], K.UNAVAILABLE, "451 4.3.0 try later", ENVELOPE),
        ([At("mail", BUSY), At("data", b"354 go on\r\n")], K.UNAVAILABLE, "451 4.3.0 try later",
         [*ENVELOPE, "dot"]),
        ([At("rcpt", NOBODY)], K.BOUNCED, "550 5.1.1 no such user", ENVELOPE),
        ([At("rcpt", NOBODY), At("data", b"354 go on\r\n")], K.BOUNCED, "550 5.1.1 no such user",
         [*ENVELOPE, "dot"]),
        ([At("rcpt", NOBODY), At("data", b"354 go on\r\n"), At("dot", b"250 2.0.0 gone\r\n")],
         K.BOUNCED, "550 5.1.1 no such user", [*ENVELOPE, "dot"]),
        ([At("rcpt", b"450 4.2.0 Greylisted\r\n"), At("data", b"554 5.5.1 nobody\r\n")],
         K.TRANSIENT, "450 4.2.0 Greylisted", ENVELOPE),
        ([At("data", BUSY)], K.TRANSIENT, "451 4.3.0 try later", ENVELOPE),
    ],
)  # fmt: skip
def test_the_first_no_counts_and_the_conversation_goes_on(
    wire: Wire, script: list[At], kind: OutcomeKind, reason: str, heard: list[str]
) -> None:
    if script[0].step == "mail":
        script = [script[0], At("rcpt", b"503 5.5.1 need MAIL\r\n"), *script[1:]]
    first, second = wire.send(*script)
    assert (first.kind, first.reason, second.kind) == (kind, reason, K.ACCEPTED)
    assert wire.only_the_next_arrived()
    after = ["rset", *ENVELOPE, "content", "quit"]
    assert (wire.server.heard, wire.server.connections) == (["ehlo", *heard, *after], 1)


def test_a_letter_that_is_refused_itself(wire: Wire) -> None:
    first, second = wire.send(At("content", b"554 5.7.1 spam\r\n"))
    assert (first.kind, first.reason, second.kind) == (K.REJECTED, "554 5.7.1 spam", K.ACCEPTED)
    assert wire.server.connections == 1 and wire.server.heard.count("rset") == 1


@pytest.mark.parametrize(
    "script",
    [
        # A letter with nothing in it would have a recipient.
        [At("mail", BUSY), At("rcpt", b"250 2.1.5 ok\r\n"), At("data", b"354 go on\r\n")],
        [At("mail", BUSY), At("rcpt", b"250 2.1.5 ok\r\n")],
        [At("mail", BUSY), At("rcpt", b"421 4.3.2 enough\r\n")],
        [At("mail", BUSY), At("rcpt", NOBODY), At("data", b"250 hm\r\n")],
        [At("mail", BUSY), At("rcpt", NOBODY), At("data", b"what?\r\n")],
        [At("mail", BUSY), At("rcpt", drops=True)],
        [At("mail", BUSY), At("rcpt", NOBODY), At("data", drops=True)],
        [At("mail", BUSY), At("rcpt", NOBODY), At("data", b"354 go on\r\n"), At("dot", drops=True)],
        [At("mail", BUSY), At("rcpt", NOBODY), At("data", b"354 go on\r\n"),
         At("dot", b"421 4.3.2 enough\r\n")],
        [At("mail", BUSY), At("rcpt", NOBODY), At("data", b"354 go on\r\n"),
         At("dot", b"354 more\r\n")],
    ],
)  # fmt: skip
def test_whoever_is_out_of_step_after_a_no_is_left(wire: Wire, script: list[At]) -> None:
    """The no counts all the same."""
    first, second = wire.send(*script)
    assert (first.kind, first.reason) == (K.UNAVAILABLE, "451 4.3.0 try later")
    assert second.kind is K.ACCEPTED and wire.server.connections == 2
    assert wire.only_the_next_arrived() and "rset" not in wire.server.heard
    dots = sum(act.step == "dot" for act in script)
    assert wire.server.heard.count("dot") == dots


@pytest.mark.parametrize("last", ["rcpt", "data", "dot"])
def test_a_no_that_nothing_follows(last: str) -> None:
    """It is not waited for longer than for all before a letter, and the no counts."""
    script = [At("mail", BUSY), At("rcpt", NOBODY), At("data", b"354 go on\r\n"), At("dot")]
    names = [act.step for act in script]

    async def scene(server: WireServer) -> Outcome:
        line = await opened(server)
        outcome = await line.deliver(LETTER, 1)
        assert not line.is_open
        return outcome

    with wired() as server:
        server.script.extend([*script[: names.index(last)], At(last, hangs=True)])
        outcome = asyncio.run(scene(server))
    assert (outcome.kind, outcome.reason) == (K.UNAVAILABLE, "451 4.3.0 try later")
    assert not server.letters and server.heard[-1] == last and server.connections == 1


# ---------------------------------------------------------------------- an end


@pytest.mark.parametrize("step", ["rcpt", "data", "content"])
@pytest.mark.parametrize("hangs", [True, False], ids=["stays", "hangs-up"])
def test_closing_at_each_step(wire: Wire, step: str, hangs: bool) -> None:
    """Nobody waits for a server to do what it has said."""
    says = b"421 4.7.0 closing\r\n"
    first, second = wire.send(At(step, says, drops=not hangs, hangs=hangs))
    assert (first.kind, first.reason) == (K.THROTTLED, "421 4.7.0 closing")
    assert second.kind is K.ACCEPTED and wire.server.connections == 2
    assert step == "content" or wire.only_the_next_arrived()


@pytest.mark.parametrize(
    "end", [At("mail", drops=True), At("mail", b"421 4.4.2 idle\r\n", drops=True)]
)
def test_one_that_ends_before_it_has_heard_of_a_letter_is_called_again(wire: Wire, end: At) -> None:
    first, second = wire.send(end)
    assert (first.kind, second.kind) == (K.ACCEPTED, K.ACCEPTED)
    assert wire.server.connections == 2 and len(wire.server.letters) == 2


@pytest.mark.parametrize(
    ("step", "says", "kind"),
    [
        ("rcpt", b"", K.TRANSIENT),
        ("rcpt", b"250 2.1.", K.TRANSIENT),
        ("data", b"", K.TRANSIENT),
        ("data", b"354 go", K.TRANSIENT),
        ("data", b"354 go on\r\n", K.TRANSIENT),
        ("content", b"", K.UNKNOWN),
        ("content", b"250 2.0", K.UNKNOWN),
    ],
)
def test_a_connection_that_ends_at_each_step(
    wire: Wire, step: str, says: bytes, kind: OutcomeKind
) -> None:
    first, second = wire.send(At(step, says, drops=True))
    if says != b"354 go on\r\n":
        assert first.kind is kind, first.reason
        assert kind is K.UNKNOWN or wire.only_the_next_arrived()
    else:
        # The letter may have been on its way before the end was seen; never is it taken for sent.
        assert first.kind in (K.TRANSIENT, K.UNKNOWN)
    assert second.kind is K.ACCEPTED and wire.server.connections == 2


@pytest.mark.parametrize("step", [*ENVELOPE, "content"])
def test_a_server_that_keeps_silent(wire: Wire, step: str) -> None:
    """It has not seen a byte of the letter before it wanted it."""
    timing = HASTY._replace(envelope_s=30) if step == "content" else HASTY
    (first,) = wire.send(At(step, hangs=True), timing=timing, letters=(letter(),))
    assert first.kind is (K.UNKNOWN if step == "content" else K.TRANSIENT)
    assert "no answer in time" in first.reason
    assert wire.server.reads[-1].endswith(b"\r\n.\r\n" if step == "content" else b"DATA\r\n")
    assert wire.server.connections == 1


# ---------------------------------------------------------------------- more than was asked for


def test_a_goodbye_that_nobody_asked_for(wire: Wire) -> None:
    """It comes right behind the last answer, and costs the next letter nothing."""
    first, second = wire.send(At("content", b"250 2.0.0 ok\r\n421 4.4.2 enough\r\n", hangs=True))
    assert (first.kind, second.kind) == (K.ACCEPTED, K.ACCEPTED)
    assert wire.server.connections == 2 and len(wire.server.letters) == 2


def test_a_goodbye_before_the_letter(wire: Wire) -> None:
    says = b"354 go on\r\n421 4.3.2 shutting down\r\n"
    first, second = wire.send(At("data", says, hangs=True))
    assert (first.kind, first.code) == (K.TRANSIENT, "connection")
    assert "421 4.3.2 shutting down" in first.reason
    assert second.kind is K.ACCEPTED and wire.only_the_next_arrived()


@pytest.mark.parametrize(
    "script",
    [
        [At("mail", b"250 ok\r\n250 ok\r\n")],
        [At("rcpt", b"250 ok\r\n250 ok\r\n")],
        [At("mail", b"250 ok\r\n354 go on\r\n")],
        [At("mail", b"354 go on\r\n")],
        [At("rcpt", b"354 go on\r\n")],
        [At("data", b"354-go\r\n250 on\r\n")],
        [At("data", b"250 ok\r\n")],
        [At("rcpt", b"250-ok\r\nwhat?\r\n")],
    ],
)
def test_nothing_is_sent_to_whoever_is_out_of_step(wire: Wire, script: list[At]) -> None:
    first, second = wire.send(*script)
    assert (first.kind, first.code) == (K.TRANSIENT, "answer")
    assert second.kind is K.ACCEPTED and wire.server.connections == 2
    assert wire.only_the_next_arrived()


def test_an_idle_connection_that_is_out_of_step_is_left(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drivers, "IDLE_US", -1)
    outcomes = wire.send(At("rset", b"250 ok\r\n250 ok\r\n"), At("rset", b"502 5.5.1 no\r\n"))
    assert [outcome.kind for outcome in outcomes] == [K.ACCEPTED] * 2
    assert wire.server.connections == 3 and wire.server.heard.count("rset") == 2


# ---------------------------------------------------------------------- addresses


@pytest.mark.parametrize("bad", ["a@x.example\r\nRSET", "a@x.example\n", "a\x00@x.example", "a>@x",
                                 "<a@x.example", "a b@x.example", "a\x7f@x.example"])  # fmt: skip
@pytest.mark.parametrize("field", ["sender", "recipient"])
def test_no_address_says_anything_to_the_server(field: str, bad: str) -> None:
    """Nobody makes such letters; should somebody, nothing is said at all."""

    async def scene(server: WireServer) -> Outcome:
        line = await opened(server)
        refused = await line.deliver(LETTER._replace(**{field: bad}), 30)
        assert line.is_open and (await line.deliver(LETTER, 30)).kind is K.ACCEPTED
        await line.quit()
        return refused

    with wired() as server:
        refused = asyncio.run(scene(server))
    assert (refused.kind, refused.code) == (K.REJECTED, "address")
    assert server.heard == ["ehlo", *ENVELOPE, "content", "quit"]
