"""The addresses at which providers report by themselves: ``/hooks/ACCOUNT/SECRET``.

Whoever calls an address that is none, or without the right secret or proof, is told the same as for
any other page that there is not. Who is let in is known before the first byte of what they send is
read, and no more is read than can be of use. The secret in the address is written nowhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Protocol

import structlog
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.requests import ClientDisconnect
from starlette.routing import Route

from paceline.core.errors import InputError, ProviderError, StoreError
from paceline.engine.reporting import Admitted, Answered

PATH = "/hooks/{account}/{secret}"
READ_WITHIN_S = 60.0
AGAIN_S = 15
"""When whoever came too early, or while the database was away, should come again."""

TAKEN = b'{"ok":true}'

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


def add_hooks(api: FastAPI, desk: Reporting) -> None:
    """Mount the addresses."""

    async def called(request: Request) -> Response:
        account, secret = request.path_params["account"], request.path_params["secret"]
        answering = _challenged if request.method == "GET" else _reported
        return await _guarded(answering(desk, account, secret, request), account)

    # Found before all other pages, and without what FastAPI does to find out what a page takes:
    # nothing is called as often.
    api.router.routes.insert(0, Route(PATH, called, methods=["GET", "POST"]))


async def _guarded(answering: Awaitable[Response], account: str) -> Response:
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


async def _challenged(desk: Reporting, account: str, secret: str, request: Request) -> Response:
    admitted = await desk.admit(account, secret)
    answer = None if admitted is None else desk.challenge(admitted, request.query_params)
    if answer is None:
        return _unknown()
    return Response(answer, 200, {"Cache-Control": "no-store"}, "text/plain")


async def _reported(desk: Reporting, account: str, secret: str, request: Request) -> Response:
    known = desk.known(account, secret)
    admitted = known or await desk.admit(account, secret)
    if admitted is None:
        return _unknown()
    async with asyncio.timeout(READ_WITHIN_S):
        body = await _body(request, admitted)
    if body is None:
        return _closing(413, f"a report has {admitted.largest} bytes at most")
    answered = await desk.take(admitted, request.headers, body, request.query_params)
    if answered == "changed" or (answered == "not believed" and known is not None):
        # The account may not be what it was: what is so now counts.
        admitted = await desk.admit(account, secret)
        if admitted is None:
            return _unknown()
        answered = await desk.take(admitted, request.headers, body, request.query_params)
    match answered:
        case "taken":
            return Response(TAKEN, media_type="application/json")
        case "again" | "changed":
            return _later()
        case _:
            return _unknown()


async def _body(request: Request, caller: Admitted) -> bytes | None:
    """What was sent, as far as it is of use; None if it is too much, which is not read to its
    end."""
    # A number with more digits is too large, whichever it is.
    announced = request.headers.get("content-length", "")[:15]
    if announced.isascii() and announced.isdecimal() and int(announced) > caller.largest:
        return None
    kept, size = bytearray(), 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > caller.largest:
            return None
        kept += chunk[: caller.kept - len(kept)]
    return bytes(kept)


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
