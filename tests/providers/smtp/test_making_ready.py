"""Letters that are made before they may be sent: what arrives is what would have anyway."""

from __future__ import annotations

import pytest

from paceline.core.outcome import OutcomeKind
from paceline.engine.clock import SystemClock
from paceline.engine.ports import Message
from paceline.providers.smtp import driver as drivers
from paceline.providers.smtp.driver import SmtpDriver
from tests.providers.smtp.fake import FakeServer
from tests.providers.smtp.stage import letter, play

NOON_NS = 1_800_000_000 * 10**9


class Hands:
    """A driver with a clock that is set by hand, and what it has made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = NOON_NS
        self.made: list[str] = []
        self._compose = drivers.compose
        monkeypatch.setattr(drivers, "compose", self._count)

    def take(self, driver: SmtpDriver) -> None:
        driver._clock = SystemClock(time_ns=lambda: self.now_ns)

    def _count(self, sender: object, message: Message, *more: object, **named: object) -> object:
        self.made.append(message.key)
        return self._compose(sender, message, *more, **named)  # type: ignore[arg-type]


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch) -> Hands:
    return Hands(monkeypatch)


async def send(driver: SmtpDriver, message: Message) -> None:
    call = driver.begin(message)
    assert call is not None, "its connection was opened just now"
    outcome = await call
    assert outcome is not None and outcome.kind is OutcomeKind.ACCEPTED


def test_a_letter_is_made_once(fake: FakeServer, hands: Hands) -> None:
    async def scene(driver: SmtpDriver) -> None:
        hands.take(driver)
        for message in (letter(), letter(key="home-8-0")):
            driver.make_ready(message)
            await send(driver, message)
            driver.make_ready(message)
            await driver.send(message)

    play(fake.settings(), scene)
    assert hands.made == ["home-7-0"] * 2 + ["home-8-0"] * 2 and len(fake.letters) == 4


def test_it_bears_the_second_in_which_it_is_sent(fake: FakeServer, hands: Hands) -> None:
    async def scene(driver: SmtpDriver) -> None:
        hands.take(driver)
        message = letter()
        driver.make_ready(message)
        hands.now_ns += 10**9
        await send(driver, message)

    play(fake.settings(), scene)
    (received,) = fake.letters
    assert received.parsed["Date"].datetime.timestamp() == NOON_NS // 10**9 + 1
    assert hands.made == ["home-7-0"] * 2


def test_another_letter_is_not_taken_for_it(fake: FakeServer, hands: Hands) -> None:
    """Not even one that is called the same: it may have been written anew."""

    async def scene(driver: SmtpDriver) -> None:
        hands.take(driver)
        driver.make_ready(letter(text="Before"))
        await send(driver, letter(text="After"))

    play(fake.settings(), scene)
    assert [received.text for received in fake.letters] == ["After"]


def test_one_that_may_take_long_is_made_when_it_is_sent(fake: FakeServer, hands: Hands) -> None:
    async def scene(driver: SmtpDriver) -> None:
        driver.make_ready(letter(media="a" * 64, handle="a" * 64))
        driver.make_ready(letter(attachments=("a" * 64,), attached=("a" * 64,)))
        driver.make_ready(letter(html="x" * drivers.SHORT))

    play(fake.settings(), scene)
    assert not hands.made


def test_one_that_can_be_no_letter_is_refused_when_it_is_sent(fake: FakeServer) -> None:
    async def scene(driver: SmtpDriver) -> None:
        message = letter("nobody")
        driver.make_ready(message)
        assert driver.begin(message) is None
        assert (await driver.send(message)).code == "target"

    play(fake.settings(), scene)
    assert not fake.letters
