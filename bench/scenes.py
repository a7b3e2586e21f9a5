"""What is measured upon: accounts, campaigns and waiting deliveries, made by the product itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from paceline.app import ensure_instance
from paceline.core.instants import Instant
from paceline.core.model import Content, Part, Target
from paceline.core.states import DeliveryState
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.catalogue import Catalogue
from paceline.engine.clock import SystemClock
from paceline.engine.commands import accounts, campaigns
from paceline.engine.commands.accounts import House, NewAccount
from paceline.engine.ports import Account, NewDelivery, Run, Store, Tx
from paceline.providers.registry import Registry
from paceline.providers.sandbox import MemoryEffects, SandboxProvider
from paceline.providers.smtp import SmtpProvider
from paceline.store.database import open_store

CAMPAIGN = "spring"
NO_LATENCY = {"latency": "0s"}
SENDER = "news@shop.example"
CONTENT = Content((Part("text", "Good morning {{ target }}", subject="A word"),))


def house(clock: SystemClock, effects: MemoryEffects) -> House:
    return House(Registry([SandboxProvider(clock, effects), SmtpProvider(clock)]), Catalogue())


@contextmanager
def opened(url: str) -> Iterator[Store]:
    store = open_store(url, clock=SystemClock().now)
    try:
        yield store
    finally:
        store.close()


def add_accounts(
    store: Store,
    count: int,
    policy: Mapping[str, Any],
    *,
    provider: str = "sandbox",
    settings: Mapping[str, Any] = NO_LATENCY,
) -> list[Account]:
    """Accounts without limits, unless others are named at the sandbox, which answers at once."""
    clock = SystemClock()
    ours, now = house(clock, MemoryEffects()), clock.now()
    ensure_instance(store)
    with store.write() as tx:
        return [
            accounts.add(
                tx,
                NewAccount(f"a{number:05}", provider, SENDER, settings, None, policy),
                ours,
                now,
            )
            for number in range(count)
        ]


def launched_campaign(
    store: Store, senders: list[Account], count: int, *, action: str = "message"
) -> None:
    """A campaign as people make one, launched: its lanes are due."""
    add_campaign(store, senders, count, action=action)
    now = SystemClock().now()
    with store.write() as tx:
        campaigns.launch(tx, CAMPAIGN, now)
    store.analyse()


def add_campaign(
    store: Store,
    senders: list[Account],
    count: int,
    *,
    name: str = CAMPAIGN,
    start_at: Instant | None = None,
    action: str = "message",
) -> None:
    clock = SystemClock()
    names = tuple(account.name for account in senders)
    spec = CampaignSpec(name, names, CONTENT, action=action, start_at=start_at)
    targets = [Target(f"{name}-{number:07}@example.com") for number in range(count)]
    with store.write() as tx:
        registry = house(clock, MemoryEffects()).providers
        campaigns.create(tx, spec, targets, registry, clock.now())


def add_waiting(store: Store, senders: list[Account], count: int, *, name: str = CAMPAIGN) -> Run:
    """A run whose deliveries are ready, dealt out in turn; the quick way for very many.

    It is not launched. As nothing is left to be released, launching it takes no time.
    """
    now = SystemClock().now()
    with store.write() as tx:
        campaign = tx.campaigns.add(
            name=name, kind="campaign", content=CONTENT.to_list(), settings={}, at=now
        )
        run = tx.runs.add(campaign_id=campaign.id, at=now)
        tx.deliveries.add(_waiting(run, senders, count, now), now)
    store.analyse()
    return run


def add_suppressions(store: Store, count: int) -> None:
    """Addresses that must not be written to, as every list in use has some; none of our targets."""
    now = SystemClock().now()
    with store.write() as tx:
        for number in range(count):
            tx.suppressions.add(f"gone-{number:07}@example.com", "unsubscribed", "bench", now)


def _waiting(run: Run, senders: list[Account], count: int, now: Instant) -> Iterator[NewDelivery]:
    for position in range(count):
        yield NewDelivery(
            run_id=run.id,
            account_id=senders[position % len(senders)].id,
            position=position,
            target=f"target-{position:07}@example.com",
            scheduled_at=now,
            due_at=now,
        )


def only_run(tx: Tx, name: str = CAMPAIGN) -> Run:
    campaign = tx.campaigns.find(name)
    assert campaign is not None, f"there is no campaign {name}"
    [run] = tx.runs.of_campaign(campaign.id)
    return run


def check_sent(store: Store, count: int) -> None:
    """Everything was sent, once, and every counter agrees; else a figure means nothing."""
    with store.read() as tx:
        counts = {state: n for state, n in tx.runs.counts(only_run(tx).id).items() if n}
        wrong = [*tx.audit.recount(), *map(str, tx.audit.accepted_twice())]
    if counts != {DeliveryState.SENT: count} or wrong:
        raise AssertionError(f"{count} were to be sent: {counts}, {wrong[:5]}")
