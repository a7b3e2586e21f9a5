"""A table of words: whoever says one of them is given its reply, filled in with what is known.

The replies are templates in the house's sandbox. What somebody has written is only searched, and
never becomes part of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paceline.core.answering import Rules
from paceline.core.errors import InputError
from paceline.core.folding import AnyOf, folded
from paceline.core.template import TARGET, render
from paceline.engine.ports.answering import Answer, Burst, ResponderRefused
from paceline.providers.responders.replies import fit

MOST_SEARCHED = 10_000
"""Characters: searching takes time, and nobody asks the price at the end of a book."""


class RulesResponder:
    """Knows its words by heart; nobody is asked."""

    def __init__(self, how: Rules) -> None:
        self._rules = [(AnyOf(rule.words), rule.reply) for rule in how.rules]
        self._otherwise = how.otherwise

    async def answer(self, burst: Burst) -> Answer:
        text = folded(burst.text[:MOST_SEARCHED])
        for number, (words, reply) in enumerate(self._rules, start=1):
            found = words.found_in(text)
            if found is not None:
                return _filled(reply, burst, f"rule {number}, {found!r}")
        if self._otherwise is None:
            raise ResponderRefused("no rule has a word of what was said")
        return _filled(self._otherwise, burst, "no rule fits")

    async def close(self) -> None:
        """There is nothing to let go of."""


def _filled(reply: str, burst: Burst, note: str) -> Answer:
    try:
        text = render(reply, {**_texts(burst.fields), TARGET: burst.chat})
    except InputError as error:
        raise ResponderRefused(f"the reply cannot be filled in ({note}): {error}") from None
    return Answer(fit(text), note)


def _texts(fields: Mapping[str, Any]) -> dict[str, str]:
    """What is known of somebody, as texts; what is not known is left out, and so can have a
    default."""
    return {name: str(value) for name, value in fields.items() if value is not None}
