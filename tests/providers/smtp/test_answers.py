"""Letters that answer letters: real ones, over a real connection, found together by whoever reads
them."""

from __future__ import annotations

from paceline.core.instants import SECOND
from paceline.core.model import Part
from paceline.engine import conversations
from paceline.engine.commands import returns
from paceline.providers.mail.reports import read_letter
from tests.engine.talking import WAY, Desk, Scripted
from tests.providers.smtp.fake import USER
from tests.providers.smtp.live import PEOPLE, LiveWorld

EVA = PEOPLE[0].address


def comes_in(world: LiveWorld, name: str, subject: str, *, answers: str = "") -> None:
    """A letter as a mailbox brings it."""
    lines = [
        f"From: Eva <{EVA}>",
        f"To: {USER}",
        f"Subject: {subject}",
        "Date: Mon, 02 Mar 2026 09:00:00 +0000",
        f"Message-ID: <{name}>",
        *([f"In-Reply-To: {answers}", f"References: {answers}"] if answers else []),
        "",
        "How much is it?",
    ]
    now = world.clock.now()
    news = read_letter("\r\n".join(lines).encode(), ours=[USER], at=now)
    account = world.account_now()
    world.write(lambda tx: returns.take_in(tx, account, news, now))


def test_an_answer_names_the_letter_that_it_answers_and_what_came_before(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        account = world.connect()
        answering = {"way": WAY, "quiet_us": 0, "max_wait_us": SECOND}
        world.write(lambda tx: tx.accounts.update(account.id, answering=answering))
        note = (Part("text", "Hello {{ name }}", "Our offer"),)
        world.campaign(targets=PEOPLE[:1], parts=note, action="email")
        desk = Desk(world, Scripted())
        letters = world.fake.letters
        await world.until_so(lambda: len(letters) == 1)
        first = letters[0].parsed["Message-ID"]
        comes_in(world, "one@example.com", "Re: Our offer", answers=first)
        await world.until_so(lambda: len(letters) == 2)
        second = letters[1].parsed["Message-ID"]
        comes_in(world, "two@example.com", "Re: Our offer", answers=second)
        await world.until_so(lambda: len(letters) == 3)
        await desk.stop()
        assert len({first, second, letters[2].parsed["Message-ID"]}) == 3
        told = [(one.parsed["In-Reply-To"], one.parsed["References"]) for one in letters]
        whole = [first, "<one@example.com>", second, "<two@example.com>"]
        assert told[0] == (None, None)
        assert told[1] == ("<one@example.com>", f"{whole[0]} {whole[1]}")
        assert told[2][0] == "<two@example.com>"
        assert told[2][1].split() == whole
        assert {one.parsed["Subject"] for one in letters[1:]} == {"Re: Our offer"}

    live.play(script)


def all_sent(world: LiveWorld) -> bool:
    return all(one.state == "sent" for one in world.read(lambda tx: tx.deliveries.page()))


def test_so_does_one_by_hand_whether_or_not_anything_waits(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        process, letters = world.lively(), world.fake.letters
        comes_in(world, "one@example.com", "A question")
        for number, words in enumerate(("At ten.", "Or at eleven."), start=1):
            now = world.clock.now()
            world.write(
                lambda tx, words=words, now=now: conversations.reply(
                    tx, 1, words, world.providers, now
                )
            )
            # The server has it before we have heard that it does.
            await world.until_so(lambda number=number: len(letters) == number and all_sent(world))
            replied = world.read(lambda tx: tx.turns.replied(10))
            for one in replied:
                world.write(lambda tx, one=one, now=now: conversations.end(tx, one, now))
        await process.stop()
        told = [(one.parsed["In-Reply-To"], one.parsed["Subject"]) for one in letters]
        assert told == [("<one@example.com>", "Re: A question")] * 2

    live.play(script)


def test_a_letter_without_a_name_of_its_own_is_answered_all_the_same(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        process, letters = world.lively(), world.fake.letters
        comes_in(world, "", "A question")
        now = world.clock.now()
        world.write(lambda tx: conversations.reply(tx, 1, "Yes.", world.providers, now))
        await world.until_so(lambda: len(letters) == 1)
        await process.stop()
        assert letters[0].parsed["In-Reply-To"] is letters[0].parsed["References"] is None

    live.play(script)
