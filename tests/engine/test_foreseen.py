"""A message that is made while nobody waits for it: the one that most likely goes next."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from paceline.core.errors import InputError
from paceline.core.instants import HOUR, MILLISECOND, SECOND
from paceline.core.model import Part
from paceline.engine import preparing
from paceline.engine.ports import Account, Driver, Message
from tests.engine.scenes import intents
from tests.engine.test_landings import SlowDisk
from tests.engine.test_lookahead import YES, Server, answering
from tests.engine.world import World
from tests.engine.worlds import Worlds

MS = MILLISECOND


class Forehanded(Server):
    """One that wants to see each message before it is called for, as mail servers do."""

    def __init__(self, world: World) -> None:
        super().__init__(world, answering(then=(5 * MS, YES)))
        self.said: list[tuple[str, str]] = []

    async def open(self, account: Account) -> Driver:
        driver: Any = await super().open(account)
        begin, driver.make_ready = driver.begin, lambda message: None

        def heard(message: Message) -> Any:
            self.said.append((message.target, message.part.text))
            return begin(message)

        driver.begin = heard
        return driver  # type: ignore[no-any-return]


Rendered = list[tuple[str, int]]


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rendered]:
    """Who was written to, and how many letters had been begun by then."""
    found: Rendered = []
    real = preparing.render_part

    def render_part(part: Part, target: str, *rest: Any) -> Part:
        found.append((target, len(Letters.server.said)))
        return real(part, target, *rest)

    monkeypatch.setattr(preparing, "render_part", render_part)
    yield found


class Letters:
    """The server of the world at hand."""

    server: Forehanded


def play(worlds: Worlds, *campaigns: dict[str, Any]) -> tuple[World, Forehanded]:
    amiss: list[Any] = []

    async def script(world: World) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: amiss.append(what))
        world.account(policy={"timeout": "10s"}, finds=False)
        for campaign in campaigns:
            world.campaign(**campaign)
        Letters.server = Forehanded(world)
        registry = Letters.server.registry()
        process = world.process(providers=registry, runner=SlowDisk(world))
        for campaign in campaigns:
            name = campaign.get("name", "spring")
            await world.until_finished(name, within_us=HOUR, every_us=SECOND)
        await process.stop()

    world = worlds.fresh()
    world.check = lambda: None  # type: ignore[method-assign]  # the sandbox has seen none of it
    world.play(script)
    assert not amiss
    return world, Letters.server


def test_each_is_made_once_and_before_its_turn(worlds: Worlds, rendered: Rendered) -> None:
    world, server = play(worlds, {"count": 6})
    names = [f"spring-{number:04}" for number in range(6)]
    assert server.said == [(name, f"hello {name}") for name in names]
    assert [target for target, _ in rendered] == names, "each of them once"
    ahead = [names.index(target) - begun for target, begun in rendered]
    # All but the first of a page, of which nobody knew.
    assert sorted(ahead) == [0, 0, 1, 1, 1, 1], "before the one in front of it is called for"
    assert len(intents(world)) == 6


def test_of_two_campaigns_that_take_turns_nobody_is_told_what_is_somebody_elses(
    worlds: Worlds,
) -> None:
    autumn = {"count": 4, "name": "autumn", "parts": (Part("text", "goodbye {{ target }}"),)}
    _, server = play(worlds, {"count": 4}, autumn)
    word = {"spring": "hello", "autumn": "goodbye"}
    assert len(server.said) == 8
    assert all(text == f"{word[name.split('-')[0]]} {name}" for name, text in server.said)


def test_one_that_cannot_be_made_fails_when_its_turn_comes(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says why; those behind it go on."""
    real = preparing.render_part

    def render_part(part: Part, target: str, *rest: Any) -> Part:
        if target.endswith("3"):
            raise InputError("no such word")
        return real(part, target, *rest)

    monkeypatch.setattr(preparing, "render_part", render_part)
    world, server = play(worlds, {"count": 5})
    assert [name[-1] for name, _ in server.said] == ["0", "1", "2", "4"]
    failed = [row for row in world.read(lambda tx: tx.deliveries.page()) if row.state == "failed"]
    assert [(row.target, row.reason) for row in failed] == [("spring-0003", "no such word")]
