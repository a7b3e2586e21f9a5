"""The engine and the store in real time, with an account at the fake WATI."""

from __future__ import annotations

from collections import Counter
from typing import Any

from paceline.engine.ports import Account
from paceline.providers.wati import WatiProvider
from tests.providers import live
from tests.providers.remote import PATIENT
from tests.providers.wati.fake import FakeWati


class LiveWorld(live.LiveWorld):
    def __init__(self, url: str, fake: FakeWati) -> None:
        super().__init__(url, lambda clock: WatiProvider(clock, timeout=PATIENT))
        self.fake = fake
        fake.now = self.clock.now

    def connect(self, options: dict[str, Any] | None = None, **policy: Any) -> Account:
        return self.enrol(self.fake.settings(**(options or {})), policy)

    def targets(self) -> Counter[str]:
        return Counter(f"+{one['to']}" for one in self.fake.messages)
