"""A mailbox at the fake, opened and used on a real loop."""

from __future__ import annotations

from functools import partial
from typing import Any

import httpx

from paceline.core.model import Part
from paceline.core.outcome import Outcome
from paceline.engine.ports import Driver, Media, Message, Thread, Uploaded
from paceline.providers.gmail import GmailProvider
from tests.providers import remote
from tests.providers.gmail.fake import FakeGmail
from tests.providers.loopback import Scripted
from tests.providers.remote import PATIENT

play = partial(remote.play, GmailProvider)


def letter(
    target: str = "ben@example.org",
    *,
    key: str = "home-7-0",
    text: str = "Hello Ben",
    handle: str | None = None,
    attached: tuple[str, ...] = (),
    thread: Thread | None = None,
    unsubscribe: str = "",
    **part: Any,
) -> Message:
    kind = "media" if "media" in part else "text"
    fields = {"subject": "A word", **part}
    made = Part(kind, text, **fields)
    return Message(key, target, "email", made, handle, attached, thread, unsubscribe)


async def hand_over(driver: Driver, content: bytes, name: str = "offer.pdf") -> str:
    uploaded = await driver.upload(Media(name, name, "application/pdf", len(content)), content)
    assert isinstance(uploaded, Uploaded), uploaded
    return uploaded.handle


def send(
    fake: FakeGmail,
    sent: Message | None = None,
    *script: Scripted,
    timeout: httpx.Timeout = PATIENT,
    **settings: Any,
) -> Outcome:
    return remote.send(
        GmailProvider, fake, fake.settings(**settings), sent or letter(), *script, timeout=timeout
    )


async def nothing(driver: Driver) -> None:
    """Open, and close again."""
