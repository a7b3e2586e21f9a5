"""The addresses at which providers report by themselves: ``/hooks/ACCOUNT/SECRET``.

Whoever calls an address that is none, or without the right secret or proof, is told the same as for
any other page that there is not. Who is let in is known before the first byte of what they send is
read, and no more is read than can be of use. The secret in the address is written nowhere.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Mapping
from typing import Protocol

import structlog
from starlette.datastructures import Headers, QueryParams
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from paceline.core.errors import InputError, ProviderError, StoreError
from paceline.engine.reporting import Admitted, Answered

READ_WITHIN_S = 60.0
AGAIN_S = 15
"""When whoever came too early, or while the database was away, should come again."""

_ADDRESS = re.compile(r"/hooks/([^/]+)/([^/]+)/?")

_TAKEN = b'{"ok":true}'
_BEGINS: Message = {
    "type": "http.response.start",
    "status": 200,
    "headers": [
        (b"content-length", str(len(_TAKEN)).encode()),
        (b"content-type", b"application/json"),
    ],
}
_ENDS: Message = {"type": "http.response.body", "body": _TAKEN}

_NO_QUERY = QueryParams()

log = structlog.get_logger("paceline.reports")


class Reporting(Protocol):
    def known(self, name: str, secret: str) -> Admitted | None: ...

    async def admit(self, name: str, secret: str) -> Admitted | None: ...

    def challenge(self, admitted: Admitted, query: Mapping[str, str]) -> str | None: ...

    async def take(
        self,
        admitted: Admitted,
        headers: Mapping[str, str],
        body: bytes,
        query: Mapping[str, str],
    ) -> Answered: ...


class Hooks:
    """The addresses, in front of all other pages: nothing is called as often as they are, and
    nothing is done for it that only pages need."""

    def __init__(self, pages: ASGIApp, desk: Reporting) -> None:
        self._pages = pages
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        called = _ADDRESS.fullmatch(scope["path"]) if scope["type"] == "http" else None
        if called is None or scope["method"] not in ("GET", "POST"):
            await self._pages(scope, receive, send)
            return
        account, secret = called.groups()
        answering = _challenged if scope["method"] == "GET" else _reported
        answer = await _guarded(answering(self._desk, account, secret, scope, receive), account)
        await answer(scope, receive, send)


async def _guarded(answering: Awaitable[ASGIApp], account: str) -> ASGIApp:
    """The answer, whatever happens on the way to it."""
    try:
        return await answering
    except InputError as error:
        return _said(400, error.reason)
    except (StoreError, ProviderError) as error:
        # Secrets that cannot be read here may be readable elsewhere, or later.
        log.warning("report not taken in", account=account, reason=str(error))
        return _later()
    except ClientDisconnect:
        return _said(400, "the report broke off")
    except TimeoutError:
        return _closing(408, "the report took too long")
    except Exception:
        # A defect of ours: whoever reports is to come again, and is not shown it.
        log.exception("a report could not be taken in", account=account)
        return _said(500, "it could not be taken in")


async def _challenged(
    desk: Reporting, account: str, secret: str, scope: Scope, _: Receive
) -> ASGIApp:
    admitted = await desk.admit(account, secret)
    answer = None if admitted is None else desk.challenge(admitted, _query(scope))
    if answer is None:
        return _unknown()
    return Response(answer, 200, {"Cache-Control": "no-store"}, "text/plain")


async def _reported(
    desk: Reporting, account: str, secret: str, scope: Scope, receive: Receive
) -> ASGIApp:
    known = desk.known(account, secret)
    admitted = known or await desk.admit(account, secret)
    if admitted is None:
        return _unknown()
    headers, query = Headers(raw=scope["headers"]), _query(scope)
    async with asyncio.timeout(READ_WITHIN_S):
        body = await _body(headers, receive, admitted)
    if body is None:
        return _closing(413, f"a report has {admitted.largest} bytes at most")
    answered = await desk.take(admitted, headers, body, query)
    if answered == "changed" or (answered == "not believed" and known is not None):
        # The account may not be what it was: what is so now counts.
        admitted = await desk.admit(account, secret)
        if admitted is None:
            return _unknown()
        answered = await desk.take(admitted, headers, body, query)
    match answered:
        case "taken":
            return _taken
        case "again" | "changed":
            return _later()
        case _:
            return _unknown()


def _query(scope: Scope) -> QueryParams:
    return QueryParams(scope["query_string"]) if scope["query_string"] else _NO_QUERY


async def _body(headers: Headers, receive: Receive, caller: Admitted) -> bytes | None:
    """What was sent, as far as it is of use; None if it is too much, which is not read to its
    end."""
    # A number with more digits is too large, whichever it is.
    announced = headers.get("content-length", "")[:15]
    if announced.isascii() and announced.isdecimal() and int(announced) > caller.largest:
        return None
    kept, size, more = bytearray(), 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk, more = message.get("body", b""), message.get("more_body", False)
        size += len(chunk)
        if size > caller.largest:
            return None
        kept += chunk[: caller.kept - len(kept)]
    return bytes(kept)


async def _taken(_: Scope, __: Receive, send: Send) -> None:
    """The answer that nearly all are given."""
    await send(_BEGINS)
    await send(_ENDS)


def _unknown() -> Response:
    """As for any other page that there is not."""
    return _said(404, "Not Found")


def _later() -> Response:
    return _said(503, "not now, try again", {"Retry-After": str(AGAIN_S)})


def _closing(status: int, why: str) -> Response:
    """Whoever is still sending is not listened to any more."""
    return _said(status, why, {"Connection": "close"})


def _said(status: int, why: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"detail": why}, status, headers=dict(headers or {}))
