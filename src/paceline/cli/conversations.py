"""``paceline conversations`` and ``paceline locks``: what people write, and who answers them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from paceline.cli import output
from paceline.cli.answering import cure, held_shape, held_text
from paceline.cli.options import AsJson, Yes
from paceline.cli.surroundings import existing
from paceline.core.durations import print_duration
from paceline.core.errors import InputError, NotFoundError
from paceline.core.instants import SECOND, Instant, iso
from paceline.core.states import TurnState
from paceline.engine import conversations as engine
from paceline.engine import handing_back, held_ways, muting
from paceline.engine.commands import accounts
from paceline.engine.conversation_view import Line, conversation_view
from paceline.engine.opting_out import has_opted_out
from paceline.engine.ports import Tx
from paceline.engine.ports.conversations import Conversation, Mode, Turn
from paceline.engine.ports.held_ways import HeldWay

app = typer.Typer(help="Conversations: what people write, and who answers.", no_args_is_help=True)

MODES: dict[Mode, str] = {"auto": "answered", "human": "with a person", "muted": "muted"}

Number = Annotated[int, typer.Argument(metavar="ID", help="The conversation's number.")]


@app.command("list")
def list_(
    ctx: typer.Context,
    account: Annotated[str | None, typer.Option("--account", help="Only of this one.")] = None,
    person: Annotated[
        bool, typer.Option("--person", help="Only those that a person has to answer.")
    ] = False,
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Only those where something waits for an answer.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many at most.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List conversations, the one heard of last first."""
    with existing(ctx) as house, house.store.read() as tx:
        now = house.clock.now()
        account_id = None if account is None else accounts.find(tx, account).id
        modes: tuple[Mode, ...] = ("human",) if person else ()
        found = tx.conversations.list(
            account_id=account_id, modes=modes, waiting=waiting, limit=limit
        )
        shapes = [_shape(tx, one) for one in found]
        rows = [_row(tx, one, now) for one in found]
    if as_json:
        output.say_json(shapes)
        return
    headings = ["ID", "ACCOUNT", "WHO", "STATE", "WAITS SINCE", "HEARD", "REASON"]
    output.show_table(
        headings, rows, right=("ID",), firm=("ID", "ACCOUNT", "WHO"), empty="no conversations"
    )


def _row(tx: Tx, one: Conversation, now: Instant) -> tuple[object, ...]:
    account = tx.accounts.get(one.account_id)
    since = "" if one.first_at is None else _ago(one.first_at, now)
    held = _held(tx, one)
    return (
        one.id,
        account.name,
        one.chat,
        "held" if held is not None else _stands(tx, one),
        since,
        _ago(one.heard_at, now),
        one.reason if held is None else f"{held.way}: {held.reason}",
    )


def _stands(tx: Tx, one: Conversation) -> str:
    """Who answers, in words."""
    if not _is_muted_everywhere(tx, one):
        return MODES[one.mode]
    return "muted everywhere" if one.mode == "muted" else f"{MODES[one.mode]}, muted elsewhere"


def _is_muted_everywhere(tx: Tx, one: Conversation) -> bool:
    return bool(tx.muting.among([one.chat]))


def _held(tx: Tx, one: Conversation) -> HeldWay | None:
    """Why nobody answers what waits in it, though somebody was set up to."""
    if one.mode != "auto" or one.first_at is None:
        return None
    return held_ways.of_account(tx, tx.accounts.get(one.account_id))


def _ago(at: Instant, now: Instant) -> str:
    return f"{print_duration(max(now - at, 0) // SECOND * SECOND)} ago"


def _shape(tx: Tx, one: Conversation) -> dict[str, Any]:
    return {
        "id": one.id,
        "account": tx.accounts.get(one.account_id).name,
        "chat": one.chat,
        "mode": one.mode,
        "muted_everywhere": _is_muted_everywhere(tx, one),
        "opted_out": has_opted_out(tx, one.chat),
        "reason": one.reason,
        "waits_since": None if one.first_at is None else iso(one.first_at),
        "due_at": None if one.due_at is None else iso(one.due_at),
        "heard_at": iso(one.heard_at),
        "held": held_shape(_held(tx, one)),
    }


@app.command()
def show(
    ctx: typer.Context,
    number: Number,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many messages.")] = 50,
    as_json: AsJson = False,
) -> None:
    """Show what was said on both sides."""
    with existing(ctx) as house, house.store.read() as tx:
        found = _find(tx, number)
        lines = conversation_view(tx, found, limit)
        shape = {**_shape(tx, found), "messages": [_said(line) for line in lines]}
        turns, held, stands = tx.turns.active(found.id), _held(tx, found), _stands(tx, found)
        now = house.clock.now()
    if as_json:
        output.say_json(shape)
        return
    output.say(f"conversation {number}: {shape['account']} and {found.chat}, {stands}")
    if found.reason:
        output.say(f"  {found.reason}")
    if shape["opted_out"]:
        output.say("  they have opted out, and are not written to")
    if held is not None:
        output.say(f"  {held_text(held, now)}")
        output.say(f"  to go on: {cure(str(shape['account']))}")
    for turn in turns:
        output.say(f"  {_does(turn)}, {_ago(turn.started_at, now)}")
    rows = [(output.wall_text(line.at, "UTC"), line.by, line.text, line.state) for line in lines]
    output.show_table(
        ["WHEN", "WHO", "WHAT", "STATE"], rows, firm=("WHEN", "WHO"), empty="nothing was said"
    )


def _said(line: Line) -> dict[str, Any]:
    return {"at": iso(line.at), "by": line.by, "text": line.text, "state": line.state}


def _does(turn: Turn) -> str:
    if turn.state is TurnState.REPLYING:
        return f"an answer is on its way, delivery {turn.delivery_id}"
    return f"{turn.owner} makes an answer"


def _find(tx: Tx, number: int) -> Conversation:
    found = tx.conversations.get(number)
    if found is None:
        raise NotFoundError(
            f"there is no conversation {number}", hint="See: paceline conversations list"
        )
    return found


@app.command()
def take(ctx: typer.Context, number: Number) -> None:
    """Answer it yourself from here on. What is being made is not sent."""
    with existing(ctx) as house:
        with house.store.read() as tx:
            _find(tx, number)
        with house.store.write() as tx:
            turn = engine.take(tx, number, house.clock.now())
    called_off = "; the answer that was being made is called off" if turn is not None else ""
    output.say(f"conversation {number} is with a person now{called_off}")


Everywhere = Annotated[
    bool,
    typer.Option("--everywhere", help="On every account, also in conversations that begin later."),
]


@app.command()
def mute(ctx: typer.Context, number: Number, everywhere: Everywhere = False) -> None:
    """Answer it no more; what comes in is kept and waits for nobody."""
    with existing(ctx) as house:
        with house.store.read() as tx:
            chat = _find(tx, number).chat
        with house.store.write() as tx:
            changed = []
            if everywhere:
                changed = muting.mute_everywhere(tx, number, house.clock.now())
            else:
                muting.mute(tx, number, house.clock.now())
    if everywhere:
        count = output.plural(len(changed), "conversation", "conversations")
        output.say(f"{chat} is muted everywhere: {count} more, and those that begin later")
    else:
        output.say(f"conversation {number} is muted")


@app.command()
def unmute(ctx: typer.Context, number: Number, everywhere: Everywhere = False) -> None:
    """Give it back to whoever answered, also what came in meanwhile."""
    with existing(ctx) as house:
        with house.store.read() as tx:
            chat = _find(tx, number).chat
        with house.store.write() as tx:
            if everywhere:
                changed = muting.unmute_everywhere(tx, number, house.clock.now())
            else:
                changed = [muting.unmute(tx, number, house.clock.now())]
            still = _is_muted_everywhere(tx, changed[0]) if changed else False
    if everywhere:
        count = output.plural(len(changed), "conversation", "conversations")
        output.say(f"{chat} is not muted any more: {count}")
    else:
        whose = "; a person has it, as before" if changed[0].mode == "human" else ""
        output.say(f"conversation {number} is not muted any more{whose}")
        if still:
            output.say(f"elsewhere {chat} is; see: paceline conversations unmute --everywhere")


@app.command("hand-back")
def hand_back(
    ctx: typer.Context,
    number: Annotated[
        int | None, typer.Argument(metavar="ID", help="The conversation's number.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All that people have because no answer could be made.")
    ] = False,
    account: Annotated[
        str | None, typer.Option("--account", help="With --all: only of this one.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --all: only say how many there are.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Let it be answered as before, also what waits.

    With --all those that were handed to people because no answer could be made or sent; not those
    that somebody has taken, nor any that is muted.
    """
    if (number is None) != everything:
        raise InputError("name one conversation, or --all of them")
    if number is None:
        _hand_back_all(ctx, account, dry_run=dry_run, yes=yes)
        return
    if account is not None or dry_run:
        raise InputError("--account and --dry-run are for --all")
    with existing(ctx) as house:
        with house.store.read() as tx:
            _find(tx, number)
        with house.store.write() as tx:
            after = engine.hand_back(tx, number, house.clock.now())
            answers = bool(tx.accounts.get(after.account_id).answering)
    if answers:
        output.say(f"conversation {number} is answered again")
    else:
        output.say(f"conversation {number} is in nobody's hands: its account answers nobody")


def _hand_back_all(ctx: typer.Context, account: str | None, *, dry_run: bool, yes: bool) -> None:
    with existing(ctx) as house:
        with house.store.read() as tx:
            account_id = None if account is None else accounts.find(tx, account).id
            found = handing_back.handed_over(tx, account_id)
        count = output.plural(len(found), "conversation", "conversations")
        if dry_run or not found:
            output.say(f"{count} would be handed back" if found else "nothing to hand back")
            return
        output.confirm(f"Hand back {count}?", yes=yes)
        done, size = 0, handing_back.TOGETHER
        for start in range(0, len(found), size):
            numbers = [one.id for one in found[start : start + size]]
            with house.store.write() as tx:
                done += handing_back.hand_back(tx, numbers, house.clock.now())
    output.say(f"{output.plural(done, 'conversation is', 'conversations are')} answered again")


@app.command()
def reply(
    ctx: typer.Context,
    number: Number,
    text: Annotated[str, typer.Argument(help="What to say.")],
) -> None:
    """Answer by hand all that waits."""
    with existing(ctx) as house:
        with house.store.read() as tx:
            _find(tx, number)
        with house.store.write() as tx:
            delivery = engine.reply(tx, number, text, house.providers, house.clock.now())
    output.say(f"on its way as delivery {delivery}; see: paceline why {delivery}")


def locks(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List who is being answered, by whom and since when."""
    with existing(ctx) as house, house.store.read() as tx:
        now, found = house.clock.now(), tx.turns.active()
        held = [(turn, tx.conversations.get(turn.conversation_id)) for turn in found]
        names = {one.id: one.name for one in tx.accounts.list(with_removed=True)}
    if as_json:
        output.say_json([_lock(turn, one, names) for turn, one in held if one is not None])
        return
    rows = [
        (
            one.id,
            names[one.account_id],
            one.chat,
            turn.owner,
            _ago(turn.started_at, now),
            turn.state,
        )
        for turn, one in held
        if one is not None
    ]
    headings = ["CONVERSATION", "ACCOUNT", "WHO", "HELD BY", "SINCE", "STATE"]
    output.show_table(headings, rows, right=("CONVERSATION",), empty="nobody is being answered")


def _lock(turn: Turn, one: Conversation, names: dict[int, str]) -> dict[str, Any]:
    return {
        "conversation": one.id,
        "turn": turn.id,
        "account": names[one.account_id],
        "chat": one.chat,
        "owner": turn.owner,
        "since": iso(turn.started_at),
        "state": str(turn.state),
        "attempts": turn.attempts,
    }
