"""What ``--json`` prints: stable keys, instants as ISO 8601 in UTC, nothing left out.

Described for users in ``docs/command-line.md``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from paceline.core.durations import print_duration
from paceline.core.instants import Instant, iso
from paceline.core.model import Go, Refuse, Verdict, Wait
from paceline.core.states import DeliveryState
from paceline.engine.ports import Account, Delivery, Event, Run
from paceline.engine.stopping import Stop

if TYPE_CHECKING:
    from paceline.engine.arrival import Eta
    from paceline.engine.bidding import FollowUps
    from paceline.engine.queries import AccountView, CampaignView, Why

MASK = "(secret)"


def instant(at: Instant | None) -> str | None:
    return None if at is None else iso(at)


def counts(states: Mapping[DeliveryState, int]) -> dict[str, int]:
    """Every state is there, also those without a delivery."""
    return {state.value: states.get(state, 0) for state in DeliveryState}


def stop(found: Stop | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"since_at": instant(found.since_at), "reason": found.reason}


def account(found: Account, stopped: Stop | None) -> dict[str, Any]:
    return {
        "name": found.name,
        "provider": found.provider,
        "address": found.address,
        "state": found.state.value,
        "reason": found.state_reason,
        "until_at": instant(found.state_until_at),
        "policy": found.policy_name,
        "own": dict(found.overrides),
        "created_at": instant(found.created_at),
        "stopped": stop(stopped),
    }


def account_view(view: AccountView, secrets: Collection[str]) -> dict[str, Any]:
    return account(view.account, view.stopped) | {
        "options": options(view.account.settings, secrets),
        "limits": view.policy.to_mapping(),
        "zone": view.policy.day_zone,
        "used": {"day": dict(view.usage.day), "week": dict(view.usage.week)},
        "today": {
            "sent": view.today.sent,
            "bounced": view.today.bounced,
            "failed": view.today.failed,
        },
        "last_sent_at": instant(view.today.last_sent_at),
        "deliveries": counts(view.counts),
        "lane": {
            "process": view.lane.owner,
            "generation": view.lane.generation,
            "wake_at": instant(view.lane.wake_at),
        },
        "events": [event(entry) for entry in view.events],
    }


def options(settings: Mapping[str, Any], secrets: Collection[str]) -> dict[str, Any]:
    """A provider's settings, with a mask in place of every secret that was given."""
    return {key: MASK if key in secrets and value else value for key, value in settings.items()}


def event(entry: Event) -> dict[str, Any]:
    return {"at": instant(entry.at), "kind": entry.kind, "text": entry.text}


def run(entry: Run) -> dict[str, Any]:
    return {
        "id": entry.id,
        "state": entry.state.value,
        "reason": entry.reason,
        "summary": entry.summary,
        "window": entry.window,
        "opens_at": instant(entry.opens_at),
        "closes_at": instant(entry.closes_at),
        "started_at": instant(entry.started_at),
        "finished_at": instant(entry.finished_at),
    }


def campaign_view(view: CampaignView) -> dict[str, Any]:
    campaign = view.campaign
    return {
        "name": campaign.name,
        "state": campaign.state.value,
        "reason": campaign.reason,
        "total": view.total,
        "counts": counts(view.counts),
        "accounts": {name: counts(states) for name, states in view.accounts.items()},
        "runs": [run(entry) for entry in view.runs],
        "settings": dict(campaign.settings),
        "created_at": instant(campaign.created_at),
        "launched_at": instant(campaign.launched_at),
        "finished_at": instant(campaign.finished_at),
        "stopped": stop(view.stopped),
        "eta": eta(view.eta),
        "follow_ups": follow_ups(view.follow_ups),
    }


def follow_ups(found: FollowUps | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "on": found.on,
        "within": print_duration(found.within_us),
        "counts": counts(found.counts),
        "until": instant(found.until_at),
        "over": found.over,
    }


def eta(ahead: Eta | None) -> dict[str, Any] | None:
    if ahead is None:
        return None
    return {
        "finish": instant(ahead.finish_at),
        "going_by": ahead.going_by,
        "left": ahead.left,
        "next": instant(ahead.next_at),
        "account": ahead.account,
        "waits_for": ahead.waits_for,
        "stuck": ahead.stuck,
        "stuck_why": ahead.stuck_why,
    }


def delivery(found: Delivery, account_name: str, campaign_name: str) -> dict[str, Any]:
    return {
        "id": found.id,
        "campaign": campaign_name,
        "account": account_name,
        "target": found.target,
        "action": found.action,
        "state": found.state.value,
        "reason": found.reason,
        "scheduled_at": instant(found.scheduled_at),
        "due_at": instant(found.due_at),
        "expires_at": instant(found.expires_at),
        "sent_at": instant(found.sent_at),
        "delivered_at": instant(found.delivered_at),
        "read_at": instant(found.read_at),
        "attempts": found.attempts,
        "retries": found.retries,
        "parts_done": found.parts_done,
        "provider_id": found.provider_id,
        "fields": dict(found.fields),
    }


def verdict(said: Verdict) -> dict[str, Any]:
    if isinstance(said, Wait):
        until_at = instant(said.until_at)
        return {"kind": "wait", "until_at": until_at, "gate": said.gate, "why": said.why}
    if isinstance(said, Refuse):
        return {"kind": "refuse", "until_at": None, "gate": said.gate, "why": said.why}
    assert isinstance(said, Go)
    return {"kind": "go", "until_at": None, "gate": None, "why": ""}


def why(answer: Why) -> dict[str, Any]:
    found = answer.delivery
    return {
        "account": answer.account.name,
        "delivery": found.id if found is not None else None,
        "target": found.target if found is not None else None,
        "state": found.state.value if found is not None else None,
        "sent_at": instant(found.sent_at) if found is not None else None,
        "delivered_at": instant(found.delivered_at) if found is not None else None,
        "read_at": instant(found.read_at) if found is not None else None,
        "settled": answer.settled,
        "verdict": verdict(answer.verdict),
        "gates": [
            {
                "gate": view.gate,
                "open": view.open,
                "opens_at": instant(view.opens_at),
                "why": view.why,
            }
            for view in answer.gates
        ],
        "outside": list(answer.outside),
        "away": None
        if answer.away is None
        else {
            "reason": answer.away.reason,
            "at": instant(answer.away.at),
            "tried_again_at": instant(answer.away.again_at),
        },
        "cures": list(answer.cures),
    }
