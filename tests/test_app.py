"""The wiring: one instance, a service that serves, sends, survives its database, and stops."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from paceline.app import App, ensure_instance, make_catalogue, open_app, serve
from paceline.config import Settings
from paceline.core.errors import InputError
from paceline.core.instants import MILLISECOND, Instant
from paceline.core.model import Content, Part
from paceline.core.states import DeliveryState
from paceline.engine.clock import SystemClock
from paceline.engine.commands import accounts, campaigns
from paceline.engine.commands.accounts import NewAccount
from paceline.engine.unsubscribing import base_url_of, ensure_links, set_base_url
from paceline.providers.sandbox import read_effects
from paceline.store.database import open_store

POLL_US = 20 * MILLISECOND


@pytest.fixture(params=["fresh_sqlite_url", "fresh_postgres_url"])
def database(request: pytest.FixtureRequest) -> str:
    fresh: Callable[[], str] = request.getfixturevalue(request.param)
    return fresh()


@pytest.fixture
def settings(database: str, tmp_path: Path) -> Settings:
    effects = str(tmp_path / "effects.jsonl")
    return Settings(database=database, port=0, poll_us=POLL_US, sandbox_effects=effects)


@asynccontextmanager
async def served(app: App) -> AsyncIterator[httpx.AsyncClient]:
    """The service, up until the block ends."""
    stop = asyncio.Event()
    up: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    running = asyncio.create_task(serve(app, stop=stop, serving=up.set_result))
    await asyncio.wait({running, up}, return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        await running
    async with httpx.AsyncClient(base_url=up.result()) as client:
        try:
            yield client
        finally:
            stop.set()
            await running


async def until(app: App, holds: Callable[[], object]) -> None:
    """Look until it holds; the suite's own timeout ends it if it never does."""
    while not await asyncio.to_thread(holds):
        await app.clock.sleep_until(app.clock.now() + POLL_US)


async def until_ready(app: App, client: httpx.AsyncClient, status: int) -> httpx.Response:
    while (answer := await client.get("/readyz")).status_code != status:
        await app.clock.sleep_until(app.clock.now() + POLL_US)
    return answer


def send(app: App, target: str) -> int:
    now: Instant = app.clock.now()
    content = Content((Part("text", text="hello"),))
    with app.store.write() as tx:
        if tx.accounts.find("team") is None:
            accounts.add(tx, NewAccount("team", "sandbox"), app.house, now)
        return campaigns.send_direct(
            tx, "team", target, content, "message", now, providers=app.providers
        )


def is_sent(app: App, delivery_id: int) -> bool:
    with app.store.read() as tx:
        return tx.deliveries.get(delivery_id).state is DeliveryState.SENT


def test_two_processes_that_start_at_once_agree_on_the_instance(database: str) -> None:
    clock = SystemClock()
    stores = [open_store(database, clock=clock.now) for _ in range(4)]
    together = threading.Barrier(len(stores))
    found: list[str] = []

    def start(index: int) -> None:
        together.wait()
        found.append(ensure_instance(stores[index]))

    threads = [threading.Thread(target=start, args=(index,)) for index in range(len(stores))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(stores)
    assert len(set(found)) == 1
    assert ensure_instance(stores[0]) == found[0]
    for store in stores:
        store.close()


def test_the_service_serves_sends_and_hands_back(settings: Settings) -> None:
    async def live(app: App) -> None:
        async with served(app) as client:
            await until_ready(app, client, 200)
            delivery_id = send(app, "anna@example.com")
            await until(app, lambda: is_sent(app, delivery_id))
            metrics = (await client.get("/metrics")).text
            assert 'paceline_attempts_total{account="team",outcome="accepted"} 1.0' in metrics
            assert (await client.get("/healthz")).status_code == 200

    with open_app(settings, sends=True) as app:
        asyncio.run(live(app))
        with app.store.read() as tx:
            assert tx.processes.list() == []
            assert tx.lanes.get(tx.accounts.list()[0].id).owner is None
    assert [effect.target for effect in read_effects(settings.effects_path)] == ["anna@example.com"]


def test_policies_are_brought_up_to_date_at_the_start(settings: Settings) -> None:
    async def start_and_stop(app: App) -> None:
        async with served(app):
            pass

    def with_rate(rate: str) -> Settings:
        return Settings(
            database=settings.database,
            port=0,
            sandbox_effects=settings.sandbox_effects,
            policies={"ours": {"rate": rate}},
        )

    with open_app(with_rate("1/s")) as app, app.store.write() as tx:
        new = NewAccount("team", "sandbox", policy="ours")
        accounts.add(tx, new, app.house, app.clock.now())
    with open_app(with_rate("2/s"), sends=True) as app:
        asyncio.run(start_and_stop(app))
        with app.store.read() as tx:
            assert tx.accounts.list()[0].policy["rate"] == "2/s"
    with (
        open_app(settings, sends=True) as app,
        pytest.raises(InputError, match="account team: policy: unknown policy 'ours'"),
    ):
        asyncio.run(start_and_stop(app))


def test_a_bad_policy_names_its_file() -> None:
    settings = Settings(policies={"ours": {"rat": "1/s"}}, source="here.toml")
    with pytest.raises(InputError, match=r"^here\.toml: policy\.ours: unknown key 'rat'"):
        make_catalogue(settings)


def test_a_log_of_effects_that_cannot_be_written(tmp_path: Path) -> None:
    settings = Settings(
        database=str(tmp_path / "p.db"), sandbox_effects=str(tmp_path / "none" / "e.jsonl")
    )
    with pytest.raises(InputError, match="sandbox_effects: "), open_app(settings, sends=True):
        pass


def test_the_service_outlives_a_database_that_goes_away(
    fresh_postgres_url: Callable[[], str], postgres_url: str, tmp_path: Path
) -> None:
    settings = Settings(
        database=fresh_postgres_url(),
        port=0,
        poll_us=POLL_US,
        sandbox_effects=str(tmp_path / "effects.jsonl"),
    )
    name = make_url(settings.database).database
    admin = create_engine(postgres_url, isolation_level="AUTOCOMMIT")

    def plug(allowed: bool) -> None:
        with admin.connect() as connection:
            connection.execute(text(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS {allowed}'))
            if not allowed:
                connection.execute(
                    text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname=:n"),
                    {"n": name},
                )

    async def live(app: App) -> None:
        async with served(app) as client:
            await until_ready(app, client, 200)
            await asyncio.to_thread(plug, False)
            answer = await until_ready(app, client, 503)
            assert any(str(name) in reason for reason in answer.json()["reasons"])
            assert (await client.get("/healthz")).status_code == 200
            await asyncio.to_thread(plug, True)
            await until_ready(app, client, 200)
            delivery_id = await asyncio.to_thread(send, app, "anna@example.com")
            await until(app, lambda: is_sent(app, delivery_id))

    with open_app(settings, sends=True) as app:
        asyncio.run(live(app))
    admin.dispose()
    assert len(read_effects(settings.effects_path)) == 1


# ---------------------------------------------------------------------- unsubscribing


def test_one_click_over_http_is_in_force_for_the_next_message(settings: Settings) -> None:
    """A real POST to a running service; a GET before it, as scanners make it, does nothing."""
    reached = replace(settings, base_url="https://mail.example.com")

    async def scene(app: App) -> None:
        delivery_id = send(app, "anna@example.com")
        with app.store.write() as tx:
            links = ensure_links(tx)
        assert links is not None
        path = links.of(delivery_id).removeprefix("https://mail.example.com")
        async with served(app) as client:
            assert (await client.get(path)).status_code == 200
            assert not is_suppressed(app)
            answer = await client.post(path, data={"List-Unsubscribe": "One-Click"})
            assert answer.status_code == 200
            assert is_suppressed(app)
            assert (await client.post(f"{path}x")).status_code == 404

    def is_suppressed(app: App) -> bool:
        with app.store.read() as tx:
            return tx.suppressions.has("anna@example.com")

    with open_app(reached, sends=True) as app:
        asyncio.run(scene(app))


def test_a_link_leads_here_whoever_made_it_and_whatever_the_settings_say(
    settings: Settings,
) -> None:
    """A worker may make links before this process has heard where they lead; and those that are out
    are good, though nobody says any more how the outside reaches us."""

    async def scene(app: App) -> None:
        async with served(app) as client:
            delivery_id = send(app, "anna@example.com")
            with app.store.write() as tx:
                set_base_url(tx, "https://mail.example.com")
                links = ensure_links(tx)
            assert links is not None
            path = links.of(delivery_id).removeprefix("https://mail.example.com")
            assert (await client.post(path)).status_code == 200
            with app.store.read() as tx:
                assert tx.suppressions.has("anna@example.com")

    with open_app(settings, sends=True) as app:
        asyncio.run(scene(app))


def test_how_the_outside_reaches_us_is_told_to_every_process(settings: Settings) -> None:
    def told(**said: object) -> str:
        how = {name: bool(said.pop(name)) for name in ("sends", "serves") if name in said}
        with open_app(replace(settings, **said), **how) as app, app.store.read() as tx:  # type: ignore[arg-type]
            return base_url_of(tx)

    assert told() == ""
    assert told(base_url="https://a.example") == "https://a.example"
    assert told() == "https://a.example", "a command that was told nothing takes nothing back"
    assert told(base_url="https://b.example") == "https://b.example"
    assert told(sends=True, serves=False) == "https://b.example", "nor does a worker"
    assert told(sends=True) == ""
