"""What the people of a world with reminders order, and how they put things right in the end.

Everything goes through the commands that the command line calls, by the clock of whoever orders
it, and is written into the book.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from paceline.core.errors import ConflictError, InputError
from paceline.core.instants import Instant
from paceline.core.model import Target
from paceline.core.states import AccountState, RunState
from paceline.engine.commands import accounts, reminders
from paceline.engine.commands.accounts import House
from paceline.engine.commands.reassigning import reassign
from paceline.engine.ports import Group, Tx
from paceline.engine.reminder_spec import ReminderSpec
from paceline.providers.sandbox.provider import group_id
from paceline.providers.sandbox.settings import read_settings
from paceline.sim.diary import Diary
from paceline.sim.reminding import Reminding, Routine, Terms
from paceline.sim.worlds import Sender

if TYPE_CHECKING:
    from paceline.sim.operators import Operators

T = TypeVar("T")

FILES = {
    "plan.png": ("image/png", b"a plan, as far as anybody can tell"),
    "menu.pdf": ("application/pdf", b"a menu, and nobody has read it"),
}
OPEN = (RunState.WAITING, RunState.RUNNING, RunState.PAUSED)
GONE_AFTER_LOOKS = 3
"""How often people look at an account that its provider has thrown out before they remove it."""


def set_up(people: Operators, routine: Routine, senders: tuple[Sender, ...]) -> None:
    """The groups that accounts know of, and the reminders, before anybody runs."""
    for sender in senders:
        if sender.name in routine.synced:
            _say(people, partial(_sync, sender))
    for reminding in routine.made:
        _order(people, reminding, partial(_create, reminding, people.house))


def orders(people: Operators, routine: Routine) -> list[tuple[str, Callable[[], None]]]:
    """What can be ordered, by what it is called; what is more frequent is there more than once."""
    name = people.rng.choice(routine.made).name
    account = people.rng.choice(people.world.senders).name
    return [
        (f"pauses {name}", lambda: people.pause_campaign(name)),
        *[(f"resumes {name}", lambda: people.resume_campaign(name))] * 2,
        (f"disables {name}", lambda: _disable(people, name)),
        *[(f"enables {name}", lambda: _enable(people, name))] * 2,
        *[(f"edits {name}", lambda: _edit(people, name))] * 2,
        *[(f"fires {name}", lambda: _fire(people, name))] * 2,
        (f"fires {name} with the same key", lambda: _fire_again(people, name)),
        *[(f"reassigns {name}", lambda: _reassign(people, name))] * 3,
        (f"reassigns {name} to {account}", lambda: _reassign(people, name, account)),
    ]


def left(tx: Tx) -> int:
    """How many reminders may fire yet, and how many of their runs are not over."""
    known = tx.reminders.list()
    return sum(reminder.enabled for reminder in known) + sum(
        run.state in OPEN for reminder in known for run in tx.runs.of_campaign(reminder.campaign_id)
    )


def put_right(people: Operators) -> None:
    """In fair weather reminders fire for a while yet, and then no more. What is left of accounts
    that nobody can resume goes on from others, and in the end they are removed."""
    book = people.book
    book.looks += 1
    if book.looks == 1:
        return
    for name in list(book.terms):
        if book.now(name).enabled:
            _disable(people, name)
        if book.looks > GONE_AFTER_LOOKS:
            continue
        try:
            _reassign(people, name)
        except InputError as answer:
            people.around.trace.note("operator", "operator", f"reassigns {name}: {answer}")
    if book.looks >= GONE_AFTER_LOOKS:
        for name in thrown_out(people):
            try:
                people.throw_out(name)
            except ConflictError as answer:
                people.around.trace.note("operator", "operator", f"removes {name}: {answer}")


def thrown_out(people: Operators) -> list[str]:
    """Accounts that are suspended, and whose provider will never have them back."""
    lost = []
    with people.store.read() as tx:
        for sender in people.world.senders:
            settings, account = read_settings(sender.settings), tx.accounts.find(sender.name)
            banned = settings.ban_after is not None and settings.ban_for is None
            for_good = banned or settings.unauthorised_after is not None
            suspended = account is not None and account.state is AccountState.SUSPENDED
            if suspended and for_good:
                lost.append(sender.name)
    return lost


# ---------------------------------------------------------------------- the commands


def _say(people: Operators, order: Callable[[Tx, Instant], T]) -> tuple[T, int, Instant]:
    """Give an order; its answer, the number of its commit, and the instant by its giver's clock."""
    routine, diary = people.world.routine, people.store
    assert routine is not None and isinstance(diary, Diary), "there are reminders here"
    with diary.write() as tx:
        now = tx.now - routine.behind_us
        answer = order(tx, now)
    return answer, len(diary.pages) - 1, now


def _order(
    people: Operators,
    reminding: Reminding,
    order: Callable[[Tx, Instant], Any],
    *,
    enabled: bool = True,
) -> None:
    """An order that changes when or how a reminder fires."""
    _, page, at = _say(people, order)
    terms = Terms(page, at, people.around.clock.now(), reminding, enabled)
    people.book.terms[reminding.name].append(terms)


def _sync(sender: Sender, tx: Tx, now: Instant) -> None:
    """As ``account groups`` does it."""
    settings = read_settings(sender.settings)
    found = [
        Group(group_id(number), f"Group {number}", may_send=number not in settings.read_only_groups)
        for number in settings.groups
    ]
    tx.groups.put(accounts.find(tx, sender.name).id, found, now)


def _spec(tx: Tx, reminding: Reminding, now: Instant) -> ReminderSpec:
    spec = ReminderSpec.from_mapping(dict(reminding.raw))
    stored = {name: tx.media.put(name, *FILES[name], now).id for name in spec.campaign.media}
    return replace(spec, campaign=spec.campaign.with_media(stored))


def _create(reminding: Reminding, house: House, tx: Tx, now: Instant) -> None:
    targets = [Target(address) for address in reminding.targets]
    reminders.create(tx, _spec(tx, reminding, now), targets, house.providers, now)


def _disable(people: Operators, name: str) -> None:
    reminding = people.book.now(name).reminding
    _order(people, reminding, lambda tx, now: reminders.disable(tx, name, now), enabled=False)


def _enable(people: Operators, name: str) -> None:
    reminding = people.book.now(name).reminding
    _order(people, reminding, lambda tx, now: reminders.enable(tx, name, now))


def _edit(people: Operators, name: str) -> None:
    """Now and then all of it is written anew; what is under way keeps what it was fired with."""
    routine, known = people.world.routine, people.book.now(name)
    assert routine is not None
    draft = people.rng.choice(routine.drafts)
    if "zone" in draft and "cron" not in known.reminding.raw:
        raise InputError("a single time stays where it is")
    changed = amended(known.reminding, draft)
    providers = people.house.providers

    def order(tx: Tx, now: Instant) -> None:
        if "parts" in draft or "targets" in draft:
            targets = [Target(address) for address in changed.targets]
            spec = _spec(tx, changed, now)
            reminders.edit(tx, name, {}, providers, now, instead=spec, targets=targets)
        else:
            reminders.edit(tx, name, draft, providers, now)

    _order(people, changed, order, enabled=known.enabled)


def amended(reminding: Reminding, draft: Mapping[str, Any]) -> Reminding:
    """The same reminder with what a draft says instead."""
    raw = {**reminding.raw, **{key: value for key, value in draft.items() if key != "targets"}}
    if "cron" in draft:
        raw.pop("at", None)
    return Reminding(raw, tuple(draft.get("targets", reminding.targets)))


def _fire(people: Operators, name: str) -> None:
    keys = people.book.by_hand[name]
    _fire_with(people, name, f"{name} {len(keys)}")


def _fire_again(people: Operators, name: str) -> None:
    """Whoever did not hear the answer asks once more: nothing more may come of it."""
    keys = list(people.book.by_hand[name])
    if not keys:
        raise InputError("nobody has fired it yet")
    _fire_with(people, name, people.rng.choice(keys))


def _fire_with(people: Operators, name: str, key: str) -> None:
    providers = people.house.providers
    fired, _, at = _say(people, lambda tx, now: reminders.fire(tx, name, providers, now, key=key))
    people.book.by_hand[name].setdefault(key, (fired.run.id, at))


def _reassign(people: Operators, name: str, to: str | None = None) -> None:
    providers, others = people.house.providers, (to,) if to else ()
    done, page, _ = _say(
        people, lambda tx, now: reassign(tx, name, providers, now, to_accounts=others)
    )
    if done.moved:
        people.book.reassigned.append((page, name))


__all__ = ["amended", "left", "orders", "put_right", "set_up", "thrown_out"]
