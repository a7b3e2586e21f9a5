"""An account at the fake, opened and used on a real loop."""

from __future__ import annotations

from functools import partial
from typing import Any

import httpx

from paceline.core.model import Part
from paceline.core.outcome import Outcome
from paceline.engine.ports import Message
from paceline.providers.unipile import UnipileProvider
from tests.providers import remote
from tests.providers.loopback import Scripted
from tests.providers.remote import PATIENT
from tests.providers.unipile.fake import FakeUnipile

play = partial(remote.play, UnipileProvider)


def message(
    action: str = "message",
    target: str = "ACoAA-anna",
    *,
    key: str = "home-7-0",
    text: str = "Hello Anna",
    handle: str | None = None,
    **part: Any,
) -> Message:
    kind = "media" if "media" in part else "text"
    return Message(key, target, action, Part(kind, text, **part), handle)


def letter(**more: Any) -> Message:
    """An e-mail."""
    given = {"target": "anna@example.com", "subject": "A word", **more}
    return message("email", **given)


def kind_for(sent: Message) -> str:
    return "email" if sent.action == "email" else "linkedin"


def send(
    fake: FakeUnipile, sent: Message, *script: Scripted, timeout: httpx.Timeout = PATIENT
) -> Outcome:
    settings = fake.settings(kind_for(sent))
    return remote.send(UnipileProvider, fake, settings, sent, *script, timeout=timeout)
