"""An account at the fake, opened and used on a real loop."""

from __future__ import annotations

from functools import partial
from typing import Any

from paceline.core.model import Part
from paceline.core.outcome import Outcome
from paceline.engine.ports import Media, Message
from paceline.providers.whatsapp_cloud import WhatsAppCloudProvider
from paceline.providers.whatsapp_cloud.handles import pack
from tests.providers import remote
from tests.providers.loopback import Scripted
from tests.providers.whatsapp_cloud.fake import PHONE, FakeMeta

play = partial(remote.play, WhatsAppCloudProvider)


def message(target: str = PHONE, *, text: str = "Hello Anna", **more: Any) -> Message:
    part = Part("text", text)
    return Message("home-7-0", target, "message", part)._replace(**more)


def file(handle: str | None, text: str = "") -> Message:
    return message(part=Part("media", text, media="a" * 64), handle=handle)


def template(
    name: str = "order_ready", *values: str, language: str = "en_US", **named: str
) -> Message:
    pairs = tuple(("", text) for text in values) + tuple(named.items())
    return message(part=Part("template", template=name, language=language, values=pairs))


def with_header(sent: Message, handle: str | None) -> Message:
    return sent._replace(part=sent.part._replace(media="a" * 64), handle=handle)


def media(name: str = "a.png", mime: str = "image/png", size: int = 3) -> Media:
    return Media("a" * 64, name, mime, size)


def kept(fake: FakeMeta, name: str = "a.png", mime: str = "image/png") -> str:
    """The handle of a file that the fake has."""
    media_id = f"{2_000_000_000_000_000 + len(fake.files)}"
    fake.files[media_id] = {"name": name, "mime": mime, "content": b"PNG"}
    return pack(media(name, mime), media_id)


def send(fake: FakeMeta, sent: Message, *script: Scripted, **settings: Any) -> Outcome:
    return remote.send(WhatsAppCloudProvider, fake, fake.settings(**settings), sent, *script)
