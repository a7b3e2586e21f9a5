"""The page that the link in a message leads to, and the one click that unsubscribes (RFC 8058).

Reading the page changes nothing: scanners of mail follow every link. Only a ``POST`` unsubscribes,
which the page's own button makes, and mail programs by themselves. Whoever has the link needs no
account here and no cookie, and is told no address: links get forwarded.
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import Protocol

from fastapi import FastAPI, Request, Response

from paceline.core.errors import StoreError

PATH = "/unsubscribe/{token}"

_STYLE = (
    "body{font:1.125rem/1.5 system-ui,sans-serif;max-width:32rem;margin:15vh auto;padding:0 1.5rem;"
    "color:#1c1c1c;background:#fff}h1{font-size:1.5rem}"
    "button{font:inherit;padding:.6rem 1.4rem;border:0;border-radius:.4rem;background:#1c1c1c;"
    "color:#fff;cursor:pointer}"
    "@media(prefers-color-scheme:dark){body{color:#eee;background:#161616}"
    "button{background:#eee;color:#161616}}"
)
_ALLOWED_STYLE = b64encode(sha256(_STYLE.encode()).digest()).decode()
_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_ALLOWED_STYLE}'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex",
    "Cache-Control": "no-store",
}


class Unsubscribing(Protocol):
    def is_ours(self, token: str) -> bool:
        """Whether a link that ends so was ever made here."""
        ...

    async def unsubscribe(self, token: str) -> bool:
        """Whether whoever got that link is not written to any more; ``StoreError`` if the
        database is away."""
        ...


def add_unsubscribing(api: FastAPI, desk: Unsubscribing) -> None:
    """Mount the page and the click."""

    # In one route, so that whoever asks otherwise is told of all three (``Allow``).
    @api.api_route(PATH, methods=["GET", "HEAD", "POST"])
    async def answer(token: str, request: Request) -> Response:
        return await unsubscribe(token) if request.method == "POST" else ask(token)

    def ask(token: str) -> Response:
        if not desk.is_ours(token):
            return _unknown()
        return _page(
            200,
            "Unsubscribe",
            "You will not be written to any more at the address this link was sent to.",
            form=True,
        )

    async def unsubscribe(token: str) -> Response:
        try:
            done = desk.is_ours(token) and await desk.unsubscribe(token)
        except StoreError:
            return _page(503, "Not yet", "This could not be noted down. Please try again later.")
        if not done:
            return _unknown()
        return _page(200, "You are unsubscribed", "You will not be written to any more.")


def _unknown() -> Response:
    return _page(404, "No such link", "This link is not complete, or not from us.")


def _page(status: int, title: str, text: str, *, form: bool = False) -> Response:
    button = '<form method="post"><button>Unsubscribe</button></form>' if form else ""
    content = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>{_STYLE}</style></head>"
        f"<body><main><h1>{title}</h1><p>{text}</p>{button}</main></body></html>"
    )
    return Response(content, status, _HEADERS, "text/html")
