"""HTML read aloud: the text that goes beside it for those who see none.

Links keep where they lead, lists their marks, pictures what they are called. What is no part of
what is read (scripts, styles, comments) is left out. However a page is nested, what is read of it
is not much longer than the page.
"""

from __future__ import annotations

import contextlib
import re
from html.parser import HTMLParser

_UNREAD = frozenset({"head", "script", "style", "template", "title", "noscript"})
_APART = frozenset(
    {"address", "article", "aside", "blockquote", "div", "dl", "fieldset", "figure", "footer",
     "form", "header", "main", "nav", "section", "table", "tr", "dt", "dd", "li", "center"}
)  # fmt: skip
_PARAGRAPHS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6", "p", "pre", "ul", "ol", "hr"})
MOST_INSET = 8
"""Lists within lists that are set in further; anybody may write a page of thousands of them."""
_VOID = frozenset({"br", "hr", "img", "wbr", "input", "meta", "link", "col", "area", "base"})


def plain_text(html: str, most: int | None = None) -> str:
    """What somebody would read out who has this page before them; the rest of it is not read where
    that is more than so many characters."""
    reader = _Reader(most)
    with contextlib.suppress(_Enough):
        reader.feed(html)
        reader.close()
    return reader.text()[:most]


class _Enough(Exception):
    """Nobody wants to hear more of it."""


class _Reader(HTMLParser):
    def __init__(self, most: int | None) -> None:
        super().__init__(convert_charrefs=True)
        self._most = most
        self._said = 0
        self._pieces: list[str] = []
        self._unread = 0
        self._pre = 0
        self._lists: list[int | None] = []
        """The number of the last entry; None for lists that have no numbers."""
        self._links: list[tuple[str, int]] = []
        """Where each open link leads, and where its words begin."""

    def text(self) -> str:
        whole = "".join(self._pieces)
        lines = [line.rstrip() for line in whole.split("\n")]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n").replace("\x00", " ")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in _UNREAD:
            self._unread += 1
        elif tag == "body":
            # Its head need not have been ended.
            self._unread = 0
        elif tag == "br":
            self._say("\n")
        elif tag == "img":
            self._say(given.get("alt", ""))
        elif tag in ("td", "th") and not self._at_line_start():
            self._say(" ")
        elif tag == "a":
            self._links.append((given.get("href", "").strip(), len(self._pieces)))
        self._break_before(tag)
        if tag in ("ul", "ol"):
            self._lists.append(0 if tag == "ol" else None)
        elif tag == "li":
            self._say(self._mark())
        elif tag == "hr":
            self._say("---\n\n")
        elif tag == "pre":
            self._pre += 1

    def handle_endtag(self, tag: str) -> None:
        if tag in _UNREAD:
            self._unread = max(0, self._unread - 1)
        elif tag == "a" and self._links:
            self._end_link()
        elif tag in ("ul", "ol") and self._lists:
            self._lists.pop()
        elif tag == "pre":
            self._pre = max(0, self._pre - 1)
        if tag not in _VOID:
            self._break_before(tag)

    def handle_data(self, data: str) -> None:
        if self._pre:
            self._say(data)
            return
        words = re.sub(r"\s+", " ", data)
        if self._pieces and self._pieces[-1].endswith((" ", "\n")):
            words = words.lstrip(" ")
        self._say(words)

    def _say(self, words: str) -> None:
        if words and not self._unread:
            self._pieces.append(words)
            self._said += len(words)
            if self._most is not None and self._said >= self._most:
                raise _Enough

    def _break_before(self, tag: str) -> None:
        if tag in _PARAGRAPHS and not (tag in ("ul", "ol") and self._lists):
            self._rest("\n\n")
        elif tag in _APART or tag in _PARAGRAPHS:
            self._rest("\n")

    def _rest(self, least: str) -> None:
        """End the line, unless it has been ended already."""
        end = "".join(self._pieces[-3:])
        tail = end[len(end.rstrip("\n")) :]
        if end.strip() and len(tail) < len(least):
            self._say(least[len(tail) :])

    def _at_line_start(self) -> bool:
        return not self._pieces or self._pieces[-1].endswith("\n")

    def _mark(self) -> str:
        number = self._lists[-1] if self._lists else None
        inset = "  " * (min(len(self._lists), MOST_INSET) - 1)
        if number is None:
            return f"{inset}- "
        self._lists[-1] = number + 1
        return f"{inset}{number + 1}. "

    def _end_link(self) -> None:
        address, since = self._links.pop()
        words = "".join(self._pieces[since:]).strip()
        shown = address.removeprefix("mailto:")
        if shown and not shown.startswith(("#", "javascript:", "cid:")) and shown != words:
            self._say(f" ({shown})" if words else shown)
