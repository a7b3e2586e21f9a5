"""What the tests that read letters share."""

from __future__ import annotations

from paceline.core.instants import parse_instant
from paceline.engine.ports.webhooks import Inbound, News, Returned
from paceline.providers.mail.incoming import LONGEST_TEXT
from paceline.providers.mail.reports import LONGEST_SUBJECT, read_letter
from tests.providers.mail.letters_in import OURS

AT = parse_instant("2026-11-16T12:00:00Z")


def read(raw: bytes) -> list[News]:
    return read_letter(raw, ours=[OURS, "sales@shop.example"], at=AT)


def check(news: list[News]) -> None:
    """Small enough, and such that both databases keep it."""
    assert len(news) <= 50
    for each in news:
        for value in each:
            if isinstance(value, str):
                value.encode()
                assert "\x00" not in value
        if isinstance(each, Inbound):
            assert each.sender and each.chat and len(each.sender) <= 254 >= len(each.chat)
            assert len(each.text) <= LONGEST_TEXT and len(each.subject) <= LONGEST_SUBJECT
            assert "\n" not in each.subject and 0 < len(each.provider_id) <= 255
        if isinstance(each, Returned):
            assert len(each.reason) <= 300 and len(each.address) <= 254
            assert "\n" not in each.reason
