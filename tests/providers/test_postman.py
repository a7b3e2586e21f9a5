"""The postman against a real server on this machine: whatever it does, the answer is plain."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import tracemalloc
from collections.abc import Awaitable, Callable, Iterator

import httpx
import pytest

from paceline.core.instants import MILLISECOND, MINUTE, SECOND
from paceline.core.webhooks import Webhook, headers_of
from paceline.engine.ports import Posted
from paceline.providers.postman import MOST_READ, HttpPostman
from tests.providers.loopback import HTML, Call, Fake, Scripted, running

SECRET = "a-secret-of-some-length"
TOKEN = "t0ken-in-the-path"
NOW = 1_772_442_000 * SECOND
BODY = b'{"id":7}'


class Receiver(Fake):
    def answer(self, call: Call) -> Scripted:
        return self.script.popleft() if self.script else Scripted(204)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running(Receiver()) as fake:
        yield fake


def with_postman(
    url: str, act: Callable[[HttpPostman], Awaitable[Posted]], within_us: int = 5 * SECOND
) -> Posted:
    async def whole() -> Posted:
        webhook = Webhook("crm", url, SECRET)
        postman = HttpPostman(webhook, SECRET, lambda: NOW, within_us=within_us)
        try:
            return await act(postman)
        finally:
            await postman.close()

    return asyncio.run(whole())


def post(url: str, within_us: int = 5 * SECOND) -> Posted:
    headers = headers_of(SECRET, "test-7", BODY, NOW)
    return with_postman(url, lambda postman: postman.post(headers, BODY), within_us)


def test_what_arrives_is_what_was_signed(receiver: Receiver) -> None:
    answer = post(f"{receiver.url}/hook/{TOKEN}?key=value&more=1")
    assert answer == Posted(204)
    assert answer.ok
    (call,) = receiver.calls
    assert (call.method, call.path, call.query) == (
        "POST",
        f"/hook/{TOKEN}",
        {"key": "value", "more": "1"},
    )
    assert call.body == BODY
    assert call.headers["content-type"] == "application/json"
    assert call.headers["paceline-event-id"] == "test-7"
    assert call.headers["paceline-timestamp"] == "1772442000"
    assert call.headers["paceline-signature"].startswith("v1=")
    assert SECRET not in str(call)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_every_two_hundred_is_yes(receiver: Receiver, status: int) -> None:
    receiver.script.append(Scripted(status, b"" if status == 204 else b"whatever, or nothing"))
    assert post(f"{receiver.url}/") == Posted(status)


@pytest.mark.parametrize(
    ("scripted", "expected"),
    [
        (Scripted(500, b"oops\n  twice"), Posted(500, "answered 500: oops twice")),
        (Scripted(502, b"<html>bad gateway</html>", HTML), None),
        (Scripted(400), Posted(400, "answered 400")),
        (Scripted(410, b"gone"), Posted(410, "answered 410: gone")),
        (Scripted(404, b"\xff\xfe"), Posted(404, "answered 404: \ufffd\ufffd")),
        (
            Scripted(503, b"", {"Retry-After": "120"}),
            Posted(503, "answered 503", 2 * MINUTE),
        ),
        (Scripted(429, b"", {"Retry-After": "soon"}), Posted(429, "answered 429")),
        (Scripted(500, b"", {"Retry-After": "120"}), Posted(500, "answered 500")),
    ],
)
def test_what_else_is_answered_is_told_in_one_line(
    receiver: Receiver, scripted: Scripted, expected: Posted | None
) -> None:
    receiver.script.append(scripted)
    answer = post(f"{receiver.url}/")
    assert not answer.ok
    if expected is None:
        assert answer.problem == "answered 502: <html>bad gateway</html>"
    else:
        assert answer == expected


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(receiver: Receiver, status: int) -> None:
    receiver.script.append(Scripted(status, b"", {"Location": f"{receiver.url}/elsewhere"}))
    answer = post(f"{receiver.url}/here")
    assert answer == Posted(status, f"answered {status}: redirects are not followed")
    assert [call.path for call in receiver.calls] == ["/here"]


@pytest.mark.parametrize("drops", ["unread", "read"])
def test_a_connection_that_is_dropped_is_no_answer(receiver: Receiver, drops: str) -> None:
    receiver.script.append(Scripted(drops=drops))
    answer = post(f"{receiver.url}/")
    assert answer.status is None
    assert answer.problem.startswith("no answer: ")


def test_an_answer_that_breaks_off_after_its_status_is_one(receiver: Receiver) -> None:
    receiver.script.append(Scripted(200, b"half", drops="midway"))
    assert post(f"{receiver.url}/").ok


def test_whoever_never_answers_is_not_waited_for(receiver: Receiver) -> None:
    receiver.script.append(Scripted(hangs=True))
    answer = post(f"{receiver.url}/", within_us=300 * MILLISECOND)
    assert answer == Posted(None, "no answer within 0.3 s")
    assert len(receiver.calls) == 1, "it was sent, and may have been taken"


def test_nobody_is_there() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        answer = post(f"http://127.0.0.1:{taken.getsockname()[1]}/")
    assert answer.status is None
    assert answer.problem.startswith("no answer: ConnectError")


def test_an_answer_that_never_ends_is_read_no_further_than_a_person_would(
    receiver: Receiver,
) -> None:
    receiver.script.append(Scripted(500, b"x" * 5_000_000))
    answer = post(f"{receiver.url}/")
    assert answer.status == 500
    assert len(answer.problem) < MOST_READ


def test_what_is_packed_is_not_unpacked(receiver: Receiver) -> None:
    packed = gzip.compress(b"x" * 50_000_000)
    receiver.script.append(Scripted(500, packed, {"Content-Encoding": "gzip"}))
    tracemalloc.start()
    answer = post(f"{receiver.url}/")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.status == 500
    assert "xxx" not in answer.problem
    assert most < 20_000_000
    assert receiver.calls[0].headers["accept-encoding"] == "identity"


def test_one_byte_now_and_then_does_not_pass_for_an_answer() -> None:
    """Each of them comes in time; all of them together never do."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                for byte in b"HTTP/1.1 500 Oops\r\nX: " + b"y" * 200:
                    if over.wait(0.05):
                        return
                    connection.send(bytes([byte]))

        thread = threading.Thread(target=drip)
        thread.start()
        answer = post(f"http://127.0.0.1:{server.getsockname()[1]}/", within_us=SECOND)
        over.set()
        thread.join()
    assert answer == Posted(None, "no answer within 1 s")


def test_whoever_repeats_our_secrets_does_not_get_them_into_a_log(receiver: Receiver) -> None:
    said = f"bad secret {SECRET} for /hook/{TOKEN}?key=query-t0ken by user pa55word1".encode()
    receiver.script.append(Scripted(401, said))
    host = receiver.url.removeprefix("http://")
    answer = post(f"http://user:pa55word1@{host}/hook/{TOKEN}?key=query-t0ken")
    assert not [hidden for hidden in (SECRET, TOKEN, "query-t0ken", "pa55word1") if hidden in
                answer.problem]  # fmt: skip
    assert answer.problem.startswith("answered 401: bad secret (secret) for /hook/(secret)?key=")


def test_an_address_that_the_library_refuses_is_a_problem_and_no_crash(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise httpx.InvalidURL("no such thing")

    monkeypatch.setattr(httpx.AsyncClient, "stream", refuse)
    assert post("http://127.0.0.1/") == Posted(None, "no answer: InvalidURL: no such thing")
