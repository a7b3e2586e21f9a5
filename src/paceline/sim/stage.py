"""Setting the stage: a world's accounts, campaigns, files and people, before anybody runs.

Played it is in ``simulation.py``. What is written here goes through the same commands as an
operator's own wishes do.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field

from paceline.core.instants import MILLISECOND, Instant
from paceline.core.model import Content, Standing, Target
from paceline.core.states import AccountState as A
from paceline.engine import launching
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.catalogue import Catalogue
from paceline.engine.clock import LoopClock
from paceline.engine.commands import accounts, campaigns, signals
from paceline.engine.commands.accounts import House, NewAccount
from paceline.engine.ports import Store, Tx
from paceline.engine.supervisor import SupervisorOptions
from paceline.engine.unsubscribing import KEY, Links, ensure_links, set_base_url
from paceline.providers.registry import Registry
from paceline.providers.sandbox import MemoryEffects, SandboxProvider
from paceline.sim.attention import Table
from paceline.sim.beside import let_knock
from paceline.sim.chronicle import Chronicle
from paceline.sim.customers import Exchange
from paceline.sim.diary import Diary
from paceline.sim.machine import Skew
from paceline.sim.mailing import Mailing
from paceline.sim.minutes import Minutes
from paceline.sim.operators import Operators
from paceline.sim.phone import Phone
from paceline.sim.post_office import Letters, PostOffice
from paceline.sim.process import Process, Surroundings
from paceline.sim.register import Register
from paceline.sim.reminder_orders import set_up
from paceline.sim.responding import WAY
from paceline.sim.trace import Trace
from paceline.sim.weather import CLIMATES, Faults, Weather
from paceline.sim.witness import Witness
from paceline.sim.worlds import Sender, World

DRIFT_US = 200 * MILLISECOND
"""By how much the clocks of a fleet differ all the time."""

PICTURE = b"a picture, as far as anybody can tell"


@dataclass(slots=True)
class Stage:
    """The running world: what is shared, who runs, and who gives orders."""

    world: World
    around: Surroundings
    operators: Operators
    effects: MemoryEffects
    house: House
    rng: Callable[[str], random.Random]
    processes: dict[str, Process] = field(default_factory=dict)
    skews: dict[str, Skew] = field(default_factory=dict)
    chronicle: Chronicle | None = None
    register: Register | None = None
    minutes: Minutes | None = None
    born: int = 0
    over: bool = False
    clicking: int = 0
    """How many people are about to unsubscribe and have not been told yet that it is done."""
    dark_until_at: Instant = 0
    """Until when nobody starts anything again that has ended."""
    spread_us: int = 0
    """How far apart any two readings of clocks ever were at one instant, or of one before and after
    somebody set it."""

    @property
    def office(self) -> PostOffice | None:
        """Where letters go, in worlds with mail."""
        provider = self.around.provider
        return provider if isinstance(provider, PostOffice) else None

    @property
    def exchange(self) -> Exchange | None:
        """Where people write, in worlds in which they are conversed with."""
        provider = self.around.provider
        return provider if isinstance(provider, Exchange) else None

    def start(self, name: str) -> None:
        """A process of that name, on the machine of that name."""
        self.born += 1
        drift = self.rng(f"drift {name}").randint(-DRIFT_US, DRIFT_US)
        skew = self.skews.setdefault(name, Skew(drift if self.world.fleet else 0))
        self.processes[name] = Process(
            self.around,
            name,
            skew,
            self.rng(f"process {self.born}"),
            SupervisorOptions(
                name=name,
                poll_us=self.world.poll_us,
                park_after_us=self.world.park_after_us,
            ),
        )


def set_stage(
    world: World,
    faults: Faults,
    rng: Callable[[str], random.Random],
    clock: LoopClock,
    store: Store,
    trace: Trace,
) -> Stage:
    """Accounts, campaigns and people; nobody runs yet."""
    chronicle = _chronicle(world, store, clock)
    register = None if world.post is None else Register(store, clock)
    minutes = None if world.talk is None else Minutes(store, clock)
    store = register or minutes or chronicle or store
    effects, provider = _provider(world, clock, trace)
    house = House(Registry([provider]), Catalogue())
    witness = Witness(clock, store, trace, careful=world.careful)
    weather = Weather(world.climate or CLIMATES[faults], rng("weather"))
    phone = None if world.signals is None else Phone()
    links = _links(store) if world.post is not None else None
    around = Surroundings(
        clock,
        store,
        provider,
        witness,
        weather,
        trace,
        copy_context(),
        phone,
        links,
        prompt=world.prompt,
    )
    if chronicle is not None:
        chronicle.calls = witness.calls
    operators = Operators(around, world, house, effects, rng("operators"))
    with store.write() as tx:
        tx.settings.put("instance", "sim")
        for sender in world.senders:
            _add_sender(tx, world, sender, house, clock.now())
        if world.talk is not None:
            let_knock(tx)
        for signal, rule in (world.signals or {}).items():
            signals.set_rule(tx, signal, rule, ["sandbox"], clock.now())
        for mailing in world.mailings:
            _create(tx, mailing, house, clock.now())
    for mailing in world.mailings:
        if mailing.planned:
            launching.launch(store, mailing.name, clock.now(), house.providers)
    if world.routine is not None:
        set_up(operators, world.routine, world.senders)
    spread_us = 2 * DRIFT_US if world.fleet else 0
    operators.tables.append(Table(clock.now(), world.signals or {}))
    return Stage(
        world,
        around,
        operators,
        effects,
        house,
        rng,
        chronicle=chronicle,
        register=register,
        minutes=minutes,
        spread_us=spread_us,
    )


def _provider(
    world: World, clock: LoopClock, trace: Trace
) -> tuple[MemoryEffects, SandboxProvider]:
    letters = Letters()
    if world.talk is not None:
        return letters, Exchange(clock, letters, world.talk, trace)
    if world.post is None:
        effects = MemoryEffects()
        return effects, SandboxProvider(clock, effects)
    office = PostOffice(clock, letters, world.post, trace)
    office.set_up([sender.name for sender in world.senders], world.lasts_us)
    return letters, office


def _add_sender(tx: Tx, world: World, sender: Sender, house: House, at: Instant) -> None:
    new = NewAccount(
        sender.name, "sandbox", sender.name, sender.settings, sender.preset, sender.policy
    )
    account = accounts.add(tx, new, house, at)
    if sender.standing is not None:
        _let_stand(tx, account.id, sender.standing)
    if world.talk is not None:
        patience = world.talk.patience[sender.name]._asdict()
        tx.accounts.update(account.id, answering={"way": WAY, **patience})


def _let_stand(tx: Tx, account_id: int, standing: Standing) -> None:
    """It is in what it is in; a limit that it has reached follows from what it sends."""
    tx.accounts.update(account_id, warm_since_at=standing.warm_since_at)
    events = {A.PAUSED: "pause", A.SUSPENDED: "suspend", A.COOLING_DOWN: "cool_down"}
    if (event := events.get(standing.state)) is not None:
        tx.accounts.move(account_id, event, reason=standing.reason, until_at=standing.until_at)


def _links(store: Store) -> Links | None:
    """As ``app.py`` has them, with a key that is the same in every world."""
    with store.write() as tx:
        set_base_url(tx, "https://sim.example")
        tx.settings.put(KEY, "00" * 32)
        return ensure_links(tx)


def _chronicle(world: World, store: Store, clock: LoopClock) -> Chronicle | None:
    """Who writes down every commit, in worlds that are judged by their order."""
    if world.routine is not None:
        return Diary(store, clock)
    return None if world.signals is None else Chronicle(store, clock)


def _create(tx: Tx, mailing: Mailing, house: House, now: Instant) -> None:
    spec = CampaignSpec(
        assignment=mailing.assignment,
        steps=mailing.steps,
        follow_up=mailing.follow_up,
        name=mailing.name,
        accounts=mailing.senders,
        content=Content(mailing.parts),
        action=mailing.action,
        window=mailing.window,
        at_close=mailing.at_close,
        priority=mailing.priority,
        start_at=now + mailing.launched_after_us,
        recipient_hours=mailing.recipient_hours,
        expire_after_us=mailing.expire_after_us,
        before_open=mailing.before_open,
        spread_days=mailing.spread_days,
        zone=mailing.zone,
    )
    stored = {name: tx.media.put(name, "image/png", PICTURE, now).id for name in spec.media}
    spec = spec.with_media(stored)
    targets = [
        Target(mailing.address(number), {"zone": mailing.zone_of(number)})
        for number in range(mailing.targets)
    ]
    campaigns.create(tx, spec, targets, house.providers, now)
    if not mailing.planned:
        campaigns.launch(tx, mailing.name, now)
