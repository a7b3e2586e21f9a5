"""``paceline policy``: what limits there are, printed as people write them."""

from __future__ import annotations

from typing import Annotated

import typer

from paceline.cli import output
from paceline.cli.options import AsJson
from paceline.cli.surroundings import existing, settings_of
from paceline.core.errors import NotFoundError
from paceline.core.nearest import did_you_mean
from paceline.core.policy import Policy
from paceline.core.presets import PRESETS

app = typer.Typer(help="Policies: the limits of accounts, as data.", no_args_is_help=True)


@app.command()
def show(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME|ACCOUNT", help="A policy or an account.")],
    as_json: AsJson = False,
) -> None:
    """Print a policy, or what holds for an account.

    It is printed as it is written in paceline.toml.
    """
    from paceline.app import make_catalogue

    catalogue = make_catalogue(settings_of(ctx))
    if name in catalogue.names():
        policy, about = catalogue.effective(name, {}, where=f"policy.{name}"), _about(name)
    else:
        policy, about = _of_account(ctx, name, catalogue.names())
    if as_json:
        output.say_json({"name": name, "limits": policy.to_mapping()})
        return
    output.say(f"# {about}")
    output.say(policy.to_toml(name).rstrip())


@app.command()
def presets(
    ctx: typer.Context,
    as_json: AsJson = False,
    toml: Annotated[bool, typer.Option("--toml", help="Print them in full.")] = False,
) -> None:
    """List the policies that an account can name.

    The presets, and those of paceline.toml.
    """
    from paceline.app import make_catalogue

    catalogue = make_catalogue(settings_of(ctx))
    found = {n: catalogue.effective(n, {}, where=f"policy.{n}") for n in catalogue.names()}
    if as_json:
        output.say_json(
            [
                {"name": n, "description": _about(n), "limits": policy.to_mapping()}
                for n, policy in found.items()
            ]
        )
    elif toml:
        output.say("\n\n".join(f"# {_about(n)}\n{p.to_toml(n).rstrip()}" for n, p in found.items()))
    else:
        rows = [(n, _about(n)) for n in found]
        output.show_table(("NAME", "SUITS"), rows, firm=("NAME",), empty="there are no policies")


def _about(name: str) -> str:
    return PRESETS[name].description if name in PRESETS else "From paceline.toml"


def _of_account(ctx: typer.Context, name: str, known: list[str]) -> tuple[Policy, str]:
    with existing(ctx) as house, house.store.read() as tx:
        account = tx.accounts.find(name)
        names = [*known, *(other.name for other in tx.accounts.list())]
    if account is None:
        raise NotFoundError(f"no policy and no account named '{name}'{did_you_mean(name, names)}")
    based = f" based on {account.policy_name}" if account.policy_name else ""
    return (
        Policy.from_mapping(account.policy, where=account.name),
        f"What holds for account {account.name}{based}",
    )
