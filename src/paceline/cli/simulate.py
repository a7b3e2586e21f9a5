"""``paceline simulate``: try to break the promises, or see how a campaign would go."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline.cli import output
from paceline.cli.options import AsJson
from paceline.cli.surroundings import existing
from paceline.core.errors import InputError
from paceline.core.instants import SECOND, Instant, iso

if TYPE_CHECKING:
    from paceline.sim.forecast import Forecast
    from paceline.sim.simulation import Verdict

SHOWN = 3
"""Broken seeds that are told in full; the others are only counted."""

MOST_FORECASTS = 3
"""How often a campaign of one's own is played; more would tell nothing new."""


def simulate(
    ctx: typer.Context,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many worlds to play.")] = 20,
    first: Annotated[int, typer.Option("--from", min=0, help="The number of the first.")] = 0,
    faults: Annotated[str, typer.Option("--faults", help="none, light or heavy.")] = "heavy",
    world: Annotated[
        str, typer.Option("--world", metavar="NAME", help="Which kind of world; see the docs.")
    ] = "any",
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes; one per core unless given.")
    ] = None,
    campaign: Annotated[
        Path | None,
        typer.Option(
            "-f",
            "--file",
            metavar="FILE",
            readable=False,
            help="Forecast the campaign of this file instead; - is standard input.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play worlds in which everything goes wrong, and judge them.

    The real engine and store run in virtual time, with crashes, lost leases, slow disks, clocks
    that are set and providers that fail. The same seed gives the same world on every machine.

    With -f your own accounts and campaign are played instead: when it would be done, which limits
    it comes up against, and what becomes of it if an account dies halfway.
    """
    from paceline.sim.weather import known_faults

    level = known_faults(faults)
    if campaign is not None:
        numbers = range(first, first + min(seeds, MOST_FORECASTS))
        _forecast(ctx, campaign, numbers, workers=workers, as_json=as_json)
        return
    from paceline.sim.atlas import known_world
    from paceline.sim.many import Report, simulate_many

    known_world(world)
    numbers = range(first, first + seeds)
    verdicts = []
    with output.progress("worlds", total=seeds) as advance:
        for verdict in simulate_many(numbers, world=world, faults=level, workers=workers):
            verdicts.append(verdict)
            advance()
    report = Report(tuple(sorted(verdicts, key=lambda verdict: verdict.seed)))
    if as_json:
        output.say_json(report.to_mapping())
    else:
        _tell(report.to_mapping(), faults)
    for broken in report.broken[:SHOWN]:
        _tell_broken(broken, world, faults)
    if report.broken:
        raise typer.Exit(1)


def _tell(report: dict[str, Any], faults: str) -> None:
    output.say(
        f"{output.plural(report['seeds'], 'world', 'worlds')} with {faults} faults: "
        f"{report['events']} events, {output.plural(report['crashes'], 'crash', 'crashes')}, "
        f"{report['account_days']:.1f} account-days"
    )
    broken = len(report["violations"])
    output.say(f"broken promises: {broken or 'none'}")
    output.say(f"trace {report['trace']}")


def _tell_broken(verdict: Verdict, world: str, faults: str) -> None:
    """On standard error, so that a report on standard output stays one."""
    for violation, excerpt in zip(verdict.violations, verdict.excerpts, strict=False):
        output.note(f"\nseed {verdict.seed}: {violation.invariant}: {violation.detail}")
        if excerpt:
            output.note(f"  around {iso(violation.at)}:")
        for line in excerpt:
            output.note(f"  {line}")
    more = len(verdict.violations) - len(verdict.excerpts)
    if more > 0:
        output.note(f"seed {verdict.seed}: and {more} more")
    command = f"paceline simulate --seeds 1 --from {verdict.seed} --faults {faults}"
    output.note(f"replay: {command} --world {shlex.quote(world)}")


# ---------------------------------------------------------------------- a campaign of one's own


def _forecast(
    ctx: typer.Context, path: Path, seeds: range, *, workers: int | None, as_json: bool
) -> None:
    from paceline.cli.campaign_file import read_campaign
    from paceline.engine.clock import SystemClock
    from paceline.engine.commands.accounts import find
    from paceline.engine.planning import recognised
    from paceline.sim.forecast import forecast

    file = read_campaign(path)
    with existing(ctx) as house, house.store.read() as tx, file.blamed():
        accounts = [find(tx, name) for name in file.spec.accounts]
        file = file.with_people(tx, house.providers)
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
    if as_json:
        output.say_json(result.to_mapping())
    else:
        _tell_forecast(result)
    if result.violations:
        raise typer.Exit(1)


def _tell_forecast(result: Forecast) -> None:
    from paceline.sim.forecast import LEFT_OUT

    senders = len(result.accounts)
    whose = "one account" if senders == 1 else f"{senders} accounts"
    output.say(f"{result.campaign}: {result.total} messages from {whose}")
    output.say(f"  done {_between(result.done_at)}")
    for account in result.accounts:
        limits = "; ".join(account.limits) or "no cap"
        output.say(f"  {account.name}: {account.total} messages, done {_between(account.done_at)}")
        output.say(f"    at most {account.most_per_day} a day ({limits})")
    output.say(f"  limits broken: {len(result.violations) or 'none'}")
    death = result.death
    output.say(f"if {death.account} dies halfway (banned after {death.after} messages):")
    output.say(f"  {death.sent} of {result.total} are sent, {death.left} wait for it to come back")
    if death.done_at is not None:
        output.say(f"  the others are done {_to_the_second(death.done_at)}")
    for words in LEFT_OUT:
        output.note(f"left out: {words}")


def _between(instants: tuple[int, int] | None) -> str:
    if instants is None:
        return "never"
    early, late = (_to_the_second(at) for at in instants)
    return early if early == late else f"between {early} and {late}"


def _to_the_second(at: Instant) -> str:
    return iso(at // SECOND * SECOND)
