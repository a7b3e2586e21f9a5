"""What is looked at before a campaign may be created or planned; every complaint names its key.

Nothing is written here. That the values themselves make sense was checked in ``campaign_spec.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from paceline.core.errors import InputError, NotFoundError
from paceline.core.model import REPLY, Content, Target
from paceline.core.policy import Policy
from paceline.core.template import content_variables, links_to_unsubscribe, render_part
from paceline.engine.campaign_spec import Said
from paceline.engine.commands.accounts import find as find_account
from paceline.engine.ports import Account, Capabilities, Providers, Tx
from paceline.engine.routes import route_of
from paceline.engine.unsubscribing import base_url_of


def account_named(tx: Tx, name: str) -> Account:
    try:
        return find_account(tx, name)
    except NotFoundError as error:
        raise NotFoundError(error.reason, key="accounts", hint=error.hint) from None


def check_room(account: Account, action: str, content: Content) -> None:
    """A message of more parts than any day or week has room for would wait for ever."""
    policy = Policy.from_mapping(account.policy, where=account.name)
    parts = len(content.parts)
    for period, caps in (("daily", policy.daily), ("weekly", policy.weekly)):
        cap = caps.get(action)
        if cap is not None and 0 < cap < parts:
            raise InputError(
                f"{parts} parts never fit into the {period} cap of {cap} on {account.name}",
                key="parts",
                hint="Raise the cap or send fewer parts",
            )


def check_said(account: Account, said: Said, providers: Providers) -> None:
    """Whether the account can send one message of a campaign, and ever has room for it."""
    check_capabilities(account, said.action, said.content, providers, answering=said.answering)
    check_room(account, REPLY if said.answering else said.action, said.content)


def check_capabilities(
    account: Account,
    action: str,
    content: Content,
    providers: Providers,
    *,
    answering: bool = False,
) -> None:
    """Whether the account can send this at all. ``answering`` is somebody who is being talked to,
    and may be written to as one likes."""
    able = providers.get(account.provider).capabilities_of(account.settings)
    if action not in able.actions:
        known = ", ".join(sorted(able.actions))
        raise InputError(
            f"{account.provider} cannot send action '{action}' from {account.name} "
            f"(it can: {known})",
            key="action",
        )
    if any(part.files for part in content.parts) and not able.media:
        raise InputError(f"{account.provider} cannot send media from {account.name}", key="parts")
    for number, part in enumerate(content.parts, start=1):
        if part.attachments and not able.attachments:
            raise InputError(
                f"{account.provider} cannot send attachments from {account.name}",
                key=f"parts[{number}].attachments",
                hint="Make every file a part of its own: media = …",
            )
    if action in able.single_part and len(content.parts) > 1:
        raise InputError(f"a {action.replace('_', ' ')} has one part only", key="parts")
    _check_templates(account, content, able, answering)


def _check_templates(
    account: Account, content: Content, able: Capabilities, answering: bool
) -> None:
    for number, part in enumerate(content.parts, start=1):
        where = f"parts[{number}]"
        if part.template and not able.templates:
            raise InputError(
                f"{account.provider} has no templates, so {account.name} cannot send "
                f"'{part.template}'",
                key=f"{where}.template",
                hint="Write a text instead",
            )
        if able.needs_templates and not part.template and not answering:
            raise InputError(
                f"{account.provider} lets {account.name} write to people only with a template, "
                "unless they have written in the last 24 hours",
                key=where,
                hint='Name one that is approved: template = "order_ready", language = "en_US"',
            )


def check_steps(account: Account, action: str, steps: int, providers: Providers) -> None:
    """What can be said to a person only once, an invitation, has no second step."""
    able = providers.get(account.provider).capabilities_of(account.settings)
    if steps > 1 and action in able.single_part:
        raise InputError(
            f"a {action.replace('_', ' ')} is sent to a person once, and nothing of its kind "
            "can follow it",
            key="steps",
            hint="Send what follows as a campaign of its own, with action = 'message'",
        )


def check_links(tx: Tx, content: Content) -> None:
    if links_to_unsubscribe(content) and not base_url_of(tx):
        raise InputError(
            "says unsubscribe_url, and nobody has said how the outside reaches this service",
            key="parts",
            hint='Set base_url = "https://…" in paceline.toml',
        )


def check_media(tx: Tx, content: Content) -> None:
    for number, part in enumerate(content.parts, start=1):
        for file in part.files:
            if tx.media.get(file) is None:
                key = "media" if file == part.media else "attachments"
                raise InputError(f"no file '{file}' is stored", key=f"parts[{number}].{key}")


def longest_text(accounts: Sequence[Account], action: str, providers: Providers) -> int | None:
    """How long a text may be that any of these accounts can send; None where nobody minds."""
    able = [providers.get(one.provider).capabilities_of(one.settings) for one in accounts]
    return min(
        (can.longest_text[action] for can in able if action in can.longest_text), default=None
    )


def check_addresses(
    accounts: Sequence[Account], action: str, targets: Sequence[Target], providers: Providers
) -> None:
    """Nobody is written to where the channel does not lead: an e-mail to a phone number."""
    way = route_of(accounts, action, providers)
    for target in targets:
        if problem := way.problem(target.address):
            raise InputError(f"target {target.address} {problem}", key="audience")


def check_variables(
    content: Content, targets: Sequence[Target], longest: int | None = None
) -> None:
    """Every template is filled in for every target now, so that none fails at night."""
    needed = content_variables(content)
    for target in targets:
        missing = sorted(needed - target.fields.keys())
        if missing:
            raise InputError(
                f"target {target.address} has no value for {', '.join(missing)}",
                key="audience",
                hint="Add the column, or give the template a default",
            )
        for number, part in enumerate(content.parts, start=1):
            try:
                rendered = render_part(part, target.address, target.fields)
            except InputError as error:
                reason = f"for target {target.address}: {error.reason}"
                raise InputError(reason, key=f"parts[{number}]") from None
            if not all(text.strip() for _, text in rendered.values):
                raise InputError(
                    f"for target {target.address}: a blank of the template is left empty",
                    key=f"parts[{number}].values",
                    hint="Fill in the column, or give the blank a default",
                )
            if longest is not None and len(rendered.text) > longest:
                raise InputError(
                    f"for target {target.address}: {len(rendered.text)} characters, "
                    f"and the provider takes {longest}",
                    key=f"parts[{number}].text",
                )
