"""``paceline webhook``: who is told of events over HTTP, and how that goes."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from paceline.cli import output
from paceline.cli.options import AsJson
from paceline.cli.surroundings import existing, settings_of
from paceline.config import Settings
from paceline.core.errors import InputError, NotFoundError, ProviderError
from paceline.core.events import EventKind
from paceline.core.instants import Instant, iso
from paceline.core.nearest import did_you_mean
from paceline.core.webhooks import Webhook, body_of, headers_of
from paceline.engine.clock import SystemClock
from paceline.engine.commands import webhooks as engine
from paceline.engine.ports import Clock, Hook, Posted, Tx

app = typer.Typer(help="Webhooks: who is told of events over HTTP.", no_args_is_help=True)

NONE = (
    "no webhooks: name them in paceline.toml, "
    '[[webhooks]] url = "https://example.com/hook", secret = "env:HOOK_SECRET"'
)
NOT_YET = "not started yet"

Name = Annotated[str, typer.Argument(help="The webhook's name.")]


@app.command("list")
def list_(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List webhooks: where they are and how far they have come."""
    with existing(ctx) as house, house.store.read() as tx:
        now, written = house.clock.now(), house.settings.webhooks
        shapes = [shape(tx, webhook) for webhook in written]
        rows = [_row(tx, webhook, now) for webhook in written]
    if as_json:
        output.say_json(shapes)
        return
    headings = ["NAME", "WHERE", "EVENTS", "STATE", "WAITING", "TAKEN", "SKIPPED", "PROBLEM"]
    output.show_table(
        headings, rows, right=("WAITING", "TAKEN", "SKIPPED"), firm=("NAME",), empty=NONE
    )


def _row(tx: Tx, webhook: Webhook, now: Instant) -> tuple[object, ...]:
    hook = tx.hooks.get(webhook.name)
    first = (webhook.name, webhook.shown, webhook.wanted)
    if hook is None:
        return (*first, NOT_YET, "", "", "", "")
    waiting = tx.hooks.waiting(webhook.name, webhook.wanted.kinds)
    state = _state(hook, now)
    return (*first, state, waiting, hook.delivered, hook.skipped, hook.problem)


def _state(hook: Hook, now: Instant) -> str:
    if hook.disabled_at is not None:
        return f"disabled {output.wall_text(hook.disabled_at, 'UTC')}"
    if hook.failing_since_at is None:
        return "works" if hook.delivered else "waits for its first event"
    since = output.wall_text(hook.failing_since_at, "UTC")
    again = output.soon_text(hook.next_try_at or now, now, "UTC")
    return f"fails since {since}, tried again {again}"


@app.command()
def test(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(help="Its name; all of them unless given.")] = None,
) -> None:
    """Send a test event now; say what became of it.

    It is sent whatever events the webhook wants, and is not stored.
    """
    settings = settings_of(ctx)
    chosen = _chosen(settings.webhooks, name)
    clock = SystemClock()
    answers = asyncio.run(_try(settings, chosen, clock))
    for webhook, answer in zip(chosen, answers, strict=True):
        became = f"taken ({answer.status})" if answer.ok else f"not taken: {answer.problem}"
        output.say(f"{webhook.name} ({webhook.shown}): {became}")
    failed = sum(not answer.ok for answer in answers)
    if failed:
        raise ProviderError(f"{failed} of {len(answers)} did not take it")


def _chosen(written: Sequence[Webhook], name: str | None) -> list[Webhook]:
    if not written:
        raise InputError(NONE)
    if name is None:
        return list(written)
    found = [webhook for webhook in written if webhook.name == name]
    if not found:
        names = [webhook.name for webhook in written]
        raise NotFoundError(f"no webhook named '{name}'{did_you_mean(name, names)}")
    return found


async def _try(settings: Settings, chosen: Sequence[Webhook], clock: Clock) -> list[Posted]:
    return list(await asyncio.gather(*(_try_one(settings, one, clock) for one in chosen)))


async def _try_one(settings: Settings, webhook: Webhook, clock: Clock) -> Posted:
    from paceline.app import make_postman

    postman, secret = make_postman(settings, webhook, clock)
    now, text = clock.now(), "This is a test event of Paceline. Events will arrive here."
    body = body_of(0, EventKind.WEBHOOK_TEST, now, text, {"webhook": webhook.name})
    headers = headers_of(secret, f"test-{secrets.token_hex(8)}", body, now)
    try:
        return await postman.post(headers, body)
    finally:
        await postman.close()


@app.command()
def resume(
    ctx: typer.Context,
    name: Name,
    from_event: Annotated[
        int | None,
        typer.Option("--from", metavar="ID", help="The first event to send, even once more."),
    ] = None,
) -> None:
    """Let one that fails or was disabled go on at once.

    Without --from it goes on where it stopped.
    """
    with existing(ctx) as house, house.store.write() as tx:
        hook = engine.resume(tx, name, house.clock.now(), from_event=from_event)
    output.say(f"webhook {name} goes on after event {hook.cursor}")


def shape(tx: Tx, webhook: Webhook) -> dict[str, Any]:
    hook = tx.hooks.get(webhook.name)
    told = {
        "name": webhook.name,
        "where": webhook.shown,
        "events": list(webhook.wanted.patterns),
        "started": hook is not None,
    }
    if hook is None:
        return told
    return {
        **told,
        "cursor": hook.cursor,
        "waiting": tx.hooks.waiting(webhook.name, webhook.wanted.kinds),
        "delivered": hook.delivered,
        "delivered_at": _iso(hook.delivered_at),
        "failures": hook.failures,
        "failing_since_at": _iso(hook.failing_since_at),
        "next_try_at": _iso(hook.next_try_at),
        "problem": hook.problem,
        "skipped": hook.skipped,
        "disabled_at": _iso(hook.disabled_at),
    }


def _iso(at: Instant | None) -> str | None:
    return None if at is None else iso(at)
