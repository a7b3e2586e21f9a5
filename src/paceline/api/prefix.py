"""A service whose public address has a path (``https://example.com/mail``): a proxy may take the
path off before it passes a request on, or leave it there. Both are answered alike.
"""

from __future__ import annotations

from urllib.parse import quote, unquote, urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send


class BehindPath:
    """An application that is also found below a path."""

    def __init__(self, api: ASGIApp, base_url: str) -> None:
        self._api = api
        # As servers tell a path: without its escapes.
        self._path = unquote(urlsplit(base_url).path).rstrip("/")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._path and scope["type"] == "http" and scope["path"].startswith(f"{self._path}/"):
            rest = scope["path"][len(self._path) :]
            scope = {**scope, "path": rest, "raw_path": quote(rest).encode()}
        await self._api(scope, receive, send)
