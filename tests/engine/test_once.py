"""Asked twice, done once; and sending again to exactly those who did not get it."""

import pytest

from paceline.core.errors import ConflictError, InputError
from paceline.core.instants import DAY, HOUR, MINUTE
from paceline.core.model import Content, Part, Target
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.commands import accounts, campaigns
from paceline.engine.commands.retrying import Retried, retry_failed
from paceline.engine.ports import Campaign
from tests.engine.scenes import deliveries, finish
from tests.engine.world import World

HELLO = Content((Part("text", "hello"),))
PEOPLE = [Target("anna"), Target("bert")]


def _create(world: World, key: str | None, targets: list[Target]) -> tuple[Campaign, bool]:
    spec = CampaignSpec(name="spring", accounts=("ann",), content=HELLO)
    now = world.clock.now()
    return world.write(
        lambda tx: campaigns.create_once(tx, spec, targets, world.providers, now, key)
    )


def _send(world: World, key: str | None, text: str = "hello") -> int:
    content = Content((Part("text", text),))
    return world.write(
        lambda tx: campaigns.send_direct(
            tx,
            "ann",
            "anna",
            content,
            "message",
            world.clock.now(),
            providers=world.providers,
            key=key,
        )
    )


def test_a_campaign_submitted_twice_exists_once(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        first, new = _create(world, "order-17", PEOPLE)
        assert new
        world.write(lambda tx: campaigns.launch(tx, "spring", world.clock.now()))
        again, new = _create(world, "order-17", PEOPLE)
        assert (again.id, new, again.state) == (first.id, False, "running")
        assert world.counts() == {"ready": 2}
        with pytest.raises(ConflictError, match="'order-17' was used for another campaign"):
            _create(world, "order-17", [*PEOPLE, Target("cleo")])
        with pytest.raises(ConflictError, match="exists already"):
            _create(world, None, PEOPLE)

    world.play(script)


def test_a_key_whose_wish_failed_is_free_again(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        with pytest.raises(InputError, match="audience is empty"):
            _create(world, "order-17", [])
        _, new = _create(world, "order-17", PEOPLE)
        assert new

    world.play(script)


def test_a_message_submitted_twice_is_sent_once(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        numbers = [_send(world, "m-1"), _send(world, "m-1"), _send(world, None)]
        assert numbers[0] == numbers[1] != numbers[2]
        with pytest.raises(ConflictError, match="another message"):
            _send(world, "m-1", "good evening")
        for wrong in ("", " ", "a\nb", "k" * 201):
            with pytest.raises(InputError, match="must be one line"):
                _send(world, wrong)
        process = world.process()
        await world.wait(MINUTE)
        await process.stop()

    world.play(script)
    assert len(world.sends()) == 2


def _retry(world: World) -> Retried:
    return world.write(lambda tx: retry_failed(tx, "spring", world.clock.now()))


def test_only_those_who_did_not_get_it_are_sent_it_again(calm: None, world: World) -> None:
    names = ["anna", "reject-1", "timeout-2", "bounce-3", "transient-4", "bert"]

    async def script(world: World) -> None:
        world.account(policy={"retry": "1m,1m,1m", "timeout": "5s"}, finds=False)
        world.campaign(targets=[Target(name) for name in names])
        await finish(world, every_us=MINUTE, within_us=HOUR)
        before = {row.target: row for row in deliveries(world)}
        states = {name: str(row.state) for name, row in before.items()}
        assert states == {
            "anna": "sent",
            "bert": "sent",
            "reject-1": "failed",
            "transient-4": "failed",
            "timeout-2": "unknown",
            "bounce-3": "bounced",
        }
        calls = len(world.calls())
        assert _retry(world) == Retried(again=2, unknown=1, gone=0)
        assert world.state() == "running"
        await finish(world, every_us=MINUTE, within_us=HOUR)
        again = [effect.target for effect in world.calls()[calls:]]
        assert set(again) == {"reject-1", "transient-4"}
        # With all its retries once more: one for each rung, and the first.
        assert again.count("transient-4") == 4
        assert {row.target: str(row.state) for row in deliveries(world)} == states

    world.play(script)


def test_a_finished_campaign_with_a_window_gets_a_new_day(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"retry": "1m", "timeout": "5s"})
        spec = CampaignSpec.from_mapping(
            {
                "name": "spring",
                "accounts": ["ann"],
                "window": "Mon-Sun 08:00-18:00",
                "at_close": "skip",
                "expire_after": "3h",
                "parts": [{"text": "hello"}],
            }
        )
        now = world.clock.now()
        with world.store.write() as tx:
            campaigns.create(tx, spec, [Target("reject-1"), Target("anna")], world.providers, now)
            campaigns.launch(tx, "spring", now)
        await finish(world, every_us=MINUTE, within_us=HOUR)
        await world.wait(DAY)
        assert _retry(world).again == 1
        await finish(world, every_us=MINUTE, within_us=HOUR)
        # Tried, and not skipped for a window and an expiry of yesterday.
        assert world.counts() == {"sent": 1, "failed": 1}
        assert [effect.target for effect in world.calls()] == ["reject-1", "anna", "reject-1"]

    world.play(script)


def test_what_belongs_to_a_removed_account_stays_failed(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        world.campaign(targets=[Target("reject-1"), Target("anna")])
        await finish(world, every_us=MINUTE, within_us=HOUR)
        world.write(lambda tx: accounts.remove(tx, "ann", world.clock.now()))
        assert _retry(world) == Retried(again=0, unknown=0, gone=1)
        assert world.state() == "finished"

    world.play(script)


def test_a_draft_and_a_cancelled_campaign_are_not_retried(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        world.campaign(2, launch=False)
        with pytest.raises(ConflictError, match="nothing of it has failed yet"):
            _retry(world)
        world.write(lambda tx: campaigns.cancel(tx, "spring", world.clock.now()))
        with pytest.raises(ConflictError, match="stays that way"):
            _retry(world)

    world.play(script)
