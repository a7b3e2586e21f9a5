"""An account at the fake, opened and used on a real loop."""

from __future__ import annotations

from functools import partial
from typing import Any

from paceline.core.model import Part
from paceline.core.outcome import Outcome
from paceline.engine.ports import Driver, Media, Message, Uploaded
from paceline.providers.wati import WatiProvider
from tests.providers import remote
from tests.providers.loopback import Scripted
from tests.providers.wati.fake import PHONE, FakeWati

play = partial(remote.play, WatiProvider)

LONG = "Ж" * 2_000
"""Too long for an address, where every letter of it takes six."""


def message(target: str = PHONE, *, text: str = "Hello Anna", **more: Any) -> Message:
    return Message("home-7-0", target, "message", Part("text", text))._replace(**more)


def file(handle: str | None, text: str = "") -> Message:
    return message(part=Part("media", text, media="a" * 64), handle=handle)


def template(name: str = "order_ready", *values: str, **named: str) -> Message:
    pairs = tuple(("", text) for text in values) + tuple(named.items())
    return message(part=Part("template", template=name, language="en_US", values=pairs))


def media(name: str = "a.png", mime: str = "image/png", size: int = 3) -> Media:
    return Media("a" * 64, name, mime, size)


def send(fake: FakeWati, sent: Message, *script: Scripted, **settings: Any) -> Outcome:
    return remote.send(WatiProvider, fake, fake.settings(**settings), sent, *script)


def send_file(
    fake: FakeWati, text: str = "", *script: Scripted, kept: Media | None = None, **settings: Any
) -> Outcome:
    """A file is handed over and sent, by the same process."""

    async def scene(driver: Driver) -> Outcome:
        uploaded = await driver.upload(kept or media(), b"PNG")
        assert isinstance(uploaded, Uploaded), uploaded
        fake.script.extend(script)
        return await driver.send(file(uploaded.handle, text))

    fake.now = remote.CLOCK.now
    return play(fake.settings(**settings), scene)
