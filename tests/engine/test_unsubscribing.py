"""Links to unsubscribe: signed, in the message where the channel has a place for them, in force
from the moment they are followed. And follow-ups that go on with what came before."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.errors import InputError
from paceline.core.instants import HOUR, SECOND
from paceline.core.model import Content, Part, Step
from paceline.core.outcome import Outcome
from paceline.engine.ports import Message
from paceline.engine.unsubscribing import (
    Links,
    UnsubscribeDesk,
    ensure_links,
    set_base_url,
    unsubscribe,
)
from paceline.providers.sandbox import SandboxDriver, SandboxProvider
from tests.engine.fenced import groups_at_the_fence
from tests.engine.scenes import events, finish, until
from tests.engine.world import World

LINKS = Links("https://mail.example.com", b"k" * 32)


def token(url: str) -> str:
    return url.removeprefix("https://mail.example.com/unsubscribe/")


@given(st.integers(min_value=1, max_value=2**62))
def test_a_link_leads_back_to_its_delivery(delivery_id: int) -> None:
    assert LINKS.delivery_of(token(LINKS.of(delivery_id))) == delivery_id


@given(st.text(max_size=60))
def test_whatever_else_is_typed_leads_nowhere(text: str) -> None:
    assert LINKS.delivery_of(text) is None
    assert LINKS.delivery_of(f"7.{text}") is None


def test_a_link_is_good_for_its_own_delivery_and_installation_alone() -> None:
    number, _, signature = token(LINKS.of(7)).partition(".")
    assert LINKS.delivery_of(f"8.{signature}") is None
    assert LINKS.delivery_of(f"07.{signature}") is None
    assert LINKS.delivery_of(f"{number}.{signature}x") is None
    assert Links(LINKS.base_url, b"j" * 32).delivery_of(f"7.{signature}") is None


# ---------------------------------------------------------------------- on the way


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    """The messages as a driver of e-mail gets them."""
    messages: list[Message] = []
    real = SandboxDriver.send

    async def send(self: SandboxDriver, message: Message) -> Outcome:
        messages.append(message)
        return await real(self, message)

    able = replace(SandboxProvider.capabilities, threads=True, unsubscribes=True)
    monkeypatch.setattr(SandboxDriver, "send", send)
    monkeypatch.setattr(SandboxDriver, "capabilities", able)
    return messages


def reachable(world: World) -> Links:
    def work(tx: Any) -> Links | None:
        set_base_url(tx, "https://mail.example.com")
        return ensure_links(tx)

    links = world.write(work)
    assert links is not None and links == world.write(ensure_links), "made once"
    return links


def test_every_message_carries_its_own_link_and_may_say_it(
    world: World, sent: list[Message]
) -> None:
    async def script(world: World) -> Links:
        links = reachable(world)
        world.account()
        world.campaign(3, parts=(Part("text", "Hello. No more: {{ unsubscribe_url }}"),))
        await finish(world)
        return links

    links = world.play(script)
    assert len({one.unsubscribe for one in sent}) == 3
    for message in sent:
        assert message.unsubscribe == links.of(int(message.key.split("-")[1]))
        assert message.part.text == f"Hello. No more: {message.unsubscribe}"


def test_without_an_address_there_are_no_links_and_none_may_be_promised(
    world: World, sent: list[Message]
) -> None:
    async def script(world: World) -> None:
        world.account()
        with pytest.raises(InputError, match=r"says unsubscribe_url.* base_url = "):
            world.campaign(3, name="early", parts=(Part("text", "{{ unsubscribe_url }}"),))
        world.campaign(3)
        await finish(world)

    world.play(script)
    assert [one.unsubscribe for one in sent] == ["", "", ""]


def test_whoever_follows_the_link_gets_nothing_more(world: World, sent: list[Message]) -> None:
    """Not the next part of what has begun, not the next step, not another campaign."""
    follow_up = Step(HOUR, Content((Part("text", "again"),)))

    async def script(world: World) -> None:
        links = reachable(world)
        world.account()
        world.campaign(2, name="spring", steps=(follow_up,))
        process = world.process()
        await until(world, lambda: len(sent) == 2)
        desk = UnsubscribeDesk(process.journal, world.clock, links)
        assert not await desk.unsubscribe("1.nonsense")
        assert await desk.unsubscribe(token(sent[0].unsubscribe))
        assert await desk.unsubscribe(token(sent[0].unsubscribe)), "a second click harms nobody"
        await finish(world, process=process, within_us=3 * HOUR)
        told = events(world, "recipient.unsubscribed")
        assert [one.data for one in told] == [{"delivery": int(sent[0].key.split("-")[1])}]
        noted = world.read(lambda tx: tx.suppressions.find(sent[0].target))
        assert noted is not None and noted.source == "unsubscribe"

    world.play(script)
    assert [one.target for one in sent].count(sent[0].target) == 1
    assert len(sent) == 3


def test_whoever_unsubscribes_passes_the_fence_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(world: World) -> None:
        links = reachable(world)
        world.account()
        world.campaign(1, launch=False)
        process = world.process()
        await world.wait(SECOND)
        sizes = groups_at_the_fence(monkeypatch)
        desk = UnsubscribeDesk(process.journal, world.clock, links)
        others = [process.journal.write(lambda tx: tx.settings.get("instance")) for _ in range(3)]
        await asyncio.gather(desk.unsubscribe(token(links.of(1))), *others)
        assert sizes == [1]
        await process.stop()

    world.play(script)


def test_a_link_of_a_delivery_that_is_no_more_does_nothing(world: World) -> None:
    async def script(world: World) -> None:
        assert world.write(lambda tx: unsubscribe(tx, 99, world.clock.now())) is None

    world.play(script)


def test_a_follow_up_goes_on_with_what_came_before(world: World, sent: list[Message]) -> None:
    steps = tuple(Step(HOUR, Content((Part("text", text, subject=""),))) for text in ("b", "c"))

    async def script(world: World) -> None:
        world.account()
        first = Part("text", "a", subject="A word, {{ target }}")
        world.campaign(2, parts=(first,), steps=steps)
        await finish(world, within_us=5 * HOUR)

    world.play(script)
    by_target: dict[str, list[Message]] = {}
    for message in sent:
        by_target.setdefault(message.target, []).append(message)
    for target, (first, second, third) in by_target.items():
        assert first.thread is None
        assert second.thread == ((first.key,), f"A word, {target}")
        assert third.thread == ((first.key, second.key), f"A word, {target}")
