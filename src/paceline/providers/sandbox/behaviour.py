"""How the imaginary provider decides: pure functions from settings, memory and a draw to an answer.

No clock, no log and no waiting; those are the driver's (``provider.py``).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from hashlib import sha256

from paceline.core.durations import Span, print_duration
from paceline.core.instants import MINUTE, SECOND, Instant
from paceline.core.outcome import Outcome, OutcomeKind, accepted, unknown
from paceline.engine.ports import Message
from paceline.providers.sandbox.fates import Fate, fate_of_address
from paceline.providers.sandbox.settings import SandboxSettings
from paceline.providers.sandbox.world import BAN_CODE, Memory


@dataclass(frozen=True, slots=True)
class Chance:
    """Everything about one call that is left to chance.

    It follows from the seed and what the call is about, never from when or in which order calls
    are made, so that another schedule, or another process, meets the same luck.
    """

    draw: float
    latency_us: int
    effect_after_us: int

    @classmethod
    def of(cls, latency: Span, *about: object) -> Chance:
        rng = random.Random(repr(about))
        draw = rng.random()
        latency_us = latency.draw(rng)
        return cls(draw, latency_us, rng.randint(0, latency_us))


NO_CHANCE = Chance(0.0, 0, 0)
"""For a provider that answers at once and never fails by itself."""


@dataclass(slots=True)
class Decision:
    """What the provider does: what it answers, whether it holds the message, whether it hangs."""

    outcome: Outcome
    accepted: bool = False
    hangs: bool = False


def decide_send(
    settings: SandboxSettings,
    memory: Memory,
    message: Message,
    draw: float,
    provider_id: str,
    *,
    actions: frozenset[str],
    now: Instant,
) -> Decision:
    """The account's own trouble first, then what was written down, the message, and chance."""
    # A ban outlives the setting that brought it about, so it is looked for in any case.
    easy = settings.easy and memory.banned_at is None
    fate = None
    if not easy:
        trouble = decide_account(settings, memory, now)
        if trouble is not None:
            return trouble
        fate = _fate_of_number(settings, memory.sends + 1)
    if fate is None:
        if settings.deduplicates and message.key in memory.held:
            first_id = memory.held[message.key].provider_id
            return Decision(Outcome(OutcomeKind.ACCEPTED, code="duplicate", provider_id=first_id))
        fault = _fault(message, memory, actions, now)
        if fault is not None:
            return Decision(fault)
        fate = fate_of_address(message.target, memory.sends_to.get(message.target, 0) + 1)
    if fate is None and not easy:
        limit = _over_quota(settings, memory, now)
        if limit is not None:
            return Decision(limit)
        fate = _fate_of_draw(settings, draw)
    if fate is None:
        return Decision(accepted(provider_id), accepted=True)
    return _carry_out(fate, settings, provider_id)


def decide_account(settings: SandboxSettings, memory: Memory, now: Instant) -> Decision | None:
    """What the provider answers to anything at all while the account is in trouble."""
    if credentials_refused(settings, memory):
        return Decision(_answer(OutcomeKind.UNAUTHORISED, "the credentials are refused"))
    if settings.is_away(now):
        return Decision(_answer(OutcomeKind.UNAVAILABLE, "the provider is away"))
    banned_at = _ban_began_at(settings, memory, now)
    if banned_at is None:
        return None
    left_us = None if settings.ban_for is None else banned_at + settings.ban_for - now
    text = "for ever" if left_us is None else f"for {print_duration(left_us)}"
    return Decision(_answer(OutcomeKind.BANNED, f"the account is banned {text}", BAN_CODE, left_us))


def credentials_refused(settings: SandboxSettings, memory: Memory) -> bool:
    after = settings.unauthorised_after
    return settings.unauthorised or (after is not None and memory.accepted >= after)


def decide_upload(settings: SandboxSettings, memory: Memory, draw: float, now: Instant) -> Decision:
    trouble = decide_account(settings, memory, now)
    if trouble is not None:
        return trouble
    if memory.uploads + 1 in settings.upload_failure_at or draw < settings.upload_failure_rate:
        return Decision(_answer(OutcomeKind.TRANSIENT, "the upload failed", "upload"))
    return Decision(accepted(), accepted=True)


def new_id(kind: str, *about: object) -> str:
    """An id that looks like a provider's, the same in every run."""
    return f"{kind}-{sha256(repr(about).encode()).hexdigest()[:20]}"


def _ban_began_at(settings: SandboxSettings, memory: Memory, now: Instant) -> Instant | None:
    banned_at, ban_us = memory.banned_at, settings.ban_for
    if banned_at is not None and (ban_us is None or now < banned_at + ban_us):
        return banned_at
    after = settings.ban_after
    return now if after is not None and memory.accepted_since_ban >= after else None


def _fate_of_number(settings: SandboxSettings, number: int) -> Fate | None:
    every = settings.throttle_every
    throttled = every is not None and number % every == 0
    return settings.numbered.get(number, Fate.THROTTLE if throttled else None)


def _fate_of_draw(settings: SandboxSettings, draw: float) -> Fate | None:
    for fate, rate in settings.rates.items():
        draw -= rate
        if draw < 0:
            return fate
    return None


def _fault(
    message: Message, memory: Memory, actions: frozenset[str], now: Instant
) -> Outcome | None:
    """What is wrong with the message itself, which no retry can mend."""
    if message.action not in actions:
        return _answer(OutcomeKind.REJECTED, f"there is no action {message.action!r}", "action")
    part = message.part
    about_a_file = part.kind == "media" or part.media is not None
    if not about_a_file and not part.attachments:
        return None
    missing = about_a_file and message.handle is None
    if missing or len(message.attached) != len(part.attachments):
        return _answer(OutcomeKind.REJECTED, "the file was never uploaded", "media-missing")
    handles = message.attached if message.handle is None else (message.handle, *message.attached)
    return next((fault for one in handles if (fault := _lapsed(one, memory, now))), None)


def _lapsed(handle: str, memory: Memory, now: Instant) -> Outcome | None:
    if handle not in memory.handles:
        text = f"this account has no upload {handle!r}"
        return _answer(OutcomeKind.REJECTED, text, "media-unknown")
    expires_at = memory.handles[handle]
    if expires_at is not None and expires_at <= now:
        return _answer(OutcomeKind.REJECTED, f"the upload {handle!r} expired", "media-expired")
    return None


def _over_quota(settings: SandboxSettings, memory: Memory, now: Instant) -> Outcome | None:
    per_day, per_minute = settings.quota_per_day, settings.quota_per_minute
    if per_day is not None and memory.accepted_today(now) >= per_day:
        return _answer(OutcomeKind.EXHAUSTED, f"the quota of {per_day} a day is used up")
    if per_minute is None:
        return None
    recent = memory.accepted_within_minute(now)
    if len(recent) < per_minute:
        return None
    # Retry-After is told in whole seconds, so it is rounded up: earlier would be too early.
    free_in_us = recent[-per_minute] + MINUTE - now
    wait_us = -(-free_in_us // SECOND) * SECOND
    return _answer(
        OutcomeKind.THROTTLED, f"more than {per_minute} a minute", retry_after_us=wait_us
    )


_REFUSALS = {
    Fate.BOUNCE: (OutcomeKind.BOUNCED, "the address does not exist"),
    Fate.REJECT: (OutcomeKind.REJECTED, "the message is refused"),
    Fate.TRANSIENT: (OutcomeKind.TRANSIENT, "it did not work this time"),
    Fate.THROTTLE: (OutcomeKind.THROTTLED, "too many messages"),
    Fate.UNAVAILABLE: (OutcomeKind.UNAVAILABLE, "the provider is away"),
    Fate.EXHAUSTED: (OutcomeKind.EXHAUSTED, "the day's quota is used up"),
    Fate.BAN: (OutcomeKind.BANNED, "the account is banned"),
    Fate.UNAUTHORISED: (OutcomeKind.UNAUTHORISED, "the credentials are refused"),
}


def _carry_out(fate: Fate, settings: SandboxSettings, provider_id: str) -> Decision:
    if fate is Fate.SLOW:
        return Decision(accepted(provider_id), accepted=True, hangs=True)
    if fate in (Fate.TIMEOUT, Fate.LOST):
        text = f"no answer within {print_duration(settings.timeout_latency)}"
        return Decision(unknown(text), accepted=fate is Fate.TIMEOUT, hangs=True)
    kind, reason = _REFUSALS[fate]
    waits = {Fate.THROTTLE: settings.retry_after, Fate.BAN: settings.ban_for}
    return Decision(_answer(kind, reason, retry_after_us=waits.get(fate)))


def _answer(
    kind: OutcomeKind, reason: str, code: str = "", retry_after_us: int | None = None
) -> Outcome:
    return Outcome(kind, reason, code or str(kind), retry_after_us=retry_after_us)
