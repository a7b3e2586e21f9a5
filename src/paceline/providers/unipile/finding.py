"""Looking for a message that was sent without an answer, in what Unipile lists.

Presence can be shown, absence cannot: lists lag behind by a minute, hold a page at a time, and an
invitation leaves them as soon as it is accepted. What is not found stays unclear.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

from paceline.core.errors import InputError
from paceline.core.instants import SECOND, Instant, iso, parse_instant
from paceline.core.outcome import Outcome
from paceline.engine.ports import Found, Message
from paceline.providers.answers import name_of, segment
from paceline.providers.unipile.recipients import public_name
from paceline.providers.unipile.settings import UnipileSettings
from paceline.providers.unipile.wire import KEY_HEADER, chat_of

MOST_PAGES = 10
MOST_CHATS = 5
PAGE = 100
SLACK_US = 30 * SECOND
"""How far the clocks may be apart by which we sent something and they received it."""

UNCLEAR = Found("unclear")

Fetch = Callable[[str, Mapping[str, str]], Awaitable[dict[str, Any] | None]]
"""Asks for a path with parameters; None where nothing usable came back."""


async def find(
    fetch: Fetch,
    settings: UnipileSettings,
    message: Message,
    since_at: Instant,
    target: str | None,
) -> Found:
    """``target`` is the message's own, looked up; None where that could not be done."""
    if message.action == "connection_request":
        return await _find_invitation(fetch, settings, message.target, target)
    if message.action == "email":
        return await _find_email(fetch, settings, message, since_at)
    if target is None:
        return UNCLEAR
    return await _find_in_chats(fetch, settings, message._replace(target=target), since_at)


async def _find_invitation(
    fetch: Fetch, settings: UnipileSettings, written: str, target: str | None
) -> Found:
    """One that is pending is theirs, whenever it was made: nobody is invited twice. The list may
    name them by their id, by their public name, or by both."""
    name = public_name(written)
    public = None if isinstance(name, Outcome) else name.casefold()
    async for entry in _listed(fetch, "/users/invite/sent", {"account_id": settings.account_id}):
        listed = entry.get("invited_user_public_id")
        by_name = isinstance(listed, str) and listed.casefold() == public
        if by_name or (target is not None and entry.get("invited_user_id") == target):
            return Found("present", name_of(entry.get("id")))
    return UNCLEAR


async def _find_email(
    fetch: Fetch, settings: UnipileSettings, message: Message, since_at: Instant
) -> Found:
    """By our own key, which no other e-mail bears; the rest only keeps the list short."""
    wanted = {
        "account_id": settings.account_id,
        "role": "sent",
        "to": message.target.strip(),
        "after": _instant(since_at - SLACK_US),
        "include_headers": "true",
    }
    async for entry in _listed(fetch, "/emails", wanted):
        if _bears(entry, message.key):
            return Found("present", name_of(entry.get("tracking_id")) or name_of(entry.get("id")))
    return UNCLEAR


async def _find_in_chats(
    fetch: Fetch, settings: UnipileSettings, message: Message, since_at: Instant
) -> Found:
    """By its words, its direction and its time: a chat keeps nothing else of ours."""
    words, after_at = message.part.text.split(), since_at - SLACK_US
    for chat in await _chats(fetch, settings, message.target.strip()):
        path = f"/chats/{segment(chat)}/messages"
        async for entry in _listed(fetch, path, {"after": _instant(after_at)}):
            text, sent_at = entry.get("text"), _read_instant(entry.get("timestamp"))
            ours = entry.get("is_sender") in (1, True, "1")
            if not ours or not isinstance(text, str) or text.split() != words:
                continue
            if sent_at is not None and sent_at >= after_at:
                return Found("present", name_of(entry.get("id")))
    return UNCLEAR


async def _chats(fetch: Fetch, settings: UnipileSettings, target: str) -> list[str]:
    chat = chat_of(target)
    if chat is not None:
        return [chat]
    path = f"/chat_attendees/{segment(target)}/chats"
    chats: list[str] = []
    async for entry in _listed(fetch, path, {"account_id": settings.account_id}):
        name = name_of(entry.get("id"))
        if name is not None:
            chats.append(name)
        if len(chats) == MOST_CHATS:
            break
    return chats


async def _listed(
    fetch: Fetch, path: str, parameters: Mapping[str, str]
) -> AsyncIterator[dict[str, Any]]:
    """The entries of a list, page after page, up to a limit."""
    cursor: object = None
    for _ in range(MOST_PAGES):
        more = {"cursor": cursor} if isinstance(cursor, str) else {}
        page = await fetch(path, {**parameters, "limit": str(PAGE), **more})
        entries = page.get("items") if page is not None else None
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                yield entry
        before, cursor = cursor, page.get("cursor") if page is not None else None
        if not isinstance(cursor, str) or not cursor or cursor == before:
            return


def _bears(entry: Mapping[str, Any], key: str) -> bool:
    """Whether an e-mail was sent with our key; header names are written in any case."""
    for field in ("headers", "custom_headers"):
        headers = entry.get(field)
        for header in headers if isinstance(headers, list) else ():
            if not isinstance(header, dict) or not isinstance(header.get("name"), str):
                continue
            if header["name"].casefold() == KEY_HEADER.casefold() and header.get("value") == key:
                return True
    return False


def _instant(at: Instant) -> str:
    """As Unipile takes it: to the millisecond, never less and never more."""
    whole = iso(at - at % 1_000)
    seconds, dot, fraction = whole.removesuffix("Z").partition(".")
    return f"{seconds}.{fraction[:3] if dot else '000'}Z"


def _read_instant(raw: object) -> Instant | None:
    try:
        return parse_instant(raw) if isinstance(raw, str) else None
    except (InputError, OverflowError):
        return None
