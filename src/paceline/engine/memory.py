"""What a lane knows: its account, policy, usage, runs, and the revision all of it was read at.

Read in one transaction when the lane starts and again whenever something touched it. The caps'
counts always come from the ledger; the bucket, the drawn gap and the holds come from the
checkpoint at the start and stay in memory afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from paceline.core import usage as usages
from paceline.core.calendar import day_start_of, next_day_start, week_start
from paceline.core.errors import InputError, LeaseLost
from paceline.core.gates import NEVER
from paceline.core.health import BOUNCE_SAMPLES
from paceline.core.instants import Instant
from paceline.core.model import Ask, Standing, Wait
from paceline.core.outcome import Outcome
from paceline.core.pacer import pacer_of
from paceline.core.policy import Policy
from paceline.core.recounting import recounted
from paceline.core.signal_gate import SignalGate
from paceline.core.signals import signals_from
from paceline.core.usage import Usage
from paceline.engine.agenda import Agenda
from paceline.engine.pages import Page
from paceline.engine.pooling import Claims
from paceline.engine.ports import (
    Account,
    Capabilities,
    Delivery,
    Journal,
    LaneRow,
    LedgerRow,
    Restored,
    Tx,
)
from paceline.engine.run_queue import RunQueue
from paceline.engine.settling import Flight, Settled, settle
from paceline.engine.turns import begun_on

MOST_POLICIES = 1_024
"""Those of a thousand accounts are mostly the same few values."""

Stranded = Sequence[tuple[Delivery, LedgerRow | None]]
"""Deliveries marked as sending, each with its intent that has no outcome, if there is one."""


class Snapshot(NamedTuple):
    """One consistent reading of everything that concerns an account."""

    now: Instant
    row: LaneRow
    restored: Restored
    policy: Policy
    day_at: Instant
    day: Mapping[str, int]
    week_at: Instant
    week: Mapping[str, int]
    last_calls: tuple[Instant | None, Instant | None] = (None, None)
    """Of anything, and of anything but a reply: all there are when the lane begins, and those of
    others, that we were told of, while it goes on."""
    stranded: Stranded = ()
    """What was left in the middle; asked for when the lane begins, in the same breath that showed
    it to be ours, so that a start is one visit to the store."""
    begun: frozenset[int] = frozenset()
    """The firings of which something was sent from here, where there are several."""
    pages: Mapping[int, Page] = MappingProxyType({})
    """What is due of its run, where it is only one: a lane that is woken for one message reads that
    in the same breath, and not a moment later in a visit of its own."""
    stored: Usage | None = None
    """The checkpoint, where it was made out already."""
    accepted: int = 0
    """What was accepted today, where that decides whether its bounces can be judged."""

    def usage(self, known: Usage | None = None) -> Usage:
        """Usage with the ledger's counts, on top of what is known or of the checkpoint."""
        return recounted(
            usages.plausible(self._called(known or self._stored()), self.policy, self.now),
            day_at=self.day_at,
            day=self.day,
            week_at=self.week_at,
            week=self.week,
            accepted=self.accepted,
        )

    def _stored(self) -> Usage:
        return _checkpoint(self.restored) if self.stored is None else self.stored

    def _called(self, usage: Usage) -> Usage:
        """Usage that counts every call. The checkpoint was written with the intent and the call
        came later; whoever made it may have lost the lane before it could say so, but the ledger
        knows. And what others have sent may be told at any time."""
        for called_at, reply in zip(self.last_calls, (True, False), strict=True):
            if called_at is not None and called_at > (usage.last_at or 0):
                usage = usages.started(usage, called_at, self.policy, reply)
        return usage

    @property
    def recount_at(self) -> Instant:
        """When the counts end, and the ledger has to be asked again: a clock that was set back
        comes to a midnight twice, and then the new day is not a fresh one."""
        policy = self.policy
        return next_day_start(self.day_at, policy.day_zone) if policy.capped else NEVER

    @property
    def standing(self) -> Standing:
        return standing_of(self.restored.account)


def standing_of(account: Account) -> Standing:
    return Standing(
        state=account.state,
        until_at=account.state_until_at,
        reason=account.state_reason,
        warm_since_at=account.warm_since_at,
    )


def policy_of(account: Account) -> Policy:
    """The account's limits. The store hands out the very same mapping for the same text, so they
    are found without being spelled out again: every lane that begins asks for its own."""
    try:
        return policy_from(account.policy)
    except InputError:
        return Policy.from_mapping(account.policy, where=account.name)


_POLICIES: dict[int, tuple[Mapping[str, Any], Policy]] = {}
"""By the identity of what they were read from, which is kept so that nothing else can have it."""


def policy_from(body: Mapping[str, Any]) -> Policy:
    """Limits as they are stored, read once for all who have the same."""
    known = _POLICIES.get(id(body))
    if known is not None and known[0] is body:
        return known[1]
    policy = _parsed(json.dumps(body, sort_keys=True))
    if len(_POLICIES) >= MOST_POLICIES:
        _POLICIES.clear()
    _POLICIES[id(body)] = (body, policy)
    return policy


@lru_cache(maxsize=MOST_POLICIES)
def _parsed(text: str) -> Policy:
    return Policy.from_mapping(json.loads(text))


def acquainted(tx: Tx, snapshot: Snapshot, delivery: Delivery, ask: Ask) -> Ask:
    """The same ask, knowing whether it is a first contact: asked for only while it matters."""
    held = snapshot.usage().holds.newcomers_until_at > snapshot.now
    if not held or delivery.reply or delivery.parts_done:
        return ask
    account_id = snapshot.restored.account.id
    return ask._replace(known=tx.deliveries.knows(account_id, delivery.target))


def take_snapshot(
    tx: Tx,
    account_id: int,
    now: Instant,
    *,
    known: Usage | None = None,
    row: LaneRow | None = None,
) -> Snapshot:
    """Read an account's situation, as a lane finds it that begins; one that goes on knows some of
    it by itself. Counting is bounded: only what has a cap is counted. ``row`` is the lane, where it
    was taken in this very transaction."""
    row = row or tx.lanes.get(account_id)
    restored = tx.path.restore(account_id)
    if restored is None:
        raise LeaseLost("the account was removed")
    policy = policy_of(restored.account)
    zone = policy.day_zone
    day_at, week_at = day_start_of(now, zone), week_start(now, zone)
    capped = bool(policy.daily) or policy.warmup is not None
    stored = _checkpoint(restored) if known is None else None
    return Snapshot(
        now=now,
        row=row,
        restored=restored,
        policy=policy,
        day_at=day_at,
        day=tx.ledger.counts(account_id, day_at) if capped else {},
        week_at=week_at,
        week=tx.ledger.counts(account_id, week_at) if policy.weekly else {},
        last_calls=_last_calls(tx, restored, policy, known, stored, now),
        stranded=tx.path.stranded(account_id) if known is None else (),
        begun=begun_on(tx, account_id, restored.runs),
        stored=stored,
        accepted=_accepted(tx, account_id, policy, day_at, known or stored or Usage()),
    )


def _accepted(tx: Tx, account_id: int, policy: Policy, day_at: Instant, usage: Usage) -> int:
    """The day's, as long as there are few. A doubt that has ended well was counted by no lane, nor
    an answer that came when the lane had another owner."""
    judged = usage.day_at != day_at or usage.day_sends >= BOUNCE_SAMPLES
    if policy.bounce_pause is None or judged:
        return 0
    return tx.ledger.accepted(account_id, day_at)


def _checkpoint(restored: Restored) -> Usage:
    return usages.decode(restored.checkpoint) if restored.checkpoint else Usage()


def read_ahead(tx: Tx, snapshot: Snapshot) -> Snapshot:
    """The same with what is due, where there is no choice of runs. What is stranded is put right
    first, and then there may be more; of what is nobody's a lane takes only one, at the last."""
    restored = snapshot.restored
    if len(restored.runs) != 1 or restored.runs[0].pooled or snapshot.stranded:
        return snapshot
    (run,) = restored.runs
    queue = RunQueue(run, restored.account.id, snapshot.policy, None)
    return snapshot._replace(pages={run.id: queue.look(tx, snapshot.now)})


def _last_calls(
    tx: Tx,
    restored: Restored,
    policy: Policy,
    known: Usage | None,
    stored: Usage | None,
    now: Instant,
) -> tuple[Instant | None, Instant | None]:
    if known is not None:
        # Its own calls a lane knows, by whatever clock it has had since. Not those of others.
        since_at = usages.last_send_not_before(known, policy)
        return tx.history.last_calls(restored.account.id, since_at, now)
    since_at = 0
    if restored.checkpoint and stored is not None:
        since_at = usages.last_send_not_before(stored, policy)
    # Without a checkpoint no lane has sent anything, but others may have, and we were told of it.
    return tx.ledger.last_calls(restored.account.id, since_at)


class LaneMemory:
    """The lane's present knowledge; only the lane itself changes it."""

    __slots__ = (
        "_claims",
        "account",
        "agenda",
        "began_at",
        "pacer",
        "policy",
        "recount_at",
        "revision",
        "signals",
        "stopped",
        "usage",
        "waiting_for",
    )

    def __init__(self, snapshot: Snapshot, journal: Journal, claims: Claims | None = None) -> None:
        self._claims = claims
        self.began_at = snapshot.now
        """When this lane was taken up here."""
        self.usage = snapshot.usage()
        self.waiting_for: Wait | None = None
        # The error windows are kept in the order in which their runs were last settled.
        self.refresh(snapshot, journal, known=self.usage, served=list(self.usage.health))

    def nobody_new(self, now: Instant) -> Wait | None:
        """Why the account writes to nobody it does not know, if that is so, and until when."""
        until_at, gate = self.usage.holds.newcomers_until_at, SignalGate()
        if until_at <= now:
            return None
        return Wait(until_at, gate.name, gate.reason(now, self.usage, Ask(known=False)))

    def refresh(
        self, snapshot: Snapshot, journal: Journal, known: Usage, served: Sequence[int]
    ) -> None:
        restored = snapshot.restored
        self.account = restored.account
        self.policy = snapshot.policy
        self.pacer = pacer_of(snapshot.policy, snapshot.standing)
        self.revision = snapshot.row.revision
        self.stopped = restored.stopped
        self.signals = signals_from(restored.signals)
        self.usage = snapshot.usage(known)
        self.recount_at = snapshot.recount_at
        self.agenda = Agenda(
            restored.runs,
            self.account.id,
            self.policy,
            journal,
            served,
            self._claims,
            begun=snapshot.begun,
            pages=snapshot.pages if self.nobody_new(snapshot.now) is None else {},
        )

    def settled(
        self, flight: Flight, outcome: Outcome, capabilities: Capabilities, at: Instant
    ) -> Settled:
        """What follows from an answer, by what is known here."""
        return settle(
            flight,
            outcome,
            usage=self.usage,
            policy=self.policy,
            capabilities=capabilities,
            now=at,
            provider=self.account.provider,
            signals=self.signals,
        )

    def checkpoint(self) -> str:
        """The usage as it is stored."""
        return usages.to_json(self.usage)
