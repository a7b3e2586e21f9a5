"""The HTTP server of ``paceline up``: whether it lives, whether it can work, and its numbers.

It knows neither the database nor a provider; what it answers with is handed to it. Hooks,
unsubscribe links, the API and the console are mounted on the same application.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp

from paceline import __version__
from paceline.api.metrics import CONTENT_TYPE, PrometheusObserver
from paceline.core.errors import InputError, PacelineError

Readiness = Callable[[], Awaitable[Sequence[str]]]
"""Why this process cannot work right now; nothing when it can."""

LINGER_SECONDS = 3
"""How long open connections may keep a stop waiting."""


def make_api(observer: PrometheusObserver, readiness: Readiness) -> FastAPI:
    """The application, without a socket."""
    # A redirect would lead to whichever host somebody says that we are.
    api = FastAPI(
        title="Paceline",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )

    @api.get("/healthz")
    async def healthz() -> dict[str, str]:
        """The process lives and its loop turns."""
        return {"status": "ok", "version": __version__}

    @api.get("/readyz")
    async def readyz() -> JSONResponse:
        """The database answers, and this process holds a lease under which it may send."""
        reasons = list(await readiness())
        status = 503 if reasons else 200
        return JSONResponse({"ready": not reasons, "reasons": reasons}, status_code=status)

    @api.get("/metrics")
    async def metrics() -> Response:
        return Response(observer.page(), media_type=CONTENT_TYPE)

    return api


def listen(host: str, port: int) -> socket.socket:
    """A bound socket, or one clear line on why there is none."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        bound = socket.create_server((str(address[0]), port), family=family)
        # Every connection has it from here. Without it an answer that is written in two pieces is
        # held back until the first was acknowledged, which takes 40 ms.
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return bound
    except socket.gaierror:
        raise InputError(f"{host!r} is no host of this machine", key="host") from None
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise InputError(f"{host!r} is no address of this machine", key="host") from None
        if error.errno == errno.EADDRINUSE:
            raise PacelineError(
                f"port {port} on {host} is in use; choose another with --port, or stop whoever "
                "has it"
            ) from None
        raise PacelineError(f"cannot listen on {host}:{port}: {error.strerror}") from None


class HttpServer:
    """The application on a socket, in the loop of whoever runs it."""

    def __init__(self, api: ASGIApp, bound: socket.socket) -> None:
        self._socket = bound
        self._server = _Quiet(
            uvicorn.Config(
                api,
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                timeout_graceful_shutdown=LINGER_SECONDS,
            )
        )

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    async def run(self) -> None:
        await self._server.serve(sockets=[self._socket])

    def stop(self) -> None:
        self._server.should_exit = True

    async def started(self) -> None:
        """Return once requests are answered."""
        await self._server.up.wait()


class _Quiet(uvicorn.Server):
    """Leaves signals alone: whoever wired it decides what a signal means for everybody."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.up.set()
