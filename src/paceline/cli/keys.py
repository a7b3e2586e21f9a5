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
        vault = make_vault(house.settings)
        keys, place = [name_of(key) for key in vault.ring()], vault.place
        waiting = sealing.unsealed_accounts(tx, house.providers)
        missing = {one.name: sorted(sealing.keys_of(tx, one) - set(keys)) for one in waiting}
        missing = {name: absent for name, absent in missing.items() if absent}
    if as_json:
        names = [one.name for one in waiting]
        output.say_json({"from": place, "keys": keys, "unsealed": names, "missing": missing})
        return
    output.say(f"key {', '.join(keys)} from {place}" if keys else f"no key yet in {place}")
    within_reach = [one.name for one in waiting if one.name not in missing]
    if within_reach:
        how = "" if missing else "; run: paceline key rotate"
        output.say(f"not sealed with it: {', '.join(within_reach)}{how}")
    for name, absent in missing.items():
        output.say(f"sealed with another key ({', '.join(absent)}) that is not here: {name}")
    if missing:
        output.say(
            f"bring it back (PACELINE_KEY or key_file may hold several), or type the secrets "
            f"anew: paceline account set {next(iter(missing))} --secret …"
        )
    elif not waiting:
        output.say("every secret is sealed")


@app.command()
def rotate(ctx: typer.Context) -> None:
    """Replace the key, and seal every secret with the new one.

    With a key file a new key is made and written there; the old one leaves it when no secret needs
    it any more. With PACELINE_KEY put a new key before the old one, with a comma between them, for
    every process; rotate; then drop the old one. Where a secret cannot be read nothing is changed.
    """
    from paceline.app import make_vault
    from paceline.vault import VARIABLE, name_of

    with existing(ctx) as house, house.store.read() as tx:
        # Before there is a new one: without the old one it could not be put to use.
        sealing.open_all(tx, house.providers)
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
