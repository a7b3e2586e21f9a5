"""An account at the fake, opened and used on a real loop."""

from __future__ import annotations

from functools import partial
from typing import Any

from paceline.core.outcome import Outcome
from paceline.engine.ports import Media, Message, Uploaded
from paceline.providers.waha import WahaProvider
from paceline.providers.waha.driver import WahaDriver
from tests.providers import remote
from tests.providers.loopback import Scripted
from tests.providers.waha.fake import PHONE, FakeWaha

CONTENT = b"\r\n--%PDF\x00\xff\r\n"

play = partial(remote.play, WahaProvider)


def message(target: str = PHONE, **more: Any) -> Message:
    return remote.message(target, **more)


def picture(handle: str | None, **more: Any) -> Message:
    return remote.picture(PHONE, handle, **more)


def media(mime: str = "application/pdf", name: str = "offer “1”.pdf") -> Media:
    return Media("a" * 64, name, mime, len(CONTENT))


async def hand_over(driver: WahaDriver, file: Media | None = None) -> str:
    uploaded = await driver.upload(file or media(), CONTENT)
    assert isinstance(uploaded, Uploaded), uploaded
    return uploaded.handle


def send(fake: FakeWaha, sent: Message, *script: Scripted, **settings: Any) -> Outcome:
    return remote.send(WahaProvider, fake, fake.settings(**settings), sent, *script)
