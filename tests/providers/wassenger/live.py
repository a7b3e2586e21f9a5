"""The engine and the store in real time, with an account at the fake Wassenger."""

from __future__ import annotations

from collections import Counter
from typing import Any

from paceline.engine.ports import Account
from paceline.providers.wassenger import WassengerProvider
from tests.providers import live
from tests.providers.remote import PATIENT
from tests.providers.wassenger.fake import FakeWassenger


class LiveWorld(live.LiveWorld):
    def __init__(self, url: str, fake: FakeWassenger) -> None:
        super().__init__(url, lambda clock: WassengerProvider(clock, timeout=PATIENT))
        self.fake = fake
        fake.now = self.clock.now

    def connect(self, options: dict[str, Any] | None = None, **policy: Any) -> Account:
        return self.enrol(self.fake.settings(**(options or {})), policy)

    def targets(self) -> Counter[str]:
        return Counter(one["phone"] or one["group"] for one in self.fake.messages)
