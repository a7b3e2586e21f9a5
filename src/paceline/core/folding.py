"""Words that people write, found again however they are written: capitals, accents do not count.

Pure, and about texts only; what follows from a word is decided elsewhere.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_ACCENTS = dict.fromkeys(range(0x0300, 0x0370))
"""The marks that stand on Latin, Greek and Cyrillic letters. Those of other scripts tell words
apart: a Thai vowel is one, and so is what makes が of か."""

_VARIATIONS = dict.fromkeys(range(0xFE00, 0xFE10))
"""How a sign is to be drawn, and not which one it is."""

_ALIKE = str.maketrans({"’": "'", "‘": "'", "`": "'", "´": "'"})

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
"""Scripts that put no space between words, or hang other words onto them: where one of these
letters ends a word, nobody can see it."""


def folded(text: str) -> str:
    """A text without what does not count: capitals, accents, and whatever cannot be seen."""
    if text.isascii():
        # Nothing of it comes apart, or cannot be seen.
        return text.replace("`", "'").casefold()
    # The apostrophes first: an accent that stands alone would come apart into a blank and a mark.
    # Then apart, and once more: some are capitals only when they are, and some capitals are two.
    plain = unicodedata.normalize("NFKD", text.translate(_ALIKE)).casefold()
    apart = unicodedata.normalize("NFKD", plain)
    bare = apart.translate(_ACCENTS).translate(_VARIATIONS)
    seen = (letter for letter in bare if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFC", "".join(seen))


class AnyOf:
    """Finds the first of these words, or of these words in a row."""

    def __init__(self, words: Iterable[str]) -> None:
        plain = {folded(word).strip() for word in words}
        # The longest first: of two that begin alike, a person means the one that says more.
        longest = sorted(plain, key=lambda word: (-len(word), word))
        self._pattern = re.compile("|".join(_whole(word) for word in longest))
        self._beginnings = sorted({word.split()[0] for word in plain})

    def found_in(self, text: str) -> str | None:
        """Which of them is in a text that is folded already; None where none is."""
        # Most texts have none of them, and that much is seen a hundred times faster.
        if not any(beginning in text for beginning in self._beginnings):
            return None
        found = self._pattern.search(text)
        return None if found is None else found[0]


def _whole(word: str) -> str:
    """As a word of its own, not as a piece of another, however wide the spaces in it are."""
    inner = r"\s+".join(re.escape(piece) for piece in word.split())
    before = "" if _runs_on(word[0]) else r"(?<!\w)"
    after = "" if _runs_on(word[-1]) else r"(?!\w)"
    return f"{before}{inner}{after}"


def _runs_on(letter: str) -> bool:
    return _UNSPACED.fullmatch(letter) is not None
