"""``paceline account hook``: the address at which an account's provider reports by itself."""

from __future__ import annotations

from typing import Annotated

import typer

from paceline.cli import output
from paceline.cli.options import AccountName, AsJson
from paceline.cli.surroundings import existing
from paceline.engine.commands import accounts, hooking
from paceline.engine.unsubscribing import base_url_of


def hook(
    ctx: typer.Context,
    name: AccountName,
    new: Annotated[
        bool, typer.Option("--new", help="Make another one; the old one is good no longer.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print the address at which its provider reports by itself.

    Messages that come in, receipts, bounces. Whoever knows it is believed: tell it the provider,
    or your mail server, and nobody else.
    """
    with existing(ctx) as house, house.store.write() as tx:
        account = accounts.find(tx, name)
        secret = hooking.ensure_secret(tx, house.providers, account, new=new)
        public = base_url_of(tx)
        url = hooking.url_of(public or house.settings.public_url, account, secret)
    if as_json:
        output.say_json({"account": name, "url": url})
    else:
        output.say(url)
    if not public:
        output.note(
            "nobody has said how the outside reaches this service, so this is good on this machine "
            'only: set base_url = "https://…" in paceline.toml'
        )
