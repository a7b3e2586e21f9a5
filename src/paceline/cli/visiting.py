"""``paceline account check`` and ``account groups``: an account as its provider sees it."""

from __future__ import annotations

import asyncio

import typer

from paceline.cli import output
from paceline.cli.options import AccountName, AsJson
from paceline.cli.surroundings import existing
from paceline.core.states import AccountState
from paceline.engine import visiting
from paceline.engine.commands import accounts


def check(ctx: typer.Context, name: AccountName, as_json: AsJson = False) -> None:
    """Open an account at its provider; say what is wrong.

    Nothing is sent. The exit code is 1 if it cannot be opened, or is suspended.
    """
    with existing(ctx) as house:
        with house.store.read() as tx:
            account = accounts.find(tx, name)
            used = visiting.in_use(tx, account)
        visiting.refuse_in_use(account, house.providers, used=used)
        if visiting.is_kept_open(account, house.providers, used=used):
            found = visiting.Visited(True, "it is open in the running service")
        else:
            found = asyncio.run(visiting.check(account, house.providers))
    told, ok = found.told, found.ok
    if account.state is AccountState.SUSPENDED:
        because = f" ({account.state_reason})" if account.state_reason else ""
        go_on = f"; let it go on with: paceline account resume {name}" if ok else ""
        told, ok = f"it is suspended{because}; looked at now: {told}{go_on}", False
    if as_json:
        output.say_json({"account": name, "ok": ok, "told": told, "advice": list(found.advice)})
    else:
        output.say("\n".join((f"{name} ({account.provider}): {told}", *found.advice)))
    if not ok:
        raise typer.Exit(1)


def groups(ctx: typer.Context, name: AccountName, as_json: AsJson = False) -> None:
    """Ask the provider which groups an account is in; list them.

    Reminders that go out from several accounts send to each group from one that is a member of it.
    """
    with existing(ctx) as house:
        with house.store.read() as tx:
            account = accounts.find(tx, name)
            used = visiting.in_use(tx, account)
        visiting.refuse_in_use(account, house.providers, used=used)
        if visiting.is_kept_open(account, house.providers, used=used):
            output.note(f"{name} is open in the running service, which lists its groups by itself")
        else:
            found = asyncio.run(visiting.groups(account, house.providers))
            with house.store.write() as tx:
                tx.groups.put(account.id, found, house.clock.now())
        with house.store.read() as tx:
            kept = tx.groups.list(account.id)
    if as_json:
        output.say_json([group._asdict() for group in kept])
        return
    output.show_table(
        ("GROUP", "NAME", "MEMBERS", ""),
        [
            (
                group.id,
                group.name,
                "-" if group.size is None else group.size,
                "" if group.may_send else "only admins may write",
            )
            for group in kept
        ],
        right=("MEMBERS",),
        firm=("GROUP",),
        empty=f"{name} is a member of no group",
    )
