"""The page behind a link in a message: reading it changes nothing, one click unsubscribes."""

import asyncio
import re
from base64 import b64encode
from hashlib import sha256

import httpx
import pytest
from fastapi import FastAPI

from paceline.api.metrics import PrometheusObserver
from paceline.api.server import make_api
from paceline.api.unsubscribe import add_unsubscribing
from paceline.core.errors import StoreUnavailable

ONE_CLICK = {"List-Unsubscribe": "One-Click"}


class Desk:
    """Knows one link, and keeps who followed it."""

    def __init__(self, *, away: bool = False) -> None:
        self.followed: list[str] = []
        self._away = away

    def is_ours(self, token: str) -> bool:
        return token == "7.good"

    async def unsubscribe(self, token: str) -> bool:
        if self._away:
            raise StoreUnavailable("the database is away")
        self.followed.append(token)
        return True


def ask(desk: Desk, method: str, path: str, **what: object) -> httpx.Response:
    async def readiness() -> list[str]:
        return []

    async def call(api: FastAPI) -> httpx.Response:
        transport = httpx.ASGITransport(api)
        async with httpx.AsyncClient(transport=transport, base_url="http://paceline") as client:
            return await client.request(method, path, **what)  # type: ignore[arg-type]

    api = make_api(PrometheusObserver(), readiness)
    add_unsubscribing(api, desk)
    return asyncio.run(call(api))


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_whoever_only_looks_is_not_unsubscribed(method: str) -> None:
    desk = Desk()
    answer = ask(desk, method, "/unsubscribe/7.good")
    assert answer.status_code == 200 and not desk.followed
    if method == "GET":
        assert '<form method="post"><button>Unsubscribe</button></form>' in answer.text


@pytest.mark.parametrize("what", [{"data": ONE_CLICK}, {}, {"content": b"x" * 100_000}], ids=str)
def test_one_click_unsubscribes_whatever_comes_with_it(what: dict[str, object]) -> None:
    desk = Desk()
    answer = ask(desk, "POST", "/unsubscribe/7.good", **what)
    assert answer.status_code == 200 and "You are unsubscribed" in answer.text
    assert desk.followed == ["7.good"]


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("token", ["7.bad", "8.good", "%00", "..", "<script>"])
def test_a_link_that_is_not_ours_is_told_so_and_repeated_nowhere(method: str, token: str) -> None:
    desk = Desk()
    answer = ask(desk, method, f"/unsubscribe/{token}")
    assert answer.status_code == 404 and not desk.followed
    assert "script" not in answer.text


@pytest.mark.parametrize("method", ["OPTIONS", "PUT"])
def test_whoever_asks_otherwise_is_told_what_can_be_asked(method: str) -> None:
    desk = Desk()
    answer = ask(desk, method, "/unsubscribe/7.good")
    assert answer.status_code == 405 and not desk.followed
    assert {one.strip() for one in answer.headers["allow"].split(",")} == {"GET", "HEAD", "POST"}


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_nobody_is_led_to_a_host_that_somebody_made_up(method: str) -> None:
    desk = Desk()
    answer = ask(desk, method, "/unsubscribe/7.good/", headers={"Host": "evil.example"})
    assert answer.status_code == 404 and "location" not in answer.headers and not desk.followed


def test_a_click_that_could_not_be_noted_down_says_so() -> None:
    answer = ask(Desk(away=True), "POST", "/unsubscribe/7.good")
    assert answer.status_code == 503 and "try again later" in answer.text


def test_the_page_loads_nothing_and_runs_nothing() -> None:
    answer = ask(Desk(), "GET", "/unsubscribe/7.good")
    policy = answer.headers["content-security-policy"]
    (style,) = re.findall("<style>(.*)</style>", answer.text)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert policy.startswith("default-src 'none'; ") and f"style-src 'sha256-{digest}'" in policy
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "cookie" not in str(answer.headers).lower()
    assert "src=" not in answer.text and "http" not in answer.text
