"""An account that blocks its process: held at once, suspended if it goes on, on both databases."""

from collections.abc import Callable

from paceline.core.instants import MINUTE, SECOND
from paceline.engine import blocking
from paceline.engine.blocking import HOLD_US
from paceline.engine.commands import accounts
from paceline.engine.ports import Tx
from tests.engine.world import World

Either = Callable[[Callable[[World], None]], None]


def test_an_account_that_blocks_is_held_so_that_nobody_else_takes_it_up(either: Either) -> None:
    def script(world: World) -> None:
        account = world.account()
        now = world.clock.now()
        assert world.write(lambda tx: blocking.hold(tx, "ann", now))
        held = world.account_now()
        assert (held.state, held.state_until_at) == ("cooling_down", now + HOLD_US)
        assert held.state_reason == "its driver blocks the whole process"
        lane = world.read(lambda tx: tx.lanes.get(account.id))
        assert lane.wake_at is not None, "whoever runs it looks again"
        events = world.read(lambda tx: tx.events.latest(limit=5))
        assert "ann is cooling down: its driver blocks the whole process" in events[0].text

    either(script)


def test_who_is_out_of_service_already_stays_as_it_is(either: Either) -> None:
    def script(world: World) -> None:
        world.account()
        now = world.clock.now()
        world.write(lambda tx: accounts.pause(tx, "ann", now))
        assert not world.write(lambda tx: blocking.hold(tx, "ann", now))
        assert not world.write(lambda tx: blocking.hold(tx, "nobody", now))
        assert world.account_now().state == "paused"
        world.write(lambda tx: blocking.suspend(tx, "nobody", MINUTE, now))

    either(script)


def test_an_account_that_goes_on_blocking_is_suspended_whoever_has_its_lane(
    either: Either,
) -> None:
    def script(world: World) -> None:
        account = world.account()
        now = world.clock.now()

        def taken_over(tx: Tx) -> int:
            other = tx.processes.join("another one", MINUTE).id
            assert tx.lanes.take(account.id, other) is not None
            return other

        other = world.write(taken_over)
        world.write(lambda tx: blocking.hold(tx, "ann", now))
        world.write(lambda tx: blocking.suspend(tx, "ann", 61 * SECOND, now))
        suspended = world.account_now()
        reason = "its driver blocked the whole process for 61 s"
        assert (suspended.state, suspended.state_reason) == ("suspended", reason)
        (alert,) = world.read(lambda tx: tx.alerts.list())
        assert alert.text == f"account ann is suspended: {reason}"
        lane = world.read(lambda tx: tx.lanes.get(account.id))
        assert lane.owner == other, "a lane that is another's stays another's"

    either(script)


def test_a_process_that_takes_too_much_memory_is_told_once(either: Either) -> None:
    def script(world: World) -> None:
        now = world.clock.now()
        for _ in range(2):
            world.write(lambda tx: blocking.too_much_memory(tx, "one", "600 MB", "512 MB", now))
        (alert,) = world.read(lambda tx: tx.alerts.list())
        assert (alert.kind, alert.count) == ("process.memory", 2)
        assert alert.text.startswith("process one took 600 MB of memory, more than 512 MB")

    either(script)
