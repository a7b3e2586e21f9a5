"""The tokens with which a service account writes in the name of a mailbox.

It signs what it wants with its key, and Google answers with a token that is good for an hour
(RFC 7523). ``google-auth`` signs; its way to ask would hold up everything else, so that is done
here. A token is kept in memory, for one account, and is replaced before it ends.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from typing import TYPE_CHECKING, Any

import google.auth.crypt
import google.auth.jwt
from cryptography.exceptions import UnsupportedAlgorithm

from paceline.core.errors import ProviderRefused
from paceline.core.instants import SECOND
from paceline.core.outcome import Outcome, OutcomeKind, transient
from paceline.engine.ports import Clock
from paceline.providers.answers import Answer
from paceline.providers.gmail.errors import no_token
from paceline.providers.http import LOST, MASK, Line, told

if TYPE_CHECKING:
    from paceline.providers.gmail.settings import Key

AUDIENCE = "https://oauth2.googleapis.com/token"
"""Whom a request is meant for. The same wherever it is sent."""
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
SCOPES = (
    "https://www.googleapis.com/auth/gmail.send",
    "https://www.googleapis.com/auth/gmail.readonly",
)
"""To send, and to look at the mailbox and for what was sent: nothing else is asked for."""

LIFE_S = 3_600
"""For how long a token is asked for. Google gives no more."""
EARLY_S = 300
"""So long before its end a token is replaced."""
WITHIN_S = 10.0
"""How long a token may be waited for: a letter must not fall into doubt by it."""
MOST_REMEMBERED = 4

_TOKEN = re.compile(r"[\x21-\x7e]{1,8192}")


class Signer:
    """Signs in the name of a service account; ``ProviderRefused`` if its key is none."""

    def __init__(self, key: Key) -> None:
        self.email = key.email
        try:
            self._signer = google.auth.crypt.RSASigner.from_string(key.private, key.id or None)
            # A key of another kind can be read, and is found out only here.
            self._signer.sign(b"")
        except (ValueError, TypeError, AttributeError, UnsupportedAlgorithm):
            # The library's own words may quote the key.
            raise ProviderRefused("the service account's private_key is no RSA key") from None

    def signed(self, claims: dict[str, Any]) -> str:
        return google.auth.jwt.encode(self._signer, claims).decode()


class Tokens:
    """The token of one account: the one there is, or another."""

    def __init__(self, clock: Clock, signer: Signer, subject: str, line: Line, path: str) -> None:
        self._clock = clock
        self._signer = signer
        self._subject = subject
        self._line = line
        self._path = path
        self._token = ""
        self._good_until_us = 0
        self._asking = asyncio.Lock()
        self._issued: deque[str] = deque(maxlen=MOST_REMEMBERED)

    async def get(self) -> str | Outcome:
        """A token, or what it means for a letter that there is none."""
        if not self._is_good():
            # Several letters may want one at once; the first of them asks for all.
            async with self._asking:
                if not self._is_good():
                    return await self._ask()
        return self._token

    def discard(self, token: str) -> None:
        """A token that was refused; another one may have taken its place already."""
        if token == self._token:
            self._token = ""

    def hidden(self, text: str) -> str:
        """The text without any token in it that was given out lately."""
        for token in self._issued:
            text = text.replace(token, MASK)
        return text

    async def close(self) -> None:
        await self._line.close()

    def _is_good(self) -> bool:
        return bool(self._token) and self._clock.monotonic_us() < self._good_until_us

    async def _ask(self) -> str | Outcome:
        if self._line.closed:
            return transient("the account has been closed", "closed")
        asked_us, assertion = self._clock.monotonic_us(), self._assertion()
        try:
            async with asyncio.timeout(WITHIN_S):
                answer = await self._line.call(
                    "POST", self._path, data={"grant_type": GRANT, "assertion": assertion}
                )
        except LOST as error:
            why = "no answer in time" if isinstance(error, TimeoutError) else told(error)
            return self._away(f"no token from Google: {why}")
        said = answer.said() if answer.succeeded else None
        if said is None:
            return self._refused(answer, assertion)
        token = said.get("access_token")
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            return self._away(f"answered {answer.status} without a token")
        self._token = token
        self._issued.append(token)
        self._good_until_us = asked_us + _kept_s(said.get("expires_in")) * SECOND
        return token

    def _assertion(self) -> str:
        """What is asked for, signed."""
        now_s = self._clock.now() // SECOND
        claims: dict[str, Any] = {
            "iss": self._signer.email,
            "sub": self._subject,
            "scope": " ".join(SCOPES),
            "aud": AUDIENCE,
            "iat": now_s,
            "exp": now_s + LIFE_S,
        }
        return self._signer.signed(claims)

    def _refused(self, answer: Answer, assertion: str) -> Outcome:
        outcome = no_token(answer, self._clock.now())
        # What was signed is as good as a token for an hour.
        reason = outcome.reason.replace(assertion, MASK)
        return outcome._replace(reason=self._line.masked(reason))

    def _away(self, reason: str) -> Outcome:
        return Outcome(OutcomeKind.UNAVAILABLE, self._line.masked(reason), "token")


def _kept_s(raw: object) -> int:
    """For how long a token is used, by what was said of it; a little less than it lasts."""
    lasts_s = raw if isinstance(raw, int) and not isinstance(raw, bool) else LIFE_S
    lasts_s = min(max(lasts_s, 0), LIFE_S)
    return max(lasts_s - EARLY_S, lasts_s // 2)
