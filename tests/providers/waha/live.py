"""The engine and the store in real time, with an account at the fake WAHA."""

from __future__ import annotations

from collections import Counter
from typing import Any

from paceline.engine.ports import Account
from paceline.providers.waha import WahaProvider
from tests.providers import live
from tests.providers.remote import PATIENT
from tests.providers.waha.fake import FakeWaha


class LiveWorld(live.LiveWorld):
    def __init__(self, url: str, fake: FakeWaha) -> None:
        super().__init__(url, lambda clock: WahaProvider(clock, timeout=PATIENT))
        self.fake = fake
        fake.now = self.clock.now

    def connect(self, options: dict[str, Any] | None = None, **policy: Any) -> Account:
        return self.enrol(self.fake.settings(**(options or {})), policy)

    def targets(self) -> Counter[str]:
        return Counter(address_of(one["chat"]) for one in self.fake.messages)


def address_of(chat: str) -> str:
    """The address by which somebody is written to."""
    return f"+{chat.removesuffix('@c.us')}" if chat.endswith("@c.us") else chat
