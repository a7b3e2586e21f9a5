"""A message that is made while nobody waits for it: the one that most likely goes next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from paceline.core.errors import InputError
from paceline.core.instants import HOUR, MILLISECOND, SECOND
from paceline.core.model import Content, Part
from paceline.engine import preparing
from paceline.engine.lane import Lane
from paceline.engine.ports import Account, Delivery, Driver, Message
from paceline.engine.run_queue import RunQueue
from paceline.engine.settling import Flight
from tests.engine.scenes import intents
from tests.engine.test_landings import SlowDisk, lane_of
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


def play(
    worlds: Worlds,
    *campaigns: dict[str, Any],
    before: Callable[[World], None] = lambda world: None,
    ends: bool = True,
    **policy: Any,
) -> tuple[World, Forehanded]:
    amiss: list[Any] = []

    async def script(world: World) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: amiss.append(what))
        world.account(policy={"timeout": "10s", **policy}, finds=False)
        for campaign in campaigns:
            world.campaign(**campaign)
        before(world)
        Letters.server = Forehanded(world)
        registry = Letters.server.registry()
        process = world.process(providers=registry, runner=SlowDisk(world))
        for campaign in campaigns if ends else ():
            name = campaign.get("name", "spring")
            await world.until_finished(name, within_us=4 * HOUR, every_us=SECOND)
        await (process.stop() if ends else world.wait(SECOND))
        await process.kill()

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


@pytest.mark.parametrize(
    "policy", [{"spacing": "6m"}, {"spacing": "2s"}, {"rate": "60/min"}], ids=str
)
def test_whoever_keeps_a_pace_makes_each_when_its_turn_comes(
    worlds: Worlds, rendered: Rendered, policy: dict[str, Any]
) -> None:
    """Its lane may be given up by then, and what it has made with it."""
    play(worlds, {"count": 6}, **policy)
    assert [begun for _, begun in rendered] == list(range(6))


@pytest.mark.parametrize("count", [2, 3])
def test_of_several_parts_each_is_made_once(worlds: Worlds, rendered: Rendered, count: int) -> None:
    parts = tuple(Part("text", f"{number} for {{{{ target }}}}") for number in range(count))
    _, server = play(worlds, {"count": 6, "parts": parts})
    names = [f"spring-{number:04}" for number in range(6)]
    assert server.said == [
        (name, f"{number} for {name}") for name in names for number in range(count)
    ]
    assert len(rendered) == 6 * count


def test_somebody_who_is_skipped_lends_his_letter_to_nobody(worlds: Worlds) -> None:
    def suppress(world: World) -> None:
        at = world.clock.now()
        world.write(lambda tx: tx.suppressions.add("spring-0003", "asked", "manual", at))

    _, server = play(worlds, {"count": 6}, before=suppress)
    assert [(name[-1], text[-1]) for name, text in server.said] == [(n, n) for n in "01245"]


def test_only_what_is_still_the_same_is_used(worlds: Worlds) -> None:
    """What was read anew may say something else, and the next part does."""
    found: list[Message | None] = []

    async def script(world: World) -> None:
        world.account(policy={"timeout": "10s"}, finds=False)
        world.campaign(6)
        Letters.server = Forehanded(world)
        process = world.process(providers=Letters.server.registry(), runner=SlowDisk(world))

        def queue_of(lane: Lane) -> RunQueue:
            return lane._memory.agenda.in_turn(0)[0]

        def has_read() -> bool:
            lanes = [one.lane for one in process.supervisor._running.values()]
            return any(lane._sender and queue_of(lane).first for lane in lanes)

        await world.until(has_read, every_us=MILLISECOND)
        lane = lane_of(process)
        assert lane._sender is not None
        desk, queue = lane._sender._desk, queue_of(lane)
        delivery = queue.first
        assert delivery is not None
        content = queue.content_of(delivery)
        again = Content((*content.parts, *content.parts))

        def flight(of: Delivery, says: Content, part: int = 0) -> Flight:
            return Flight(of, says, queue.ask(of, says), 1, part, 1)

        desk.foresee(delivery, content)
        found.append(desk.foreseen(flight(delivery._replace(), content)))
        found.append(desk.foreseen(flight(delivery, again)))
        found.append(desk.foreseen(flight(delivery, content, part=1)))
        found.append(desk.foreseen(flight(delivery, content)))
        found.append(desk.foreseen(flight(delivery, content)))
        await process.kill()

    world = worlds.fresh()
    world.check = lambda: None  # type: ignore[method-assign]  # it ends in the middle
    world.play(script)
    assert [message is not None for message in found] == [False, False, False, True, False]


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """The fourth cannot be made."""
    real = preparing.render_part

    def render_part(part: Part, target: str, *rest: Any) -> Part:
        if target.endswith("3"):
            raise error
        return real(part, target, *rest)

    monkeypatch.setattr(preparing, "render_part", render_part)


def test_one_that_cannot_be_made_fails_when_its_turn_comes(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says why; those behind it go on."""
    failing(monkeypatch, InputError("no such word"))
    world, server = play(worlds, {"count": 5})
    assert [name[-1] for name, _ in server.said] == ["0", "1", "2", "4"]
    failed = [row for row in world.read(lambda tx: tx.deliveries.page()) if row.state == "failed"]
    assert [(row.target, row.reason) for row in failed] == [("spring-0003", "no such word")]


def test_a_defect_is_its_lanes_and_not_the_loops(
    worlds: Worlds, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, ValueError("a defect"))
    _, server = play(worlds, {"count": 5}, ends=False)
    said = [name[-1] for name, _ in server.said]
    assert said[:2] == ["0", "1"] and not {"3", "4"} & set(said)
