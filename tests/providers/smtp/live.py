"""The engine and the store in real time, with a mailbox at the fake server."""

from __future__ import annotations

from collections import Counter
from typing import Any

from paceline.core.model import Target
from paceline.engine.ports import Account
from paceline.providers.smtp import SmtpProvider
from tests.providers import live
from tests.providers.smtp.fake import FakeServer
from tests.providers.smtp.stage import PATIENT

PEOPLE = [Target(f"n{number:02}@example.com", {"name": f"N{number}"}) for number in range(20)]


class LiveWorld(live.LiveWorld):
    def __init__(self, url: str, fake: FakeServer) -> None:
        super().__init__(url, lambda clock: SmtpProvider(clock, timing=PATIENT))
        self.fake = fake

    def connect(self, options: dict[str, Any] | None = None, **policy: Any) -> Account:
        return self.enrol(self.fake.settings(**(options or {})), policy)

    def received(self) -> Counter[str]:
        return Counter(self.fake.recipients())
