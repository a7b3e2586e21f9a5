"""Planning: a campaign that is not stored yet, and a draft about to be launched.

Everything is read in the caller's transaction and nothing is written. Other campaigns on the same
accounts are laid out together with it, because that is how lanes will serve them: in turns.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any

from paceline.core.errors import InputError, NotFoundError
from paceline.core.hours import Hours
from paceline.core.instants import MINUTE, Instant
from paceline.core.model import Standing, Target
from paceline.core.plan import Layout, Never, Queue, Seat, Slot, lay_out
from paceline.core.policy import OFF, Policy, merge
from paceline.core.states import RunState
from paceline.engine.campaign_checks import (
    account_named,
    check_said,
    check_variables,
    longest_text,
)
from paceline.engine.campaign_spec import CampaignSpec, Timing
from paceline.engine.catalogue import Catalogue
from paceline.engine.commands.accounts import House
from paceline.engine.commands.introducing import as_imagined, imagined
from paceline.engine.elsewhere import look_elsewhere
from paceline.engine.ground import (
    AsTheyMight,
    Draft,
    Ground,
    gather,
)
from paceline.engine.people import CHUNK, erasure_key, recognise
from paceline.engine.plan_view import Moved, Plan, plan_of
from paceline.engine.ports import Account, Campaign, Run, Tx
from paceline.engine.recipients import People, minds
from paceline.engine.unstored import OURS, queues_of

MOVES_US = MINUTE
"""What moves by less is not worth telling."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What is to be tried without being done."""

    add: Mapping[str, str | None] = field(default_factory=dict)
    """Accounts that take part as well; with the name of a policy, one that does not exist yet."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Limits that hold for every account of the plan instead of its own."""
    latency_us: int = 0


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A draft laid out: what its launch writes down."""

    slots: Mapping[int, Slot]
    """By the numbers of its deliveries."""
    nevers: tuple[Never, ...]
    following: frozenset[int]
    """Which of all these wait for another one to be sent."""
    others: Mapping[int, Mapping[int, Slot]]
    """By run and delivery: the new slots of those that share its accounts, but for what was tried
    before or was sent by hand."""
    plan: Plan


# ---------------------------------------------------------------------- not stored yet


def plan_campaign(
    tx: Tx,
    spec: CampaignSpec,
    targets: Sequence[Target],
    house: House,
    now: Instant,
    what_if: WhatIf | None = None,
) -> Plan:
    """A campaign as it is written, as if it were created and launched now."""
    tried = what_if or WhatIf()
    _check(tx, spec, targets)
    imagined = _imagined(tx, tried, house.catalogue)
    names = list(dict.fromkeys([*spec.accounts, *tried.add]))
    if spec.assignment == "fixed" and len(names) > 1:
        raise InputError(
            "'fixed' takes a single account", key="assignment", hint="Try it with round_robin"
        )
    accounts = {name: _account(tx, name) for name in names if name not in imagined}
    _check_accounts(list(accounts.values()), spec, targets, house)
    ground = gather(
        tx,
        [account.id for account in accounts.values()],
        now,
        not_before=AsTheyMight(tx, now),
        changed=lambda name, policy: _changed(policy, tried.limits, name, name in accounts),
    )
    ids = {name: account.id for name, account in accounts.items()}
    for number, (name, policy) in enumerate(imagined.items(), start=1):
        ids[name] = -number
        limits = _changed(policy, tried.limits, name, True)
        ground.sit(Seat(-number, limits, Standing(warm_since_at=now)), name)
    targets, people = _acquainted(tx, ground, recognised(tx, targets))
    own = queues_of(tx, ground, spec, targets, [ids[name] for name in names], people)
    promised = look_elsewhere(tx, ground, people).promised(spec.name)
    layout = laid_out(ground, own, promised, seed=spec.name, latency_us=tried.latency_us)
    plan = plan_of(
        spec.name,
        now,
        _slots_of(layout, OURS),
        _nevers_of(layout, OURS),
        seats=[(ground.seats[ids[name]], name) for name in names],
        action=spec.action,
        target_of=lambda key: targets[key % len(targets)].address,
    )
    moved = _moved(ground, layout, promised, spec.name, tried.latency_us)
    return replace(plan, others=moved, latency_us=tried.latency_us)


def recognised(tx: Tx, targets: Sequence[Target]) -> list[Target]:
    """As creating it would know them: who was erased stands under a hash, which is suppressed."""
    key, found = erasure_key(tx), []
    for first in range(0, len(targets), CHUNK):
        found += recognise(tx, targets[first : first + CHUNK], key)
    return found


def _acquainted(
    tx: Tx, ground: Ground, targets: Sequence[Target]
) -> tuple[Sequence[Target], People]:
    """The targets as the people that creating the campaign makes of them, and whose every address
    of theirs is then. Where nobody minds how often people are written to, it makes no difference.
    """
    owners = imagined(tx, targets, ground.now) if minds(ground.seats.values()) else {}
    targets = as_imagined(targets, owners) if owners else targets
    return targets, {target.address: target.contact_id for target in targets} | owners


def _check(tx: Tx, spec: CampaignSpec, targets: Sequence[Target]) -> None:
    """What is wrong with the file comes first: it has to be put right whoever sends it."""
    if not targets:
        raise InputError("the audience is empty", key="audience")
    for content in spec.all_contents:
        check_variables(content, targets)
    known = tx.campaigns.find(spec.name)
    if known is not None and any(
        run.state in (RunState.RUNNING, RunState.PAUSED) for run in tx.runs.of_campaign(known.id)
    ):
        raise InputError(
            f"campaign {spec.name} is {known.state} already, and would be counted twice",
            key="name",
            hint=f"See what is left of it: paceline campaign status {quote(spec.name)}",
        )


def _check_accounts(
    accounts: Sequence[Account], spec: CampaignSpec, targets: Sequence[Target], house: House
) -> None:
    for said in spec.messages:
        for account in accounts:
            check_said(account, said, house.providers)
        longest = longest_text(accounts, said.action, house.providers)
        if longest is not None:
            check_variables(said.content, targets, longest)


def _account(tx: Tx, name: str) -> Account:
    try:
        return account_named(tx, name)
    except NotFoundError as error:
        if error.reason.endswith("?"):
            raise
        raise NotFoundError(
            error.reason,
            key=error.key,
            hint=f"Add it with 'paceline account add {name} --provider …', "
            f"or try --add-account {name}=POLICY",
        ) from None


def _imagined(tx: Tx, tried: WhatIf, catalogue: Catalogue) -> dict[str, Policy]:
    """The limits of the accounts that do not exist yet."""
    found = {}
    for name, policy in tried.add.items():
        if policy is None:
            continue
        if tx.accounts.find(name) is not None:
            raise InputError(
                f"account {name} exists, with limits of its own",
                key="--add-account",
                hint=f"Leave out '={policy}', or give it another name",
            )
        found[name] = catalogue.effective(policy, {}, where=name)
    return found


def _changed(policy: Policy, limits: Mapping[str, Any], name: str, ours: bool) -> Policy:
    if not ours or not limits:
        return policy
    wanted = dict(limits)
    if wanted.get("hours") not in (None, OFF):
        # Hours that name no zone are meant in the zone that the account has now.
        wanted["hours"] = str(Hours.parse(wanted["hours"], default_zone=policy.day_zone))
    return Policy.from_mapping(merge(policy.to_mapping(), wanted), where=name)


# ---------------------------------------------------------------------- stored


def plan_run(tx: Tx, run_id: int, now: Instant) -> RunPlan:
    """A stored run as it would go if it were launched, or planned anew, now."""
    run = tx.runs.get(run_id)
    campaign = tx.campaigns.get(run.campaign_id)
    drafts: list[Draft] = []
    if run.state is RunState.WAITING:
        drafts.append(draft_of(campaign, run, now))
    ours = tx.waiting.accounts([run_id])
    ground = gather(tx, ours, now, not_before=AsTheyMight(tx, now), extra=drafts)
    promised = look_elsewhere(tx, ground).promised(campaign.name)
    layout = laid_out(ground, (), promised, seed=campaign.name)
    slots = _slots_of(layout, run_id)
    nevers = tuple(_nevers_of(layout, run_id))
    return RunPlan(
        slots={slot.key: slot for slot in slots},
        nevers=nevers,
        following=frozenset(ground.following),
        others=_others(ground, layout, run_id),
        plan=plan_of(
            campaign.name,
            now,
            slots,
            nevers,
            seats=[(ground.seats[number], ground.names[number]) for number in ours],
            action=campaign.settings.get("action", "message"),
            target_of=ground.targets.__getitem__,
        ),
    )


def draft_of(campaign: Campaign, run: Run, now: Instant) -> Draft:
    """The run with the window and the expiry that its launch would give it now."""
    timing = Timing.stored(campaign.settings)
    opens_at, closes_at = timing.window_on(now)
    return Draft(replace(run, opens_at=opens_at, closes_at=closes_at), timing.expire_after_us)


def _others(ground: Ground, layout: Layout, run_id: int) -> dict[int, dict[int, Slot]]:
    kept = {want.key for queue in ground.queues for want in queue.wants if want.begun}
    found: dict[int, dict[int, Slot]] = {}
    for slot in layout.slots:
        run = ground.runs[slot.run_id]
        if slot.run_id != run_id and run.kind != "direct" and slot.key not in kept:
            found.setdefault(slot.run_id, {})[slot.key] = slot
    return found


# ---------------------------------------------------------------------- both


def laid_out(
    ground: Ground,
    own: Sequence[Queue],
    promised: Mapping[str, Sequence[Instant]],
    *,
    seed: str,
    latency_us: int = 0,
) -> Layout:
    """The same seed draws the same gaps, so that a plan that is asked for twice is the same."""
    return lay_out(
        list(ground.seats.values()),
        [*ground.queues, *own],
        ground.now,
        random.Random(seed),
        latency_us=latency_us,
        promised=promised,
    )


def _slots_of(layout: Layout, run_id: int) -> list[Slot]:
    return [slot for slot in layout.slots if slot.run_id == run_id]


def _nevers_of(layout: Layout, run_id: int) -> list[Never]:
    return [never for never in layout.nevers if never.run_id == run_id]


def _moved(
    ground: Ground,
    layout: Layout,
    promised: Mapping[str, Sequence[Instant]],
    seed: str,
    latency_us: int,
) -> tuple[Moved, ...]:
    """The campaigns that are done later than they would be without this one."""
    if not ground.queues:
        return ()
    alone = _ends(laid_out(ground, (), promised, seed=seed, latency_us=latency_us))
    together = _ends(layout)
    return tuple(
        Moved(ground.runs[run_id].campaign, from_at, together[run_id])
        for run_id, from_at in sorted(alone.items())
        if run_id in together and together[run_id] - from_at >= MOVES_US
    )


def _ends(layout: Layout) -> dict[int, Instant]:
    ends: dict[int, Instant] = {}
    for slot in layout.slots:
        ends[slot.run_id] = max(ends.get(slot.run_id, 0), slot.done_at)
    return ends
