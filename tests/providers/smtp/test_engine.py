"""Whole campaigns through the engine, the store and real connections to the fake server."""

from __future__ import annotations

from collections import Counter

import pytest

from paceline.core.instants import MILLISECOND
from paceline.core.model import Content, Part, Step, Target
from paceline.engine.unsubscribing import set_base_url
from paceline.providers.mail import replies
from paceline.providers.mail.letters import Sender, message_id
from tests.providers.smtp import fake as fakes
from tests.providers.smtp.fake import USER
from tests.providers.smtp.live import PEOPLE, LiveWorld

NOTE = (Part("text", "Hello {{ name }}", "For {{ name }}", "<p>Hello <b>{{ name }}</b></p>"),)


def states(world: LiveWorld) -> dict[str, str]:
    page = world.read(lambda tx: tx.deliveries.page(run_id=1, after_id=0))
    return {one.target: str(one.state) for one in page}


def suppressed(world: LiveWorld, target: str) -> bool:
    return bool(world.read(lambda tx: tx.suppressions.covers(target)))


def test_everybody_gets_it_once_over_one_connection(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        paper = world.picture()
        parts = (NOTE[0]._replace(attachments=(paper.id,)),)
        world.campaign(targets=PEOPLE, parts=parts, action="email")
        await world.send_all()
        assert world.counts() == {"sent": 20}

    live.play(script)
    assert live.received() == Counter({person.address: 1 for person in PEOPLE})
    letters = live.fake.letters
    assert len({letter.parsed["Message-ID"] for letter in letters}) == 20
    assert {letter.parsed["Subject"] for letter in letters} == {f"For N{n}" for n in range(20)}
    assert all(letter.files == [b"PNG"] for letter in letters)
    assert live.fake.connections == 1


def test_a_hard_bounce_is_never_written_to_again(live: LiveWorld) -> None:
    gone = PEOPLE[3].address

    async def script(world: LiveWorld) -> None:
        world.connect()
        answer = f"550 5.1.1 <{gone}>: Recipient address rejected: User unknown"
        world.fake.script.append(fakes.Step("rcpt", answer, after=gone))
        refused = "554 5.7.1 Message rejected as spam by Content Filtering."
        world.fake.script.append(fakes.Step("content", refused, after=PEOPLE[4].address))
        world.campaign(targets=PEOPLE, parts=NOTE, action="email")
        await world.send_all()
        assert world.counts() == {"sent": 18, "bounced": 1, "failed": 1}
        assert states(world)[gone] == "bounced"
        assert suppressed(world, gone) and not suppressed(world, PEOPLE[4].address)
        world.campaign(targets=PEOPLE[:5], parts=NOTE, name="summer", action="email")
        await world.send_all("summer")
        assert world.counts("summer") == {"sent": 4, "skipped": 1}

    live.play(script)
    assert live.received()[gone] == 0


def test_greylisting_is_tried_again_and_keeps_nobody_waiting(
    live: LiveWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the one who was greylisted waits, and the rest goes out meanwhile."""
    grey = [row for row in replies.ROWS if row.name == replies.GREYLISTED]
    for row in grey:
        # It is frozen, and five minutes are longer than a test may take.
        monkeypatch.setitem(row.__dict__, "wait_us", 300 * MILLISECOND)

    async def script(world: LiveWorld) -> None:
        world.connect(retry="50ms,50ms,50ms")
        answer = "450 4.2.0 <x>: Recipient address rejected: Greylisted"
        world.fake.script.append(fakes.Step("rcpt", answer, after=PEOPLE[0].address))
        world.campaign(targets=PEOPLE[:5], parts=NOTE, action="email")
        await world.send_all()
        assert world.counts() == {"sent": 5}
        usage = world.read(lambda tx: tx.deliveries.page(run_id=1, after_id=0))
        assert [one.retries for one in usage] == [1, 0, 0, 0, 0]

    live.play(script)
    assert live.fake.recipients()[-1] == PEOPLE[0].address
    assert live.received() == Counter({person.address: 1 for person in PEOPLE[:5]})


def test_a_password_that_is_refused_suspends_and_nobody_is_given_up(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.passwords[USER] = "changed"
        world.campaign(targets=PEOPLE, parts=NOTE, action="email")
        process = world.lively()
        await world.until_so(lambda: world.account_now().state == "suspended")
        await process.stop()
        assert world.account_now().state_reason.startswith("535 5.7.8"), "its name is said already"
        (alert,) = world.read(lambda tx: tx.alerts.list())
        assert alert.text.startswith("account ann is suspended: 535 5.7.8")
        assert world.counts() == {"ready": 20}

    live.play(script)
    assert not live.fake.letters


def test_one_that_is_refused_in_the_middle_suspends_too(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        answer = "530 5.7.0 Authentication Required"
        world.fake.script.append(fakes.Step("rcpt", answer, after=PEOPLE[2].address))
        world.campaign(targets=PEOPLE[:5], parts=NOTE, action="email")
        process = world.lively()
        await world.until_so(lambda: world.account_now().state == "suspended")
        await process.stop()
        assert answer in world.account_now().state_reason
        assert world.counts() == {"sent": 2, "ready": 3}

    live.play(script)


def test_a_link_that_no_letter_can_bear_suspends_and_nobody_is_given_up(live: LiveWorld) -> None:
    """As one stored by a version that looked at it less closely."""

    async def script(world: LiveWorld) -> None:
        world.connect()
        world.write(lambda tx: set_base_url(tx, "https://münchen.example"))
        world.campaign(targets=PEOPLE[:5], parts=NOTE, action="email")
        process = world.lively()
        await world.until_so(lambda: world.account_now().state == "suspended")
        await process.stop()
        assert "set base_url anew" in world.account_now().state_reason
        assert world.counts() == {"ready": 5}

    live.play(script)
    assert not live.fake.letters


def test_a_throttle_holds_the_account_back(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        answer = "421 4.7.0 Try again later, closing connection."
        world.fake.script.extend([fakes.Step("mail", answer)] * 2)
        world.campaign(targets=PEOPLE[:3], parts=NOTE, action="email")
        process = world.lively()
        await world.until_so(lambda: world.fake.commands().count("mail") == 2)
        await world.until_so(lambda: world.counts() == {"ready": 3})
        await process.stop()
        assert world.account_now().state != "suspended"
        held = world.read(lambda tx: tx.deliveries.page(run_id=1, after_id=0))
        assert {one.retries for one in held} == {0}

    live.play(script)
    assert not live.fake.letters


def test_a_letter_in_doubt_is_held_for_a_person(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.script.append(fakes.Step("content", drops=True, takes=True))
        world.campaign(targets=PEOPLE[:3], parts=NOTE, action="email")
        process = world.lively()
        await world.until_so(lambda: world.counts() == {"sent": 2, "unknown": 1})
        await process.stop()

    live.play(script)
    assert live.received() == Counter({person.address: 1 for person in PEOPLE[:3]})


def test_a_follow_up_is_in_the_same_thread(
    live: LiveWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("paceline.engine.station.WATCH_EVERY_US", 50 * MILLISECOND)

    async def script(world: LiveWorld) -> None:
        world.connect()
        later = Step(100 * MILLISECOND, Content((Part("text", "Still there?"),)))
        world.campaign(
            targets=[Target("n00@example.com", {"name": "N0"})],
            parts=NOTE,
            action="email",
            steps=(later,),
        )
        await world.send_all()

    live.play(script)
    first, second = (letter.parsed for letter in live.fake.letters)
    assert second["Subject"] == "Re: For N0"
    assert second["In-Reply-To"] == first["Message-ID"]
    assert message_id("home-1-0", Sender(USER)) == first["Message-ID"]
