"""A group that crosses to the server by itself, and whoever waits for it in the loop."""

import asyncio
import socket
import struct
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from sqlalchemy import URL, make_url, text

from paceline.core.errors import StoreSurprise, StoreUnavailable
from paceline.core.states import DeliveryState
from paceline.engine.clock import SystemClock
from paceline.engine.crossing import arrived
from paceline.engine.journal import GroupJournal, ThreadRunner
from paceline.engine.ports import Crossing, LaneResult, LaneUnit
from paceline.interpreter import loop_factory
from paceline.store.database import open_store
from tests.store.scene import T0, Lane, Scene, Ticker, intent, settlement, unit
from tests.store.wiring import PID, end_session

D = DeliveryState
STARTED = LaneResult(True, (), True)
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


@pytest.fixture
def scene(fresh_postgres_url: Callable[[], str]) -> Any:
    """In a database of its own: these lose their connections."""
    url = fresh_postgres_url()
    store = open_store(url)
    scene = Scene(store, url, "postgresql", Ticker())
    yield scene
    scene.close()
    store.close()


@pytest.fixture
def wishes(scene: Scene) -> list[LaneUnit]:
    """Three lanes of one process, each with a delivery to start."""
    process_id, run_id = scene.process(), scene.run()
    lanes = [scene.lane(scene.account(), process_id) for _ in range(3)]
    return [
        unit(lane, intent(scene.delivery(run_id, lane.account_id), run_id), usage="{}")
        for lane in lanes
    ]


def _states(scene: Scene, units: list[LaneUnit]) -> list[DeliveryState]:
    return [scene.state(one.intent.delivery_id) for one in units if one.intent is not None]


def _set_off(scene: Scene, units: list[LaneUnit]) -> Crossing:
    crossing = scene.store.set_off(units)
    assert crossing is not None
    return crossing


@asynccontextmanager
async def _journal(scene: Scene) -> AsyncIterator[GroupJournal]:
    journal = GroupJournal(
        scene.store,
        SystemClock(),
        writer=ThreadRunner("writer"),
        reader=ThreadRunner("reader"),
        here=True,
    )
    yield journal
    await journal.close()


async def _until_somebody_waits(scene: Scene) -> None:
    while await asyncio.to_thread(scene.sql, WAITING) == [(0,)]:
        continue


class _Held:
    """Somebody else holds a lane until told to let go."""

    def __init__(self, scene: Scene, account_id: int) -> None:
        scene.sql("SELECT 1")
        assert scene._engine is not None
        self._connection = scene._engine.connect()
        held = text("SELECT 1 FROM lanes WHERE account_id = :a FOR UPDATE")
        self._connection.execute(held, {"a": account_id})

    def let_go(self, change: str = "SELECT 1") -> None:
        self._connection.execute(text(change))
        self._connection.commit()
        self._connection.close()


def test_it_is_committed_when_it_has_arrived(scene: Scene, wishes: list[LaneUnit]) -> None:
    crossing = _set_off(scene, wishes)
    assert asyncio.run(arrived(crossing)) == [STARTED] * 3
    assert _states(scene, wishes) == [D.SENDING] * 3


def test_the_connection_is_used_again(scene: Scene, wishes: list[LaneUnit]) -> None:
    pid = _only_session(scene)
    asyncio.run(arrived(_set_off(scene, wishes)))
    assert _only_session(scene) == pid


def test_nobody_sets_off_without_a_connection_that_lies_idle(
    scene: Scene, wishes: list[LaneUnit]
) -> None:
    other = open_store(scene.url)
    try:
        assert other.set_off(wishes) is None
        with other.write() as tx:
            pid = tx._context.ask(PID).fetchone()[0]  # type: ignore[attr-defined]
        end_session(scene.url, pid)
        assert other.set_off(wishes) is None
    finally:
        other.close()
    assert _states(scene, wishes) == [D.READY] * 3


def test_what_cannot_be_foretold_stays_and_so_does_the_connection(
    scene: Scene, wishes: list[LaneUnit]
) -> None:
    assert scene.store.set_off([wishes[0], wishes[0]]) is None
    assert asyncio.run(arrived(_set_off(scene, wishes))) == [STARTED] * 3


def test_a_surprise_undoes_it(scene: Scene, wishes: list[LaneUnit]) -> None:
    with scene.store.write() as tx:
        tx.lanes.touch(wishes[1].lease.account_id, T0)
    with pytest.raises(StoreSurprise):
        asyncio.run(arrived(_set_off(scene, wishes)))
    assert _states(scene, wishes) == [D.READY] * 3
    with scene.store.write() as tx:  # another connection, since this one had to be given up
        assert tx.lanes.get(wishes[0].lease.account_id) is not None


def test_more_than_the_wire_holds_is_sent_and_answered(
    scene: Scene, wishes: list[LaneUnit]
) -> None:
    much = [one._replace(usage=f'{{"long": "{"x" * 4_000_000}"}}') for one in wishes]
    assert asyncio.run(arrived(_set_off(scene, much))) == [STARTED] * 3
    assert scene.sql("SELECT min(length(checkpoint)) FROM usage")[0][0] > 4_000_000


def test_whoever_stops_waiting_costs_the_connection(scene: Scene, wishes: list[LaneUnit]) -> None:
    held = _Held(scene, wishes[1].lease.account_id)

    async def give_up() -> None:
        waiting = asyncio.ensure_future(arrived(_set_off(scene, wishes)))
        await _until_somebody_waits(scene)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(give_up())
    held.let_go()
    assert _states(scene, wishes) == [D.READY] * 3
    assert asyncio.run(arrived(_set_off_again(scene, wishes))) == [STARTED] * 3


def _set_off_again(scene: Scene, units: list[LaneUnit]) -> Crossing:
    with scene.store.write() as tx:  # so that there is a connection
        tx.settings.fence()
    return _set_off(scene, units)


def test_a_session_that_is_ended_meanwhile_is_told(scene: Scene, wishes: list[LaneUnit]) -> None:
    pid = _only_session(scene)
    held = _Held(scene, wishes[1].lease.account_id)

    async def wait_for_it() -> None:
        waiting = asyncio.ensure_future(arrived(_set_off(scene, wishes)))
        await _until_somebody_waits(scene)
        await asyncio.to_thread(end_session, scene.url, pid)
        with pytest.raises(StoreUnavailable) as told:
            await waiting
        assert not isinstance(told.value, StoreSurprise)

    asyncio.run(wait_for_it())
    held.let_go()
    assert _states(scene, wishes) == [D.READY] * 3


SAID = b"SNOTICE\0C00000\0Mso long\0\0"
LAST_WORDS = b"N" + struct.pack("!i", len(SAID) + 4) + SAID
"""A notice, as the server would send it."""


class Relay:
    """Between a client and the server: it can have a client's connection reset."""

    def __init__(self, server: URL) -> None:
        self._to = (server.host, server.port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self._clients: list[socket.socket] = []
        self._begin(self._accept)

    def _begin(self, work: Callable[..., None], *of: Any) -> None:
        # None of them keeps a test that has failed from ending.
        threading.Thread(target=work, args=of, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(self._to)
                self._clients.append(client)
                for one, other in ((client, server), (server, client)):
                    self._begin(_pass_on, one, other)

    def reset(self, last_words: bytes = b"") -> None:
        for client in self._clients:
            with suppress(OSError):
                client.sendall(last_words)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                # Whoever reads from it holds it open; at the server's end nothing more is wanted.
                client.shutdown(socket.SHUT_RD)
                client.close()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.reset()


def _pass_on(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError), other:
        while data := one.recv(65536):
            other.sendall(data)


def test_a_connection_that_is_reset_is_told(scene: Scene, wishes: list[LaneUnit]) -> None:
    """Of a socket in such a state a loop speaks once, and what is read then may be but the last
    words of a server."""
    place = make_url(scene.url)
    relay = Relay(place)
    store = open_store(place.set(port=relay.port).render_as_string(hide_password=False))
    held = _Held(scene, wishes[1].lease.account_id)

    async def wait_for_it() -> None:
        with store.write() as tx:
            tx._context.ask(PID)  # type: ignore[attr-defined]
        crossing = store.set_off(wishes)
        assert crossing is not None
        waiting = asyncio.ensure_future(arrived(crossing))
        await _until_somebody_waits(scene)
        relay.reset(LAST_WORDS)
        async with asyncio.timeout(10):
            with pytest.raises(StoreUnavailable):
                await waiting

    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(wait_for_it())
    finally:
        store.close()
        relay.close()
        held.let_go()


def test_a_new_connection_in_the_place_of_a_lost_one_is_heard(
    scene: Scene, wishes: list[LaneUnit]
) -> None:
    """The kernel gives the same number to the next socket, and a loop that still watches for the
    old one would never hear of the new."""

    async def lose_and_go_on() -> None:
        for _ in range(5):
            pid = await asyncio.to_thread(_only_session, scene)
            held = await asyncio.to_thread(_Held, scene, wishes[1].lease.account_id)
            waiting = asyncio.ensure_future(arrived(_set_off(scene, wishes)))
            await _until_somebody_waits(scene)
            await asyncio.to_thread(end_session, scene.url, pid)
            with pytest.raises(StoreUnavailable):
                await waiting
            held.let_go()
            # At once, and in this very turn of the loop: before it has looked up.
            _only_session(scene)
            told = [unit(Lane(one.lease, one.revision), usage="{}") for one in wishes]
            async with asyncio.timeout(20):
                await arrived(_set_off(scene, told))

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(lose_and_go_on())
    assert _states(scene, wishes) == [D.READY] * 3


def _only_session(scene: Scene) -> int:
    with scene.store.write() as tx:
        pid: int = tx._context.ask(PID).fetchone()[0]  # type: ignore[attr-defined]
    return pid


# ---------------------------------------------------------------------- through the journal


def test_the_journal_takes_no_thread_for_lanes(scene: Scene, wishes: list[LaneUnit]) -> None:
    async def submit() -> list[LaneResult]:
        async with _journal(scene) as journal:
            journal._writer = None  # type: ignore[assignment]
            try:
                return await asyncio.gather(*(journal.submit(one) for one in wishes))
            finally:
                journal._writer = ThreadRunner("writer")

    assert asyncio.run(submit()) == [STARTED] * 3


def test_a_surprise_is_found_out_by_asking(scene: Scene, wishes: list[LaneUnit]) -> None:
    with scene.store.write() as tx:
        tx.lanes.touch(wishes[1].lease.account_id, T0)

    async def submit() -> list[LaneResult]:
        async with _journal(scene) as journal:
            return await asyncio.gather(*(journal.submit(one) for one in wishes))

    assert [one.intended for one in asyncio.run(submit())] == [True, False, True]


def test_who_takes_the_lane_over_meanwhile_is_not_missed(
    scene: Scene, wishes: list[LaneUnit]
) -> None:
    account_id = wishes[1].lease.account_id
    held = _Held(scene, account_id)

    async def submit() -> list[LaneResult]:
        async with _journal(scene) as journal:
            under_way = [asyncio.ensure_future(journal.submit(one)) for one in wishes]
            await _until_somebody_waits(scene)
            taken = f"UPDATE lanes SET generation = 99 WHERE account_id = {account_id}"
            await asyncio.to_thread(held.let_go, taken)
            return await asyncio.gather(*under_way)

    results = asyncio.run(submit())
    assert [one.held for one in results] == [True, False, True]
    assert _states(scene, wishes) == [D.SENDING, D.READY, D.SENDING]


def test_work_and_units_of_one_group_go_by_the_thread(scene: Scene, wishes: list[LaneUnit]) -> None:
    async def submit() -> list[Any]:
        async with _journal(scene) as journal:
            units = [journal.submit(one) for one in wishes]
            return await asyncio.gather(*units, journal.write(lambda tx: tx.settings.stopped()))

    assert asyncio.run(submit()) == [*[STARTED] * 3, None]


def test_a_lost_session_fails_the_whole_group(scene: Scene, wishes: list[LaneUnit]) -> None:
    pid = _only_session(scene)
    held = _Held(scene, wishes[1].lease.account_id)

    async def submit() -> list[Any]:
        async with _journal(scene) as journal:
            under_way = [asyncio.ensure_future(journal.submit(one)) for one in wishes]
            await _until_somebody_waits(scene)
            await asyncio.to_thread(end_session, scene.url, pid)
            return await asyncio.gather(*under_way, return_exceptions=True)

    answers = asyncio.run(submit())
    held.let_go()
    assert [type(one) for one in answers] == [StoreUnavailable] * 3
    assert _states(scene, wishes) == [D.READY] * 3


def test_outcomes_go_the_same_way(scene: Scene, wishes: list[LaneUnit]) -> None:
    first = wishes[0]
    assert first.intent is not None
    asyncio.run(arrived(_set_off(scene, wishes)))
    lane = Lane(first.lease, first.revision)
    told = unit(lane, settlements=(settlement(first.intent.delivery_id, first.intent.run_id),))
    assert asyncio.run(arrived(_set_off(scene, [told]))) == [LaneResult(True, (True,), False)]
    assert scene.state(first.intent.delivery_id) is D.SENT
