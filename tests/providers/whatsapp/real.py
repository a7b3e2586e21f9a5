"""The real library, never connected: it is given events as its inner library does, as bytes.

It is loaded late, and by the tests that need it alone: half of it is not Python, and it helps
itself to the process it is in.
"""

import ctypes
import importlib
from base64 import b64encode
from types import ModuleType
from typing import Any

from paceline.providers.whatsapp.process import read_event
from paceline.providers.whatsapp.wire import WireEvent

AT = 1_794_733_200
FAMILY = "120363000000000001"


class Account:
    """A client of the real library, and what it told."""

    def __init__(self, library: ModuleType) -> None:
        self.told: list[dict[str, Any]] = []
        self.made = library.Library("never.session", self.told.append)
        self.client = self.made._client

    def happens(self, event: Any) -> list[WireEvent]:
        """Hand it an event, with whatever its kind requires besides."""
        numbers = importlib.import_module("neonize.events").EVENT_TO_INT
        raw = filled(event).SerializeToString()
        buffer = ctypes.create_string_buffer(raw, len(raw))
        self.told.clear()
        self.client.event.execute(0, ctypes.addressof(buffer), len(raw), numbers[type(event)])
        return self.heard()

    def heard(self) -> list[WireEvent]:
        return [read_event(told) for told in self.told]


def filled(event: Any) -> Any:
    """The same, with its required fields set: none of it can be written without them."""
    for field in event.DESCRIPTOR.fields:
        if field.message_type is not None:
            if field.is_repeated:
                for one in getattr(event, field.name):
                    filled(one)
            elif field.is_required or event.HasField(field.name):
                getattr(event, field.name).SetInParent()
                filled(getattr(event, field.name))
        elif field.is_required and not event.HasField(field.name):
            setattr(event, field.name, field.default_value)
    return event


def jid(proto: Any, user: str, server: str = "s.whatsapp.net", device: int = 0) -> Any:
    return proto.JID(
        User=user, Server=server, Device=device, RawAgent=0, Integrator=0, IsEmpty=False
    )


def b64(raw: bytes) -> str:
    return b64encode(raw).decode()


def draft(kind: str | None, **more: Any) -> dict[str, Any]:
    """A message as it comes through the pipe."""
    file = {
        "url": "https://mmg.whatsapp.net/x", "path": "/x", "key": b64(b"k" * 32),
        "sha256": b64(b"s" * 32), "encrypted_sha256": b64(b"e" * 32), "length": 12_345,
        "thumbnail": b64(b"\xff\xd8"), "width": 640, "height": 480,
    }  # fmt: skip
    usual = {
        "text": "See you", "kind": kind, "mime": "image/png", "name": "poster.png",
        "uploaded_at": AT * 1_000_000, "file": None if kind is None else file,
    }  # fmt: skip
    return usual | more


def group_info(proto: Any, *, announce: bool = False, admin: bool = False) -> Any:
    """A group of two: us, and somebody who made it."""

    def member(user: str, lid: str, **more: Any) -> Any:
        hidden = jid(proto, lid, "lid")
        return proto.GroupParticipant(JID=hidden, LID=hidden, PhoneNumber=jid(proto, user), **more)

    return proto.GroupInfo(
        JID=jid(proto, FAMILY, "g.us"),
        GroupName=proto.GroupName(Name="Family"),
        GroupAnnounce=proto.GroupAnnounce(IsAnnounce=announce),
        Participants=[
            member("4915112345678", "77", IsAdmin=admin),
            member("4915187654321", "78", IsSuperAdmin=True),
        ],
    )
