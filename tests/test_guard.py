"""The guard of a process whose loop stands still, or that takes too much memory."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from paceline.app import App, open_app
from paceline.config import Settings
from paceline.core.errors import StoreUnavailable
from paceline.core.instants import MILLISECOND
from paceline.engine.commands import accounts
from paceline.engine.commands.accounts import NewAccount
from paceline.engine.lane_names import lane_name
from paceline.engine.ports import Store
from paceline.guard import Guard, GuardOptions
from paceline.interpreter import EXIT_BLOCKED, EXIT_MEMORY
from paceline.store.database import open_store

PATIENCE_S = 30
OPTIONS = GuardOptions(
    hold_after_us=50 * MILLISECOND,
    tell_after_us=100 * MILLISECOND,
    end_after_us=150 * MILLISECOND,
    look_us=10 * MILLISECOND,
)


class Scene:
    """An installation with one account, and a process that cannot end."""

    def __init__(self, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
        self.app = app
        self.codes: list[int] = []
        self.ended = threading.Event()
        self.stopped = threading.Event()
        monkeypatch.setattr("paceline.guard.os._exit", self._exit)

    def _exit(self, code: int) -> None:
        self.codes.append(code)
        self.ended.set()

    def open(self) -> Store:
        return open_store(self.app.settings.database, clock=self.app.clock.now, create=False)

    def play(
        self,
        options: GuardOptions = OPTIONS,
        *,
        lane: str | None = "ann",
        store: Callable[[], Store] | None = None,
    ) -> Guard:
        """Block a loop until the guard has put an end to it; or, with memory to weigh, run one
        until the guard has asked it to stop."""
        guard = Guard("one", store or self.open, self.app.clock, self.stopped.set, options)

        async def block() -> None:
            assert self.ended.wait(PATIENCE_S), "nobody has noticed"

        async def whole() -> None:
            guard.start(asyncio.get_running_loop())
            try:
                if options.memory_limit:
                    while not self.stopped.is_set():
                        await self.app.clock.sleep(10 * MILLISECOND)
                else:
                    name = "something else" if lane is None else lane_name(lane)
                    await asyncio.create_task(block(), name=name)
            finally:
                guard.end()

        asyncio.run(whole())
        return guard


@pytest.fixture(params=["fresh_sqlite_url", "fresh_postgres_url"])
def scene(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Scene]:
    settings = Settings(
        database=request.getfixturevalue(request.param)(), sandbox_effects=str(tmp_path / "e")
    )
    with open_app(settings) as app:
        with app.store.write() as tx:
            accounts.add(tx, NewAccount("ann", "sandbox"), app.house, app.clock.now())
        yield Scene(app, monkeypatch)


def test_a_lane_that_blocks_everybody_is_held_told_and_at_last_suspended(scene: Scene) -> None:
    with capture_logs() as logged:
        scene.play()
    assert scene.codes == [EXIT_BLOCKED]
    with scene.app.store.read() as tx:
        (account,) = tx.accounts.list()
        events = [event.kind for event in reversed(tx.events.latest(limit=10))]
        (alert,) = tx.alerts.list()
    assert (account.state, account.state_reason) == (
        "suspended",
        "its driver blocked the whole process for 0 s",
    )
    assert events[-2:] == ["account.cooling_down", "account.suspended"]
    assert account.state_reason in alert.text
    told = [entry for entry in logged if entry["event"] == "nothing moves in this process"]
    assert told[0]["account"] == "ann" and "in block" in told[0]["stack"]


def test_where_it_is_no_lane_nobody_is_suspended_and_somebody_is_told(scene: Scene) -> None:
    scene.play(lane=None)
    assert scene.codes == [EXIT_BLOCKED]
    with scene.app.store.read() as tx:
        assert [account.state for account in tx.accounts.list()] == ["active"]
        (alert,) = tx.alerts.list()
    assert (alert.kind, alert.account_id) == ("process.blocked", None)
    told = "process one was blocked for 0 s by what is no account's lane, and was ended"
    assert alert.text.startswith(told) and "it stood at wait (" in alert.text


def test_a_database_that_is_away_as_well_puts_nothing_off(scene: Scene) -> None:
    def away() -> Store:
        raise StoreUnavailable("the database cannot be reached")

    with capture_logs() as logged:
        scene.play(store=away)
    assert scene.codes == [EXIT_BLOCKED]
    assert "could not be written down" in [entry["event"] for entry in logged]


def test_a_process_that_takes_too_much_memory_ends_in_good_order(scene: Scene) -> None:
    options = GuardOptions(memory_limit=1, look_us=10 * MILLISECOND)
    guard = scene.play(options)
    assert guard.code == EXIT_MEMORY and scene.codes == []
    with scene.app.store.read() as tx:
        (alert,) = tx.alerts.list()
    assert alert.kind == "process.memory" and alert.count == 1
    assert 'with isolation = "process" it would be known which account' in alert.text


def test_held_before_anybody_can_take_over_and_ended_long_after() -> None:
    options = GuardOptions()
    assert options.hold_after_us < 10_000_000 < options.tell_after_us < options.end_after_us
