"""A small world for engine tests: a real store, the sandbox, virtual time, any number of processes.

Everything here is what production runs, except that the clock jumps and nobody uses a thread.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

from sqlalchemy import bindparam, select

from paceline.core.instants import MINUTE, SECOND, Instant, parse_instant
from paceline.core.model import Content, Part, Target
from paceline.core.states import DeliveryState
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.catalogue import Catalogue
from paceline.engine.clock import LoopClock
from paceline.engine.commands import accounts, campaigns
from paceline.engine.commands.accounts import House, NewAccount
from paceline.engine.journal import GroupJournal, InlineRunner, Runner
from paceline.engine.observe import Observer, Unobserved
from paceline.engine.ports import Account, Campaign, Clock, Providers, Store, Tx
from paceline.engine.supervisor import Supervisor, SupervisorOptions
from paceline.engine.verify import verify
from paceline.providers.registry import Registry
from paceline.providers.sandbox import MemoryEffects, SandboxProvider
from paceline.providers.sandbox.effects import Effect
from paceline.sim.loop import run_virtual
from paceline.store.database import open_store
from paceline.store.prepared import Prepared
from paceline.store.schema import campaigns as campaign

T = TypeVar("T")

_STATE = Prepared(lambda _: select(campaign.c.state).where(campaign.c.name == bindparam("called")))

MONDAY_NINE: Instant = parse_instant("2026-03-02T09:00:00Z")


class Process:
    """One simulated process: a journal and a supervisor of its own."""

    def __init__(
        self,
        world: World,
        store: Store,
        name: str,
        observer: Observer,
        *,
        clock: Clock | None = None,
        providers: Providers | None = None,
        runner: Runner | None = None,
        **options: Any,
    ) -> None:
        # A runner that stands still must have all of a transaction, or its lock would stay behind.
        here, runner = runner is None, runner or InlineRunner()
        clock = clock or world.clock
        self.journal = GroupJournal(store, clock, writer=runner, reader=runner, here=here)
        self.supervisor = Supervisor(
            self.journal,
            clock,
            providers or world.providers,
            observer=observer,
            rng=random.Random(name),
            options=SupervisorOptions(name=name, **options),
        )
        self.dead = False
        self._task = asyncio.ensure_future(self.supervisor.run())
        self._leftovers: list[asyncio.Task[None]] = []

    @property
    def running(self) -> bool:
        return not self._task.done()

    async def stop(self) -> None:
        self.supervisor.stop()
        await self._task

    def die(self) -> None:
        """As ``kill -9``: first the ports die, then the work is dropped; nothing tidies up."""
        self.dead = True
        self.journal._store = _Dead()
        self._leftovers = [running.ended for running in self.supervisor._running.values()]
        for task in (self._task, *self._leftovers):
            task.cancel()

    async def kill(self) -> None:
        self.die()
        await self.gone()

    async def gone(self) -> None:
        """Until nothing of a process that died moves any more."""
        await asyncio.gather(self._task, *self._leftovers, return_exceptions=True)


class _Dead:
    """The store of a dead process: whoever still reaches for it is cancelled like the rest."""

    def write(self) -> Any:
        raise asyncio.CancelledError

    read = write


class World:
    def __init__(
        self, url: str, start_at: Instant = MONDAY_NINE, *, opened: Store | None = None
    ) -> None:
        self.start_at = start_at
        self._opened = opened
        self.clock = LoopClock(start_at)
        self.effects = MemoryEffects()
        self.providers = Registry([SandboxProvider(self.clock, self.effects)])
        self.house = House(self.providers, Catalogue())
        self._url = url
        self.store: Store
        self.counts_at_end: dict[str, int] = {}
        self.twice_allowed = False
        """Set where a policy chooses to risk sending twice; the test then judges by itself."""

    def play(self, script: Callable[[World], Coroutine[Any, Any, T]]) -> T:
        """Run a test's script in virtual time; afterwards every invariant must hold."""

        async def whole() -> T:
            self.store = self._opened or open_store(self._url, clock=self.clock.now)
            try:
                with self.store.write() as tx:
                    tx.settings.put("instance", "test")
                result = await script(self)
                self.check()
                if self.read(lambda tx: tx.campaigns.find("spring")) is not None:
                    self.counts_at_end = self.counts()
                return result
            finally:
                if self._opened is None:
                    self.store.close()

        return run_virtual(whole(), start_at=self.start_at)

    def process(
        self,
        name: str = "one",
        *,
        store: Store | None = None,
        observer: Observer | None = None,
        **more: Any,
    ) -> Process:
        """Start a process; ``more`` are its own ports, or options of its supervisor."""
        return Process(self, store or self.store, name, observer or Unobserved(), **more)

    # ------------------------------------------------------------------ setting the scene

    def account(
        self,
        name: str = "ann",
        *,
        policy: Mapping[str, Any] | None = None,
        preset: str | None = None,
        **settings: Any,
    ) -> Account:
        new = NewAccount(name, "sandbox", f"{name}@sandbox", settings, preset, policy or {})
        with self.store.write() as tx:
            return accounts.add(tx, new, self.house, self.clock.now())

    def campaign(
        self,
        count: int = 10,
        *,
        name: str = "spring",
        on: tuple[str, ...] = ("ann",),
        parts: tuple[Part, ...] = (Part("text", "hello {{ target }}"),),
        targets: list[Target] | None = None,
        launch: bool = True,
        **spec: Any,
    ) -> Campaign:
        wanted = CampaignSpec(name=name, accounts=on, content=Content(parts), **spec)
        audience = targets or [Target(f"{name}-{number:04}") for number in range(count)]
        now = self.clock.now()
        with self.store.write() as tx:
            campaign = campaigns.create(tx, wanted, audience, self.providers, now)
            if launch:
                campaign = campaigns.launch(tx, name, now)
        return campaign

    # ------------------------------------------------------------------ looking and acting

    def write(self, work: Callable[[Tx], T]) -> T:
        with self.store.write() as tx:
            return work(tx)

    def read(self, work: Callable[[Tx], T]) -> T:
        with self.store.read() as tx:
            return work(tx)

    def counts(self, name: str = "spring") -> dict[str, int]:
        """The campaign's deliveries by state, without the states nobody is in."""
        with self.store.read() as tx:
            found = tx.campaigns.find(name)
            assert found is not None
            total: Counter[str] = Counter()
            for run in tx.runs.of_campaign(found.id):
                total.update({str(s): n for s, n in tx.runs.counts(run.id).items() if n})
        return dict(total)

    def state(self, name: str = "spring") -> str:
        """Asked ten times in a second of virtual time, hence without a detour."""

        def read(tx: Any) -> Any:
            return _STATE.run(tx._context, called=name).fetchone()

        (state,) = self.read(read)
        return str(state)

    def account_now(self, name: str = "ann") -> Account:
        with self.store.read() as tx:
            found = tx.accounts.find(name)
            assert found is not None
            return found

    def sends(self, account: str | None = None) -> list[Effect]:
        """What the provider holds: accepted messages, in the order of the calls."""
        log = [e for e in self.effects.all() if e.kind == "send" and e.accepted]
        chosen = [e for e in log if account is None or e.account == account]
        return sorted(chosen, key=lambda e: e.called_at)

    def calls(self, account: str | None = None) -> list[Effect]:
        log = [e for e in self.effects.all() if e.kind == "send"]
        chosen = [e for e in log if account is None or e.account == account]
        return sorted(chosen, key=lambda e: e.called_at)

    async def wait(self, us: int) -> None:
        await self.clock.sleep_until(self.clock.now() + us)

    async def until(
        self,
        predicate: Callable[[], bool],
        within_us: int = 24 * 60 * MINUTE,
        every_us: int = SECOND // 10,
    ) -> None:
        """Let virtual time pass until something is so; looking costs no time that matters."""
        give_up_at = self.clock.now() + within_us
        while not predicate():
            assert self.clock.now() < give_up_at, "it never came to be so"
            await self.wait(every_us)

    async def until_finished(
        self,
        name: str = "spring",
        within_us: int = 24 * 60 * MINUTE,
        every_us: int = SECOND // 10,
    ) -> None:
        await self.until(lambda: self.state(name) == "finished", within_us, every_us)

    def twice(self) -> list[str]:
        """What the provider accepted more than once."""
        return [key for key, n in Counter(e.key for e in self.sends()).items() if n > 1]

    def check(self) -> None:
        """Never twice by the provider's own log, and everything else by ``verify``."""
        twice = [key for key in self.twice() if not self.twice_allowed]
        assert not twice, f"accepted twice: {twice}"
        with self.store.read() as tx:
            assert verify(tx, self.clock.now()) == []
            for campaign in tx.campaigns.list():
                for run in tx.runs.of_campaign(campaign.id):
                    counts = tx.runs.counts(run.id)
                    assert sum(counts.values()) == run.total
                    assert set(counts) == set(DeliveryState)
