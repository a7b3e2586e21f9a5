"""The engine and the store in real time, with a mailbox at the fake Gmail."""

from __future__ import annotations

from collections import Counter
from typing import Any

from paceline.engine.ports import Account
from paceline.providers.gmail import GmailProvider
from tests.providers import live
from tests.providers.gmail.fake import FakeGmail
from tests.providers.remote import PATIENT


class LiveWorld(live.LiveWorld):
    def __init__(self, url: str, fake: FakeGmail) -> None:
        super().__init__(url, lambda clock: GmailProvider(clock, timeout=PATIENT))
        self.fake = fake
        fake.now = self.clock.now

    def connect(self, options: dict[str, Any] | None = None, **policy: Any) -> Account:
        return self.enrol(self.fake.settings(**(options or {})), policy)

    def targets(self) -> Counter[str]:
        return Counter(one.to for one in self.fake.sent)
