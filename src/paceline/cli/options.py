"""Options and arguments that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

CAMPAIGN_FILE = "The campaign's TOML file; - is standard input."

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
AccountName = Annotated[str, typer.Argument(metavar="ACCOUNT", help="The account's name.")]
CampaignName = Annotated[str, typer.Argument(metavar="CAMPAIGN", help="The campaign's name.")]
ReminderName = Annotated[str, typer.Argument(metavar="REMINDER", help="The reminder's name.")]
Reason = Annotated[str | None, typer.Option("--reason", help="Why, for whoever looks later.")]
Key = Annotated[
    str | None,
    typer.Option("--key", help="A name of your own for this wish: asked twice, it is done once."),
]
