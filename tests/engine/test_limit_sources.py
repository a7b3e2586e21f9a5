"""Every limit names where it comes from, and how much of it is used."""

from paceline.core.instants import MINUTE, parse_instant
from paceline.engine.catalogue import Catalogue
from paceline.engine.commands.accounts import House
from paceline.engine.limit_sources import LimitsView, limits_view
from tests.engine.world import World


def shown(world: World, catalogue: Catalogue) -> tuple[LimitsView, dict[str, tuple[str, str]]]:
    view = world.read(lambda tx: limits_view(tx, catalogue, "ann", world.clock.now()))
    return view, {line.limit: (line.value, line.source) for line in view.lines}


def test_the_first_that_says_anything_holds(world: World) -> None:
    written = {"ours": {"extends": "cold-email", "min_gap": "8m", "weekly": {"email": 60}}}
    catalogue = Catalogue(written, {"timeout": "20s", "part_gap": "1s", "retry": "1m"})
    world.house = House(world.providers, catalogue)

    async def script(world: World) -> None:
        world.account(preset="ours", policy={"daily": {"message": 7}, "retry": "2m"})
        view, lines = shown(world, catalogue)
        assert not view.outdated
        assert lines["daily.message"] == ("7", "the account's own")
        assert lines["daily.email"] == ("20", "preset cold-email")
        assert lines["weekly.email"] == ("60", "policy ours in paceline.toml")
        assert lines["min_gap"] == ("8m", "policy ours in paceline.toml")
        assert lines["spacing"] == ("5m..20m", "preset cold-email")
        assert lines["zone"] == ("America/New_York", "its hours")
        assert lines["timeout"] == ("5m", "preset cold-email")
        assert lines["part_gap"] == ("1s", "paceline.toml, for all")
        assert lines["retry"] == ("2m", "the account's own")
        assert lines["batch"] == ("none", "default")
        assert lines["concurrency"] == ("1", "default")
        # What is written anew holds when the service starts; until then it is only said.
        changed = Catalogue({"ours": {"extends": "cold-email"}}, {"part_gap": "1s"})
        view, lines = shown(world, changed)
        assert view.outdated
        assert lines["min_gap"] == ("8m", "preset cold-email")
        view, lines = shown(world, Catalogue())
        assert view.outdated
        assert lines["min_gap"][1] == "policy ours, which paceline.toml no longer has"

    world.play(script)


def test_what_is_used_up_is_told_beside_the_limit(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        policy = {"daily": {"message": 8}, "weekly": {"message": 20}, "warmup": "5 +20%/day to 50"}
        world.account(policy=policy)
        world.campaign(10)
        process = world.process(poll_us=MINUTE)
        await world.until(lambda: len(world.sends()) == 5, every_us=MINUTE)
        await process.stop()
        view, _ = shown(world, world.house.catalogue)
        used = {line.limit: (line.used, line.cap) for line in view.lines if line.cap is not None}
        assert used == {"daily.message": (5, 5), "weekly.message": (5, 20), "warmup": (None, 5)}
        assert view.day_at == parse_instant("2026-03-02T00:00:00Z")

    world.play(script)
