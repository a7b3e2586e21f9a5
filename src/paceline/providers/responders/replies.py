"""What a responder said, made fit to be sent: bounded, trimmed, and without what nobody can see."""

from __future__ import annotations

import re

LONGEST_REPLY = 4_000
"""Characters; WhatsApp takes 4 096, and nobody wants to read as many."""

_THOUGHT = "</think>"
_THINKS = "<think>"
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_SENTENCE_ENDS = re.compile(r"[.!?…][)\]\"'»”’*_]*(?=\s|$)|[。！？]|\n")


def fit(text: str, *, broken_off: bool = False) -> str:
    """The text as it may be sent; one that broke off or is too long ends with a whole sentence."""
    clean = _UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip()
    if len(clean) > LONGEST_REPLY:
        clean, broken_off = clean[: LONGEST_REPLY - 1], True
    return _whole_sentences(clean) if broken_off else clean


def without_thoughts(text: str) -> str:
    """What a model said, without what it said to itself before: some servers leave it in."""
    if _THOUGHT in text:
        return text.rpartition(_THOUGHT)[2]
    return "" if text.lstrip().startswith(_THINKS) else text


def _whole_sentences(text: str) -> str:
    ends = [found.end() for found in _SENTENCE_ENDS.finditer(text)]
    if ends:
        return text[: ends[-1]].rstrip()
    return f"{text}…" if text else ""
