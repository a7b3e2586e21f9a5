"""The addresses that providers report to: who is let in, what is read, and what is answered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, cast

import httpx
import pytest
import structlog
from starlette.requests import ClientDisconnect

from paceline import logs
from paceline.api import hooks
from paceline.api.hooks import Hooks
from paceline.api.metrics import PrometheusObserver
from paceline.api.server import make_api
from paceline.core.errors import InputError, StoreUnavailable, VaultError
from paceline.engine.reporting import LARGEST_LETTER, LARGEST_REPORT, Admitted, Answered

SECRET = "s" * 32
ADDRESS = f"/hooks/sales/{SECRET}"


class Desk:
    """Knows one secret, and keeps what was reported."""

    def __init__(
        self, answer: Answered | Exception = "taken", *, letters: bool = False, challenge: str = ""
    ) -> None:
        self.taken: list[tuple[Mapping[str, str], bytes, Mapping[str, str]]] = []
        self.looked_up = 0
        self.remembers = False
        self.then: list[Answered] = []
        """What is answered before the answer."""
        self._answer = answer
        self._letters = letters
        self._challenge = challenge

    def known(self, name: str, secret: str) -> Admitted | None:
        return self._admitted(name, secret) if self.remembers else None

    async def admit(self, name: str, secret: str) -> Admitted | None:
        self.looked_up += 1
        return self._admitted(name, secret)

    def _admitted(self, name: str, secret: str) -> Admitted | None:
        known = (name, secret) == ("sales", SECRET)
        return Admitted(cast("Any", None), self._letters, cast("Any", None)) if known else None

    def challenge(self, admitted: Admitted, query: Mapping[str, str]) -> str | None:
        return self._challenge or None

    async def take(
        self,
        admitted: Admitted,
        headers: Mapping[str, str],
        body: bytes,
        query: Mapping[str, str],
    ) -> Answered:
        if isinstance(self._answer, Exception):
            raise self._answer
        self.taken.append((headers, body, query))
        return self.then.pop(0) if self.then else self._answer


def api_with(desk: Desk) -> Hooks:
    async def readiness() -> list[str]:
        return []

    return Hooks(make_api(PrometheusObserver(), readiness), desk)


def ask(desk: Desk, method: str, path: str, **what: Any) -> httpx.Response:
    async def call() -> httpx.Response:
        transport = httpx.ASGITransport(api_with(desk))
        async with httpx.AsyncClient(transport=transport, base_url="http://paceline") as client:
            return await client.request(method, path, **what)

    return asyncio.run(call())


def test_a_report_is_taken_in_as_it_came() -> None:
    desk = Desk()
    answer = ask(desk, "POST", f"{ADDRESS}?token=x", content=b' {"a": 1}', headers={"X-Proof": "y"})
    assert answer.status_code == 200
    ((headers, body, query),) = desk.taken
    assert (body, headers["x-proof"], query["token"]) == (b' {"a": 1}', "y", "x")


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "path",
    [
        f"/hooks/team/{SECRET}", "/hooks/sales/other", "/hooks/sales/%00", "/hooks/sales",
        "/hooks/sales/", f"/hooks//{SECRET}", f"/hooks/sales/{SECRET}/more",
    ],
)  # fmt: skip
def test_whoever_is_not_let_in_is_told_what_anybody_is_told(method: str, path: str) -> None:
    desk = Desk(challenge="42")
    answer, nowhere = ask(desk, method, path, content=b"{}"), ask(desk, method, "/nowhere")
    assert (answer.status_code, answer.text) == (nowhere.status_code, nowhere.text)
    assert dict(answer.headers) == dict(nowhere.headers) and not desk.taken


def test_a_slash_at_the_end_makes_no_other_address() -> None:
    desk = Desk()
    assert ask(desk, "POST", f"{ADDRESS}/", content=b"{}").status_code == 200
    assert [body for _, body, _ in desk.taken] == [b"{}"]


@pytest.mark.parametrize("method", ["HEAD", "PUT", "DELETE", "OPTIONS"])
def test_no_other_way_of_calling_reaches_an_account(method: str) -> None:
    desk = Desk(challenge="42")
    assert ask(desk, method, ADDRESS, content=b"{}").status_code == 404
    assert not desk.taken and not desk.looked_up


def test_all_other_pages_are_where_they_were() -> None:
    assert ask(Desk(), "GET", "/healthz").status_code == 200


@pytest.mark.parametrize(
    ("then", "remembers", "status", "looked_up"),
    [
        ([], False, 200, 1),
        ([], True, 200, 0),
        # What was known of the account is not so any more: the report is not lost by that.
        (["changed"], True, 200, 1),
        (["not believed"], True, 200, 1),
        (["changed"], False, 200, 2),
        # It is looked up again once, and no more.
        (["changed", "changed"], True, 503, 1),
        (["not believed", "not believed"], True, 404, 1),
        (["not believed"], False, 404, 1),
    ],
)
def test_who_is_known_is_not_looked_up_unless_something_has_changed(
    then: list[Answered], remembers: bool, status: int, looked_up: int
) -> None:
    desk = Desk()
    desk.then, desk.remembers = then, remembers
    assert ask(desk, "POST", ADDRESS, content=b"{}").status_code == status
    assert desk.looked_up == looked_up
    assert [body for _, body, _ in desk.taken] == [b"{}"] * max(len(desk.taken), 1)


def test_whoever_asks_for_an_answer_is_always_looked_up() -> None:
    desk = Desk(challenge="42")
    desk.remembers = True
    assert ask(desk, "GET", ADDRESS).text == "42"
    assert desk.looked_up == 1


def test_a_report_without_its_proof_is_answered_the_same() -> None:
    answer = ask(Desk("not believed"), "POST", ADDRESS, content=b"{}")
    assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found"})


@pytest.mark.parametrize("answer", ["again", StoreUnavailable("gone"), VaultError("no key")])
def test_what_cannot_be_written_down_now_is_to_come_again(answer: Any) -> None:
    told = ask(Desk(answer), "POST", ADDRESS, content=b"{}")
    assert (told.status_code, told.headers["retry-after"]) == (503, "15")


def test_what_is_no_report_is_told_so() -> None:
    answer = ask(Desk(InputError("the report is not JSON")), "POST", ADDRESS, content=b"<html>")
    assert (answer.status_code, answer.json()) == (400, {"detail": "the report is not JSON"})


@pytest.fixture
def logged() -> Iterator[None]:
    """As the service logs, with everything that anybody has to say."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    logs.configure("debug", "json")
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.mark.usefixtures("logged")
def test_a_defect_is_not_shown_and_the_secret_is_not_logged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    answer = ask(Desk(ZeroDivisionError("oh")), "POST", ADDRESS, content=b"{}")
    assert answer.status_code == 500 and "oh" not in answer.text
    ask(Desk(StoreUnavailable("gone")), "POST", ADDRESS, content=b"{}")
    said = capsys.readouterr().err
    assert "ZeroDivisionError: oh" in said and "gone" in said and SECRET not in said


def test_a_handshake_is_answered() -> None:
    answer = ask(Desk(challenge="1158201444"), "GET", f"{ADDRESS}?hub.challenge=1158201444")
    assert (answer.status_code, answer.text) == (200, "1158201444")
    assert answer.headers["content-type"].startswith("text/plain")
    assert ask(Desk(), "GET", ADDRESS).status_code == 404


# ---------------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    ("letters", "most"), [(False, LARGEST_REPORT), (True, LARGEST_LETTER)], ids=["JSON", "letters"]
)
def test_what_is_too_large_is_not_read(letters: bool, most: int) -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 1
            yield b"x" * 65_536

    desk = Desk(letters=letters)
    for announced in (str(most + 1), "9" * 400):
        headers = {"Content-Length": announced}
        answer = ask(desk, "POST", ADDRESS, content=endless(), headers=headers)
        assert (answer.status_code, answer.headers["connection"], read) == (413, "close", 0)
    answer = ask(desk, "POST", ADDRESS, content=endless())
    assert answer.status_code == 413 and not desk.taken
    assert read <= most // 65_536 + 2, "no more than it took to see that it is too much"


def test_what_just_fits_is_read_and_of_a_letter_the_beginning_is_kept() -> None:
    desk = Desk()
    assert ask(desk, "POST", ADDRESS, content=b"x" * LARGEST_REPORT).status_code == 200
    assert len(desk.taken[0][1]) == LARGEST_REPORT
    desk = Desk(letters=True)
    raw = b"From: x\r\n\r\n" + b"y" * 3 * 2**20
    assert ask(desk, "POST", ADDRESS, content=raw).status_code == 200
    assert desk.taken[0][1] == raw[: 2**20]


def test_whoever_breaks_off_or_is_too_slow_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "READ_WITHIN_S", 0.05)

    def reported(receive: Any) -> list[Any]:
        desk, told = Desk(), list[Any]()
        scope = {
            "type": "http", "method": "POST", "path": ADDRESS, "raw_path": ADDRESS.encode(),
            "query_string": b"", "headers": [], "http_version": "1.1", "scheme": "http",
            "server": ("paceline", 80), "client": ("127.0.0.1", 1), "root_path": "",
        }  # fmt: skip

        async def send(message: Any) -> None:
            told.append(message)

        asyncio.run(api_with(desk)(scope, receive, send))  # type: ignore[arg-type]
        assert not desk.taken
        return [message["status"] for message in told if "status" in message]

    async def breaks_off() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def hangs() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise ClientDisconnect

    assert reported(breaks_off) == [400]
    assert reported(hangs) == [408]
