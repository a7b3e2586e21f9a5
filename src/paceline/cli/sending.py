"""``paceline send``: one message now, under every limit of its account."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from paceline.cli import output, shapes
from paceline.cli.campaign_file import read_media
from paceline.cli.options import AccountName, AsJson, Key
from paceline.cli.surroundings import existing
from paceline.cli.why import verdict_line
from paceline.core.durations import parse_duration
from paceline.core.errors import InputError
from paceline.core.instants import MILLISECOND
from paceline.core.model import RETRIES, Content, Part
from paceline.core.states import DeliveryState
from paceline.engine import fleet, queries
from paceline.engine.campaign_spec import refuse_steering
from paceline.engine.commands import accounts, campaigns
from paceline.engine.ports import Account, Clock, Delivery, Provider, Store, Tx
from paceline.engine.spec_values import retries_of

LOOK_EVERY_US = 200 * MILLISECOND
MOVING = (DeliveryState.PLANNED, DeliveryState.READY, DeliveryState.SENDING)


def send(
    ctx: typer.Context,
    account: AccountName,
    target: Annotated[
        str | None, typer.Argument(metavar="TARGET", help="To whom: an address or a group.")
    ] = None,
    text: Annotated[str, typer.Option("--text", help="What it says, or a media's caption.")] = "",
    media: Annotated[
        Path | None,
        typer.Option("--media", metavar="FILE", readable=False, help="An image or another file."),
    ] = None,
    subject: Annotated[str, typer.Option("--subject", help="The subject of an e-mail.")] = "",
    action: Annotated[
        str | None,
        typer.Option(
            "--action",
            help="The action type, which decides the cap it uses up; the only one that the account "
            "can do, else message.",
        ),
    ] = None,
    to_self: Annotated[
        bool, typer.Option("--self", help="To the account's own address, as a test.")
    ] = False,
    retries: Annotated[
        int | None,
        typer.Option(
            "--retries", metavar="N", help="How often it is tried again; as its policy says."
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is settled.")] = False,
    patience: Annotated[
        str, typer.Option("--for", metavar="DURATION", help="How long --wait waits.")
    ] = "60s",
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Send one message, as soon as limits allow.

    \b
        paceline send sales anna@example.com --text "Hello Anna" --wait
        paceline send sales --self --text "Does this account work?" --wait
    """
    if (target is None) != to_self:
        raise InputError("say either to whom, or --self", key="target")
    _refuse_steering(target or "")
    most, patience_us = _most(retries), _patience_us(patience)
    with existing(ctx) as house:
        with house.store.write() as tx:
            sender, now = accounts.find(tx, account), house.clock.now()
            to = sender.address if target is None else target
            what = action or _usual(house.providers.get(sender.provider), sender)
            content = Content((_part(tx, text, subject, media, now),), most)
            delivery_id = campaigns.send_direct(
                tx, account, to, content, what, now, providers=house.providers, key=key
            )
            running = fleet.is_running(tx)
        if not as_json:
            output.say(f"delivery {delivery_id} to {to} is waiting for its turn on {account}")
        if wait and not running:
            output.note(fleet.NOBODY_RUNS)
        if wait:
            _wait(house.store, house.clock, delivery_id, patience_us)
        with house.store.read() as tx:
            found = tx.deliveries.get(delivery_id)
            line = verdict_line(queries.why_delivery(tx, delivery_id, house.clock.now()))
    _report(found, account, line, as_json=as_json, waited=wait)


def _usual(provider: Provider, account: Account) -> str:
    """What an account does where nobody says what: the only thing that it can."""
    can = provider.capabilities_of(account.settings).actions
    return next(iter(can)) if len(can) == 1 else "message"


def _refuse_steering(target: str) -> None:
    try:
        refuse_steering(target.strip())
    except InputError as error:
        raise InputError(error.reason, key="target") from None


def _most(retries: int | None) -> int | None:
    try:
        return retries_of({RETRIES: retries})
    except InputError as error:
        raise InputError(error.reason, key="--retries") from None


def _patience_us(text: str) -> int:
    try:
        return parse_duration(text)
    except InputError as error:
        raise InputError(error.reason, key="--for", hint=error.hint) from None


def _part(tx: Tx, text: str, subject: str, media: Path | None, now: int) -> Part:
    if media is None:
        if not text:
            raise InputError("is missing", key="--text", hint="Say something, or add --media")
        return Part("text", text=text, subject=subject)
    try:
        file = read_media(media, str(media))
    except InputError as error:
        raise InputError(error.reason, key="--media") from None
    stored = tx.media.put(file.name, file.mime, file.content, now)
    return Part("media", text=text, subject=subject, media=stored.id)


def _wait(store: Store, clock: Clock, delivery_id: int, patience_us: int) -> None:
    async def until_settled() -> None:
        give_up_at = clock.now() + patience_us
        while clock.now() < give_up_at:
            with store.read() as tx:
                if tx.deliveries.get(delivery_id).state not in MOVING:
                    return
            await clock.sleep_until(min(clock.now() + LOOK_EVERY_US, give_up_at))

    asyncio.run(until_settled())


def _report(found: Delivery, account: str, line: str, *, as_json: bool, waited: bool) -> None:
    if as_json:
        print(json.dumps(shapes.delivery(found, account, campaigns.DIRECT), indent=2))
    else:
        output.say(line)
    if waited and found.state is not DeliveryState.SENT:
        raise typer.Exit(1)
