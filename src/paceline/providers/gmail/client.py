"""How Gmail is asked in the name of one mailbox: by whoever sends from it, and whoever reads it.

A token that Gmail refuses is replaced once and the call made again, which is safe: nothing is done
for whoever is not let in. Tokens are made in ``tokens.py``; what answers mean is in ``errors.py``.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.outcome import Outcome, OutcomeKind, transient
from paceline.engine.ports import Clock
from paceline.providers.answers import Answer, one_line
from paceline.providers.gmail.errors import NOT_DELEGATED, is_stale, outcome_of
from paceline.providers.gmail.settings import GmailSettings, Key
from paceline.providers.gmail.tokens import SCOPES, Signer, Tokens
from paceline.providers.http import LOST, MOST_BODY, Line, told
from paceline.providers.options import is_local

USER = "/gmail/v1/users/me"
"""The mailbox that the token was made for."""

SHORTEST_HIDDEN = 16
"""The last line of a key may be a few letters long, which other words have in them, too."""

ADVICE = f"delegate {','.join(SCOPES)}"
"""What helps whoever is told that a scope is missing."""

STOPS = (OutcomeKind.UNAUTHORISED, OutcomeKind.BANNED)

Headers = Mapping[str, str]


class GmailLine(Line):
    """A line over which tokens go that are not known before."""

    def __init__(self, settings: GmailSettings, tokens: Tokens, key: Key, **more: Any) -> None:
        super().__init__(
            "Gmail", settings.api_url, {}, secrets=spellings(key), local=settings.is_local, **more
        )
        self._tokens = tokens

    def masked(self, text: str) -> str:
        return super().masked(self._tokens.hidden(text))


def line_to_tokens(
    settings: GmailSettings, key: Key, trust: ssl.SSLContext, timeout: httpx.Timeout | None
) -> tuple[Line, str]:
    """The line to whoever makes tokens, and the path there."""
    parts = urlsplit(settings.token_uri)
    line = Line(
        "Google",
        f"{parts.scheme}://{parts.netloc}",
        {},
        trust,
        secrets=spellings(key),
        local=is_local(settings.token_uri),
        timeout=timeout,
    )
    return line, parts.path or "/"


def spellings(key: Key) -> Iterator[str]:
    """A key as it may come back: the whole file, the longest first, and every line of what in it is
    secret, however the lines are put together."""
    yield key.text
    yield one_line(key.text)
    for line in key.private.replace("\\n", "\n").splitlines():
        if len(line.strip()) >= SHORTEST_HIDDEN and not line.startswith("-----"):
            yield line.strip()


class Api:
    """Gmail, as far as one mailbox is concerned."""

    def __init__(self, clock: Clock, name: str, line: Line, tokens: Tokens) -> None:
        self.name = name
        self.line = line
        self._clock = clock
        self._tokens = tokens

    @classmethod
    def to(
        cls,
        clock: Clock,
        name: str,
        settings: GmailSettings,
        mailbox: str,
        *,
        trust: ssl.SSLContext,
        timeout: httpx.Timeout | None,
    ) -> Api:
        """With what these settings say; ``ProviderRefused`` where they hold no key."""
        key = settings.key()
        signer = Signer(key)
        line, path = line_to_tokens(settings, key, trust, timeout)
        tokens = Tokens(clock, signer, mailbox, line, path)
        return cls(
            clock, name, GmailLine(settings, tokens, key, trust=trust, timeout=timeout), tokens
        )

    async def close(self) -> None:
        await self.line.close()
        await self._tokens.close()

    async def ask(
        self, path: str, parameters: Mapping[str, str] | None = None, *, most: int = MOST_BODY
    ) -> Answer | Outcome:
        """The answer to a question; an outcome where there is none."""

        async def ask(headers: Headers) -> Answer | Outcome:
            try:
                return await self.line.call(
                    "GET", path, most=most, params=parameters, headers=headers
                )
            except LOST as error:
                return transient(self.line.masked(f"no answer from Gmail: {told(error)}"))

        return await self.with_token(ask)

    async def with_token(
        self, call: Callable[[Headers], Awaitable[Answer | Outcome]]
    ) -> Answer | Outcome:
        """Make a call; once more with another token where Gmail does not know the first."""
        for last in (False, True):
            if self.line.closed:
                return transient("the account has been closed", "closed")
            token = await self._tokens.get()
            if isinstance(token, Outcome):
                return _advised(token)
            answer = await call({"Authorization": f"Bearer {token}"})
            if last or isinstance(answer, Outcome) or not is_stale(answer):
                return answer
            self._tokens.discard(token)
        raise AssertionError("the second answer is the last one")

    def reading(self, answer: Answer | Outcome) -> Outcome:
        """What an answer that was no use means, fit to be told."""
        if isinstance(answer, Outcome):
            return answer
        outcome = _advised(outcome_of(answer, self._clock.now()))
        return outcome._replace(reason=self.line.masked(outcome.reason))

    def trouble(self, outcome: Outcome) -> ProviderError:
        """What keeps somebody from using the mailbox, to be raised."""
        kind = ProviderRefused if outcome.kind in STOPS else ProviderError
        return kind(f"{self.name}: {outcome.reason}")


def _advised(outcome: Outcome) -> Outcome:
    if outcome.code not in NOT_DELEGATED:
        return outcome
    return outcome._replace(reason=f"{outcome.reason.rstrip('.')}; {ADVICE}")
