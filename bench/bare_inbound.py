"""A bare route of the same server and framework: it parses what comes, and writes nothing down.

As a program: listens on a free port of this machine and prints it; when its input ends, it prints
how much processor time it has used, and ends.
"""

from __future__ import annotations

import asyncio
import json
import sys

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from bench.reports import BARE_PATH
from bench.serving import quiet_end, run_as_service
from bench.threads import cpu_used_s
from paceline.api.server import HttpServer, listen


async def _serve() -> None:
    api = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)

    @api.post(BARE_PATH)
    async def parsed(request: Request) -> JSONResponse:
        json.loads(await request.body())
        return JSONResponse({"ok": True})

    http = HttpServer(api, listen("127.0.0.1", 0))
    pages = asyncio.ensure_future(http.run())
    await http.started()
    before_s = cpu_used_s()
    print(json.dumps({"port": http.port, "paths": [BARE_PATH]}), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)
    print(json.dumps({"cpu_s": cpu_used_s() - before_s}), flush=True)
    http.stop()
    await pages


def main() -> None:
    quiet_end()
    run_as_service(_serve())


if __name__ == "__main__":
    main()
