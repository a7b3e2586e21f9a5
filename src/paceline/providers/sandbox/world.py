"""What the imaginary provider remembers of each account, gathered from the log of effects.

There is no other memory: whoever reads the same log knows the same. What the provider makes of it
is decided in ``behaviour.py``.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field

from paceline.core.instants import DAY, MINUTE, Instant
from paceline.core.outcome import OutcomeKind
from paceline.providers.sandbox.effects import Effect, Effects
from paceline.providers.sandbox.fates import speaks

BAN_CODE = "account-banned"
"""The code of an answer that is part of a ban, as opposed to an address that asks for one."""


@dataclass(slots=True)
class Memory:
    """One account as the provider knows it."""

    sends: int = 0
    accepted: int = 0
    attempts: dict[str, int] = field(default_factory=dict)
    held: dict[str, Effect] = field(default_factory=dict)
    """The first accepted send of each key."""
    touched: dict[str, Instant] = field(default_factory=dict)
    """When each key was last accepted or left without an answer."""
    sends_to: dict[str, int] = field(default_factory=dict)
    """How often each address that means something was written to."""
    handles: dict[str, Instant | None] = field(default_factory=dict)
    """Uploaded files, with their expiry."""
    uploads: int = 0
    uploads_of: dict[str, int] = field(default_factory=dict)
    banned_at: Instant | None = None
    accepted_since_ban: int = 0
    _recent: deque[Instant] = field(default_factory=deque)
    _day: int = 0
    _today: int = 0

    def note(self, effect: Effect) -> None:
        if effect.kind == "send":
            self._note_send(effect)
        else:
            self._note_upload(effect)
        # A ban begins with the first such answer after something was accepted, whatever was asked
        # for; further ones only repeat it.
        if effect.code == BAN_CODE and (self.banned_at is None or self.accepted_since_ban):
            self.banned_at = effect.at
            self.accepted_since_ban = 0

    def accepted_within_minute(self, now: Instant) -> list[Instant]:
        """The instants of the last minute's accepted sends, oldest first."""
        return [at for at in self._recent if at > now - MINUTE]

    def accepted_today(self, now: Instant) -> int:
        return self._today if now // DAY == self._day else 0

    def _note_upload(self, effect: Effect) -> None:
        self.uploads += 1
        self.uploads_of[effect.key] = self.uploads_of.get(effect.key, 0) + 1
        if effect.accepted and effect.provider_id is not None:
            self.handles[effect.provider_id] = effect.expires_at

    def _note_send(self, effect: Effect) -> None:
        self.sends += 1
        self.attempts[effect.key] = self.attempts.get(effect.key, 0) + 1
        if speaks(effect.target):
            self.sends_to[effect.target] = self.sends_to.get(effect.target, 0) + 1
        if effect.accepted:
            self._note_accepted(effect)
        if effect.accepted or effect.answer == OutcomeKind.UNKNOWN:
            self.touched[effect.key] = effect.at

    def _note_accepted(self, effect: Effect) -> None:
        self.accepted += 1
        self.accepted_since_ban += 1
        self.held.setdefault(effect.key, effect)
        self._recent.append(effect.at)
        while self._recent[0] <= effect.at - MINUTE:
            self._recent.popleft()
        day = effect.at // DAY
        self._today = self._today + 1 if day == self._day else 1
        self._day = day


class World:
    """Every account's memory, kept abreast of a log that others may be writing to as well."""

    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._tail = effects.tail()
        self._memories: defaultdict[str, Memory] = defaultdict(Memory)

    def of(self, account: str) -> Memory:
        """The account's memory as of now."""
        for effect in self._tail.fresh():
            self._memories[effect.account].note(effect)
        return self._memories[account]

    def record(self, effect: Effect) -> None:
        self._effects.record(effect)
