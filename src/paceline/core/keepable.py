"""Text from outside, made fit to be kept: whatever it is compared with was made fit as well."""

from __future__ import annotations

LONGEST_NAME = 2_000
"""Bytes of a name that are kept. An index of PostgreSQL takes 2 700, and no address is longer: it
has 500 characters at most."""


def keepable(text: str) -> str:
    """PostgreSQL stores no NUL, and neither database a lone surrogate."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def keepable_name(text: str) -> str:
    """The same of what people and messages are looked up by. Whoever stores one and whoever looks
    for it cuts it here, so that what is too long is found all the same."""
    kept = keepable(text[:LONGEST_NAME])
    if len(kept) * 4 <= LONGEST_NAME:
        return kept
    return kept.encode()[:LONGEST_NAME].decode(errors="ignore")
