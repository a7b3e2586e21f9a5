"""Reassigning: what is left of a firing goes on from other accounts when one cannot.

Only what was never begun moves. A message of which a part was seen keeps its sender, and one that
is in doubt is looked into first: it may have arrived.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from shlex import quote

from paceline.core.errors import ConflictError, InputError
from paceline.core.events import EventKind
from paceline.core.instants import Instant
from paceline.core.model import Content, Target
from paceline.core.states import AccountState, DeliveryState
from paceline.engine.allotting import allot
from paceline.engine.campaign_checks import check_capabilities
from paceline.engine.commands.accounts import find as find_account
from paceline.engine.commands.reminder_runs import UNDELIVERED, under_way
from paceline.engine.commands.reminders import find, spec_of
from paceline.engine.ports import Account, Delivery, Providers, Reminder, Run, Tx

PAGE = 1_000
OUT_OF_SERVICE = (AccountState.SUSPENDED, AccountState.PAUSED, AccountState.COOLING_DOWN)
STAYS = "it was begun, and keeps its sender"


@dataclass(slots=True)
class Reassigned:
    given: dict[str, int] = field(default_factory=dict)
    """By the name of the account that sends them now."""
    stays: dict[str, Counter[str]] = field(default_factory=dict)
    """By the name of the account that keeps them, how many stay there and why."""

    @property
    def moved(self) -> int:
        return sum(self.given.values())


def reassign(
    tx: Tx,
    name: str,
    providers: Providers,
    at: Instant,
    *,
    from_account: str | None = None,
    to_accounts: Sequence[str] = (),
) -> Reassigned:
    """Give what waits with accounts that are out of service, or with one that is named, to others
    that can write to the same groups."""
    tx.settings.fence()
    reminder = find(tx, name)
    spec = spec_of(tx, reminder).campaign
    runs = under_way(tx, reminder)
    if not runs:
        raise ConflictError(f"reminder {name} has no run under way", hint=_hint(tx, reminder))
    sources = _sources(tx, runs, from_account)
    wanted = [find_account(tx, one) for one in to_accounts]
    # One of its own that was removed takes nothing over, and hinders nobody else.
    own = [found for one in spec.accounts if (found := tx.accounts.find(one)) is not None]
    takers = _takers(tx, name, sources, wanted or own)
    for account in takers:
        for run in runs:  # each says what the reminder said when it fired
            check_capabilities(account, spec.action, Content.from_list(run.content), providers)
    done = Reassigned()
    for run in runs:
        for source in sources:
            _move(tx, run, source, takers, done, at)
    text = f"{name}: {done.moved} moved to {', '.join(sorted(done.given)) or 'nobody'}"
    told = {"reminder": name, "run": runs[-1].id, "moved": done.moved}
    told["accounts"] = sorted(done.given)
    tx.events.add(EventKind.REMINDER_REASSIGNED, text, at=at, run_id=runs[-1].id, data=told)
    return done


def _hint(tx: Tx, reminder: Reminder) -> str | None:
    """The way on, where the last run is over and has not reached everybody."""
    for run in tx.runs.latest(reminder.campaign_id, 1):
        counts = tx.runs.counts(run.id)
        if any(counts[state] for state in UNDELIVERED):
            again = f"paceline reminder fire {quote(reminder.name)} --rest --run {run.id}"
            return f"Send what run {run.id} did not deliver: {again} --from ACCOUNT"
    return None


def _sources(tx: Tx, runs: Sequence[Run], named: str | None) -> list[Account]:
    numbers = {number for run in runs for number in tx.runs.accounts(run.id) if number}
    taking_part = list(tx.accounts.several(sorted(numbers)).values())
    if named is not None:
        account = find_account(tx, named)
        if account.id not in numbers:
            raise InputError(f"{named} takes no part in it", key="--from")
        return [account]
    stopped = [one for one in taking_part if one.state in OUT_OF_SERVICE or one.removed_at]
    if not stopped:
        names = ", ".join(sorted(one.name for one in taking_part))
        raise ConflictError(
            f"every account of it is in service ({names})",
            hint="Say whose messages others should send: --from ACCOUNT",
        )
    return stopped


def _takers(
    tx: Tx, name: str, sources: Sequence[Account], wanted: Sequence[Account]
) -> list[Account]:
    leaving = {source.id for source in sources}
    takers = [one for one in wanted if one.id not in leaving and one.state not in OUT_OF_SERVICE]
    if takers:
        return takers
    others = [
        one.name
        for one in tx.accounts.list()
        if one.id not in leaving
        and one.state not in OUT_OF_SERVICE
        and one.provider == sources[0].provider
    ]
    raise ConflictError(
        f"reminder {name} has no other account in service",
        hint=f"Say which: --to {others[0]}" if others else "Add or resume one first",
    )


def _move(
    tx: Tx,
    run: Run,
    source: Account,
    takers: Sequence[Account],
    done: Reassigned,
    at: Instant,
) -> None:
    waiting = _waiting(tx, run, source)
    fresh = {row.target: row for row in waiting if not row.parts_done}
    stays = Counter({STAYS: len(waiting) - len(fresh)})
    targets = [Target(row.target, row.fields, row.contact_id) for row in fresh.values()]
    allotment = allot(tx, takers, targets)
    stays.update({why: len(some) for why, some in allotment.unreachable.items()})
    if +stays:
        done.stays.setdefault(source.name, Counter()).update(+stays)
    owners = {fresh[target.address].id: owner for target, owner in allotment.owners}
    # Before anything is changed: whoever locks in one order never deadlocks.
    for account_id in sorted({source.id, *owners.values()}):
        tx.lanes.touch(account_id, at)
    names = {taker.id: taker.name for taker in takers}
    for owner, count in tx.pools.hand_over(source.id, run.id, owners).items():
        done.given[names[owner]] = done.given.get(names[owner], 0) + count


def _waiting(tx: Tx, run: Run, source: Account) -> list[Delivery]:
    found: list[Delivery] = []
    after_id = 0
    while page := tx.deliveries.page(
        run_id=run.id,
        account_id=source.id,
        state=DeliveryState.READY,
        after_id=after_id,
        limit=PAGE,
    ):
        found += page
        after_id = page[-1].id
    return found
