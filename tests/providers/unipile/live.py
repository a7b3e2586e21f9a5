"""The engine and the store in real time, with accounts at the fake Unipile."""

from __future__ import annotations

from collections import Counter
from typing import Any

from paceline.engine.ports import Account
from paceline.providers.unipile import UnipileProvider
from tests.providers import live
from tests.providers.remote import PATIENT
from tests.providers.unipile.fake import FakeUnipile

BRISK = live.BRISK


class LiveWorld(live.LiveWorld):
    def __init__(self, url: str, fake: FakeUnipile) -> None:
        super().__init__(url, lambda clock: UnipileProvider(clock, timeout=PATIENT))
        self.fake = fake
        fake.now = self.clock.now

    def connect(self, kind: str = "linkedin", **policy: Any) -> Account:
        return self.enrol(self.fake.settings(kind), policy)

    def targets(self) -> Counter[str]:
        return Counter(one["target"] for one in self.fake.sent)
