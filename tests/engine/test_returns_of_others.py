"""Reports of ours that are about somebody else: behind an alias, a list, a forwarded address."""

from typing import Any

import pytest

from paceline.core.model import Part, Target
from paceline.core.states import DeliveryState
from paceline.engine.commands import returns
from paceline.engine.ports import News, Returned, Tx
from tests.engine.scenes import delivery, events, finish
from tests.engine.world import World

ALIAS = "all@client.example"
LEFT = "who.left@client.example"
IDN = "bert@xn--mnchen-3ya.example"


def take(world: World, *news: News) -> int:
    def work(tx: Tx) -> int:
        returns.prepare(tx, news)
        account = tx.accounts.find("ann")
        assert account is not None
        return returns.take_in(tx, account, news, world.clock.now()).bounced

    return world.write(work)


async def sent(world: World, target: str = ALIAS) -> str:
    """The name of the one letter that went out."""
    world.account()
    world.campaign(targets=[Target(target)], parts=(Part("text", "Hello"),))
    await finish(world)
    (key,) = {effect.key for effect in world.sends()}
    return key


def back(key: str, address: str, **more: Any) -> Returned:
    told: dict[str, Any] = {"kind": "bounced", "reason": f"550 5.1.1 <{address}>: unknown"} | more
    return Returned(address=address, at=0, code="5.1.1", key=key, **told)


def is_suppressed(world: World, address: str) -> bool:
    return world.read(lambda tx: tx.suppressions.has(address))


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (ALIAS, ALIAS),
        (ALIAS, "ALL@Client.Example"),
        (ALIAS, ""),
        ("bert@münchen.example", IDN),
        (IDN, "Bert@MÜNCHEN.example"),
    ],
)
def test_whoever_is_named_is_suppressed_however_they_are_spelled(
    world: World, target: str, told: str
) -> None:
    async def script(world: World) -> None:
        key = await sent(world, target)
        assert take(world, back(key, told)) == 1
        assert world.read(lambda tx: tx.suppressions.has(world_target(tx)))

    def world_target(tx: Tx) -> str:
        (row,) = tx.deliveries.page(run_id=1, after_id=0)
        return row.target

    world.play(script)


def test_who_was_not_written_to_takes_nobody_with_them(world: World) -> None:
    async def script(world: World) -> None:
        key = await sent(world)
        assert take(world, back(key, LEFT)) == 1
        found = delivery(world, ALIAS)
        assert found.state is DeliveryState.BOUNCED and LEFT not in found.reason
        assert not is_suppressed(world, ALIAS) and not is_suppressed(world, LEFT)
        told = events(world, "delivery.returned")
        assert [one.data["suppressed"] for one in told] == [False]

    world.play(script)


@pytest.mark.parametrize("kind", ["bounced", "failed"])
def test_one_of_several_behind_an_address_that_was_reached_changes_nothing(
    world: World, kind: str
) -> None:
    async def script(world: World) -> None:
        key = await sent(world)
        assert take(world, back(key, LEFT, kind=kind, reached=("All@client.example",))) == 0
        assert delivery(world, ALIAS).state is DeliveryState.SENT
        assert not is_suppressed(world, ALIAS) and not events(world, "delivery.returned")
        # Somebody else who was reached is nobody that we wrote to.
        assert take(world, back(key, LEFT, kind=kind, reached=("cleo@client.example",))) == 1

    world.play(script)


def test_a_report_that_names_both_suppresses_whom_we_wrote_to(world: World) -> None:
    async def script(world: World) -> None:
        key = await sent(world)
        assert take(world, back(key, LEFT), back(key, ALIAS)) == 1
        assert delivery(world, ALIAS).state is DeliveryState.BOUNCED
        assert is_suppressed(world, ALIAS) and not is_suppressed(world, LEFT)
        told = events(world, "delivery.returned")
        assert [one.data["suppressed"] for one in told] == [True]

    world.play(script)
