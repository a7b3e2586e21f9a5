"""Groups that cross to a server by themselves, and what may come between."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import pytest
from sqlalchemy import URL, make_url, text

from paceline.core.states import DeliveryState
from paceline.engine.clock import SystemClock
from paceline.engine.journal import GroupJournal, ThreadRunner
from paceline.engine.ports import Crossing, LaneResult, LaneUnit
from paceline.store.database import open_store
from paceline.store.postgresql import PostgresqlStore
from tests.store.scene import Scene, Ticker, intent, unit
from tests.store.wiring import PID

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


def states(scene: Scene, units: list[LaneUnit]) -> list[DeliveryState]:
    return [scene.state(one.intent.delivery_id) for one in units if one.intent is not None]


def set_off(scene: Scene, units: list[LaneUnit]) -> Crossing:
    crossing = scene.store.set_off(units)
    assert crossing is not None
    return crossing


@asynccontextmanager
async def journal_of(scene: Scene) -> AsyncIterator[GroupJournal]:
    journal = GroupJournal(
        scene.store,
        SystemClock(),
        writer=ThreadRunner("writer"),
        reader=ThreadRunner("reader"),
        here=True,
    )
    yield journal
    await journal.close()


async def until_somebody_waits(scene: Scene) -> None:
    while await asyncio.to_thread(scene.sql, WAITING) == [(0,)]:
        continue


async def until_nobody_waits(scene: Scene) -> None:
    while await asyncio.to_thread(scene.sql, WAITING) != [(0,)]:
        continue


class Held:
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


def only_session(scene: Scene) -> int:
    with scene.store.write() as tx:
        pid: int = tx._context.ask(PID).fetchone()[0]  # type: ignore[attr-defined]
    return pid


def said(kind: bytes, words: bytes) -> bytes:
    """As the server would send it."""
    return kind + struct.pack("!i", len(words) + 4) + words


LAST_WORDS = said(b"N", b"SNOTICE\0C00000\0Mso long\0\0")


class Relay:
    """Between a client and the server: it can have a client's connection reset."""

    def __init__(self, server: URL) -> None:
        self._breaks_at = self._saying = b""
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
                self._begin(self._pass_on, client, server)
                self._begin(self._pass_on, server, client)

    def break_at(self, word: bytes, saying: bytes) -> None:
        """Never pass this on: whoever says it is told something, and then hears no more."""
        self._breaks_at, self._saying = word, saying

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

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError), other:
            while data := one.recv(65536):
                if self._breaks_at and self._breaks_at in data:
                    one.sendall(self._saying)
                    one.shutdown(socket.SHUT_WR)
                    continue
                other.sendall(data)


@contextmanager
def relayed(scene: Scene) -> Iterator[tuple[PostgresqlStore, Relay]]:
    """A store that reaches the server by way of a relay, and has a connection."""
    place = make_url(scene.url)
    relay = Relay(place)
    store = open_store(place.set(port=relay.port).render_as_string(hide_password=False))
    assert isinstance(store, PostgresqlStore)
    try:
        yield store, relay
    finally:
        store.close()
        relay.close()
