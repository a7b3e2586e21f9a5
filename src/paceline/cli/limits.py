"""``paceline limits``: what goes against a limit, putting it right, and where limits come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from paceline.cli import output, shapes
from paceline.cli.options import AccountName, AsJson
from paceline.cli.surroundings import existing
from paceline.core.instants import Instant
from paceline.engine import limit_sources, limits
from paceline.engine.commands.accounts import find
from paceline.engine.limit_sources import LimitLine, LimitsView
from paceline.engine.limits import Finding, LaidAnew, Repair
from paceline.engine.ports import Account, Store, Tx

MOST_DAYS = 400

app = typer.Typer(
    help="Limits: what goes against them, and where they come from.",
    no_args_is_help=True,
)

Names = Annotated[
    list[str] | None, typer.Argument(metavar="ACCOUNT", help="Accounts; all unless given.")
]


@app.command()
def check(
    ctx: typer.Context,
    names: Names = None,
    days: Annotated[
        int, typer.Option("--days", min=0, max=MOST_DAYS, help="How many days to look back.")
    ] = 30,
    as_json: AsJson = False,
) -> None:
    """List what was sent, or is planned, against a limit.

    By account and day. Exit code 1 if there is anything. What is planned is moved
    by the lanes when its time comes; nothing is ever sent against a limit because
    it was planned so.
    """
    with existing(ctx) as house, house.store.read() as tx:
        accounts = _accounts(tx, names)
        found = limits.check(tx, house.clock.now(), accounts, days)
    if as_json:
        output.say_json({"ok": not found, "violations": [_finding(one) for one in found]})
    elif not found:
        many = output.plural(len(accounts), "account", "accounts")
        output.say(f"nothing against a limit: {many}, {days} days back and all that is planned")
    else:
        _show_findings(found)
    if found:
        raise typer.Exit(1)


@app.command()
def fix(
    ctx: typer.Context,
    names: Names = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be moved.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Give what is planned against a limit its next legal slot.

    Only what offends is moved, and only to later. What was planned first stays on record.
    """
    with existing(ctx) as house:
        with house.store.read() as tx:
            accounts = _accounts(tx, names)
        repairs = limits.fix(house.store, house.clock.now(), accounts, dry_run=dry_run)
    if as_json:
        output.say_json({"dry_run": dry_run, "accounts": [_repair(one) for one in repairs]})
        return
    if not repairs:
        output.say("nothing is planned against a limit")
    for repair in repairs:
        _show_repair(repair, dry_run)


@app.command()
def show(ctx: typer.Context, name: AccountName, as_json: AsJson = False) -> None:
    """Show the limits of an account and where they come from.

    Every limit in force, and what of it is used up.

    \b
    The first that says anything holds:
        the account's own value     paceline account set NAME --set …
        the policy that it names    [policy.NAME] in paceline.toml
        the preset                  paceline policy presets
        what holds for all          per_contact in paceline.toml
        the default
    """
    with existing(ctx) as house, house.store.read() as tx:
        now = house.clock.now()
        view = limit_sources.limits_view(tx, house.catalogue, name, now)
    if as_json:
        output.say_json(_view(view))
        return
    zone = view.policy.day_zone
    output.say(f"{view.account.name}: limits in force at {output.wall_text(now, zone)} {zone}")
    output.say()
    rows = [(line.limit, line.value, line.source, _used(line)) for line in view.lines]
    headings = ("LIMIT", "VALUE", "FROM", "USED")
    output.console().print(output.table(headings, rows, firm=("LIMIT", "USED")))
    output.say()
    output.say(f"days and weeks begin at midnight in {zone}, weeks on Monday")
    if view.outdated:
        output.note("paceline.toml has changed since: it holds when paceline up starts next")


# ---------------------------------------------------------------------- for other commands


def after_change(store: Store, account: Account, now: Instant) -> None:
    """Lay out anew what waits on an account whose limits were changed, and say what came of it."""
    laid = limits.lay_anew(store, [account.id], now, f"limits of {account.name} changed")
    with store.read() as tx:
        left = limits.planned(tx, now, [account])
    say_laid(laid)
    if left:
        output.note(_hint(left))


def after_cancel(store: Store, campaign: str, now: Instant) -> None:
    """Let others have the slots that a cancelled campaign has left."""
    with store.read() as tx:
        account_ids = limits.accounts_of(tx, campaign)
    say_laid(limits.lay_anew(store, account_ids, now, f"campaign {campaign} was cancelled"))


def say_laid(laid: LaidAnew) -> None:
    """What became of the deliveries that wait on accounts where something has changed."""
    waiting = output.plural(laid.waiting, "delivery waits", "deliveries wait")
    if laid.moved is None:
        output.note(
            f"{waiting}, too many to lay them out anew now; lanes keep every limit when "
            "their time comes"
        )
    elif laid.moved:
        output.say(f"{waiting}: {laid.moved} laid out anew")


# ---------------------------------------------------------------------- words and shapes


def _accounts(tx: Tx, names: Sequence[str] | None) -> list[Account]:
    return [find(tx, name) for name in dict.fromkeys(names)] if names else tx.accounts.list()


def _hint(planned: Sequence[Finding]) -> str:
    offending = sum(one.offending for one in planned)
    names = dict.fromkeys(name for one in planned for name in one.accounts or (one.account,))
    fits = output.plural(
        offending, "planned delivery no longer fits", "planned deliveries no longer fit"
    )
    them = "it when its" if offending == 1 else "them when their"
    return (
        f"{fits}; lanes will move {them} time comes, or run: paceline limits fix {' '.join(names)}"
    )


def _show_findings(found: Sequence[Finding]) -> None:
    rows = [
        (
            _whose(one),
            one.day.isoformat(),
            one.when,
            f"{one.rule} {one.action}",
            str(one.count) if one.cap is None else f"{one.count}/{one.cap}",
            one.offending,
        )
        for one in found
    ]
    headings = ("ACCOUNT", "DAY", "WHEN", "LIMIT", "COUNT", "TOO MANY")
    right = ("COUNT", "TOO MANY")
    output.show_table(headings, rows, right=right, firm=("DAY", "WHEN", "LIMIT"), empty="")
    planned = [one for one in found if one.when == "planned"]
    if planned:
        output.say()
        output.say(_hint(planned))


def _whose(one: Finding | Repair) -> str:
    return f"pool of {one.pool}" if one.pool else one.account


def _show_repair(repair: Repair, dry_run: bool) -> None:
    whose = _whose(repair)
    by_why: dict[str, list[Instant]] = {}
    for move in repair.moves:
        by_why.setdefault(move.why, []).append(move.to_at)
    verb = "would move" if dry_run else "moved"
    for why, slots in by_why.items():
        first, last = (output.wall_text(at, repair.zone) for at in (min(slots), max(slots)))
        until = "" if len(slots) == 1 else f" … {last}"
        output.say(f"{whose}: {verb} {len(slots)} to {first}{until} {repair.zone}: {why}")
    by_reason: dict[str, list[int]] = {}
    for never in repair.nevers:
        by_reason.setdefault(never.why, []).append(never.key)
    for why, keys in by_reason.items():
        number = f"delivery {keys[0]}" if len(keys) == 1 else f"{len(keys)} deliveries"
        output.say(f"{whose}: no legal slot for {number}: {why}")


def _used(line: LimitLine) -> str:
    if line.used is None:
        return "" if line.cap is None else f"{line.cap} today"
    return f"{line.used}/{line.cap}"


def _finding(one: Finding) -> dict[str, Any]:
    return {
        "account": one.account or None,
        "pool": one.pool or None,
        "when": one.when,
        "day": one.day.isoformat(),
        "limit": one.rule,
        "action": one.action,
        "count": one.count,
        "cap": one.cap,
        "offending": one.offending,
        "why": one.text,
        "deliveries": list(one.deliveries),
    }


def _repair(repair: Repair) -> dict[str, Any]:
    return {
        "account": repair.account or None,
        "pool": repair.pool or None,
        "moved": [
            {
                "delivery": move.delivery_id,
                "from_at": shapes.instant(move.from_at),
                "to_at": shapes.instant(move.to_at),
                "why": move.why,
            }
            for move in repair.moves
        ],
        "no_slot": [{"delivery": never.key, "why": never.why} for never in repair.nevers],
    }


def _view(view: LimitsView) -> dict[str, Any]:
    return {
        "account": view.account.name,
        "policy": view.account.policy_name,
        "zone": view.policy.day_zone,
        "day_at": shapes.instant(view.day_at),
        "week_at": shapes.instant(view.week_at),
        "outdated": view.outdated,
        "limits": [
            {
                "limit": line.limit,
                "value": line.value,
                "from": line.source,
                "used": line.used,
                "cap": line.cap,
            }
            for line in view.lines
        ],
    }
