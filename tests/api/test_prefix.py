"""A public address with a path: found there, and where a proxy has taken the path off."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from fastapi import FastAPI, Request

from paceline.api.prefix import BehindPath
from paceline.api.server import HttpServer, listen
from paceline.core import readers


def found(base_url: str, path: str) -> str | None:
    api = FastAPI()

    @api.get("/{rest:path}")
    async def tell(request: Request) -> str:
        return request.url.path

    async def get() -> httpx.Response:
        transport = httpx.ASGITransport(BehindPath(api, base_url))
        async with httpx.AsyncClient(transport=transport, base_url="http://paceline") as client:
            return await client.get(path)

    answer = asyncio.run(get())
    return str(answer.json()) if answer.status_code == 200 else None


@pytest.mark.parametrize(
    ("base_url", "path", "expected"),
    [
        ("https://x.example/mail", "/mail/unsubscribe/a", "/unsubscribe/a"),
        ("https://x.example/mail/", "/mail/unsubscribe/a", "/unsubscribe/a"),
        ("https://x.example/mail", "/unsubscribe/a", "/unsubscribe/a"),
        ("https://x.example/mail", "/mailing/unsubscribe/a", "/mailing/unsubscribe/a"),
        ("https://x.example/a/b", "/a/b/healthz", "/healthz"),
        ("https://x.example/my%20mail", "/my%20mail/unsubscribe/a", "/unsubscribe/a"),
        ("https://x.example/%C3%A4", "/%c3%a4/unsubscribe/a", "/unsubscribe/a"),
        ("https://x.example/a%2Fb", "/a%2Fb/unsubscribe/a", "/unsubscribe/a"),
        ("https://x.example/%2525", "/%25/unsubscribe/a", "/%/unsubscribe/a"),
        ("https://x.example", "/unsubscribe/a", "/unsubscribe/a"),
        ("", "/unsubscribe/a", "/unsubscribe/a"),
    ],
)
def test_the_path_of_the_public_address_is_taken_off(
    base_url: str, path: str, expected: str
) -> None:
    assert found(base_url, path) == expected


@pytest.mark.parametrize("path", ["/pa%20ce", "/pä<ce>", "/mail"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_what_links_begin_with_leads_there_over_http(method: str, path: str) -> None:
    """As a mail program calls it: the link itself, over a connection."""
    api = FastAPI()

    @api.api_route("/unsubscribe/{token}", methods=["GET", "HEAD", "POST"])
    async def tell(token: str) -> str:
        return token

    async def call() -> httpx.Response:
        bound = listen("127.0.0.1", 0)
        base_url = readers.url(f"http://127.0.0.1:{bound.getsockname()[1]}{path}")
        server = HttpServer(BehindPath(api, base_url), bound)
        serving = asyncio.create_task(server.run())
        await server.started()
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.request(method, f"{base_url}/unsubscribe/7.a-b_c")
        server.stop()
        await serving
        return answer

    answer = asyncio.run(call())
    assert answer.status_code == 200
    assert method == "HEAD" or answer.json() == "7.a-b_c"
