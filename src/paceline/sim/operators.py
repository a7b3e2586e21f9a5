"""The people of a simulated world: what they tell Paceline, and what they put right in the end.

They act through the same commands as the command line does, in a process of their own that never
fails, and they know the truth about the provider, because they can look into its log.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from paceline.core.errors import InputError, StoreUnavailable
from paceline.core.instants import Instant
from paceline.core.model import Content, Part, Target
from paceline.core.states import AccountState, CampaignState
from paceline.engine import launching, queries
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.commands import accounts, campaigns, control, reminders, retrying, suppressions
from paceline.engine.commands.accounts import AccountChange, House
from paceline.engine.ports import NewDelivery, Store, Tx
from paceline.engine.runs import standing_run
from paceline.providers.sandbox import MemoryEffects
from paceline.sim import attention, reminder_orders, talk_orders
from paceline.sim.attention import Table
from paceline.sim.process import Surroundings
from paceline.sim.reminding import Book
from paceline.sim.talk import ByHand
from paceline.sim.worlds import World

REPLIES = "(replies)"
"""The standing campaign of what conversations answer."""

OUT_OF_SERVICE = (AccountState.PAUSED, AccountState.SUSPENDED)


@dataclass(slots=True)
class Silence:
    """A stretch in which nothing may start: for one account, one campaign, or everybody."""

    since_at: Instant
    account: str | None = None
    campaign: str | None = None
    until_at: Instant | None = None
    for_good: bool = False
    """Cancelled or removed: nobody can take it back."""


@dataclass(frozen=True, slots=True)
class Release:
    """Somebody lets an account or a campaign go on, knowing what has become of it."""

    at: Instant
    account: str | None = None
    campaign: str | None = None


@dataclass(slots=True)
class Operators:
    """Everybody who gives orders in one world."""

    around: Surroundings
    world: World
    house: House
    effects: MemoryEffects
    rng: random.Random
    silences: list[Silence] = field(default_factory=list)
    direct: int = 0
    """Deliveries asked for beside the world's own campaigns."""
    releases: list[Release] = field(default_factory=list)
    wishes: list[Callable[[Tx, Instant], None]] = field(default_factory=list)
    """What was asked for, each under a key of its own."""
    tables: list[Table] = field(default_factory=list)
    book: Book = field(default_factory=Book)
    by_hand: list[ByHand] = field(default_factory=list)
    resent: set[int] = field(default_factory=set)
    """Deliveries in doubt that they had sent again."""

    @property
    def store(self) -> Store:
        return self.around.store

    def act(self) -> None:
        """Do one thing; what is not possible just now is left alone."""
        name, what = self.rng.choice(self._menu())
        try:
            self.around.witness.refuse_if_away()
            what()
        except (InputError, StoreUnavailable) as answer:
            self.around.trace.note("operator", "operator", f"{name}: {answer}")
        else:
            self.around.trace.note("operator", "operator", name)

    def _menu(self) -> list[tuple[str, Callable[[], None]]]:
        account, routine = self.rng.choice(self.world.senders).name, self.world.routine
        if routine is not None:
            return [*self._of_accounts(account), *reminder_orders.orders(self, routine)]
        if self.world.talk is not None:
            return [*self._of_accounts(account), *talk_orders.orders(self)]
        campaign = self.rng.choice(self.world.mailings).name
        return [
            (f"pauses {account}", lambda: self._pause_account(account)),
            (f"resumes {account}", lambda: self._resume_account(account)),
            (f"pauses {campaign}", lambda: self.pause_campaign(campaign)),
            (f"resumes {campaign}", lambda: self.resume_campaign(campaign)),
            ("stops all", self._stop_all),
            ("lets go on", self._go_on),
            ("suppresses somebody", self._suppress),
            (f"sends from {account}", lambda: self._send(account)),
            (f"changes {account}", lambda: self._change(account)),
            (f"answers from {account}", lambda: self._answer(account)),
            *self._drastic(account, campaign),
            *self._thorough(account, campaign),
            *(attention.orders(self) if self.world.signals is not None else ()),
            *((("suppresses a domain", self._suppress_domain),) if self.world.post else ()),
        ]

    def _of_accounts(self, account: str) -> list[tuple[str, Callable[[], None]]]:
        return [
            (f"pauses {account}", lambda: self._pause_account(account)),
            (f"resumes {account}", lambda: self._resume_account(account)),
            ("stops all", self._stop_all),
            ("lets go on", self._go_on),
            (f"changes {account}", lambda: self._change(account)),
        ]

    def _drastic(self, account: str, campaign: str) -> list[tuple[str, Callable[[], None]]]:
        if not self.world.drastic:
            return []
        return [
            (f"cancels {campaign}", lambda: self._cancel(campaign)),
            (f"removes {account}", lambda: self._remove(account)),
        ]

    def _thorough(self, account: str, campaign: str) -> list[tuple[str, Callable[[], None]]]:
        if not self.world.thorough:
            return []
        return [
            (f"retries {campaign}", lambda: self._retry(campaign)),
            (f"lays out {account} anew", lambda: self._lay_anew(account)),
            (f"wishes for a message from {account}", lambda: self._wish_for_message(account)),
            (f"wishes for a campaign from {account}", lambda: self._wish_for_campaign(account)),
            ("wishes the same again", self._wish_again),
            ("wishes the same once more", self._wish_again),
        ]

    def say(self, order: Callable[[Tx, Instant], Any]) -> Instant:
        """Give an order; the instant at which it is committed."""
        now = self.around.clock.now()
        with self.store.write() as tx:
            order(tx, now)
        return now

    def _pause_account(self, name: str) -> None:
        at = self.say(lambda tx, now: accounts.pause(tx, name, now))
        self.silences.append(Silence(at, account=name))

    def _resume_account(self, name: str) -> None:
        at = self.say(lambda tx, now: accounts.resume(tx, name, now))
        self.releases.append(Release(at, account=name))
        self._end(at, account=name)

    def pause_campaign(self, name: str) -> None:
        theirs = reminders if name in self.book.terms else campaigns
        at = self.say(lambda tx, now: theirs.pause(tx, name, now))
        self.silences.append(Silence(at, campaign=name))

    def resume_campaign(self, name: str) -> None:
        theirs = reminders if name in self.book.terms else campaigns
        at = self.say(lambda tx, now: theirs.resume(tx, name, now))
        self.releases.append(Release(at, campaign=name))
        self._end(at, campaign=name)

    def _stop_all(self) -> None:
        at = self.say(lambda tx, now: control.stop_all(tx, "an alarm", now))
        self.silences.append(Silence(at))

    def _go_on(self) -> None:
        at = self.say(control.go_on)
        self._end(at)

    def _end(self, at: Instant, *, account: str | None = None, campaign: str | None = None) -> None:
        for silence in self.silences:
            if silence.for_good:
                continue
            if silence.until_at is None and (silence.account, silence.campaign) == (
                account,
                campaign,
            ):
                silence.until_at = at

    def _suppress(self) -> None:
        mailing = self.rng.choice(self.world.mailings)
        address = mailing.address(self.rng.randrange(mailing.targets))
        at = self.say(lambda tx, now: tx.suppressions.add(address, "asked us", "operator", now))
        self.around.witness.suppressed_at.setdefault(address, at)

    def _suppress_domain(self) -> None:
        domain = f"@{self.rng.choice(self.rng.choice(self.world.mailings).domains)}"
        at = self.say(lambda tx, now: suppressions.add(tx, domain, "they asked us", now))
        self.around.witness.suppressed_at.setdefault(domain, at)

    def _send(self, account: str) -> None:
        content = Content((Part("text", "a word between ourselves"),))
        target, providers = f"direct-{self.direct:05}", self.house.providers
        action = self.world.mailings[0].action
        self.say(
            lambda tx, now: campaigns.send_direct(
                tx, account, target, content, action, now, providers=providers
            )
        )
        self.direct += 1

    def _answer(self, account: str) -> None:
        """A reply, as a conversation makes one: it waits for neither hours nor spacing."""
        target, text = f"answer-{self.direct:05}", [Part("text", "thank you").to_mapping()]
        self.say(lambda tx, now: _add_reply(tx, account, target, text, now))
        self.direct += 1

    def _cancel(self, name: str) -> None:
        at = self.say(lambda tx, now: campaigns.cancel(tx, name, now))
        self.silences.append(Silence(at, campaign=name, for_good=True))

    def _remove(self, name: str) -> None:
        """Never the last one, or there would be nothing left to see."""
        with self.store.read() as tx:
            if sum(account.removed_at is None for account in tx.accounts.list()) < 2:
                raise InputError("the last account stays")
        self.throw_out(name)

    def throw_out(self, name: str) -> None:
        at = self.say(lambda tx, now: accounts.remove(tx, name, now, cancel=True))
        self.silences.append(Silence(at, account=name, for_good=True))

    def _change(self, account: str) -> None:
        """Limits become a little stricter or laxer, in force before the next message."""
        rate = self.rng.choice(("10/min", "15/min burst 2", "45/min"))
        wish = AccountChange(overrides={"rate": rate})
        self.say(lambda tx, now: accounts.change(tx, account, wish, self.house, now))

    # ------------------------------------------------------------------ more than once

    def _retry(self, name: str) -> None:
        at = self.say(lambda tx, now: retrying.retry_failed(tx, name, now))
        # Where the campaign had ended it goes on, whatever had become of it.
        self.releases.append(Release(at, campaign=name))

    def _lay_anew(self, name: str) -> None:
        with self.store.read() as tx:
            account = accounts.find(tx, name)
        launching.lay_anew(self.store, [account.id], self.around.clock.now(), "somebody asked")

    def _wish_for_message(self, account: str) -> None:
        content = Content((Part("text", "a word that matters"),))
        number, providers = len(self.wishes), self.house.providers
        target, action = f"wish-{number:05}", self.world.mailings[0].action

        def wish(tx: Tx, now: Instant) -> None:
            key = f"message {number}"
            campaigns.send_direct(
                tx, account, target, content, action, now, providers=providers, key=key
            )

        self._wish(wish, 1)

    def _wish_for_campaign(self, account: str) -> None:
        number, providers = len(self.wishes), self.house.providers
        spec = CampaignSpec(
            f"wish {number}",
            (account,),
            Content((Part("text", "a word to a few"),)),
            action=self.world.mailings[0].action,
        )
        targets = [Target(f"wish-{number:05}-{friend}") for friend in range(3)]

        def wish(tx: Tx, now: Instant) -> None:
            key = f"campaign {number}"
            campaign, new = campaigns.create_once(tx, spec, targets, providers, now, key)
            if new:
                campaigns.launch(tx, campaign.name, now)

        self._wish(wish, len(targets))

    def _wish(self, wish: Callable[[Tx, Instant], None], deliveries: int) -> None:
        self.say(wish)
        self.direct += deliveries
        self.wishes.append(wish)

    def _wish_again(self) -> None:
        """Whoever did not hear the answer asks once more: nothing more may come of it."""
        if not self.wishes:
            raise InputError("nobody has wished for anything yet")
        self.say(self.rng.choice(self.wishes))

    # ------------------------------------------------------------------ putting things right

    def put_right(self, *, doubts: bool = True) -> None:
        """Whatever only a person can end: pauses, suspensions, and doubts, truly resolved.

        Doubts only after a while: what is on the wire yet is nowhere to be seen.
        """
        if self.world.routine is not None:
            reminder_orders.put_right(self)
        talk_orders.put_right(self)
        with self.store.read() as tx:
            stopped = tx.settings.stopped() is not None
            there = {a.id: a for a in tx.accounts.list() if a.removed_at is None}
            paused = [c.name for c in tx.campaigns.list() if c.state is CampaignState.PAUSED]
            unknown = list(queries.unknown_deliveries(tx)) if doubts else []
            unheard = attention.unheard(self, tx)
        if stopped:
            self._go_on()
        for account in there.values():
            if account.state in OUT_OF_SERVICE and account.name not in unheard:
                self._resume_account(account.name)
        for name in paused:
            if name not in unheard:
                self.resume_campaign(name)
        held = {effect.key for effect in self.effects.all() if effect.accepted}
        for doubt in unknown:
            if doubt.due_at is not None:
                continue  # the engine is still asking by itself
            arrived = f"sim-{doubt.id}-{doubt.parts_done}" in held
            otherwise: control.Resolved = "resend" if doubt.account_id in there else "failed"
            self._resolve(doubt.id, "sent" if arrived else otherwise)

    def _resolve(self, delivery_id: int, verdict: control.Resolved) -> None:
        if verdict == "resend":
            self.resent.add(delivery_id)
        self.say(lambda tx, now: control.resolve_unknown(tx, delivery_id, verdict, now))


def _add_reply(tx: Tx, name: str, target: str, content: list[dict[str, Any]], now: Instant) -> None:
    account = accounts.find(tx, name)
    tx.lanes.touch(account.id, now)
    run = standing_run(tx, REPLIES, now)
    tx.deliveries.add_one(
        NewDelivery(
            run_id=run.id,
            account_id=account.id,
            position=run.total,
            target=target,
            scheduled_at=now,
            due_at=now,
            content=content,
            action="reply",
            reply=True,
        ),
        now,
    )
