"""``paceline plan``: when a campaign would be done, before it is launched. Writes nothing."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline.cli import output
from paceline.cli.chart import chart
from paceline.cli.options import CAMPAIGN_FILE, AsJson
from paceline.cli.surroundings import existing, settings_of
from paceline.config import sqlite_path
from paceline.core.durations import parse_duration, print_duration
from paceline.core.errors import InputError, NotFoundError
from paceline.core.grammar import Rate
from paceline.core.hours import Hours
from paceline.core.instants import DAY, MINUTE, SECOND, local_text
from paceline.core.policy import OFF

if TYPE_CHECKING:
    from paceline.app import App
    from paceline.engine.campaign_spec import CampaignSpec
    from paceline.engine.commands.accounts import House
    from paceline.engine.plan_view import Plan
    from paceline.engine.ports import Tx

MOST_ACCOUNTS = 20
"""Accounts that are listed; --json lists all."""
MOST_TARGETS = 5
"""Unreachable people that are named for each reason; --json names all."""


def plan(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", readable=False, help=CAMPAIGN_FILE)],
    add: Annotated[
        list[str] | None,
        typer.Option(
            "--add-account",
            metavar="NAME[=POLICY]",
            help="Let this account take part as well; with a policy, one that does not exist yet.",
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="RATE", help="As if every account had this rate: 40/min."),
    ] = None,
    hours: Annotated[
        str | None,
        typer.Option("--hours", metavar="HOURS", help="As if every account had these hours."),
    ] = None,
    latency: Annotated[
        str, typer.Option("--latency", metavar="DURATION", help="What each call is taken to take.")
    ] = "0s",
    as_json: AsJson = False,
) -> None:
    """Say when a campaign would be done if it were launched now. Nothing is written.

    The limits, what they have used up, every other campaign on the same accounts, and what other
    accounts are about to send to the same people count, just as they will when it is sent. Failures
    and slow providers are not foreseen.

    \b
        paceline plan spring.toml
        paceline plan spring.toml --add-account team --add-account new=cold-email
        paceline plan spring.toml --hours "Mon-Fri 08:00-20:00"
    """
    from paceline.cli.campaign_file import read_campaign
    from paceline.engine.planning import WhatIf, plan_campaign

    what_if = WhatIf(_added(add or []), _limits(rate, hours), _latency(latency))
    with _at_work():
        written = read_campaign(file)
        with _house(ctx) as house, house.store.read() as tx:
            now = house.clock.now()
            with written.blamed():
                written = written.with_people(tx, house.providers, what_if.add)
                _check_added(tx, house.house, written.spec, what_if.add)
                found = plan_campaign(tx, written.spec, written.targets, house.house, now, what_if)
    found = found.without((entry.who, entry.why) for entry in written.unreachable)
    if as_json:
        output.say_json(found.to_mapping())
    else:
        _tell(found, _zone(written.spec, found))
        if written.spec.follow_up is not None:
            output.say("whoever bids the follow-up is sent that as well, which nobody can plan")


# ---------------------------------------------------------------------- what is asked


def _added(texts: list[str]) -> dict[str, str | None]:
    added: dict[str, str | None] = {}
    for text in texts:
        name, equals, policy = (piece.strip() for piece in text.partition("="))
        if not name or (equals and not policy):
            raise InputError(f"{text!r} is not NAME or NAME=POLICY", key="--add-account")
        if name in added:
            raise InputError(f"{name} is named twice", key="--add-account")
        added[name] = policy or None
    return added


def _check_added(tx: Tx, house: House, spec: CampaignSpec, added: Mapping[str, str | None]) -> None:
    """What is wrong with an account that is only tried is not the campaign's fault."""
    from paceline.engine.campaign_checks import check_said
    from paceline.engine.commands.accounts import find

    for name, policy in added.items():
        try:
            if policy is not None:
                house.catalogue.raw(policy)
                continue
            account = find(tx, name)
            for said in spec.messages:
                check_said(account, said, house.providers)
        except InputError as error:
            hint = error.hint
            if isinstance(error, NotFoundError) and not error.reason.endswith("?"):
                hint = f"One that does not exist yet needs a policy: --add-account {name}=POLICY"
            raise InputError(error.reason, key="--add-account", hint=hint) from None


def _limits(rate: str | None, hours: str | None) -> dict[str, Any]:
    limits = {key: text for key, text in (("rate", rate), ("hours", hours)) if text is not None}
    checks: dict[str, Callable[[str], object]] = {
        "rate": Rate.parse,
        "hours": partial(Hours.parse, default_zone="UTC"),
    }
    for key, text in limits.items():
        try:
            if text != OFF:
                checks[key](text)
        except InputError as error:
            raise InputError(error.reason, key=f"--{key}", hint=error.hint) from None
    return limits


def _latency(text: str) -> int:
    try:
        return parse_duration(text)
    except InputError as error:
        raise InputError(error.reason, key="--latency", hint=error.hint) from None


@contextmanager
def _house(ctx: typer.Context) -> Iterator[App]:
    """The installation; where there is none, an empty one that is thrown away.

    A campaign can be planned before anything is set up: with accounts that do not exist yet.
    """
    from paceline.app import open_app

    settings = settings_of(ctx)
    path = sqlite_path(settings.database)
    if path is None or path.exists() or not path.parent.is_dir():
        with existing(ctx) as app:
            yield app
        return
    with TemporaryDirectory(prefix="paceline-plan-") as folder:
        blank = replace(settings, database=f"sqlite:///{Path(folder) / 'plan.db'}")
        with open_app(blank) as app:
            yield app


@contextmanager
def _at_work() -> Iterator[None]:
    """A sign of life on standard error while it takes its time; silent where nobody watches."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status("planning"):
        yield


# ---------------------------------------------------------------------- what is told


def _zone(spec: CampaignSpec, found: Plan) -> str:
    """The zone in which its people think of it: its window's, else the one of its accounts."""
    if spec.window is not None:
        return spec.window.zone
    return found.zone


def _tell(found: Plan, zone: str) -> None:
    messages = output.plural(found.messages, "message", "messages")
    whose = output.plural(len(found.accounts), "account", "accounts")
    if found.finish_at is None:
        output.say(f"{found.campaign}: nothing can be sent from {whose}")
    else:
        lasting = _lasting(found.finish_at - found.start_at)
        output.say(f"{found.campaign}: {messages} from {whose}")
        output.say(f"done {local_text(found.finish_at, zone)}, {lasting} from now")
        binding = found.binding
        output.say(binding.words if binding else "nothing binds: all may go at once")
        output.say()
        _tell_accounts(found, zone)
        days = _per_day(found)
        if len(days) > 1:
            output.say()
            for line in chart(days, output.console()):
                output.say(line)
    _tell_unreachable(found)
    if found.others:
        output.say()
    for moved in found.others:
        output.say(
            f"campaign {moved.campaign} is done {local_text(moved.to_at, zone)} on these accounts, "
            f"instead of {local_text(moved.from_at, zone)}"
        )
    output.say()
    latency = f"takes {print_duration(found.latency_us)}" if found.latency_us else "takes no time"
    output.say(f"assuming that every call {latency} and none fails; nothing was written")


def _lasting(us: int) -> str:
    """How long, as people say it: to the second for minutes, to the day for weeks."""
    if us < MINUTE:
        return print_duration(-(-us // SECOND) * SECOND)
    if us < 2 * DAY:
        return print_duration(round(us / MINUTE) * MINUTE)
    return output.plural(round(us / DAY), "day", "days")


def _tell_accounts(found: Plan, zone: str) -> None:
    rows = [
        (
            account.account,
            account.messages,
            "" if account.first_at is None else output.wall_text(account.first_at, zone),
            "" if account.last_at is None else output.wall_text(account.last_at, zone),
            max(account.per_day.values(), default=0),
        )
        for account in found.accounts[:MOST_ACCOUNTS]
    ]
    first, last = "FIRST", "LAST"
    counts = ("MESSAGES", "MOST A DAY")
    headings = ("ACCOUNT", "MESSAGES", first, last, "MOST A DAY")
    output.console().print(output.table(headings, rows, right=counts, firm=(first, last)))
    more = len(found.accounts) - len(rows)
    if more > 0:
        output.say(f"and {more} more; --json lists all")


def _per_day(found: Plan) -> Mapping[str, int]:
    """By date, each account in its own zone."""
    days: Counter[str] = Counter()
    for account in found.accounts:
        days.update(account.per_day)
    return days


def _tell_unreachable(found: Plan) -> None:
    if not found.unreachable:
        return
    output.say()
    output.say(f"{output.plural(len(found.unreachable), 'target', 'targets')} not reachable:")
    by_reason: dict[str, list[str]] = {}
    for one in found.unreachable:
        by_reason.setdefault(one.why, []).append(one.target)
    for why, targets in by_reason.items():
        few = ", ".join(targets[:MOST_TARGETS])
        more = len(targets) - MOST_TARGETS
        rest = f" and {more} more" if more > 0 else ""
        output.say(f"  {len(targets)}: {why} ({few}{rest})")
