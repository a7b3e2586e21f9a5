"""The engine and the store in real time, with an account at the fake Meta."""

from __future__ import annotations

from collections import Counter
from typing import Any

from paceline.engine.commands.receipts import Taken, resolve_by_receipt
from paceline.engine.ports import Account, Receipt
from paceline.providers.whatsapp_cloud import WhatsAppCloudProvider
from tests.providers import live
from tests.providers.remote import PATIENT
from tests.providers.whatsapp_cloud.fake import APP_SECRET, FakeMeta


class LiveWorld(live.LiveWorld):
    def __init__(self, url: str, fake: FakeMeta) -> None:
        super().__init__(url, lambda clock: WhatsAppCloudProvider(clock, timeout=PATIENT))
        self.fake = fake

    def connect(self, options: dict[str, Any] | None = None, **policy: Any) -> Account:
        settings = self.fake.settings(app_secret=APP_SECRET, **(options or {}))
        return self.enrol(settings, policy)

    def targets(self) -> Counter[str]:
        return Counter(one["to"] for one in self.fake.messages)

    def hear(self, headers: dict[str, str], body: bytes) -> list[Taken]:
        """A report comes in: it is verified, read, and what it says of doubts is taken in."""
        account = self.account_now()
        webhooks = WhatsAppCloudProvider(self.clock)
        if not webhooks.verify(account.settings, headers, body, {}):
            return []
        receipts = [
            one for one in webhooks.parse(account.settings, body) if isinstance(one, Receipt)
        ]
        now = self.clock.now()
        return [
            self.write(lambda tx, one=one: resolve_by_receipt(tx, account.id, one, now))  # type: ignore[misc]
            for one in receipts
        ]
