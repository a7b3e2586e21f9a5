"""A seeded imaginary provider, for tests, demonstrations, simulations and first steps.

It behaves like the real ones: it takes its time, loses answers, throttles, bans and forgets media,
all of it drawn from a seed or written down in the account's settings (``settings.py``). Whatever
reaches it is recorded in a log of effects (``effects.py``), which is also its only memory: after a
crash the next process finds in it what the dead one had sent. Nothing ever leaves the machine.

Some addresses mean something whatever the settings say, so that one can try things by hand. The
word is the local part of the address, or a tag of it, alone or with a number behind it:
``bounce@example.com``, ``anna+bounce2@example.com``, and likewise ``bounce-3`` for a group.

    bounce          the address does not exist
    reject          the message is refused for good
    transient       fails for the moment, every time
    flaky           fails for the moment, every other time
    throttle        too fast, every other time, with a time to wait
    unavailable     the provider is away, every other time
    exhausted       the day's quota is used up, every other time
    ban             the account is banned, every other time (until ``ban_for`` is over, if set)
    unauthorised    the credentials are refused, every other time
    timeout         the message goes out, but no answer comes back
    lost            nothing goes out and no answer comes back, every other time
    stubborn        too fast, every time, whoever else gets through
    slow            accepted, after as long as a timeout takes

"Every other time" is the first send to that address, the third, and so on: what is tried again
gets through.
"""

from __future__ import annotations

from paceline.providers.sandbox.effects import (
    Effect,
    Effects,
    FileEffects,
    MemoryEffects,
    PartDigest,
    Tail,
    read_effects,
)
from paceline.providers.sandbox.provider import SandboxDriver, SandboxProvider
from paceline.providers.sandbox.settings import SandboxSettings, read_settings

__all__ = [
    "Effect",
    "Effects",
    "FileEffects",
    "MemoryEffects",
    "PartDigest",
    "SandboxDriver",
    "SandboxProvider",
    "SandboxSettings",
    "Tail",
    "read_effects",
    "read_settings",
]
