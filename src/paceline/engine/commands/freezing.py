"""Audiences are frozen at launch: whoever belongs to one then is written to, nobody else.

A draft was made from its audience as it was when somebody created it. People may have come, gone or
moved since; then its deliveries are made anew. One that was made from a file stays as it is.
"""

from __future__ import annotations

from paceline.core.errors import ConflictError
from paceline.core.events import EventKind
from paceline.core.instants import Instant
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.commands import campaigns
from paceline.engine.people import Unreachable, reached_by, recognised, revision_now
from paceline.engine.ports import Campaign, Providers, Tx


def freeze(tx: Tx, name: str, providers: Providers, at: Instant) -> list[Unreachable]:
    """Bring a draft up to date with its audience; those of it who cannot be reached."""
    campaign = campaigns.launchable(tx, name)
    if campaign.settings.get("audience") is None:
        return []
    now_is = revision_now(tx, campaign.settings)
    if now_is is None:
        raise ConflictError(
            f"the audience {campaign.settings['audience']} of campaign {name} is gone",
            hint="Import it again under that name, or cancel the campaign",
        )
    if now_is == campaign.settings.get("audience_revision"):
        return []
    return _make_anew(tx, campaign, providers, at)


def _make_anew(tx: Tx, campaign: Campaign, providers: Providers, at: Instant) -> list[Unreachable]:
    spec = CampaignSpec.stored(campaign.name, campaign.content, campaign.settings)
    reached = reached_by(tx, campaign.settings["audience"], spec.action, spec.accounts, providers)
    campaigns.check(tx, spec, reached.targets, providers)
    targets = recognised(tx, reached.targets)
    (run,) = tx.runs.of_campaign(campaign.id)
    before = tx.deliveries.drop_planned(run.id)
    planned = campaigns.fill(tx, run, spec, targets, at)
    tx.campaigns.set_settings(campaign.id, {**campaign.settings, **reached.settings()})
    text = f"{campaign.name}: its audience has changed, {planned} planned instead of {before}"
    told = {"campaign": campaign.name, "run": run.id, "planned": planned, "before": before}
    tx.events.add(EventKind.CAMPAIGN_FROZEN, text, at=at, run_id=run.id, data=told)
    return reached.unreachable
