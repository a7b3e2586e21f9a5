"""Somebody's own service: it is told over HTTP what was said, and says what to answer.

What it is sent is signed as outgoing webhooks are, and has the same name at every try. Of its
refusals only those that no question can bring about hold up everybody: a wall in front of a service
may well answer 403 because of a single word that somebody wrote.
"""

from __future__ import annotations

import ssl
from typing import Any
from urllib.parse import quote

from paceline.core.answering import Service, Way
from paceline.core.instants import iso
from paceline.core.webhooks import headers_of
from paceline.engine.ports import Clock, answering
from paceline.engine.ports.answering import Burst, ResponderFailed, ResponderRefused, Said
from paceline.providers.answers import Answer
from paceline.providers.postman import hidden_in
from paceline.providers.responders.calls import (
    Caller,
    asked_wait_us,
    encoded,
    is_page,
    unreadable,
)
from paceline.providers.responders.replies import fit
from paceline.providers.responders.window import all_in_words

KEY_HEADER = "Idempotency-Key"
LATER = frozenset({404, 405, 408, 409, 425, 429})
"""Answers that pass: a service that is just being replaced is not there for a moment."""
FOR_ALL = frozenset({401, 410})
"""Our signature is not taken; the service is gone."""
_WHOM = "the service"


class HttpResponder:
    """Asks one service."""

    def __init__(
        self, way: Way, how: Service, secret: str, clock: Clock, trust: ssl.SSLContext
    ) -> None:
        self._way, self._url, self._secret, self._clock = way, how.hook.url, secret, clock
        self._caller = Caller(
            _WHOM,
            self._url,
            {},
            trust,
            secrets=hidden_in(self._url) | {secret},
            within_us=way.timeout_us,
        )

    async def answer(self, burst: Burst) -> answering.Answer:
        body = body_of(burst, self._way.history)
        key = quote(burst.key, safe=":/@+._-")
        headers = headers_of(self._secret, key, body, self._clock.now())
        return self._read(await self._caller.post(self._url, body, {**headers, KEY_HEADER: key}))

    def _read(self, answer: Answer) -> answering.Answer:
        status = answer.status
        if status == 204:
            return answering.Answer("", "the service has nothing to say")
        if not answer.succeeded:
            raise self._refusal(answer)
        said = answer.said()
        if said is None:
            raise unreadable(_WHOM, answer, self._clock.now())
        reply = said.get("reply", "")
        if reply is None:
            return answering.Answer("", "the service has nothing to say")
        text = fit(reply) if isinstance(reply, str) else ""
        if not text:
            raise ResponderFailed(
                f"the service answered {status} without a reply; to say nothing it answers 204"
            )
        return answering.Answer(text)

    def _refusal(self, answer: Answer) -> ResponderFailed | ResponderRefused:
        status, now = answer.status, self._clock.now()
        if 300 <= status < 400 or (is_page(answer) and status not in FOR_ALL):
            return unreadable(_WHOM, answer, now)
        if status in LATER or not 400 <= status < 500:
            return ResponderFailed(self._told(answer), asked_wait_us(answer, now))
        return ResponderRefused(self._told(answer), everybody=status in FOR_ALL)

    def _told(self, answer: Answer) -> str:
        words = self._caller.quoted(answer.body[:4_096].decode("utf-8", "replace"))
        return f"the service answered {answer.status}" + (f": {words}" if words else "")

    async def close(self) -> None:
        await self._caller.close()


def body_of(burst: Burst, history: int) -> bytes:
    """What the service is told: the same bytes for the same burst, however often it is asked."""
    before = burst.before[max(0, len(burst.before) - history) :]
    told = {
        "key": burst.key,
        "account": burst.account,
        "chat": burst.chat,
        "text": all_in_words(burst),
        "messages": [_message(one) for one in burst.said],
        "history": [_message(one) for one in before],
        "fields": dict(burst.fields),
    }
    return encoded(told)


def _message(said: Said) -> dict[str, Any]:
    told = {"by": said.by, "text": said.text, "kind": said.kind, "at": iso(said.at)}
    # With their handles: whoever answers may have to hear or to see them.
    files = [file.to_mapping() for file in said.files]
    return {**told, "files": files} if files else told
