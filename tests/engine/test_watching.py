"""Mailboxes are watched by one process at a time, and what they bring is never lost or doubled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from itertools import pairwise
from typing import Any

import pytest

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.engine import watching
from paceline.engine.commands import accounts
from paceline.engine.commands.accounts import House
from paceline.engine.ports import Account, Inbound, Mailbox, News, Returned, Withheld
from paceline.engine.ports.inbox import Watch
from paceline.engine.watching import LEASE_US, Watcher
from paceline.providers.registry import Registry
from paceline.providers.sandbox import SandboxProvider
from paceline.store.inbox import Watches
from tests.engine.fenced import groups_at_the_fence
from tests.engine.scenes import change, sql, until
from tests.engine.world import Process, World


class Post:
    """A mailbox somewhere: what lies in it, and how it treats whoever reads it."""

    def __init__(self) -> None:
        self.letters: list[News] = []
        self.opened = 0
        self.open_now = 0
        self.trouble: Exception | None = None
        self.came = asyncio.Event()

    def put(self, *letters: News) -> None:
        self.letters += letters
        self.came.set()


class PostMailbox:
    def __init__(self, post: Post, world: World) -> None:
        self._post = post
        self._world = world
        post.opened += 1
        post.open_now += 1

    async def next(self, cursor: str, within_us: int) -> tuple[str, list[News]]:
        post = self._post
        if post.trouble is not None:
            raise post.trouble
        if not cursor:
            return str(len(post.letters)), []
        if int(cursor) == len(post.letters):
            post.came.clear()
            alarm = self._world.clock.alarm(self._world.clock.now() + within_us, post.came.set)
            await post.came.wait()
            alarm.cancel()
        if post.trouble is not None:
            raise post.trouble
        return str(len(post.letters)), post.letters[int(cursor) :]

    async def close(self) -> None:
        self._post.open_now -= 1


class PostalProvider(SandboxProvider):
    """The sandbox, with mailboxes."""

    def __init__(self, world: World) -> None:
        super().__init__(world.clock, world.effects)
        self.world = world
        self.posts: dict[str, Post] = {}

    def has_mailbox(self, settings: Mapping[str, Any]) -> bool:
        return True

    async def open_mailbox(self, account: Account) -> Mailbox:
        post = self.posts[account.name]
        if isinstance(post.trouble, ProviderRefused):
            raise post.trouble
        return PostMailbox(post, self.world)


def letter(number: int) -> Inbound:
    return Inbound(f"m{number}", "anna@example.com", "anna@example.com", f"text {number}", 0)


def test(
    world: World, scene: Callable[[PostalProvider], Awaitable[None]], *names: str
) -> PostalProvider:
    """Play a scene in which these accounts have mailboxes."""
    provider = PostalProvider(world)
    world.providers = Registry([provider])
    world.house = House(world.providers, world.house.catalogue)

    async def script(world: World) -> None:
        for name in names or ("ann",):
            provider.posts[name] = Post()
            world.account(name)
        await scene(provider)

    world.play(script)
    return provider


test.__test__ = False  # type: ignore[attr-defined]


class Reader:
    """A process that watches mailboxes, and can be ended in more ways than one."""

    def __init__(self, world: World, process: Process) -> None:
        self.process = process
        self.watcher = Watcher(process.journal, world.clock, world.providers)
        self.task = asyncio.ensure_future(self.watcher.run())

    async def stop(self) -> None:
        self.watcher.stop()
        await self.task
        await self.process.stop()


def texts(world: World) -> list[str]:
    return [one.text for one in reversed(world.read(lambda tx: tx.inbox.latest()))]


def watch(world: World) -> Watch:
    (found,) = world.read(lambda tx: tx.watches.list())
    return found


def test_what_comes_in_is_taken_in_at_once_and_in_order(world: World) -> None:
    async def scene(provider: PostalProvider) -> None:
        post = provider.posts["ann"]
        post.put(letter(0))
        reader = Reader(world, world.process())
        await world.wait(SECOND)
        assert texts(world) == [], "what was there before is not news"
        post.put(letter(1), letter(2))
        await world.wait(SECOND)
        assert texts(world) == ["text 1", "text 2"]
        await world.wait(HOUR)
        post.put(letter(3))
        await world.wait(SECOND)
        assert texts(world) == ["text 1", "text 2", "text 3"]
        assert (post.opened, post.open_now) == (1, 1)
        await reader.stop()
        assert post.open_now == 0 and watch(world).lease_until_at is None

    test(world, scene)


def test_of_two_processes_one_reads_and_the_other_takes_over(world: World) -> None:
    async def scene(provider: PostalProvider) -> None:
        post = provider.posts["ann"]
        first, second = Reader(world, world.process()), Reader(world, world.process("two"))
        await world.wait(2 * MINUTE)
        assert (post.opened, post.open_now) == (1, 1)
        post.put(letter(1))
        await world.wait(SECOND)
        await first.stop()
        post.put(letter(2))
        await world.wait(2 * MINUTE)
        assert texts(world) == ["text 1", "text 2"] and post.opened == 2
        await second.stop()

    test(world, scene)


def test_what_a_killed_process_had_not_written_down_is_read_again(world: World) -> None:
    async def scene(provider: PostalProvider) -> None:
        post = provider.posts["ann"]
        doomed = Reader(world, world.process())
        await world.wait(SECOND)
        doomed.process.die()
        post.put(letter(1))
        await world.wait(SECOND)
        assert texts(world) == []
        heir = Reader(world, world.process("two"))
        await world.wait(LEASE_US + MINUTE)
        assert texts(world) == ["text 1"]
        await heir.stop()
        await asyncio.gather(doomed.task, return_exceptions=True)
        await doomed.process.gone()

    test(world, scene)


def test_letters_that_are_not_handed_over_are_told_of_one_by_one(world: World) -> None:
    async def scene(provider: PostalProvider) -> None:
        reader = Reader(world, world.process())
        await world.wait(SECOND)
        provider.posts["ann"].put(Withheld("INBOX", "17", "it is broken"), letter(1))
        provider.posts["ann"].put(Withheld("Junk", "17", "this, too"))
        await world.wait(2 * HOUR)
        assert texts(world) == ["text 1"]
        told = sorted(world.read(lambda tx: tx.alerts.list()), key=lambda one: one.text)
        assert [(one.kind, one.account_id) for one in told] == [("mailbox.letter", 1)] * 2
        assert "ann" in told[0].text and "'INBOX', UID 17" in told[0].text
        assert "'Junk', UID 17" in told[1].text and "(this, too)" in told[1].text
        world.write(lambda tx: accounts.remove(tx, "ann", world.clock.now()))
        assert not world.read(lambda tx: tx.alerts.list())
        await reader.stop()

    test(world, scene)


@pytest.mark.parametrize("trouble", [ProviderError("it is away"), ProviderError("")])
def test_a_mailbox_that_is_away_is_tried_again_and_told_after_a_while(
    world: World, trouble: Exception
) -> None:
    async def scene(provider: PostalProvider) -> None:
        post = provider.posts["ann"]
        post.trouble = trouble
        reader = Reader(world, world.process())
        await world.wait(5 * MINUTE)
        assert watch(world).problem == (str(trouble) or "no answer in time")
        assert not world.read(lambda tx: tx.alerts.list())
        await world.wait(15 * MINUTE)
        (alert,) = world.read(lambda tx: tx.alerts.list())
        assert (alert.kind, alert.account_id) == ("mailbox.failing", 1)
        assert world.account_now().state == "active", "sending is another matter"
        post.trouble = None
        await world.wait(MINUTE)
        post.put(letter(1))
        await world.wait(SECOND)
        assert texts(world) == ["text 1"] and watch(world).problem == ""
        assert not [
            one for one in world.read(lambda tx: tx.alerts.list()) if one.cleared_at is None
        ]
        await reader.stop()

    test(world, scene)


def test_a_mailbox_that_refuses_us_is_told_at_once(world: World) -> None:
    async def scene(provider: PostalProvider) -> None:
        provider.posts["ann"].trouble = ProviderRefused("wrong password")
        reader = Reader(world, world.process())
        await world.wait(SECOND)
        (alert,) = world.read(lambda tx: tx.alerts.list())
        assert alert.text == "the mailbox of ann cannot be read: wrong password"
        world.write(lambda tx: accounts.remove(tx, "ann", world.clock.now()))
        await world.wait(5 * MINUTE)
        assert not world.read(lambda tx: tx.alerts.list()), "nobody reads it any more"
        await reader.stop()

    test(world, scene)


def test_one_mailbox_that_is_away_delays_no_other(world: World) -> None:
    async def scene(provider: PostalProvider) -> None:
        provider.posts["ann"].trouble = ProviderError("away")
        reader = Reader(world, world.process())
        await world.wait(SECOND)
        provider.posts["ben"].put(letter(1))
        await world.wait(SECOND)
        assert texts(world) == ["text 1"]
        await reader.stop()

    test(world, scene, "ann", "ben")


def test_an_account_that_was_changed_or_removed_is_read_as_it_is_now(world: World) -> None:
    async def scene(provider: PostalProvider) -> None:
        post = provider.posts["ann"]
        reader = Reader(world, world.process())
        await world.wait(SECOND)
        change(world, settings={"latency": "1s"})
        await world.wait(3 * MINUTE)
        assert (post.opened, post.open_now) == (2, 1)
        world.write(lambda tx: tx.accounts.update(1, removed_at=world.clock.now()))
        await world.wait(3 * MINUTE)
        assert post.open_now == 0
        await reader.stop()

    test(world, scene)


def test_whoever_has_lost_a_mailbox_writes_nothing_of_it_any_more(world: World) -> None:
    async def scene(provider: PostalProvider) -> None:
        post = provider.posts["ann"]
        reader = Reader(world, world.process())
        await world.wait(SECOND)
        sql(world, "UPDATE watches SET generation = generation + 1, lease_until_at = ?", 2**60)
        post.put(letter(1))
        await world.wait(SECOND)
        assert texts(world) == [] and watch(world).cursor == "0"
        assert (post.open_now, watch(world).lease_until_at) == (0, 2**60), "it is another's now"
        await reader.stop()

    test(world, scene)


def test_a_mailbox_that_another_process_reads_is_left_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, tried = Watches.take, list[int]()

    def counted(self: Watches, account_id: int, lease_us: int) -> Watch | None:
        tried.append(account_id)
        return take(self, account_id, lease_us)

    monkeypatch.setattr(Watches, "take", counted)

    async def scene(provider: PostalProvider) -> None:
        first, second = Reader(world, world.process()), Reader(world, world.process("two"))
        await world.wait(HOUR)
        assert len(tried) <= 2, "to try in vain would be a write at every look"
        await first.stop()
        await second.stop()

    test(world, scene)


def test_what_may_suppress_somebody_passes_the_fence_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene(provider: PostalProvider) -> None:
        world.account("ben")
        provider.posts["ben"] = Post()
        reader = Reader(world, world.process())
        await world.wait(SECOND)
        sizes = groups_at_the_fence(monkeypatch)
        for name in ("ann", "ben"):
            provider.posts[name].put(Returned("bounced", "", "", 0, "", "nobodys-1-0"))
        await world.wait(SECOND)
        assert sizes == [1, 1]
        await reader.stop()

    test(world, scene)


@pytest.mark.parametrize("dies", [False, True])
def test_a_bounce_that_comes_before_its_letter_is_settled_is_read_again(
    world: World, dies: bool
) -> None:
    async def scene(provider: PostalProvider) -> None:
        post = provider.posts["ann"]
        change(world, settings={"latency": "12s", "finds": False})
        world.campaign(1)
        doomed = world.process()
        await until(world, lambda: world.counts() == {"sending": 1})
        reader = Reader(world, world.process("two"))
        await world.wait(SECOND)
        instance = world.read(lambda tx: tx.settings.get("instance"))
        back = Returned("bounced", "", "550 5.1.1 no such user", 0, "5.1.1", f"{instance}-1-0")
        post.put(letter(1), back, letter(2))
        await world.wait(SECOND)
        assert world.counts() == {"sending": 1} and watch(world).cursor == "0"
        assert texts(world) == ["text 1", "text 2"], "nobody else waits for it"
        if dies:
            doomed.die()
        await world.wait(3 * MINUTE)
        assert world.counts() == {"bounced": 1} and watch(world).cursor == "3"
        assert texts(world) == ["text 1", "text 2"]
        await reader.stop()
        await (doomed.gone() if dies else doomed.stop())

    test(world, scene)


def test_a_letter_that_we_cannot_take_in_is_told_and_does_not_spin(
    calm: None, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []
    real = watching.returns.take_in

    def take_in(*given: Any) -> Any:
        news = given[2]
        if any(one.provider_id == "m1" for one in news) and len(tried) < 9:
            tried.append(world.clock.now())
            raise ValueError("anna@example.com wrote something odd")
        return real(*given)

    monkeypatch.setattr(watching.returns, "take_in", take_in)

    async def scene(provider: PostalProvider) -> None:
        processes = [world.process(name, poll_us=HOUR) for name in ("one", "two")]
        first, second = (Reader(world, process) for process in processes)
        await world.wait(SECOND)
        provider.posts["ann"].put(letter(1), letter(2))
        await world.wait(MINUTE)
        (alert,) = world.read(lambda tx: tx.alerts.list())
        assert alert.kind == "mailbox.failing"
        assert alert.text.endswith("a defect of Paceline (ValueError)"), "and nobody's words"
        await world.wait(DAY)
        gaps = [later - earlier for earlier, later in pairwise(tried)]
        assert all(gap >= MINUTE for gap in gaps) and gaps == sorted(gaps) and gaps[-1] >= HOUR
        assert texts(world) == ["text 1", "text 2"], "and nothing is lost"
        assert not world.read(lambda tx: tx.alerts.list())
        await first.stop()
        await second.stop()

    test(world, scene)
