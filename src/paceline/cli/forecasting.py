"""``paceline simulate -f``: how a campaign of one's own would go, with one's own accounts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from paceline.cli import output
from paceline.cli.surroundings import existing
from paceline.core.errors import InputError
from paceline.core.instants import Instant
from paceline.core.policy import Policy
from paceline.core.zones import wall_at

if TYPE_CHECKING:
    from paceline.engine.ports import Account
    from paceline.sim.forecast import AccountForecast, Death, Forecast

PLAYS = 3
"""How often it is played unless somebody says so: gaps are drawn."""

BROKEN = 3
"""The exit code where a promise is broken; 1 says that nothing could be played."""

MOST_LINES = 5
"""Reasons, and broken promises, that are told; --json tells all."""
MOST_ACCOUNTS = 20


def tell_forecast(
    ctx: typer.Context,
    path: Path,
    seeds: int,
    first: int,
    *,
    workers: int | None,
    as_json: bool,
) -> None:
    """Play the campaign of a file, and say what it comes to."""
    for option in ("world", "faults"):
        if _given(ctx, option):
            reason = "a campaign of one's own is played in fair weather, in a world of its own"
            raise InputError(reason, key=f"--{option}", hint="Leave it out, or leave out -f")
    numbers = range(first, first + (seeds if _given(ctx, "seeds") else PLAYS))
    result, zone = _forecast(ctx, path, numbers, workers)
    if as_json:
        output.say_json(result.to_mapping())
    else:
        _tell(result, zone)
    if result.violations:
        raise typer.Exit(BROKEN)


def _given(ctx: typer.Context, option: str) -> bool:
    source = ctx.get_parameter_source(option)
    return source is not None and source.name == "COMMANDLINE"


def _forecast(
    ctx: typer.Context, path: Path, seeds: range, workers: int | None
) -> tuple[Forecast, str]:
    """What it comes to, and the zone in which its people think of it."""
    from dataclasses import replace

    from paceline.cli.campaign_file import read_campaign
    from paceline.engine.campaign_checks import check_said
    from paceline.engine.clock import SystemClock
    from paceline.engine.commands.accounts import find
    from paceline.engine.planning import recognised
    from paceline.sim.forecast import forecast

    file = read_campaign(path)
    with existing(ctx) as house, house.store.read() as tx, file.blamed():
        accounts = [find(tx, name) for name in file.spec.accounts]
        file = file.with_people(tx, house.providers)
        if not file.targets:
            raise InputError("the audience is empty", key="audience")
        for said in file.spec.messages:
            for account in accounts:
                check_said(account, said, house.providers)
        targets = recognised(tx, file.targets)
        suppressed = tx.waiting.suppressed([target.address for target in targets])
        reached = [target for target in targets if target.address not in suppressed]
        # A recipient without a zone is refused here, as it is at the launch.
        local = [file.spec.recipient_hours_of(target) is not None for target in reached]
        if not reached:
            raise InputError("everybody in it is suppressed", key="audience")
    zones = [target.fields["zone"] for target in reached] if any(local) else []
    with output.progress("forecasts", total=len(seeds) + 1) as advance:
        result = forecast(
            file.spec,
            len(reached),
            accounts,
            seeds=seeds,
            start_at=SystemClock().now(),
            zones=zones,
            advance=advance,
            workers=workers,
        )
    whys = [SUPPRESSED] * (len(targets) - len(reached)) + [one.why for one in file.unreachable]
    unreachable = {why: whys.count(why) for why in dict.fromkeys(whys)}
    window = file.spec.window
    zone = _zone_of(accounts) if window is None else window.zone
    return replace(result, unreachable=unreachable), zone


SUPPRESSED = "recipient is suppressed"
"""As a plan says it."""


def _zone_of(accounts: list[Account]) -> str:
    """The zone that they share, as a plan has it."""
    zones = {Policy.from_mapping(one.policy, where=one.name).day_zone for one in accounts}
    return zones.pop() if len(zones) == 1 else "UTC"


# ---------------------------------------------------------------------- what is told


def _tell(result: Forecast, zone: str) -> None:
    senders = len(result.accounts)
    whose = "one account" if senders == 1 else f"{senders} accounts"
    played = "once" if result.plays == 1 else f"{result.plays} times"
    if result.most_sent:
        many = _messages(result.sent, result.total, result.most_sent)
        output.say(f"{result.campaign}: {many} from {whose} (played {played})")
        output.say(f"  done {_between(result.done_at, zone)}")
    else:
        output.say(f"{result.campaign}: nothing can be sent from {whose}")
    _tell_reasons(result.unsent, "not sent")
    for account in result.accounts[:MOST_ACCOUNTS]:
        _tell_account(account, zone)
    if senders > MOST_ACCOUNTS:
        output.say(f"  and {senders - MOST_ACCOUNTS} more; --json lists all")
    for why, count in result.unreachable.items():
        output.say(f"{output.plural(count, 'person is', 'people are')} left out: {why}")
    if result.death is not None:
        _tell_death(result.death, result.total, zone)
    broken = result.violations
    output.say(f"broken limits and promises: {len(broken) or 'none'}")
    for one in broken[:MOST_LINES]:
        output.say(f"  {one}")
    if len(broken) > MOST_LINES:
        output.say(f"  and {len(broken) - MOST_LINES} more; --json tells all")
    for words in result.left_out:
        output.note(f"left out: {words}")


def _tell_account(account: AccountForecast, zone: str) -> None:
    if account.shut is not None:
        output.say(f"  {account.name}: nothing, {account.shut}")
        return
    if not account.sent:
        output.say(f"  {account.name}: nothing")
        return
    many = _messages(account.sent, account.total)
    output.say(f"  {account.name}: {many}, done {_between(account.done_at, zone)}")
    limits = "; ".join(account.limits) or "no limit"
    in_parts = account.most_parts_per_day
    parts = f" in {in_parts} parts" if in_parts != account.most_per_day else ""
    output.say(f"    at most {account.most_per_day} a day{parts} ({limits})")


def _tell_death(death: Death, total: int, zone: str) -> None:
    if death.after:
        when = f"after {output.plural(death.after, 'message', 'messages')}"
        output.say(f"if {death.account} dies halfway (banned {when}):")
    else:
        output.say(f"if {death.account} dies before its first message:")
    until = "" if death.until is None else f", until {_at(death.until, zone)} at the latest"
    wait = "waits" if death.waiting == 1 else "wait"
    back = f"{death.waiting} {wait} for it to come back{until}"
    sent = "is sent" if death.sent == 1 else "are sent"
    output.say(
        f"  {death.sent} of {total} {sent}, {back if death.waiting else 'none waits for it'}"
    )
    _tell_reasons(death.unsent, "not sent")
    if death.done_at is not None:
        output.say(f"  the others are done {_at(death.done_at, zone)}")


def _tell_reasons(reasons: Mapping[str, int], what: str) -> None:
    for why, count in list(reasons.items())[:MOST_LINES]:
        output.say(f"  {count} {what}: {why}")
    more = sum(list(reasons.values())[MOST_LINES:])
    if more:
        output.say(f"  {more} {what} for other reasons; --json tells all")


def _messages(sent: int, total: int, most: int | None = None) -> str:
    if most is not None and most != sent:
        return f"between {sent} and {most} of {output.plural(total, 'message', 'messages')}"
    whole = output.plural(total, "message", "messages")
    return whole if sent == total else f"{sent} of {whole}"


def _between(instants: tuple[Instant, Instant] | None, zone: str) -> str:
    if instants is None:
        return "never"
    early, late = (_at(at, zone) for at in instants)
    return early if early == late else f"between {early} and {late}"


def _at(at: Instant, zone: str) -> str:
    """To the second: the plan's times are minutes, but of a few messages seconds tell."""
    return f"{wall_at(at, zone):%Y-%m-%d %H:%M:%S} {zone}"
