"""``paceline key``: the key that accounts' secrets are sealed with."""

from __future__ import annotations

import typer

from paceline.cli import output
from paceline.cli.options import AsJson
from paceline.cli.surroundings import existing
from paceline.core.errors import InputError
from paceline.engine.commands import sealing

app = typer.Typer(help="The key that accounts' secrets are sealed with.", no_args_is_help=True)


@app.command()
def new() -> None:
    """Print a new key.

    For PACELINE_KEY, or for a file that key_file names. Nothing is changed by it.
    """
    from paceline.vault import new_key

    output.say(new_key())


@app.command()
def status(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Say where the key is, and whether every secret is sealed with it."""
    from paceline.app import make_vault
    from paceline.vault import name_of

    with existing(ctx) as house, house.store.read() as tx:
        waiting = [one.name for one in sealing.unsealed_accounts(tx, house.providers)]
        vault = make_vault(house.settings)
        keys, place = [name_of(key) for key in vault.ring()], vault.place
    if as_json:
        output.say_json({"from": place, "keys": keys, "unsealed": waiting})
        return
    output.say(f"key {', '.join(keys)} from {place}" if keys else f"no key yet in {place}")
    if waiting:
        output.say(f"not sealed with it: {', '.join(waiting)}; run: paceline key rotate")
    else:
        output.say("every secret is sealed")


@app.command()
def rotate(ctx: typer.Context) -> None:
    """Replace the key, and seal every secret with the new one.

    With a key file a new key is made and written there; the old one leaves it when no secret needs
    it any more. With PACELINE_KEY put a new key before the old one, with a comma between them, for
    every process; rotate; then drop the old one.
    """
    from paceline.app import make_vault
    from paceline.vault import VARIABLE, name_of

    with existing(ctx) as house:
        vault = make_vault(house.settings)
        if not vault.ring() and not vault.may_create:
            raise InputError("there is no key", hint=f"Set {VARIABLE}: paceline key new makes one")
        # Both are there until the last secret is sealed anew: whoever stops in between loses none.
        older = vault.begin_rotation()
        with house.store.write() as tx:
            count = sealing.seal_all(tx, house.providers)
        vault.end_rotation()
        key = name_of(vault.ring()[0])
    sealed = output.plural(count, "account", "accounts")
    output.say(f"key {key} is in force: the secrets of {sealed} are sealed with it")
    if older and vault.place == VARIABLE:
        output.say(f"{VARIABLE} need not hold the other keys any more")
