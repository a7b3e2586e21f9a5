"""Everything that Paceline says has happened: one closed list, with what each event tells.

An event is stored in the transaction of its cause, in words for people and as named values for
programs. Whoever follows them (operators, the console, outgoing webhooks) follows this list, so an
event that is not on it, or that tells more or less than it says here, is a defect and is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from paceline.core.errors import InputError
from paceline.core.nearest import did_you_mean

EVERYTHING = "*"


class EventKind(StrEnum):
    """What can happen. The first word is what it happens to."""

    RUN_FIRED = "run.fired"
    RUN_STARTED = "run.started"
    RUN_PROGRESS = "run.progress"
    RUN_FINISHED = "run.finished"
    RUN_MISSED = "run.missed"
    ACCOUNT_ADDED = "account.added"
    ACCOUNT_CHANGED = "account.changed"
    ACCOUNT_REMOVED = "account.removed"
    ACCOUNT_ACTIVE = "account.active"
    ACCOUNT_PAUSED = "account.paused"
    ACCOUNT_LIMIT_REACHED = "account.limit_reached"
    ACCOUNT_COOLING_DOWN = "account.cooling_down"
    ACCOUNT_SUSPENDED = "account.suspended"
    CAMPAIGN_CREATED = "campaign.created"
    CAMPAIGN_FROZEN = "campaign.frozen"
    CAMPAIGN_LAUNCHED = "campaign.launched"
    CAMPAIGN_PAUSED = "campaign.paused"
    CAMPAIGN_RESUMED = "campaign.resumed"
    CAMPAIGN_CANCELLED = "campaign.cancelled"
    CAMPAIGN_RETRIED = "campaign.retried"
    REMINDER_CREATED = "reminder.created"
    REMINDER_EDITED = "reminder.edited"
    REMINDER_ENABLED = "reminder.enabled"
    REMINDER_DISABLED = "reminder.disabled"
    REMINDER_PAUSED = "reminder.paused"
    REMINDER_RESUMED = "reminder.resumed"
    REMINDER_REASSIGNED = "reminder.reassigned"
    REMINDER_CANCELLED = "reminder.cancelled"
    REMINDER_REMOVED = "reminder.removed"
    SENDING_STOPPED = "sending.stopped"
    SENDING_RESUMED = "sending.resumed"
    UNKNOWN_RESOLVED = "unknown.resolved"
    SIGNALS_CHANGED = "signals.changed"
    AUDIENCE_REMOVED = "audience.removed"
    CONTACT_ERASED = "contact.erased"
    DELIVERY_RETURNED = "delivery.returned"
    RECIPIENT_COMPLAINED = "recipient.complained"
    RECIPIENT_UNSUBSCRIBED = "recipient.unsubscribed"
    RECIPIENT_OPTED_OUT = "recipient.opted_out"
    RECIPIENT_OPTED_IN = "recipient.opted_in"
    WEBHOOK_SKIPPED = "webhook.skipped"
    WEBHOOK_DISABLED = "webhook.disabled"
    WEBHOOK_TEST = "webhook.test"


class Described(NamedTuple):
    means: str
    fields: tuple[str, ...]
    """What its ``data`` holds: all of these, and nothing else."""


_RUN = ("run", "campaign", "reminder")
_STATE = ("account", "reason", "until_at")
_PAUSED = ("reason", "by", "account")
_K = EventKind

EVENTS: Mapping[EventKind, Described] = MappingProxyType(
    {
        _K.RUN_FIRED: Described(
            "a reminder has fired: its targets are frozen, and all of them wait", (*_RUN, "total")
        ),
        _K.RUN_STARTED: Described(
            "the first message of a run is about to go, or its campaign was launched",
            (*_RUN, "total"),
        ),
        _K.RUN_PROGRESS: Described(
            "a run has come further: told when it is 5 % further than when it was last told, and "
            "once a minute at most; a slow run is looked at every ten minutes at least",
            (*_RUN, "delivered", "done", "total"),
        ),
        _K.RUN_FINISHED: Described(
            "nothing of a run can move by itself any more; it may finish once more after a retry",
            (*_RUN, "status", "delivered", "total", "counts", "summary"),
        ),
        _K.RUN_MISSED: Described(
            "a reminder was to fire, and nobody was there, or it was paused",
            (*_RUN, "reason", "summary"),
        ),
        _K.ACCOUNT_ADDED: Described("an account was added", ("account",)),
        _K.ACCOUNT_CHANGED: Described("its limits or settings were changed", ("account",)),
        _K.ACCOUNT_REMOVED: Described("an account was taken out of service", ("account",)),
        _K.ACCOUNT_ACTIVE: Described("it goes on: resumed, or its wait is over", _STATE),
        _K.ACCOUNT_PAUSED: Described("it was paused, by an operator or by itself", _STATE),
        _K.ACCOUNT_LIMIT_REACHED: Described("a cap is used up until its day or week ends", _STATE),
        _K.ACCOUNT_COOLING_DOWN: Described("the provider wants it to rest for a while", _STATE),
        _K.ACCOUNT_SUSPENDED: Described(
            "it is out of service until a person looks: banned, logged out, credentials refused, "
            "too many crashes",
            _STATE,
        ),
        _K.CAMPAIGN_CREATED: Described("a draft was made", ("campaign", "run", "planned")),
        _K.CAMPAIGN_FROZEN: Described(
            "its audience had changed since, and it was planned anew",
            ("campaign", "run", "planned", "before"),
        ),
        _K.CAMPAIGN_LAUNCHED: Described("it was launched", ("campaign",)),
        _K.CAMPAIGN_PAUSED: Described(
            "it was paused by an operator, its breaker, a signal or a defect",
            ("campaign", *_PAUSED),
        ),
        _K.CAMPAIGN_RESUMED: Described("it goes on", ("campaign",)),
        _K.CAMPAIGN_CANCELLED: Described("nothing more of it starts", ("campaign", "reason")),
        _K.CAMPAIGN_RETRIED: Described("what had failed is sent again", ("campaign", "again")),
        _K.REMINDER_CREATED: Described("a reminder was made", ("reminder", "targets")),
        _K.REMINDER_EDITED: Described("it was changed, from its next firing on", ("reminder",)),
        _K.REMINDER_ENABLED: Described("it fires again", ("reminder",)),
        _K.REMINDER_DISABLED: Described("it fires no more", ("reminder",)),
        _K.REMINDER_PAUSED: Described(
            "it was paused, and what it has begun with it", ("reminder", *_PAUSED)
        ),
        _K.REMINDER_RESUMED: Described("it goes on", ("reminder",)),
        _K.REMINDER_REASSIGNED: Described(
            "what waited with an account that cannot send was given to others",
            ("reminder", "run", "moved", "accounts"),
        ),
        _K.REMINDER_CANCELLED: Described(
            "nothing more of one of its runs starts; it fires again at its next time",
            ("reminder", "run", "reason"),
        ),
        _K.REMINDER_REMOVED: Described("it is gone, and its name is free", ("reminder",)),
        _K.SENDING_STOPPED: Described("an operator has stopped everything", ("reason",)),
        _K.SENDING_RESUMED: Described("sending goes on after that", ()),
        _K.UNKNOWN_RESOLVED: Described(
            "a person, or a receipt, has said what became of a message in doubt",
            ("delivery", "run", "verdict"),
        ),
        _K.SIGNALS_CHANGED: Described("the table of signals was changed", ("signals",)),
        _K.AUDIENCE_REMOVED: Described("an audience was removed", ("audience",)),
        _K.CONTACT_ERASED: Described("a person was erased", ("deliveries", "cancelled")),
        _K.DELIVERY_RETURNED: Described(
            "a message came back after it had been accepted", ("delivery", "suppressed")
        ),
        _K.RECIPIENT_COMPLAINED: Described(
            "somebody called a message spam, and is not written to any more", ("delivery",)
        ),
        _K.RECIPIENT_UNSUBSCRIBED: Described(
            "somebody followed the link in a message, and is not written to any more",
            ("delivery",),
        ),
        _K.RECIPIENT_OPTED_OUT: Described(
            "somebody wrote that they do not want to be written to any more", ("account",)
        ),
        _K.RECIPIENT_OPTED_IN: Described(
            "somebody who had opted out wrote that they want to be written to again", ("account",)
        ),
        _K.WEBHOOK_SKIPPED: Described(
            "a webhook has not taken an event for a day, and it was given up",
            ("webhook", "event", "kind", "problem"),
        ),
        _K.WEBHOOK_DISABLED: Described(
            "a webhook has answered 410 and is sent nothing any more", ("webhook", "problem")
        ),
        _K.WEBHOOK_TEST: Described(
            "sent by `paceline webhook test`, to any webhook, and never stored", ("webhook",)
        ),
    }
)

FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "run": "the run's number",
        "campaign": "its name; `null` for a run of a reminder",
        "reminder": "its name; `null` for a run of a campaign",
        "total": "deliveries of the run",
        "delivered": "those that were sent",
        "done": "those that are sent, failed, skipped, in doubt or called off",
        "status": "`success` (all sent), `partial` or `failed` (none sent)",
        "counts": "deliveries by state, without the states nobody is in",
        "summary": "one or two sentences for people",
        "reason": "why, in words; empty where there is nothing to say",
        "by": "`operator`, `breaker`, `signal` or `defect`",
        "account": "the account's name; `null` where none is to blame",
        "accounts": "names of accounts",
        "until_at": "when it goes on by itself; `null` if it does not",
        "planned": "deliveries planned",
        "before": "deliveries that were planned before",
        "again": "deliveries that are sent again",
        "moved": "deliveries that were moved",
        "targets": "groups or people it goes to",
        "delivery": "the delivery's number",
        "verdict": "`sent`, `resend` or `failed`",
        "signals": "names of signals",
        "audience": "the audience's name",
        "deliveries": "deliveries to that person",
        "cancelled": "those of them that were called off",
        "suppressed": "whether its recipient is not written to any more",
        "webhook": "the webhook's name",
        "event": "the event's number",
        "kind": "the event's kind",
        "problem": "what went wrong last",
    }
)


def checked(kind: str, data: Mapping[str, Any]) -> EventKind:
    """The kind, if it is on the list and tells what the list says; else a ``ValueError``."""
    try:
        known = EventKind(kind)
    except ValueError:
        meant = did_you_mean(kind, [known.value for known in EventKind])
        raise ValueError(f"{kind!r} is not on the list of events (core/events.py){meant}") from None
    fields = EVENTS[known].fields
    if set(data) != set(fields):
        raise ValueError(f"{kind} tells {sorted(data)}, and the list says {sorted(fields)}")
    return known


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events somebody wants to hear of, as people write it: ``run.*``, a kind, or ``*``."""

    patterns: tuple[str, ...] = (EVERYTHING,)

    @classmethod
    def parse(cls, patterns: Iterable[str]) -> Wanted:
        """What matches no event there could be is refused: it would be silence for ever."""
        kinds = [kind.value for kind in EventKind]
        known = {*kinds, *(f"{kind.partition('.')[0]}.*" for kind in kinds), EVERYTHING}
        found = tuple(dict.fromkeys(pattern.strip() for pattern in patterns))
        if not found:
            raise InputError("names no events", hint='Leave it out for all, or write ["run.*"]')
        for pattern in found:
            if pattern not in known:
                raise InputError(
                    f"unknown event {pattern!r}{did_you_mean(pattern, known)}",
                    hint="See: paceline events --kinds",
                )
        return cls(found)

    @property
    def kinds(self) -> list[EventKind]:
        return [kind for kind in EventKind if kind in self]

    def __contains__(self, kind: object) -> bool:
        first = str(kind).partition(".")[0]
        return any(pattern in (kind, f"{first}.*", EVERYTHING) for pattern in self.patterns)

    def __str__(self) -> str:
        return ", ".join(self.patterns)


def page() -> str:
    """The list as ``docs/notifications.md`` has it."""
    lines = ["| event | happens when | `data` |", "|---|---|---|"]
    for kind, described in EVENTS.items():
        fields = ", ".join(f"`{name}`" for name in described.fields)
        lines.append(f"| `{kind}` | {described.means} | {fields} |")
    lines += ["", "| field | means |", "|---|---|"]
    lines += [f"| `{name}` | {means} |" for name, means in FIELDS.items()]
    return "\n".join(lines)
