"""An alert belongs to its cause: one for each, whatever becomes of the commit that raised it, and
about nothing that is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from paceline.core.errors import StoreUnavailable
from paceline.core.instants import MINUTE, SECOND
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.states import AccountState
from paceline.engine.ports import Alert
from tests.engine.doubles import Double
from tests.engine.faults import CommitMoment, TrippedStore
from tests.engine.scenes import say, until
from tests.engine.test_late_calls import answering, in_doubt, stubborn
from tests.engine.test_signals import set_signal
from tests.engine.world import Process, World
from tests.engine.worlds import Worlds

FAST = "10ms"


def ever(world: World) -> list[Alert]:
    return world.read(lambda tx: tx.alerts.list(with_cleared=True))


def deaf(world: World, meanwhile: Callable[[], None] = lambda: None) -> Process:
    """A process that does not hear of the commit that raises the first alert."""
    heard = True

    def trip(number: int, moment: CommitMoment) -> None:
        nonlocal heard
        if heard and moment == "after" and ever(world):
            heard = False
            meanwhile()
            raise StoreUnavailable("the answer was lost")

    return world.process(store=TrippedStore(world.store, trip))


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ({"ban_after": 2, "ban_for": "1h"}, "account.cooling_down"),
        ({"throttle_at": [2, 3, 4], "retry_after": "5s"}, "account.throttled"),
    ],
)
def test_one_answer_raises_one_alert_though_its_commit_was_not_heard_of(
    world: World, settings: dict[str, Any], kind: str
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency=FAST, **settings)
        world.campaign(5)
        process = deaf(world)
        await until(world, lambda: bool(ever(world)), within_us=5 * MINUTE)
        await world.wait(4 * SECOND)
        assert [(alert.kind, alert.count) for alert in ever(world)] == [(kind, 1)]
        await process.stop()

    world.play(script)


def test_what_somebody_has_let_go_on_is_not_stopped_again_by_the_same_answer(world: World) -> None:
    async def script(world: World) -> None:
        set_signal(world, "* rejected", scope="account", for_="until resumed")
        world.account(policy={"rate": "60/min"}, reject_at=[2], latency=FAST)
        world.campaign(4)
        process = deaf(world, meanwhile=lambda: say(world, "resume account"))
        await until(world, lambda: bool(ever(world)))
        await until(world, lambda: world.state() == "finished")
        assert [(alert.count, alert.cleared_at is None) for alert in ever(world)] == [(1, False)]
        assert world.account_now().state is AccountState.ACTIVE
        await process.stop()

    world.play(script)


def test_an_account_that_is_gone_needs_nobody(worlds: Worlds) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min", "timeout": "10s"}, finds=False)
        world.campaign(1)
        refused = answering(Outcome(OutcomeKind.UNAUTHORISED, "who are you?"))
        provider = Double(
            world.providers.get("sandbox"), send=stubborn(world, MINUTE, at_last=refused)
        )
        process = world.process(providers=provider.registry())
        await in_doubt(world)
        say(world, "remove account")
        await world.until(lambda: world.counts() != {"unknown": 1}, 2 * MINUTE, SECOND)
        assert world.counts() == {"cancelled": 1}
        assert ever(world) == []
        await process.stop()

    worlds.fresh().play(script)
