"""Whose trouble it is, over real connections: a recipient's, or that of the whole account."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from paceline.core import stubborn
from paceline.core.instants import MILLISECOND
from paceline.engine.commands import signals
from tests.providers.remote import NOTE
from tests.providers.smtp import fake as fakes
from tests.providers.smtp.fake import FakeServer
from tests.providers.smtp.live import PEOPLE, LiveWorld

LADDER = "50ms,50ms,50ms"


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    with fakes.running(FakeServer()) as server:
        yield server


def waits_a_second(world: LiveWorld, kind: str) -> None:
    """Instead of a minute, which is longer than a test may take."""
    names, now = world.providers.names(), world.clock.now()
    said: dict[str, Any] = {"scope": "account", "for": "1s"}
    world.write(lambda tx: signals.set_rule(tx, f"smtp {kind}", said, names, now))


def rows(world: LiveWorld) -> dict[str, tuple[str, int, str]]:
    page = world.read(lambda tx: tx.deliveries.page(run_id=1, after_id=0))
    return {one.target: (str(one.state), one.retries, one.reason) for one in page}


@pytest.fixture
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever steps aside does so for a second."""
    monkeypatch.setattr(stubborn, "MINUTE", 100 * MILLISECOND)
    monkeypatch.setattr(stubborn, "FOURFOLD", 1)


def test_a_bare_451_that_is_said_of_one_recipient_for_ever(live: LiveWorld, brisk: None) -> None:
    """It says neither that it is greylisting nor whom it means. Everybody else gets their letter,
    and this one fails as any that is refused softly."""
    shy, people = PEOPLE[1].address, PEOPLE[:8]

    async def script(world: LiveWorld) -> None:
        world.connect(retry=LADDER)
        waits_a_second(world, "throttled")
        said = fakes.Step("rcpt", "451 Please try again later", after=shy)
        world.fake.script.extend([said] * 20)
        world.campaign(targets=people, parts=NOTE, action="email")
        await world.send_all()
        state, retries, reason = rows(world)[shy]
        assert (state, retries) == ("failed", 3)
        assert reason == "451 Please try again later (others get through) (after 3 retries)"
        assert not world.read(lambda tx: tx.suppressions.covers(shy))
        # The first two held the account back, and were followed by nobody else's.
        assert len(world.fake.script) == 20 - 6

    live.play(script)
    assert live.received() == Counter(one.address for one in people if one.address != shy)


def test_a_451_that_everybody_is_told_fails_nobody(live: LiveWorld, brisk: None) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect(retry=LADDER)
        waits_a_second(world, "throttled")
        world.fake.script.extend([fakes.Step("rcpt", "451 Please try again later")] * 4)
        world.campaign(targets=PEOPLE[:6], parts=NOTE, action="email")
        await world.send_all()
        assert {retries for _, retries, _ in rows(world).values()} == {0}

    live.play(script)
    assert live.received() == Counter(one.address for one in PEOPLE[:6])


def test_a_server_that_is_gone_is_no_letters_trouble(live: LiveWorld) -> None:
    """No rung is climbed however long it lasts, and operators are told."""

    async def script(world: LiveWorld) -> None:
        world.connect(retry=LADDER, spacing="500ms")
        waits_a_second(world, "unavailable")
        world.campaign(targets=PEOPLE[:3], parts=NOTE, action="email")
        process = world.lively()
        await world.until_so(lambda: len(world.fake.letters) == 1)
        await world.until_so(lambda: world.counts().get("sent") == 1)
        await asyncio.to_thread(world.fake.leave)
        await world.until_so(lambda: bool(world.read(lambda tx: tx.alerts.list())))
        await process.stop()
        assert world.counts() == {"sent": 1, "ready": 2}
        assert {retries for _, retries, _ in rows(world).values()} == {0}
        (alert,) = world.read(lambda tx: tx.alerts.list())
        assert alert.kind == "account.throttled"
        assert "was held back 3 times in a row: no connection: " in alert.text
        assert world.account_now().state == "active"

    live.play(script)
