"""What goes wrong with a group that crosses by itself, and who hears of it."""

import asyncio
import errno
import os
import select
import socket
import threading
from typing import Any

import pytest

from paceline.core.errors import RowBusy, StoreUnavailable
from paceline.core.instants import MILLISECOND
from paceline.core.states import DeliveryState
from paceline.engine import committing, parking
from paceline.engine.committing import Entry
from paceline.engine.crossing import arrived
from paceline.engine.lane import STORE_RETRY_US
from paceline.engine.parking import Parked, Rest
from paceline.engine.ports import LaneUnit, Tx
from paceline.store import postgresql
from paceline.store.database import open_store
from paceline.store.tx import Transaction
from paceline.store.watch import Watch
from tests.store.crossings import (
    STARTED,
    Held,
    journal_of,
    only_session,
    relayed,
    said,
    scene,
    states,
    until_nobody_waits,
    until_somebody_waits,
    wishes,
)
from tests.store.scene import T0, Scene
from tests.store.wiring import PID

__all__ = ["scene", "wishes"]  # fixtures

D = DeliveryState
LOOKS_EVERY_MS = "SELECT setting FROM pg_settings WHERE name = 'client_connection_check_interval'"
PANIC = said(b"E", b"SPANIC\0VPANIC\0CXX000\0Mcould not write to the log\0\0")


def _submit_all(scene: Scene, units: list[LaneUnit]) -> list[Any]:
    async def submit() -> list[Any]:
        async with journal_of(scene) as journal:
            under_way = [journal.submit(one) for one in units]
            return await asyncio.gather(*under_way, return_exceptions=True)

    return asyncio.run(submit())


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions that wait for a row for a moment only."""
    short = [one for one in postgresql._SESSION if "lock_timeout" not in one]
    monkeypatch.setattr(postgresql, "_SESSION", (*short, "SET lock_timeout = '100ms'"))


def test_a_row_is_waited_for_once_and_then_looked_for_in_a_hurry(
    impatient: None, scene: Scene, wishes: list[LaneUnit], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice as long as a lease can bear would be too long."""
    store = open_store(scene.url)  # whose sessions begin now
    scene.store, before = store, scene.store
    only_session(scene)
    tried, hurried = list[int](), list[int]()
    apply, hurry = committing.apply, Transaction.hurry

    def applied(tx: Tx, group: list[Entry], **how: Any) -> list[Any]:
        tried.append(len(group))
        return apply(tx, group, **how)

    def noted(self: Transaction) -> None:
        hurried.append(len(tried))
        hurry(self)

    monkeypatch.setattr(committing, "apply", applied)
    monkeypatch.setattr(Transaction, "hurry", noted)
    held = Held(scene, wishes[1].lease.account_id)
    try:
        answers = _submit_all(scene, wishes)
    finally:
        held.let_go()
        scene.store = before
        store.close()
    assert [type(one) for one in answers] == [type(STARTED), RowBusy, type(STARTED)]
    assert tried == [2, 1, 1, 1]
    assert hurried == [0, 1, 2, 3]


def test_a_unit_that_cannot_be_written_harms_no_other(scene: Scene, wishes: list[LaneUnit]) -> None:
    only_session(scene)
    wishes[1] = wishes[1]._replace(usage="\ud800")
    first, bad, last = _submit_all(scene, wishes)
    assert (first, last) == (STARTED, STARTED)
    assert isinstance(bad, UnicodeEncodeError)
    assert states(scene, wishes) == [D.SENDING, D.READY, D.SENDING]


def test_without_anything_to_watch_with_the_thread_does_it(
    scene: Scene, wishes: list[LaneUnit], monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = only_session(scene)

    def none_left(*_: Any) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(select, "epoll", none_left)
    with pytest.raises(OSError, match="Too many"):
        scene.store.set_off(wishes)
    assert _submit_all(scene, wishes) == [STARTED] * 3
    assert only_session(scene) == pid


def test_a_server_that_dies_at_the_commit_leaves_a_doubt(
    scene: Scene, wishes: list[LaneUnit]
) -> None:
    """It may be written, and it may not: to try it again would be to guess."""
    with relayed(scene) as (store, relay):
        with store.write() as tx:
            tx._context.ask(PID)
        relay.break_at(b"COMMIT", saying=PANIC)
        crossing = store.set_off(wishes)
        assert crossing is not None
        with pytest.raises(StoreUnavailable, match="could not write to the log"):
            asyncio.run(arrived(crossing))


def test_so_does_one_that_dies_at_the_commit_of_a_thread(scene: Scene) -> None:
    with (
        relayed(scene) as (store, relay),
        pytest.raises(StoreUnavailable),
        store.write() as tx,
    ):
        tx._context.ask(PID)
        relay.break_at(b"COMMIT", saying=PANIC)


def test_whoever_parks_passes_the_fence_before_anything_is_held(
    scene: Scene, wishes: list[LaneUnit]
) -> None:
    """A command has the fence, and wants a lane that others of the group hold."""
    parks, other = wishes[0], wishes[1].lease.account_id
    with scene.store.read() as tx:
        rest = Rest(None, tx.accounts.get(parks.lease.account_id), None, renews=False)
    unit = LaneUnit(parks.lease, parks.revision)
    commands = open_store(scene.url)
    passed, waited_for = threading.Event(), threading.Event()

    def command() -> None:
        with commands.write() as tx:
            tx.settings.fence()
            passed.set()
            assert waited_for.wait(20)
            tx.lanes.touch(other, T0)

    async def park() -> Parked:
        loop = asyncio.get_running_loop()
        commanded = loop.run_in_executor(None, command)
        await loop.run_in_executor(None, passed.wait, 20)
        async with journal_of(scene) as journal:
            touched = asyncio.ensure_future(journal.write(lambda tx: tx.lanes.touch(other, T0)))
            parked = asyncio.ensure_future(
                journal.submit_and(unit, lambda tx, done: parking.park(tx, done, unit, rest))
            )
            await until_somebody_waits(scene)
            waited_for.set()
            await asyncio.gather(commanded, touched)
            return await parked

    try:
        assert asyncio.run(park()).parked
    finally:
        commands.close()
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    assert scene.sql(deadlocks) == [(0,)]


def test_a_socket_that_cannot_be_watched_any_more_is_a_store_that_is_away(
    scene: Scene, wishes: list[LaneUnit], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No lane takes that for a failure of its own, and the next group finds another way."""

    def gone(self: Watch, events: int) -> None:
        raise OSError(errno.EBADF, "Bad file descriptor")

    only_session(scene)
    with monkeypatch.context() as patched:
        patched.setattr(Watch, "wait_for", gone)
        answers = _submit_all(scene, wishes)
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 3
    if states(scene, wishes) == [D.READY] * 3:  # nobody knows, so both are right
        assert _submit_all(scene, wishes) == [STARTED] * 3
    assert states(scene, wishes) == [D.SENDING] * 3


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions that wait for a row, and go on with a statement, for as long as it takes."""
    kept = [one for one in postgresql._SESSION if "_timeout" not in one]
    monkeypatch.setattr(postgresql, "_SESSION", tuple(kept))


def test_a_flight_whose_sender_is_gone_gives_up_while_it_waits(
    patient: None, scene: Scene, wishes: list[LaneUnit]
) -> None:
    """Or it would be committed whenever the row is free, and write what has long been written
    anew. And that sooner than a lane goes on that has heard nothing."""
    store = open_store(scene.url)
    with store.write() as tx:
        looks = tx._context.ask(LOOKS_EVERY_MS).fetchone()[0]  # type: ignore[attr-defined]
    assert 0 < int(looks) * MILLISECOND < STORE_RETRY_US
    held = Held(scene, wishes[0].lease.account_id)

    async def lose() -> None:
        crossing = store.set_off(wishes)
        assert crossing is not None
        flight = asyncio.ensure_future(arrived(crossing))
        await until_somebody_waits(scene)
        with socket.socket(fileno=os.dup(crossing._wire._pgconn.socket)) as line:  # type: ignore[attr-defined]
            line.shutdown(socket.SHUT_RDWR)
        with pytest.raises(StoreUnavailable):
            await flight
        async with asyncio.timeout(60):
            await until_nobody_waits(scene)

    asyncio.run(lose())
    held.let_go()
    assert states(scene, wishes) == [D.READY] * 3
    store.close()
