"""``paceline account``: the sending identities and their limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline.cli import output, shapes
from paceline.cli.alerts import say_alerts
from paceline.cli.options import AccountName, AsJson, Reason, Yes
from paceline.cli.secrets import Secret, ask_for, note_exposed
from paceline.cli.surroundings import database_of, existing, opened
from paceline.cli.values import parse_values
from paceline.core.errors import InputError
from paceline.core.instants import local_text
from paceline.core.policy import KEYS, Policy
from paceline.core.tables import whole_of
from paceline.engine.alerts import concerning
from paceline.engine.commands import accounts, reminders
from paceline.engine.ports import Account
from paceline.engine.stopping import stopped

if TYPE_CHECKING:
    from paceline.engine.queries import AccountView

app = typer.Typer(help="Accounts: what messages are sent from.", no_args_is_help=True)

Address = Annotated[
    str | None, typer.Option("--address", help="What it sends from; its name unless given.")
]
PolicyName = Annotated[
    str | None, typer.Option("--policy", help="A preset, or a policy of paceline.toml.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A limit of its own, on top of the policy."),
]
Option = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="KEY=VALUE", help="A setting of its provider."),
]
Unset = Annotated[
    list[str] | None,
    typer.Option("--unset", metavar="KEY", help="Drop a limit of its own; the policy's holds."),
]


@app.command()
def add(
    ctx: typer.Context,
    name: AccountName,
    provider: Annotated[str, typer.Option("--provider", help="The driver it sends with.")],
    address: Address = None,
    policy: PolicyName = None,
    own: Set = None,
    options: Option = None,
    secret: Secret = None,
) -> None:
    """Add an account.

    Values are TOML, or plain text where they are none.

    \b
        paceline account add sales --provider sandbox --policy cold-email
        paceline account add team --provider sandbox --set rate=40/min
        paceline account add slow --provider sandbox --option latency=1s
        paceline account add team --provider waha … --secret api_key
    """
    typed = parse_values(options or [], "--option")
    new = accounts.NewAccount(
        name=name,
        provider=provider,
        address=address or "",
        settings={**typed, **ask_for(secret or [], typed)},
        policy=policy,
        overrides=_own(own),
    )
    with opened(ctx) as house, house.store.write() as tx:
        added = accounts.add(tx, new, house.house, house.clock.now())
        note_exposed(typed, house.providers.get(provider).secrets)
    output.say(f"account {added.name} added ({added.provider}, {_limits(added)})")
    _note_never(added)


@app.command("list")
def list_(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List the accounts and how they stand."""
    with existing(ctx) as house, house.store.read() as tx:
        found, stop = tx.accounts.list(), stopped(tx)
        alerts = concerning(tx, account_ids=[account.id for account in found])
        database = database_of(house)
    if as_json:
        output.say_json([shapes.account(account, stop) for account in found])
        return
    rows = [
        (a.name, a.provider, a.policy_name or "-", output.state_text(a.state), a.state_reason)
        for a in found
    ]
    say_alerts(alerts)
    output.show_table(
        ("NAME", "PROVIDER", "POLICY", "STATE", "REASON"),
        rows,
        firm=("PROVIDER", "POLICY", "STATE"),
        empty=f"no accounts yet in {database}; "
        "add one with: paceline account add NAME --provider sandbox",
    )
    if stop is not None:
        output.say(f"\n{output.stop_text(stop)}")


@app.command()
def show(ctx: typer.Context, name: AccountName, as_json: AsJson = False) -> None:
    """Show one account.

    Its limits, what it has used up of them, and what happened lately.
    """
    from paceline.engine.queries import account_view

    with existing(ctx) as house, house.store.read() as tx:
        now = house.clock.now()
        view = account_view(tx, name, now)
        secrets = house.providers.get(view.account.provider).secrets
    if as_json:
        output.say_json(shapes.account_view(view, secrets))
        return
    account, zone = view.account, view.policy.day_zone
    output.console().print(output.table(("", ""), _facts(view, now)))
    output.say()
    output.say(view.policy.to_toml(account.name).rstrip())
    if view.stopped is not None:
        output.say(f"\n{output.stop_text(view.stopped)}")
    if view.events:
        output.say()
        rows = [(output.wall_text(event.at, zone), event.text) for event in view.events]
        output.console().print(output.table((zone, "WHAT HAPPENED"), rows, firm=(zone,)))


@app.command("set")
def set_(
    ctx: typer.Context,
    name: AccountName,
    address: Address = None,
    policy: PolicyName = None,
    own: Set = None,
    unset: Unset = None,
    options: Option = None,
    secret: Secret = None,
) -> None:
    """Change an account; in force before its next message.

    \b
        paceline account set sales --set daily.email=40 --unset spacing
    """
    if not (address or policy or own or unset or options or secret):
        raise InputError("nothing to change", hint="See: paceline account set --help")
    typed = parse_values(options or [], "--option")
    wish = accounts.AccountChange(
        policy=policy,
        overrides=_own(own),
        unset=tuple(unset or ()),
        settings={**typed, **ask_for(secret or [], typed)},
        address=address,
    )
    from paceline.cli import limits

    with existing(ctx) as house:
        now = house.clock.now()
        with house.store.write() as tx:
            before = accounts.find(tx, name)
            changed = accounts.change(tx, name, wish, house.house, now)
        note_exposed(typed, house.providers.get(changed.provider).secrets)
        output.say(f"account {changed.name} changed ({_limits(changed)})")
        _note_never(changed)
        if changed.policy_id != before.policy_id:
            limits.after_change(house.store, changed, now)


@app.command()
def pause(ctx: typer.Context, name: AccountName, reason: Reason = None) -> None:
    """Pause an account.

    Nothing more starts on it; what has started finishes.
    """
    with existing(ctx) as house, house.store.write() as tx:
        accounts.pause(tx, name, house.clock.now(), reason or "paused by an operator")
    output.say(f"account {name} is paused; go on with: paceline account resume {name}")


@app.command()
def resume(ctx: typer.Context, name: AccountName) -> None:
    """Let a paused, suspended or cooling account send again."""
    with existing(ctx) as house, house.store.write() as tx:
        accounts.resume(tx, name, house.clock.now())
    output.say(f"account {name} is active")


@app.command()
def remove(
    ctx: typer.Context,
    name: AccountName,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Cancel the deliveries that wait on it.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Take an account out of service; its history stays."""
    output.confirm(f"Remove account {name}?", yes=yes)
    with existing(ctx) as house, house.store.write() as tx:
        concerned = reminders.sent_from(tx, name)
        accounts.remove(tx, name, house.clock.now(), cancel=cancel)
    output.say(f"account {name} removed")
    if concerned.others:
        them = ", ".join(concerned.others)
        output.note(f"reminders sent from it go on from their other accounts: {them}")
    for one in concerned.alone:
        output.note(f"reminder {one} has no other account: it will fail until it is given one")


def _own(pairs: list[str] | None) -> dict[str, Any]:
    """An account's own limits as they were typed, where nobody writes quotes."""
    values = parse_values(pairs or [], "--set")
    if "window" in values:
        raise InputError(
            "a window belongs to a campaign", key="--set", hint="Set hours=… for an account"
        )
    return {key: _as_written(key, value) for key, value in values.items()}


def _as_written(key: str, value: Any) -> Any:
    """A bare number is a text to every limit that is written as one, and is judged as such."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if number and key in KEYS and KEYS[key].read is not whole_of else value


def _note_never(account: Account) -> None:
    """A cap of 0 is legal, and easily taken for no cap at all."""
    policy = Policy.from_mapping(account.policy, where=account.name)
    caps = (*policy.daily.items(), *policy.weekly.items())
    never = sorted({action for action, cap in caps if not cap})
    if never:
        output.note(f"a cap of 0 means never: {account.name} sends no {', '.join(never)}")


def _limits(account: Account) -> str:
    named = f"policy {account.policy_name}" if account.policy_name else ""
    own = f"its own {', '.join(account.overrides)}" if account.overrides else ""
    return " and ".join(part for part in (named, own) if part) or "no limits at all"


def _facts(view: AccountView, now: int) -> list[tuple[str, object]]:
    account, zone = view.account, view.policy.day_zone
    facts: list[tuple[str, object]] = [
        ("account", account.name),
        ("provider", f"{account.provider}, sending as {account.address}"),
        ("limits", _limits(account)),
        ("state", output.state_text(account.state)),
    ]
    if account.state_reason:
        facts.append(("because", account.state_reason))
    if account.state_until_at is not None:
        facts.append(("until", output.until_text(account.state_until_at, now, zone)))
    facts += [("used today", _used(view.usage.day, view.policy.daily))]
    if view.policy.weekly:
        facts.append(("this week", _used(view.usage.week, view.policy.weekly)))
    last_at = view.today.last_sent_at
    facts += [
        ("today", view.today.told(view.policy)),
        ("last sent", "never" if last_at is None else local_text(last_at, zone)),
    ]
    facts += [("deliveries", _counts(view)), ("lane", _lane(view, now))]
    if view.held and view.lane.wake_at is not None:
        facts.append(("but", view.held))
    facts.append(("added", local_text(account.created_at, zone)))
    return facts


def _used(used: object, caps: object) -> str:
    counts, most = dict(used), dict(caps)  # type: ignore[call-overload]
    lines = [f"{counts.get(action, 0)} of {cap} {action}" for action, cap in most.items()]
    return ", ".join(lines) or "no cap"


def _counts(view: AccountView) -> str:
    told = [f"{count} {state}" for state, count in view.counts.items() if count]
    return f"{', '.join(told)} in unfinished runs" if told else "none in unfinished runs"


def _lane(view: AccountView, now: int) -> str:
    lane = view.lane
    if lane.owner is not None:
        return f"run by process {lane.owner} (generation {lane.generation})"
    if lane.wake_at is None:
        return "parked, nothing to do"
    if lane.wake_at <= now:
        return "due, waiting for a process to run it"
    return f"parked until {local_text(lane.wake_at, view.policy.day_zone)}"
