"""The driver itself: calls that take their time, leave an effect in the log, and answer.

What happens to a call is decided in ``behaviour.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

from paceline.core.durations import Span
from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import Instant
from paceline.core.outcome import Outcome
from paceline.engine.ports import (
    Account,
    Capabilities,
    Clock,
    Driver,
    Found,
    Group,
    Media,
    Message,
    Uploaded,
)
from paceline.providers.sandbox import behaviour
from paceline.providers.sandbox.behaviour import NO_CHANCE, Chance, Decision
from paceline.providers.sandbox.effects import Effect, Effects, PartDigest
from paceline.providers.sandbox.settings import SandboxSettings, read_settings, settings_of
from paceline.providers.sandbox.world import Memory, World

NAME = "sandbox"
ACTIONS = frozenset({"message", "email", "connection_request", "inmail", "reply"})


class SandboxProvider:
    """Opens imaginary accounts. All of them share one log, which stands for the outside world."""

    name = NAME
    capabilities = Capabilities(
        channel=NAME,
        actions=ACTIONS,
        media=True,
        attachments=True,
        groups=True,
        templates=True,
        finds=True,
        proves_absence=True,
    )

    def __init__(self, clock: Clock, effects: Effects) -> None:
        self._clock = clock
        self._world = World(effects)

    secrets: frozenset[str] = frozenset()

    def check(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        return read_settings(settings).to_mapping()

    def capabilities_of(self, settings: Mapping[str, Any]) -> Capabilities:
        return _able(read_settings(settings))

    async def open(self, account: Account) -> Driver:
        settings = settings_of(account)
        called_at = self._clock.now()
        chance = Chance.of(settings.latency, settings.seed, account.name, "open")
        await self._clock.sleep_until(called_at + chance.latency_us)
        if behaviour.credentials_refused(settings, self._world.of(account.name)):
            raise ProviderRefused(f"the sandbox refuses the credentials of {account.name}")
        if settings.is_away(self._clock.now()):
            raise ProviderError(f"the sandbox is away, so {account.name} cannot be opened")
        return SandboxDriver(self._clock, self._world, account, settings)


def group_id(number: int) -> str:
    """The imaginary group of this number, as WhatsApp would write it."""
    return f"120363{number:012d}@g.us"


def _able(settings: SandboxSettings) -> Capabilities:
    return _finding(settings.finds, settings.finds and settings.proves_absence)


@cache
def _finding(finds: bool, proves_absence: bool) -> Capabilities:
    return replace(SandboxProvider.capabilities, finds=finds, proves_absence=proves_absence)


def _answer(call: asyncio.Future[Outcome | None], outcome: Outcome) -> None:
    if not call.done():
        call.set_result(outcome)


class SandboxDriver:
    """One open account.

    The effect happens somewhere within a call's latency. A call that is cancelled before that
    leaves nothing behind, and one that is cancelled after it cannot take it back.
    """

    def __init__(
        self, clock: Clock, world: World, account: Account, settings: SandboxSettings
    ) -> None:
        self._clock = clock
        self._world = world
        self._name = account.name
        self._address = account.address
        self._settings = settings
        self._capabilities = _able(settings)
        self._closed = False
        self._certain = not settings.latency.high_us and not settings.rates
        """Whether nothing about a send is left to chance."""

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def send(self, message: Message) -> Outcome:
        called_at = self._begin()
        chance = NO_CHANCE
        if not self._certain:
            attempt = self._memory.attempts.get(message.key, 0) + 1
            chance = self._chance(self._settings.latency, "send", message.key, attempt)
        # No time is no wait: a provider without latency acts and answers at once.
        now = called_at
        if chance.effect_after_us:
            await self._clock.sleep_until(called_at + chance.effect_after_us)
            now = self._clock.now()
        decision = self._take_send(message, chance, called_at, now)
        answer_after_us = self._answer_after_us(chance, decision)
        if answer_after_us:
            await self._clock.sleep_until(called_at + answer_after_us)
        return decision.outcome

    def begin(self, message: Message) -> asyncio.Future[Outcome | None] | None:
        """The same where nothing is left to chance: it acts at once, and mostly answers at once."""
        if self._closed or not self._certain:
            return None
        answer: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()
        now = self._clock.now()
        decision = self._take_send(message, NO_CHANCE, now, now)
        answer_after_us = self._answer_after_us(NO_CHANCE, decision)
        if answer_after_us:
            self._clock.timer(answer_after_us, partial(_answer, answer, decision.outcome))
        else:
            answer.set_result(decision.outcome)
        return answer

    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome:
        called_at = self._begin()
        attempt = self._memory.uploads_of.get(media.id, 0) + 1
        chance = self._chance(self._settings.upload_latency, "upload", media.id, attempt)
        await self._clock.sleep_until(called_at + chance.effect_after_us)
        answer = self._take_upload(media, len(content), chance, called_at)
        await self._clock.sleep_until(called_at + chance.latency_us)
        return answer

    async def find(self, message: Message, since_at: Instant) -> Found:
        called_at, key = self._begin(), message.key
        chance = self._chance(self._settings.latency, "find", key)
        await self._clock.sleep_until(called_at + chance.latency_us)
        now, memory, settings = self._clock.now(), self._memory, self._settings
        # Never touched is longer ago than any lag.
        age_us = now - memory.touched.get(key, now - settings.find_lag)
        lags = settings.find_lag > 0 and age_us < settings.find_lag
        if lags or not settings.finds or settings.is_away(now):
            return Found("unclear")
        held = memory.held.get(key)
        if held is not None:
            return Found("present", held.provider_id)
        return Found("absent" if settings.proves_absence else "unclear")

    async def groups(self) -> list[Group]:
        called_at = self._begin()
        chance = self._chance(self._settings.latency, "groups")
        await self._clock.sleep_until(called_at + chance.latency_us)
        if self._settings.is_away(self._clock.now()):
            raise ProviderError(f"the sandbox is away, so nobody knows the groups of {self._name}")
        closed = self._settings.read_only_groups
        return [
            Group(group_id(number), f"Group {number}", 2 + number % 250, number not in closed)
            for number in self._settings.groups
        ]

    async def close(self) -> None:
        self._closed = True

    @property
    def _memory(self) -> Memory:
        return self._world.of(self._name)

    def _begin(self) -> Instant:
        if self._closed:
            raise ProviderError(f"{self._name} has been closed")
        return self._clock.now()

    def _chance(self, latency: Span, *about: object) -> Chance:
        return Chance.of(latency, self._settings.seed, self._name, *about)

    def _answer_after_us(self, chance: Chance, decision: Decision) -> int:
        if not decision.hangs:
            return chance.latency_us
        return max(chance.latency_us, self._settings.timeout_latency)

    def _take_send(
        self, message: Message, chance: Chance, called_at: Instant, now: Instant
    ) -> Decision:
        """The moment of the effect: decided and on record in one go, with no waiting between."""
        memory = self._world.of(self._name)
        # Counted anew: another call with the same key may have come first.
        attempt = memory.attempts.get(message.key, 0) + 1
        provider_id = behaviour.new_id("sandbox", self._name, message.key, attempt)
        decision = behaviour.decide_send(
            self._settings,
            memory,
            message,
            chance.draw,
            provider_id,
            actions=self._capabilities.actions,
            now=now,
        )
        outcome = decision.outcome
        # In the order of the fields: with so many, passing them by name costs more than the rest.
        self._world.record(
            Effect(
                "send",
                called_at,
                now,
                self._name,
                self._address,
                message.key,
                message.target,
                message.action,
                PartDigest.of(message.part, message.handle),
                attempt,
                str(outcome.kind),
                outcome.code,
                decision.accepted,
                provider_id if decision.accepted else outcome.provider_id,
                outcome.retry_after_us,
            )
        )
        return decision

    def _take_upload(
        self, media: Media, size: int, chance: Chance, called_at: Instant
    ) -> Uploaded | Outcome:
        now = self._clock.now()
        memory = self._memory
        attempt = memory.uploads_of.get(media.id, 0) + 1
        decision = behaviour.decide_upload(self._settings, memory, chance.draw, now)
        handle = behaviour.new_id("media", self._name, media.id, attempt)
        lifetime_us = self._settings.handle_expires
        expires_at = None if lifetime_us is None else now + lifetime_us
        outcome = decision.outcome
        self._world.record(
            Effect(
                kind="upload",
                called_at=called_at,
                at=now,
                account=self._name,
                address=self._address,
                key=media.id,
                target="",
                action="upload",
                part=PartDigest("media", size, media.id[:16], media=media.id),
                attempt=attempt,
                answer=outcome.kind.value,
                code=outcome.code,
                accepted=decision.accepted,
                provider_id=handle if decision.accepted else None,
                retry_after_us=outcome.retry_after_us,
                expires_at=expires_at if decision.accepted else None,
            )
        )
        return Uploaded(handle, expires_at) if decision.accepted else outcome
