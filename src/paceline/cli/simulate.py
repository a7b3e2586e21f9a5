"""``paceline simulate``: try to break the promises, or see how a campaign would go."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paceline.cli import output
from paceline.cli.options import AsJson
from paceline.core.instants import iso

if TYPE_CHECKING:
    from paceline.sim.simulation import Verdict

SHOWN = 3
"""Broken seeds that are told in full; the others are only counted."""


def simulate(
    ctx: typer.Context,
    seeds: Annotated[
        int,
        typer.Option(
            "--seeds", min=1, help="How many worlds to play; with -f how often, 3 unless given."
        ),
    ] = 20,
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
            help="Forecast the campaign of this file instead; - is standard input. Of the other "
            "options only --seeds, --from, --workers and --json go with it.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Play worlds in which everything goes wrong, and judge them.

    The real engine and store run in virtual time, with crashes, lost leases, slow disks, clocks
    that are set and providers that fail. The same seed gives the same world on every machine.

    With -f your own accounts and campaign are played instead: when it would be done, which limits
    it comes up against, what is not sent and why, and what becomes of it if an account dies
    halfway. Where gaps are drawn every play is another one. It ends with 3 if a limit is broken.
    """
    from paceline.sim.weather import known_faults

    level = known_faults(faults)
    if campaign is not None:
        from paceline.cli.forecasting import tell_forecast

        tell_forecast(ctx, campaign, seeds, first, workers=workers, as_json=as_json)
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
