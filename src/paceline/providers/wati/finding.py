"""Looking for a message that was sent without an answer, in what WATI lists of a conversation.

Presence can be shown, absence cannot: a message is listed some time after it was taken. Most bear
our own name, which no other message has. Where a list does not tell names, a text is known by its
words and a template by its own name, both by their time; of a file nothing is left to know it by.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from paceline.core.instants import SECOND, Instant
from paceline.core.outcome import Outcome
from paceline.engine.ports import Found, Message
from paceline.providers.answers import Said, one_line, segment
from paceline.providers.wati.settings import WatiSettings
from paceline.providers.wati.wire import (
    bears_our_name,
    name_in,
    own_name_in,
    target_of,
    time_of,
)

MOST_PAGES = 3
PAGE = 100
SLACK_US = 5 * SECOND
"""How far the clocks may be apart by which we sent something and WATI received it."""

BROADCAST = "broadcastMessage"
FAILED = "failed"

UNCLEAR = Found("unclear")

Fetch = Callable[[str, Mapping[str, str]], Awaitable[object]]
"""Asks for a path with parameters: what was answered, or None."""


async def find(fetch: Fetch, settings: WatiSettings, message: Message, since_at: Instant) -> Found:
    to = target_of(message.target)
    if isinstance(to, Outcome) or (message.part.media is not None and not message.part.template):
        return UNCLEAR
    path = f"{settings.tenant}/api/v1/getMessages/{segment(to)}"
    after_at = since_at - SLACK_US
    for page in range(1, MOST_PAGES + 1):
        entries = _listed(await fetch(path, _asked(page, settings)))
        for entry in entries:
            if _is_it(entry, message, settings, after_at):
                return Found("present", name_in(entry))
        # What is older is on the pages that follow.
        if not any((time_of(entry) or 0) >= after_at for entry in entries):
            break
    return UNCLEAR


def _asked(page: int, settings: WatiSettings) -> dict[str, str]:
    asked = {"pageSize": str(PAGE), "pageNumber": str(page)}
    return asked | ({"channelPhoneNumber": settings.channel} if settings.channel else {})


def _listed(said: object) -> list[Said]:
    messages = said.get("messages") if isinstance(said, dict) else None
    items = messages.get("items") if isinstance(messages, dict) else None
    return [one for one in items if isinstance(one, dict)] if isinstance(items, list) else []


def _is_it(entry: Said, message: Message, settings: WatiSettings, after_at: Instant) -> bool:
    # One that failed may be an earlier attempt at the same, whose name is the same.
    if _word(entry.get("statusString")).lower() == FAILED:
        return False
    name = own_name_in(entry)
    if name is not None and bears_our_name(message, settings):
        return name == message.key
    at = time_of(entry)
    if at is None or at < after_at:
        return False
    return _shows(entry, message.part.template) if message.part.template else _says(entry, message)


def _says(entry: Said, message: Message) -> bool:
    text = entry.get("text")
    ours = entry.get("owner") is True and isinstance(text, str)
    return ours and _word(text).split() == message.part.text.split()


def _shows(entry: Said, template: str) -> bool:
    """WATI names a template in the words with which it shows that one was sent."""
    if entry.get("eventType") != BROADCAST:
        return False
    told = one_line(_word(entry.get("eventDescription")))
    return entry.get("templateName") == template or f'"{template}"' in told


def _word(raw: object) -> str:
    return raw if isinstance(raw, str) else ""
