"""What lies in a mailbox of the fake Gmail, and how it tells of it: history, lists, letters.

As Google's reference has it: what happens in a mailbox is numbered, with gaps; lists are given page
by page, the newest first; numbers that are too old are not found.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from typing import Any

HISTORY_KEYS = {"startHistoryId", "historyTypes", "maxResults", "pageToken"}
LIST_KEYS = {"labelIds", "q", "includeSpamTrash", "maxResults", "pageToken"}
HIDDEN = {"SPAM", "TRASH"}


@dataclass(frozen=True)
class Stored:
    id: str
    raw: bytes
    labels: tuple[str, ...]
    at_s: int
    number: int

    @property
    def short(self) -> dict[str, Any]:
        return {"id": self.id, "threadId": self.id}


class Post:
    """A mailbox."""

    def __init__(self) -> None:
        self.letters: list[Stored] = []
        self.number = 9_007_199_254_740_993
        """One more than every number that a float can hold."""
        self.known_from = 0
        """Numbers before this one are forgotten."""
        self.page = 500
        self.slow: set[str] = set()
        """Letters that are told of once before they can be got."""
        self.gone: set[str] = set()
        self.asked: list[str] = []
        """What was asked for, in order."""

    @property
    def history_id(self) -> str:
        return str(self.number)

    def put(self, raw: bytes, *labels: str, at_s: int = 1_790_000_000) -> str:
        self.number += 7
        name = f"19a{len(self.letters):013x}"
        self.letters.append(Stored(name, raw, labels or ("INBOX", "UNREAD"), at_s, self.number))
        return name

    def forget(self) -> None:
        """However far the mailbox was read, nobody knows it any more."""
        self.number += 7
        self.known_from = self.number

    def tell(self, path: str, query: dict[str, str]) -> dict[str, Any] | None:
        """What is answered; None where there is no such thing."""
        kind, _, name = path.partition("/")
        self.asked.append(path)
        if path == "history":
            return self._history(query)
        if path == "messages":
            return self._list(query)
        return self._letter(name, query) if kind == "messages" else None

    def _history(self, query: dict[str, str]) -> dict[str, Any] | None:
        assert set(query) <= HISTORY_KEYS and query["historyTypes"] == "messageAdded", query
        start = int(query["startHistoryId"])
        if start < self.known_from:
            return None
        added = [one for one in self.letters if one.number > start]
        shown, more = self._paged(added, query)
        records = [
            {
                "id": str(one.number),
                "messages": [one.short],
                "messagesAdded": [{"message": {**one.short, "labelIds": list(one.labels)}}],
            }
            for one in shown
        ]
        return {**({"history": records} if records else {}), "historyId": self.history_id, **more}

    def _list(self, query: dict[str, str]) -> dict[str, Any]:
        assert set(query) <= LIST_KEYS and query["q"].startswith("after:"), query
        since_s, label = int(query["q"].removeprefix("after:")), query["labelIds"]
        hidden = set() if query.get("includeSpamTrash") == "true" else HIDDEN
        found = [
            one
            for one in reversed(self.letters)
            if one.at_s >= since_s and label in one.labels and not hidden & set(one.labels)
        ]
        shown, more = self._paged(found, query)
        listed = {"messages": [one.short for one in shown]} if shown else {}
        return {**listed, "resultSizeEstimate": len(found), **more}

    def _paged(
        self, found: list[Stored], query: dict[str, str]
    ) -> tuple[list[Stored], dict[str, str]]:
        assert 1 <= int(query["maxResults"]) <= 500
        size = min(int(query["maxResults"]), self.page)
        first = int(query.get("pageToken", "page-0").removeprefix("page-"))
        more = {"nextPageToken": f"page-{first + size}"} if first + size < len(found) else {}
        return found[first : first + size], more

    def _letter(self, name: str, query: dict[str, str]) -> dict[str, Any] | None:
        assert query == {"format": "raw"}, query
        if name in self.slow or name in self.gone:
            self.slow.discard(name)
            return None
        (one,) = [each for each in self.letters if each.id == name]
        return {
            **one.short,
            "labelIds": list(one.labels),
            "snippet": 'They wrote: "raw": "bm8" & more',
            "sizeEstimate": len(one.raw),
            "raw": urlsafe_b64encode(one.raw).decode(),
            "historyId": str(one.number),
            "internalDate": str(one.at_s * 1000),
        }
