"""How far a campaign is: a bar and a table whose numbers add up, once or live."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from paceline.cli import output, shapes
from paceline.cli.alerts import alerts_line
from paceline.cli.alerts import shape as alert_shape
from paceline.core.durations import print_duration
from paceline.core.instants import SECOND, Instant
from paceline.core.states import CampaignState, DeliveryState
from paceline.engine import queries
from paceline.engine.alerts import of_campaign
from paceline.engine.arrival import Eta
from paceline.engine.bidding import FollowUps
from paceline.engine.ports import Alert, Clock, Store, Tx
from paceline.engine.queries import CampaignView

D = DeliveryState

LOOK_EVERY_US = SECOND
AHEAD_EVERY_US = 5 * SECOND
RESTS = 20
"""After a look ahead, so many times as long as it took."""
OVER = (CampaignState.FINISHED, CampaignState.CANCELLED)
MOVING = (D.PLANNED, D.READY, D.SENDING)

COLUMNS: Mapping[str, tuple[DeliveryState, ...]] = {
    "WAITING": (D.PLANNED, D.READY),
    "SENDING": (D.SENDING,),
    "SENT": (D.SENT,),
    "FAILED": (D.FAILED,),
    "BOUNCED": (D.BOUNCED,),
    "SKIPPED": (D.SKIPPED,),
    "UNKNOWN": (D.UNKNOWN,),
    "CANCELLED": (D.CANCELLED,),
}
"""Every state is in exactly one column, so that a line adds up to its total."""

ALWAYS = ("WAITING", "SENT", "FAILED")


def show_status(view: CampaignView, now: Instant) -> None:
    output.console().print(picture(view, now))


def watch_status(store: Store, clock: Clock, name: str, *, as_json: bool) -> None:
    """Show it again whenever it changes, until the campaign has ended."""
    asyncio.run(_watch(store, clock, name, as_json=as_json))


async def _watch(store: Store, clock: Clock, name: str, *, as_json: bool) -> None:
    shown: Status | None = None
    ahead = Ahead(store, clock)
    moves = not as_json and output.console().is_terminal
    with _display(as_json=as_json) as display:
        while True:
            with store.read() as tx:
                status = look(tx, name)
            if status != shown or (moves and ahead.due):
                shown = status
                display(status._replace(view=ahead.look(status.view)), clock.now())
            if status.view.campaign.state in OVER:
                return
            await clock.sleep_until(clock.now() + LOOK_EVERY_US)


class Status(NamedTuple):
    """A campaign, and what somebody should look at because of it."""

    view: CampaignView
    alerts: list[Alert]
    shapes: list[dict[str, Any]]


def look(tx: Tx, name: str) -> Status:
    view = queries.campaign_view(tx, name)
    found = of_campaign(tx, [run.id for run in view.runs])
    return Status(view, found, [alert_shape(tx, alert) for alert in found])


@contextmanager
def _display(*, as_json: bool) -> Iterator[Callable[[Status, Instant], None]]:
    """A picture that moves on a terminal, a line per change where nobody could see it move."""
    console = output.console()
    if as_json:
        yield lambda status, _: output.say_json_line(
            {**shapes.campaign_view(status.view), "alerts": status.shapes}
        )
    elif console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            yield lambda status, now: live.update(
                picture(status.view, now, status.alerts), refresh=True
            )
    else:
        yield lambda status, now: output.say(_line(status, now))


class Ahead:
    """Looks ahead now and then: what takes long to lay out is laid out seldom."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._eta: Eta | None = None
        self._again_us = 0

    @property
    def due(self) -> bool:
        return self._clock.monotonic_us() >= self._again_us

    def look(self, view: CampaignView) -> CampaignView:
        if view.campaign.state is not CampaignState.RUNNING:
            return view
        if self.due:
            began_us = self._clock.monotonic_us()
            with self._store.read() as tx:
                self._eta = queries.with_eta(tx, view, self._clock.now()).eta
            took_us = self._clock.monotonic_us() - began_us
            self._again_us = began_us + max(AHEAD_EVERY_US, RESTS * took_us)
        return replace(view, eta=self._eta)


def _line(status: Status, now: Instant) -> str:
    view = status.view
    told = [f"{count} {state}" for state, count in view.counts.items() if count]
    stopped = f" ({output.stop_text(view.stopped)})" if view.stopped is not None else ""
    ahead = _eta_lines(view.eta, now) if view.eta is not None else []
    ahead += _follow_up_lines(view.follow_ups, now, _zone(view))
    counts = f"{view.campaign.name} is {view.campaign.state}: {', '.join(told)}{stopped}"
    return "; ".join([counts, *ahead, *([alerts_line(status.alerts)] if status.alerts else [])])


def _eta_lines(ahead: Eta, now: Instant) -> list[str]:
    """When it will be done, and what it waits for meanwhile."""
    told = []
    some = ahead.going_by
    if ahead.finish_at is not None:
        by = "" if some is None else f", going by the {some} that are due next"
        told.append(f"done about {output.until_text(ahead.finish_at, now, ahead.zone)}{by}")
    if ahead.waits_for and ahead.next_at is not None:
        at = output.soon_text(ahead.next_at, now, ahead.zone)
        told.append(f"next {at} from {ahead.account}: {ahead.waits_for}")
    if ahead.stuck:
        least = "" if some is None else "at least "
        told.append(f"{least}{ahead.stuck} cannot go: {ahead.stuck_why}")
    return told


_ON = {"reply": "an answer", "accepted": "an accepted invitation"}


def _follow_up_lines(found: FollowUps | None, now: Instant, zone: str) -> list[str]:
    """How many have bidden a follow-up, and until when others may."""
    if found is None:
        return []
    told = [f"{count} {state}" for state, count in found.counts.items() if count]
    within = f"{_ON[found.on]} within {print_duration(found.within_us)}"
    counts = f"follow-ups on {within}: {', '.join(told) or 'none so far'}"
    if found.over or found.until_at is None:
        return [counts]
    return [f"{counts}; others may bid one until {output.until_text(found.until_at, now, zone)}"]


def _zone(view: CampaignView) -> str:
    return str(view.campaign.settings.get("zone", "UTC"))


def picture(view: CampaignView, now: Instant, alerts: Sequence[Alert] = ()) -> RenderableType:
    """The bar, the table, and under it whatever is to be said besides."""
    campaign = view.campaign
    told = f": {output.tame(campaign.reason)}" if campaign.reason else ""
    heading = Text.assemble(
        (campaign.name, "bold"), " is ", output.state_text(campaign.state), told
    )
    moving = sum(view.counts[state] for state in MOVING)
    done = view.total - moving
    bar = Table.grid(padding=(0, 1))
    width = max(10, min(40, output.console().width - 26))
    share = 100 * done // view.total if view.total else 100
    bar.add_row(
        ProgressBar(total=max(view.total, 1), completed=done, width=width),
        Text(f"{share}% ({done} of {view.total})"),
    )
    lines: list[RenderableType] = [heading, bar, Text(), _states(view)]
    if alerts:
        lines.append(Text(f"\n{output.tame(alerts_line(alerts))}", style="red"))
    if view.eta is not None:
        lines.append(Text())
        lines += [Text(output.tame(line)) for line in _eta_lines(view.eta, now)]
    if view.follow_ups is not None:
        lines += [Text(f"\n{line}") for line in _follow_up_lines(view.follow_ups, now, _zone(view))]
    if view.stopped is not None:
        lines += [Text(f"\n{output.tame(output.stop_text(view.stopped))}", style="red")]
    lines += [Text(f"\n{run.summary}") for run in view.runs if run.summary]
    return Group(*lines)


def _states(view: CampaignView) -> RenderableType:
    kept = [
        name
        for name, states in COLUMNS.items()
        if name in ALWAYS or any(view.counts[state] for state in states)
    ]
    rows = [_row(name, states, kept) for name, states in view.accounts.items()]
    if len(rows) > 1:
        rows.append(_row("in all", view.counts, kept))
    # With every state in use the columns have to move together to fit 80 characters.
    gap = 2 if len(kept) < 7 else 1
    return output.table(("ACCOUNT", *kept, "TOTAL"), rows, right=(*kept, "TOTAL"), gap=gap)


def _row(name: str, states: Mapping[DeliveryState, int], kept: list[str]) -> list[object]:
    cells = [sum(states.get(state, 0) for state in COLUMNS[column]) for column in kept]
    return [name, *cells, sum(states.values())]
