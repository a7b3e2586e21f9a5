"""A public address with a path: found there, and where a proxy has taken the path off."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from fastapi import FastAPI, Request

from paceline.api.prefix import BehindPath


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
        ("https://x.example", "/unsubscribe/a", "/unsubscribe/a"),
        ("", "/unsubscribe/a", "/unsubscribe/a"),
    ],
)
def test_the_path_of_the_public_address_is_taken_off(
    base_url: str, path: str, expected: str
) -> None:
    assert found(base_url, path) == expected
