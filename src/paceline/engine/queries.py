"""What operators can ask, as functions over one transaction that change nothing."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from paceline.core.errors import NotFoundError
from paceline.core.gates import NEVER
from paceline.core.hours import Hours
from paceline.core.instants import Instant
from paceline.core.model import Ask, Go, Verdict, Wait
from paceline.core.pacer import GateView, Pacer
from paceline.core.policy import Policy
from paceline.core.states import DeliveryState, RunState
from paceline.core.usage import Usage
from paceline.engine.agenda import Agenda
from paceline.engine.arrival import Eta, eta
from paceline.engine.away import Away, away_of, unserved
from paceline.engine.bidding import FollowUps, follow_ups_of
from paceline.engine.commands.accounts import find as find_account
from paceline.engine.commands.campaigns import find as find_campaign
from paceline.engine.memory import Snapshot, acquainted, take_snapshot
from paceline.engine.pages import contacted
from paceline.engine.ports import Account, Campaign, Delivery, Event, LaneRow, Run, Tx
from paceline.engine.ports.pools import NOBODY
from paceline.engine.reminder_view import behind, waits_for
from paceline.engine.run_queue import RunQueue
from paceline.engine.stopping import GO_ON, Stop, stopped
from paceline.engine.summaries import retold
from paceline.engine.today import Today, today_of
from paceline.engine.turns import is_served

PAGE = 1000
NEXT_FEW = 20
"""How many of a run's next deliveries are looked at for one that is not a doubt."""
LONGEST_NUMBER = 18
"""Digits of a delivery's number that every database can hold."""
POOLED = "(pool)"
"""In place of an account's name, while a pooled delivery is nobody's yet."""
_STEERED = {RunState.WAITING: "launch", RunState.PAUSED: "resume"}


@dataclass(frozen=True, slots=True)
class AccountView:
    """An account with everything an operator looks for first."""

    account: Account
    policy: Policy
    usage: Usage
    lane: LaneRow
    counts: dict[DeliveryState, int]
    events: list[Event]
    stopped: Stop | None
    today: Today
    held: str = ""
    """Why nobody serves its lane, where nobody does."""


@dataclass(frozen=True, slots=True)
class CampaignView:
    campaign: Campaign
    runs: list[Run]
    counts: dict[DeliveryState, int]
    accounts: dict[str, dict[DeliveryState, int]]
    stopped: Stop | None
    eta: Eta | None = None
    """What is left and when it will be done; None where nobody asked, or nothing moves."""
    follow_ups: FollowUps | None = None

    @property
    def total(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class Why:
    """The answer to "why not now?"."""

    account: Account
    delivery: Delivery | None
    settled: bool
    """Whether the delivery is past the question: sent, failed, …"""
    verdict: Verdict
    gates: list[GateView]
    outside: list[str]
    """What holds it back that is no gate: a stop, a paused run, no process running."""
    cures: list[str] = field(default_factory=list)
    """The commands by which somebody lets it go on, where it needs somebody."""
    away: Away | None = None
    """Why its account cannot be opened, where that is so."""


def account_view(tx: Tx, name: str, now: Instant) -> AccountView:
    account = find_account(tx, name)
    snapshot = take_snapshot(tx, account.id, now)
    counts = dict.fromkeys(DeliveryState, 0)
    for run in snapshot.restored.runs:
        for state, count in tx.runs.accounts(run.id).get(account.id, {}).items():
            counts[state] += count
    return AccountView(
        account=snapshot.restored.account,
        policy=snapshot.policy,
        usage=snapshot.usage(),
        lane=snapshot.row,
        counts=counts,
        events=tx.events.latest(account_id=account.id, limit=10),
        stopped=stopped(tx),
        today=today_of(tx, account, snapshot.policy, now),
        held="; ".join(unserved(tx, snapshot, away_of(tx, snapshot))),
    )


def campaign_view(tx: Tx, name: str) -> CampaignView:
    campaign = find_campaign(tx, name)
    runs = [retold(tx, run, tx.runs.counts(run.id)) for run in tx.runs.of_campaign(campaign.id)]
    counts = dict.fromkeys(DeliveryState, 0)
    accounts: dict[str, dict[DeliveryState, int]] = {}
    for run in runs:
        for account_id, states in tx.runs.accounts(run.id).items():
            named = POOLED if account_id == NOBODY else tx.accounts.get(account_id).name
            account = accounts.setdefault(named, {})
            for state, count in states.items():
                counts[state] += count
                account[state] = account.get(state, 0) + count
    bidden = follow_ups_of(tx, campaign, runs)
    return CampaignView(campaign, runs, counts, accounts, stopped(tx), follow_ups=bidden)


def with_eta(tx: Tx, view: CampaignView, now: Instant) -> CampaignView:
    """The same, with a look ahead: every delivery that is left is laid out, so it takes a while."""
    return replace(view, eta=eta(tx, view.campaign, now))


def deliveries_of(tx: Tx, campaign: Campaign) -> Iterator[Delivery]:
    """Every delivery of a campaign, a page at a time."""
    for run in tx.runs.of_campaign(campaign.id):
        after_id = 0
        while page := tx.deliveries.page(run_id=run.id, after_id=after_id, limit=PAGE):
            yield from page
            after_id = page[-1].id


def exported(tx: Tx, name: str) -> Iterator[tuple[Delivery, str, str]]:
    """Every delivery of a campaign with the names of its account and its campaign."""
    return named(tx, deliveries_of(tx, find_campaign(tx, name)))


def named(tx: Tx, deliveries: Iterable[Delivery]) -> Iterator[tuple[Delivery, str, str]]:
    """Deliveries with the names of their accounts and campaigns, each looked up once."""
    accounts: dict[int | None, str] = {None: POOLED}
    campaigns: dict[int, str] = {}
    for delivery in deliveries:
        if delivery.account_id is not None and delivery.account_id not in accounts:
            accounts[delivery.account_id] = tx.accounts.get(delivery.account_id).name
        if delivery.run_id not in campaigns:
            campaigns[delivery.run_id] = tx.runs.get(delivery.run_id).campaign
        yield delivery, accounts[delivery.account_id], campaigns[delivery.run_id]


def unknown_deliveries(tx: Tx) -> Iterator[Delivery]:
    after_id = 0
    while page := tx.deliveries.page(state=DeliveryState.UNKNOWN, after_id=after_id, limit=PAGE):
        yield from page
        after_id = page[-1].id


def called_at(tx: Tx, delivery: Delivery) -> Instant | None:
    """When its provider was last called, or about to be: what is looked for in an outbox there."""
    rows = tx.ledger.of_delivery(delivery.id)
    last = max(((row.attempt, row.part) for row in rows), default=None)
    ours = [row for row in rows if (row.attempt, row.part) == last]
    started = [row.started_at for row in ours if row.started_at is not None]
    return max(started or [row.intent_at for row in ours], default=None)


def why_account(tx: Tx, name: str, now: Instant) -> Why:
    """Why the account's next message is not on its way yet."""
    account = find_account(tx, name)
    snapshot = take_snapshot(tx, account.id, now)
    delivery = _next_waiting(tx, snapshot)
    return _why(tx, snapshot, delivery, now)


def why_delivery(tx: Tx, delivery_id: int, now: Instant) -> Why:
    delivery = tx.deliveries.get(delivery_id)
    if delivery.account_id is None:
        return _why_pooled(tx, delivery, now)
    account = tx.accounts.get(delivery.account_id)
    if account.removed_at is not None:
        # Nothing is asked of its gates any more: what had not gone by then never will.
        return Why(account, delivery, True, Go(), [], [f"account {account.name} was removed"])
    return _why(tx, take_snapshot(tx, account.id, now), delivery, now)


def _why_pooled(tx: Tx, delivery: Delivery, now: Instant) -> Why:
    """The answer of the account that could send it first: that one will most likely take it."""
    pool = tx.accounts.several(tx.pools.members(delivery.run_id)).values()
    answers = [
        _why(tx, take_snapshot(tx, account.id, now), delivery, now)
        for account in pool
        if account.removed_at is None
    ]
    if not answers:
        raise NotFoundError(f"every account that could send delivery {delivery.id} was removed")
    return min(answers, key=lambda why: _leaves_at(why, now))


def _leaves_at(why: Why, now: Instant) -> Instant:
    """When an account can send at the earliest: one that cannot be opened has to be, first."""
    opens_at = _opens_at(why.verdict, now)
    return opens_at if why.away is None else max(opens_at, why.away.again_at or now)


def _opens_at(verdict: Verdict, now: Instant) -> Instant:
    if isinstance(verdict, Go):
        return now
    until_at = verdict.until_at if isinstance(verdict, Wait) else None
    return NEVER if until_at is None else until_at


def _next_waiting(tx: Tx, snapshot: Snapshot) -> Delivery | None:
    """What waits to be sent in a running campaign first, then in another, then a doubt.

    Of what is due it is what the lane would take; else what falls due first.
    """
    account, now = snapshot.restored.account, snapshot.now
    served = list(snapshot.usage().health)
    runs, begun = snapshot.restored.runs, snapshot.begun
    agenda = Agenda(runs, account.id, snapshot.policy, None, served, begun=begun)
    turns = {queue.run.id: turn for turn, queue in enumerate(agenda.in_turn(now))}
    waiting = []
    for run in runs:
        rows = _of_run(tx, run, account.id, now)
        if not any(row.state is DeliveryState.READY for row in rows):
            rows += _of_run(tx, run, account.id, NEVER)
        for place, row in enumerate(rows):
            order = (False, turns.get(run.id, 0), place)
            if row.due_at is not None and row.due_at > now:
                order = (True, row.due_at, place)
            in_doubt = row.state is not DeliveryState.READY
            # What will only be skipped keeps nobody waiting.
            idle = run.state is not RunState.RUNNING
            waiting.append((row.suppressed, in_doubt, idle, *order, row.id))
    return tx.deliveries.get(min(waiting)[-1]) if waiting else None


def _of_run(tx: Tx, run: Run, account_id: int, until_at: Instant) -> list[Delivery]:
    """What the account may take next of a run: its own first, then what is nobody's."""
    rows = tx.path.due(account_id, run.id, until_at, NEXT_FEW)
    return rows + tx.path.pooled(run.id, until_at, NEXT_FEW) if run.pooled else rows


def _why(tx: Tx, snapshot: Snapshot, delivery: Delivery | None, now: Instant) -> Why:
    account = snapshot.restored.account
    pacer = Pacer(snapshot.policy, snapshot.standing)
    usage = snapshot.usage()
    ask = Ask(action=_usual_action(snapshot.policy))
    run = None
    if delivery is not None:
        run = tx.runs.get(delivery.run_id)
        ask = _ask_of(tx, run, delivery, snapshot, now)
        ask = _as_planned(pacer, now, usage, ask, delivery)
    waits = delivery is None or delivery.state in (DeliveryState.PLANNED, DeliveryState.READY)
    gates, unopened = pacer.explain(now, usage, ask), away_of(tx, snapshot)
    return Why(
        account=account,
        delivery=delivery,
        settled=not waits,
        verdict=_told(pacer.told(now, usage, ask), delivery) if waits else Go(),
        gates=gates,
        outside=_outside(tx, snapshot, delivery, run, unopened),
        cures=list(_cures(tx, account, delivery, run, gates)),
        away=unopened,
    )


def _as_planned(pacer: Pacer, now: Instant, usage: Usage, ask: Ask, delivery: Delivery) -> Ask:
    """The ask without the instant that a plan or a gate has given the delivery, where it is due
    when a gate opens: then it is the gate that people want to hear of."""
    until_at = _opens_at(pacer.verdict(now, usage, ask), now)
    for not_before_at in (0, min(ask.not_before_at, delivery.scheduled_at)):
        other = ask._replace(not_before_at=not_before_at)
        if now < until_at == _opens_at(pacer.verdict(now, usage, other), now):
            return other
    return ask


def _told(verdict: Verdict, delivery: Delivery | None) -> Verdict:
    """With the reason why it was laid anew, where nothing else keeps it waiting."""
    if delivery is None or not delivery.reason:
        return verdict
    if not isinstance(verdict, Wait) or verdict.gate != "not-before":
        return verdict
    return Wait(verdict.until_at, verdict.gate, f"{verdict.why}: {delivery.reason}")


def _usual_action(policy: Policy) -> str:
    """What an account with nothing to send would most likely send: what its caps speak of."""
    return next(iter([*policy.daily, *policy.weekly]), "message")


def _ask_of(tx: Tx, run: Run, delivery: Delivery, snapshot: Snapshot, now: Instant) -> Ask:
    policy = snapshot.policy
    queue = RunQueue(run, snapshot.restored.account.id, policy, journal=None)
    if policy.per_recipient is not None:
        since_at = now - policy.per_recipient.per_us
        queue.contacted = contacted(tx, [delivery], since_at, now)
    return acquainted(tx, snapshot, delivery, queue.ask(delivery, queue.content_of(delivery)))


def _outside(
    tx: Tx,
    snapshot: Snapshot,
    delivery: Delivery | None,
    run: Run | None,
    unopened: Away | None,
) -> list[str]:
    nobody = unserved(tx, snapshot, unopened)
    if delivery is not None and delivery.state is DeliveryState.SENDING:
        return nobody  # nothing else stops what has started
    found = []
    stopped = tx.settings.stopped()
    if stopped is not None:
        found.append(f"everything is stopped: {stopped}")
    if run is not None and run.state is not RunState.RUNNING:
        found.append(_stands(tx, run, snapshot.now))
    elif turn := _turn(tx, run, snapshot):
        found.append(turn)
    if delivery is None:
        found.append("nothing waits on this account")
    return found + nobody


def _turn(tx: Tx, run: Run | None, snapshot: Snapshot) -> str:
    if run is None or run.kind != "reminder":
        return ""
    ahead = behind(tx, run, snapshot.restored.account, snapshot.now)
    return f"reminder {run.campaign} waits for {ahead}" if ahead else ""


def _stands(tx: Tx, run: Run, now: Instant) -> str:
    if run.kind == "reminder" and run.state is RunState.WAITING:
        zone = Hours.parse(run.window).zone if run.window else "UTC"
        return f"reminder {run.campaign} waits for {waits_for(tx, run, zone, now)}"
    told = f": {run.reason}" if run.reason else ""
    return f"{_kind(run)} {run.campaign} is {run.state}{told}"


def _kind(run: Run) -> str:
    """As commands have it."""
    return "reminder" if run.kind == "reminder" else "campaign"


def _cures(
    tx: Tx, account: Account, delivery: Delivery | None, run: Run | None, gates: list[GateView]
) -> Iterator[str]:
    if delivery is not None and delivery.state is DeliveryState.UNKNOWN:
        # In brackets, so that no shell takes the line as it is: it must not decide by being pasted.
        yield f"paceline unknown resolve {delivery.id} (--sent, --resend or --failed)"
        return
    if delivery is not None and delivery.state not in (DeliveryState.PLANNED, DeliveryState.READY):
        return
    if tx.settings.stopped() is not None:
        yield GO_ON
    if any(view.gate == "status" and view.opens_at is None and not view.open for view in gates):
        yield f"paceline account resume {account.name}"
        if run is not None and run.kind == "reminder" and is_served(run):
            yield f"paceline reminder reassign {shlex.quote(run.campaign)}"
    if run is None or (run.kind == "reminder" and run.state is RunState.WAITING):
        return
    if run.state in _STEERED:
        yield f"paceline {_kind(run)} {_STEERED[run.state]} {shlex.quote(run.campaign)}"


def delivery_number(text: str) -> int | None:
    """The number of a delivery as a person types it; None for what can be none."""
    # Python takes more for digits than that, and for numbers of any length.
    plain = text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER
    return int(text) or None if plain else None


def delivery_or_account(tx: Tx, text: str, now: Instant) -> Why:
    """What a person typed: an account's name, or a delivery's number."""
    if tx.accounts.find(text) is not None:
        return why_account(tx, text, now)
    number = delivery_number(text)
    if number is not None:
        return why_delivery(tx, number, now)
    known = tx.campaigns.find(text)
    if known is not None:
        kind, shows = ("reminder", "runs") if known.kind == "reminder" else ("campaign", "status")
        raise NotFoundError(
            f"'{text}' is a {kind}, and no account",
            hint=f"See what it waits for: paceline {kind} {shows} {shlex.quote(text)}",
        )
    return why_account(tx, text, now)  # raises, with the nearest name
