"""What stands above a letter, written so that nothing from outside can add a line to it.

Texts lose whatever steers before they are written. Ids and links are never encoded, however long
they are: no client would find the thread again.
"""

from __future__ import annotations

import re
from email.header import Header

LINE = 76
"""Characters of a line. More is allowed, but not everybody bears it."""
LONGEST_WORD = 60

_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def one_line(text: str) -> str:
    """The text without anything that steers, and every space of it one."""
    return " ".join(_CONTROLS.sub(" ", text).split())


def words(text: str, name: str) -> str:
    """A text as a header has it: as it is, or encoded; folded where it is long.

    What looks like an encoded word is encoded, or it would be read as what it decodes to."""
    plain = text.isascii() and "=?" not in text
    if plain and len(name) + len(text) < LINE - 2:
        return text
    plain = plain and all(len(word) <= LONGEST_WORD for word in text.split(" "))
    header = Header(text, "us-ascii" if plain else "utf-8", maxlinelen=LINE, header_name=name)
    return header.encode(linesep="\r\n")


def mailbox(address: str, name: str, header: str) -> str:
    """An address with the name that people see beside it."""
    shown = one_line(name)
    if not shown:
        return address
    if shown.isascii() and "=?" not in shown:
        escaped = shown.replace("\\", "\\\\").replace('"', '\\"')
        phrase = f'"{escaped}"'
    else:
        phrase = words(shown, header)
    return f"{phrase}\r\n <{address}>"


def in_lines(parts: list[str]) -> str:
    """Ids one below the other."""
    return "\r\n ".join(parts)
