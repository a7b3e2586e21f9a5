"""Two launches at once that lay out each other's accounts: neither gets into the other's way."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from paceline.core.model import Content, Part, Target
from paceline.engine import launching
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.catalogue import Catalogue
from paceline.engine.clock import SystemClock
from paceline.engine.commands import accounts, campaigns
from paceline.engine.commands.accounts import House, NewAccount
from paceline.engine.ports import Store
from paceline.engine.verify import verify
from paceline.providers.registry import Registry
from paceline.providers.sandbox import MemoryEffects, SandboxProvider
from paceline.store.database import open_store

HELLO = Content((Part("text", "hello"),))
ROUNDS = 3
CLOCK = SystemClock()
HOUSE = House(Registry([SandboxProvider(CLOCK, MemoryEffects())]), Catalogue())


def _create(store: Store, name: str, count: int, *on: str) -> None:
    spec = CampaignSpec(
        name=name,
        accounts=on,
        content=HELLO,
        assignment="pooled" if len(on) > 1 else "fixed",
    )
    people = [Target(f"{name}-{number}") for number in range(count)]
    with store.write() as tx:
        campaigns.create(tx, spec, people, HOUSE.providers, CLOCK.now())


def _launch(store: Store, name: str) -> None:
    launching.launch(store, name, CLOCK.now(), HOUSE.providers)


def test_launches_that_share_a_pool_do_not_wait_for_each_other_for_ever(
    fresh_postgres_url: Callable[[], str],
) -> None:
    url = fresh_postgres_url()
    one, two = (open_store(url, clock=CLOCK.now) for _ in range(2))
    with one.write() as tx:
        for name in ("ann", "bob"):
            new = NewAccount(name, "sandbox", name, {}, None, {"rate": "60/min"})
            accounts.add(tx, new, HOUSE, CLOCK.now())
    # By the pool each of them is laid out together with what waits on the other's account.
    _create(one, "pool", 5, "ann", "bob")
    _create(one, "ann", 1500, "ann")
    _create(one, "bob", 1500, "bob")
    for name in ("pool", "ann", "bob"):
        _launch(one, name)
    with ThreadPoolExecutor(2) as threads:
        for number in range(ROUNDS):
            names = (f"ann-{number}", f"bob-{number}")
            for name in names:
                _create(one, name, 300, name[:3])
            barrier = Barrier(2)

            def launched(store: Store, name: str, barrier: Barrier = barrier) -> None:
                barrier.wait()
                _launch(store, name)

            pairs = zip((one, two), names, strict=True)
            for launch in [threads.submit(launched, *pair) for pair in pairs]:
                launch.result()
    with one.read() as tx:
        assert verify(tx, CLOCK.now()) == []
    one.close()
    two.close()
