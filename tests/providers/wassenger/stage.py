"""An account at the fake, opened and used on a real loop."""

from __future__ import annotations

from functools import partial
from typing import Any

from paceline.core.outcome import Outcome
from paceline.engine.ports import Message
from paceline.providers.wassenger import WassengerProvider
from tests.providers import remote
from tests.providers.loopback import Scripted
from tests.providers.wassenger.fake import PHONE, FakeWassenger

play = partial(remote.play, WassengerProvider)


def message(target: str = PHONE, **more: Any) -> Message:
    return remote.message(target, **more)


def picture(handle: str | None, **more: Any) -> Message:
    return remote.picture(PHONE, handle, **more)


def send(fake: FakeWassenger, sent: Message, *script: Scripted, **settings: Any) -> Outcome:
    return remote.send(WassengerProvider, fake, fake.settings(**settings), sent, *script)
