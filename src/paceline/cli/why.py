"""``paceline why``: every gate with its earliest time and reason, then what they say together."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from paceline.cli import output, shapes
from paceline.cli.alerts import say_alerts
from paceline.cli.alerts import shape as alert_shape
from paceline.cli.answering import cure, held_shape, held_text
from paceline.cli.options import AsJson
from paceline.cli.surroundings import existing
from paceline.core.instants import Instant, local_text
from paceline.core.model import Go, Refuse, Wait
from paceline.core.pacer import GateView
from paceline.core.policy import Policy
from paceline.core.states import DeliveryState
from paceline.engine import held_ways, queries
from paceline.engine.alerts import concerning
from paceline.engine.ports import Delivery
from paceline.engine.queries import Why


def why(
    ctx: typer.Context,
    about: Annotated[
        str, typer.Argument(metavar="ACCOUNT|DELIVERY", help="An account, or a delivery's number.")
    ],
    as_json: AsJson = False,
) -> None:
    """Say why a message has not gone out yet, and when it will.

    \b
        paceline why sales      the next message of an account
        paceline why 4711       one delivery
    """
    with existing(ctx) as house, house.store.read() as tx:
        now = house.clock.now()
        answer = queries.delivery_or_account(tx, about, now)
        run_ids = [] if answer.delivery is None else [answer.delivery.run_id]
        alerts = concerning(tx, account_ids=[answer.account.id], run_ids=run_ids)
        told = [alert_shape(tx, alert) for alert in alerts]
        held = held_ways.of_account(tx, answer.account)
    if as_json:
        output.say_json({**shapes.why(answer), "answers_held": held_shape(held), "alerts": told})
        return
    say_alerts(alerts)
    output.say(_heading(answer))
    if not answer.settled:
        output.say()
        zone = zone_of(answer)
        rows = [_row(view, now, zone) for view in answer.gates]
        gate, opens = "GATE", f"OPENS ({zone})"
        output.console().print(output.table((gate, opens, "WHY"), rows, firm=(gate, opens)))
    output.say()
    output.say(verdict_line(answer, now))
    if not answer.settled and not isinstance(answer.verdict, Go):
        for reason in answer.outside:
            output.say(f"besides, {reason}")
    for command in answer.cures:
        output.say(f"to go on: {command}")
    if held is not None:
        output.say()
        output.say(held_text(held, now))
        output.say(f"to go on: {cure(answer.account.name)}")


def zone_of(answer: Why) -> str:
    """The zone in which the account's people think of its hours."""
    return Policy.from_mapping(answer.account.policy, where=answer.account.name).day_zone


def _heading(answer: Why) -> str:
    account, delivery = answer.account, answer.delivery
    if delivery is None:
        return f"{account.name}: nothing waits; this is what the next message would meet"
    pooled = ", nobody's yet in a pool it shares" if delivery.account_id is None else ""
    return f"{account.name}: delivery {delivery.id} to {delivery.target}, {delivery.state}{pooled}"


def _row(view: GateView, now: Instant, zone: str) -> tuple[object, ...]:
    if view.open:
        return view.gate, output.state_text("open"), ""
    opens = "by hand" if view.opens_at is None else output.soon_text(view.opens_at, now, zone)
    return Text(view.gate, style="bold"), opens, view.why


def verdict_line(answer: Why, now: Instant | None = None) -> str:
    """What all gates say together, in one line."""
    if answer.settled:
        assert answer.delivery is not None
        line = _settled_line(answer.delivery, zone_of(answer))
        on_its_way = answer.delivery.state is DeliveryState.SENDING
        return f"{line}, but {'; '.join(answer.outside)}" if on_its_way and answer.outside else line
    verdict = answer.verdict
    if isinstance(verdict, Refuse):
        return f"will not be sent: {verdict.why}"
    if isinstance(verdict, Wait):
        if verdict.until_at is None:
            return f"waits until somebody acts: {verdict.why}"
        zone = zone_of(answer)
        at = verdict.until_at
        until = local_text(at, zone) if now is None else output.until_text(at, now, zone)
        return f"waits until {until}: {verdict.why}"
    if answer.outside:
        return f"every gate is open, but {'; '.join(answer.outside)}"
    return "every gate is open: it leaves as soon as its lane gets to it"


def _settled_line(delivery: Delivery, zone: str) -> str:
    when = f" at {local_text(delivery.sent_at, zone)}" if delivery.sent_at is not None else ""
    because = f": {delivery.reason}" if delivery.reason else ""
    tries = f" after {delivery.attempts} attempts" if delivery.attempts > 1 else ""
    verb = "was" if when else "is"
    told = (("delivered", delivery.delivered_at), ("read", delivery.read_at))
    got = "".join(f", {word} at {local_text(at, zone)}" for word, at in told if at is not None)
    return f"delivery {delivery.id} {verb} {delivery.state}{when}{tries}{got}{because}"
