"""The one place that wires: settings become a store, providers, policies and a running service.

Nothing is decided here but who gets to know whom, and in which order things start and stop. What
only the service needs is loaded where it is used, because every command comes through here.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog

from paceline.config import Settings, sqlite_path
from paceline.core.errors import InputError, VaultError
from paceline.core.instants import MILLISECOND
from paceline.core.webhooks import Webhook
from paceline.engine.catalogue import Catalogue, apply_catalogue
from paceline.engine.clock import SystemClock
from paceline.engine.commands.accounts import House
from paceline.engine.commands.answering import refresh
from paceline.engine.commands.sealing import seal_all
from paceline.engine.naming import seal_keys
from paceline.engine.ports import Clock, Journal, Notifier, Providers, Store
from paceline.engine.unsubscribing import (
    UnsubscribeDesk,
    base_url_of,
    links_of,
    set_base_url,
)
from paceline.providers.drivers import every_driver
from paceline.store.database import open_store
from paceline.vault import KeyFile, KeyVault

if TYPE_CHECKING:
    from paceline.api.server import HttpServer
    from paceline.engine.asking import Answers
    from paceline.engine.courier import Courier
    from paceline.engine.looking import Looker
    from paceline.engine.ports.workers import Workers
    from paceline.engine.station import Station
    from paceline.engine.talk_tally import TalkTally
    from paceline.providers.postman import HttpPostman
    from paceline.providers.sandbox import FileEffects
    from paceline.providers.spawning import ProcessWorkers


log = structlog.get_logger("paceline.app")
NO_ONE_CLICK = "mail programs show no button to unsubscribe, except on this very machine"

INSTANCE = "instance"
READERS = 4
GATHER_US = 10 * MILLISECOND
"""Between two commits of lanes that have all the time in the world: a thousand at forty a minute
need not be a thousand commits a second."""
TELLING_SECONDS = 5
"""How long a stop waits for alerts and events that are being told."""


@dataclass(frozen=True, slots=True)
class App:
    """An installation, opened."""

    settings: Settings
    store: Store
    clock: Clock
    house: House

    @property
    def providers(self) -> Providers:
        return self.house.providers

    @property
    def catalogue(self) -> Catalogue:
        return self.house.catalogue


def make_catalogue(settings: Settings) -> Catalogue:
    """The policies that can be named; what is wrong with one names the file it is in."""
    try:
        often = {"per_recipient": settings.per_contact} if settings.per_contact else {}
        return Catalogue(settings.policies, often)
    except InputError as error:
        raise error.within(settings.source) if settings.source else error from None


def make_vault(settings: Settings) -> KeyVault:
    """Who seals secrets. A file beside a SQLite database is made when there is something to seal;
    a fleet has to be given the same key everywhere."""
    path = settings.key_path
    alone = sqlite_path(settings.database) is not None
    return KeyVault(None if path is None else KeyFile(path), os.environ, may_create=alone)


def make_notifier(settings: Settings) -> Notifier | None:
    """Who tells operators of alerts; None if nobody said whom to tell."""
    if not settings.alerts_urls:
        return None
    from paceline.providers.notices import AppriseNotifier

    try:
        return AppriseNotifier(settings.alerts_urls)
    except InputError as error:
        raise error.within(settings.source) if settings.source else error from None


def make_postman(settings: Settings, webhook: Webhook, clock: Clock) -> tuple[HttpPostman, str]:
    """Who brings a webhook its events, and the secret they are signed with."""
    from paceline.providers.postman import HttpPostman

    try:
        secret = webhook.signed_with(os.environ)
    except InputError as error:
        raise error.within(settings.source) if settings.source else error from None
    return HttpPostman(webhook, secret, clock.now), secret


def _couriers(app: App, journal: Journal) -> list[Courier]:
    from paceline.engine.courier import Courier

    instance, found = ensure_instance(app.store), []
    for webhook in app.settings.webhooks:
        postman, secret = make_postman(app.settings, webhook, app.clock)
        courier = Courier(journal, app.clock, webhook, postman, instance=instance, secret=secret)
        found.append(courier)
    return found


def make_answers(settings: Settings, clock: Clock) -> dict[str, Answers]:
    """Who answers in each of the ways that there are; people are in none of them."""
    from paceline.engine.asking import Answers
    from paceline.providers.responders.making import responder_of

    found = {}
    for name, way in settings.answering.items():
        try:
            responder = responder_of(way, os.environ, clock)
        except InputError as error:
            raise error.within(settings.source) if settings.source else error from None
        if responder is not None:
            kept = {"history": way.history, "give_up_us": way.give_up_us}
            found[name] = Answers(responder, way.retries, **kept)
    return found


async def _answerers(app: App, journal: Journal, tally: TalkTally) -> list[Looker]:
    """Who answers people, and who looks after it."""
    from paceline.engine.answering import Answerer
    from paceline.engine.overseeing import Overseer

    settings, now = app.settings, app.clock.now()
    # It holds conversations of many accounts, so it goes alone.
    changed = await journal.write(lambda tx: refresh(tx, settings.answering, now), alone=True)
    for account in changed:
        log.info("way to answer updated", account=account.name)
    answers = make_answers(settings, app.clock)
    name = settings.process_name
    at_once = settings.answering_at_once
    answerer = Answerer(
        journal, app.clock, app.providers, answers, name=name, at_once=at_once, tally=tally
    )
    return [answerer, Overseer(journal, app.clock, tally)]


def make_workers(settings: Settings) -> ProcessWorkers:
    """Who starts workers. Each is told our settings as its first line, whatever has become of the
    file since; on a command line others could read a password."""
    from paceline.handing_down import write_settings
    from paceline.providers.spawning import ProcessWorkers

    return ProcessWorkers(
        dict(os.environ), lambda name: write_settings(replace(settings, name=name))
    )


@contextmanager
def open_app(
    settings: Settings, *, sends: bool = False, serves: bool | None = None
) -> Iterator[App]:
    """Open an installation; with ``sends`` false its providers are only asked, never used. Whoever
    sends ``serves`` as well, unless it is a worker."""
    catalogue = make_catalogue(settings)
    clock = SystemClock()
    store = open_store(settings.database, clock=clock.now)
    try:
        ensure_instance(store)
        _note_base_url(store, settings.base_url, serves=sends if serves is None else serves)
        with _effects(settings, sends=sends) as effects:
            vault = make_vault(settings)
            registry = every_driver(clock, effects, settings.whatsapp_folder, vault)
            yield App(settings, store, clock, House(registry, catalogue))
    finally:
        store.close()


@contextmanager
def _effects(settings: Settings, *, sends: bool) -> Iterator[FileEffects | None]:
    """The log of what the sandbox does, if it may do anything."""
    if not sends:
        yield None
        return
    from paceline.providers.sandbox import FileEffects

    path = settings.effects_path
    try:
        effects = FileEffects(path)
    except OSError as error:
        reason = f"{str(path)!r} cannot be opened: {error.strerror}"
        raise InputError(reason, key="sandbox_effects") from None
    with effects:
        yield effects


def _note_base_url(store: Store, base_url: str, *, serves: bool) -> None:
    """Let every process know how the outside reaches this service. Only one that serves can say
    that it is not reached at all any more: a command may just have been given no settings."""
    with store.read() as tx:
        known = base_url_of(tx)
    if base_url != known and (base_url or serves):
        with store.write() as tx:
            set_base_url(tx, base_url)


def ensure_instance(store: Store) -> str:
    """The installation's own name, part of every provider key: given once, never changed."""
    with store.read() as tx:
        found = tx.settings.get(INSTANCE)
    if found is not None:
        return str(found)
    with store.write() as tx:
        # Two processes may start at once on a fresh database. Behind the fence the second finds
        # what the first has written.
        tx.settings.fence()
        found = tx.settings.get(INSTANCE)
        if found is None:
            found = secrets.token_hex(8)
            tx.settings.put(INSTANCE, found)
            seal_keys(tx)
    return str(found)


async def serve(
    app: App,
    *,
    stop: asyncio.Event,
    serving: Callable[[str], None] = lambda url: None,
    workers: Workers | None = None,
) -> None:
    """Run the lanes and the HTTP server until ``stop``; return when everything is handed back.

    ``serving`` is told the address once it answers. ``workers`` are for lanes that do not run here.
    """
    from paceline.api.hooks import Hooks
    from paceline.api.metrics import PrometheusObserver
    from paceline.api.prefix import BehindPath
    from paceline.api.server import HttpServer, listen, make_api
    from paceline.api.unsubscribe import add_unsubscribing
    from paceline.engine.confirming import words_of
    from paceline.engine.journal import GroupJournal, ThreadRunner
    from paceline.engine.readiness import Readiness
    from paceline.engine.reporting import ReportDesk
    from paceline.engine.teller import Teller
    from paceline.engine.watching import Watcher
    from paceline.stationing import make_station

    settings = app.settings
    observer = PrometheusObserver()
    notifier = make_notifier(settings)
    # Asked for first: a port in use must be told before this process joins the fleet.
    bound = listen(settings.host, settings.port)
    journal = GroupJournal(
        app.store,
        app.clock,
        writer=ThreadRunner("paceline-writer"),
        reader=ThreadRunner("paceline-reader", READERS),
        observer=observer,
        gather_us=GATHER_US,
        here=True,
    )
    try:
        await _update_policies(app, journal)
        await _seal_secrets(app, journal)
        station = make_station(
            settings,
            journal,
            app.clock,
            app.providers,
            observer,
            lambda: workers or make_workers(settings),
        )
        teller = Teller(journal, app.clock, notifier, again_us=settings.alerts_again_us)
        api = make_api(observer, Readiness(journal, station, stop))
        links = await journal.write(links_of)
        words = words_of(settings.opt_out, app.providers)
        add_unsubscribing(api, UnsubscribeDesk(journal, app.clock, links, words.after_link))
        desk = ReportDesk(journal, app.clock, app.providers, words)
        http = HttpServer(BehindPath(Hooks(api, desk), settings.base_url), bound)
        watcher = Watcher(journal, app.clock, app.providers, words=words)
        answerers = await _answerers(app, journal, observer.talk)
        tellers: list[Looker] = [teller, watcher, *answerers, *_couriers(app, journal)]
        await _run(app, station, tellers, http, stop, serving)
    finally:
        bound.close()
        await journal.close()


async def _run(
    app: App,
    station: Station,
    tellers: Sequence[Looker],
    http: HttpServer,
    stop: asyncio.Event,
    serving: Callable[[str], None],
) -> None:
    """Everything at once, until told to stop or until one part fails."""
    settings = app.settings
    lanes = asyncio.create_task(station.run(), name="station")
    telling = [asyncio.create_task(one.run(), name=type(one).__name__.lower()) for one in tellers]
    pages = asyncio.create_task(http.run(), name="http")
    up = asyncio.create_task(http.started(), name="http-up")
    told = asyncio.create_task(stop.wait(), name="stop")
    try:
        await asyncio.wait({lanes, pages, up}, return_when=asyncio.FIRST_COMPLETED)
        if up.done():
            url = f"http://{settings.host}:{http.port}"
            database, base_url = settings.shown_database, settings.base_url or url
            log.info("serving", url=url, base_url=base_url, database=database)
            if settings.base_url.startswith("http://"):
                log.warning("base_url is not https", consequence=NO_ONE_CLICK)
            serving(url)
        await asyncio.wait({lanes, pages, told}, return_when=asyncio.FIRST_COMPLETED)
        stop.set()
        station.stop()
        # The pages stay up meanwhile: whoever asks is told that this process is stopping.
        await lanes
    finally:
        # What is left untold is told by another process, or by the next one.
        await _end_telling(tellers, telling)
        up.cancel()
        told.cancel()
        http.stop()
        await pages
    log.info("stopped")


async def _end_telling(tellers: Sequence[Looker], telling: Sequence[asyncio.Task[None]]) -> None:
    """Let what is being told be told, for a moment; a stop is not put off for a slow service."""
    for teller in tellers:
        teller.stop()
    _, late = await asyncio.wait(telling, timeout=TELLING_SECONDS)
    for one in late:
        one.cancel()
    await asyncio.wait(telling)
    for one in telling:
        if not one.cancelled() and (error := one.exception()) is not None:
            log.error(f"the {one.get_name()} failed", error=str(error))


async def _update_policies(app: App, journal: Journal) -> None:
    now = app.clock.now()
    for account in await journal.write(lambda tx: apply_catalogue(tx, app.catalogue, now)):
        log.info("policy updated", account=account.name, policy=account.policy_name)


async def _seal_secrets(app: App, journal: Journal) -> None:
    """What was stored before there was a key to seal it with is sealed now, if there is one."""
    try:
        count = await journal.write(lambda tx: seal_all(tx, app.providers))
    except (InputError, VaultError) as error:
        log.warning("some accounts' secrets are not sealed", reason=str(error))
    else:
        if count:
            log.info("secrets sealed", accounts=count)
