"""What drivers that speak HTTP have in common: phases, bodies, waits, and no secret in words."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.errors import ProviderError, ProviderRefused
from paceline.core.instants import SECOND, parse_instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.providers.answers import LONGEST_REASON, Answer, name_of, retry_after_us, segment
from paceline.providers.http import LOST, MASK, NOTHING_WRITTEN, Line, certificates
from paceline.providers.options import read_address, secret_in
from tests.providers.loopback import Call, Fake, Scripted, running, said

T = TypeVar("T")

K = OutcomeKind
NOW = parse_instant("2026-11-15T09:00:00Z")
KEY = "kEy+of/tests="


class Echo(Fake):
    """Answers as it is told, and else with an empty object."""

    def answer(self, call: Call) -> Scripted:
        return self.script.popleft() if self.script else said(200, {})


@pytest.fixture
def fake() -> Iterator[Echo]:
    with running(Echo()) as server:
        yield server


def play(url: str, scene: Callable[[Line], Awaitable[T]], read: float = 30) -> T:
    async def whole() -> T:
        timeout = httpx.Timeout(30, connect=0.2, read=read)
        line = Line(
            "Somebody", url, {"Token": KEY}, certificates(), secrets=[KEY], local=True,
            timeout=timeout,
        )  # fmt: skip
        try:
            return await scene(line)
        finally:
            await line.close()

    return asyncio.run(whole())


def deliver(fake: Echo, *script: Scripted, read: float = 30) -> Answer | Outcome:
    fake.script.extend(script)
    return play(fake.url, lambda line: line.deliver("/x", json={"a": 1}), read)


def test_every_failure_of_the_library_is_sorted() -> None:
    """All that HTTP can fail with is one of two; a new one in the library would be a doubt."""
    leaves = _leaves(httpx.TransportError)
    safe = {error for error in leaves if issubclass(error, NOTHING_WRITTEN)}
    assert {error.__name__ for error in safe} == {
        "ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError", "UnsupportedProtocol",
    }  # fmt: skip
    assert all(issubclass(error, LOST) for error in leaves)


def _leaves(error: type[Exception]) -> set[type[Exception]]:
    below = error.__subclasses__()
    return {leaf for one in below for leaf in _leaves(one)} if below else {error}


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (httpx.ConnectError("x"), K.UNAVAILABLE),
        (httpx.ConnectTimeout("x"), K.UNAVAILABLE),
        (httpx.PoolTimeout("x"), K.UNAVAILABLE),
        (httpx.ReadError("x"), K.UNKNOWN),
        (httpx.WriteError("x"), K.UNKNOWN),
        (httpx.WriteTimeout("x"), K.UNKNOWN),
        (httpx.ReadTimeout(""), K.UNKNOWN),
        (httpx.RemoteProtocolError("x"), K.UNKNOWN),
        (httpx.DecodingError("x"), K.UNKNOWN),
        (httpx.TooManyRedirects("x"), K.UNKNOWN),
        (httpx.StreamError("x"), K.UNKNOWN),
        (OSError(5, "x"), K.UNKNOWN),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_failure_by_its_place(
    fake: Echo, monkeypatch: pytest.MonkeyPatch, failure: Exception, kind: OutcomeKind
) -> None:
    async def scene(line: Line) -> Answer | Outcome:
        async def fails(*_: object, **__: object) -> None:
            raise failure

        monkeypatch.setattr(line, "call", fails)
        with pytest.raises(ProviderError, match="no answer from Somebody: "):
            await line.ask("/x")
        return await line.deliver("/x")

    outcome = play(fake.url, scene)
    assert isinstance(outcome, Outcome) and outcome.kind is kind
    assert type(failure).__name__ in outcome.reason
    assert outcome.code == ("connection" if kind is K.UNAVAILABLE else "")


@pytest.mark.parametrize("drops", ["unread", "read", "midway"])
def test_hanging_up_after_the_first_byte_leaves_a_doubt(fake: Echo, drops: str) -> None:
    outcome = deliver(fake, Scripted(200, b'{"a": ', drops=drops))
    assert isinstance(outcome, Outcome) and outcome.kind is K.UNKNOWN
    assert outcome.reason.startswith("Somebody's answer was lost: ")


def test_no_answer_in_time_leaves_a_doubt(fake: Echo) -> None:
    outcome = deliver(fake, Scripted(hangs=True), read=0.2)
    assert isinstance(outcome, Outcome) and outcome.kind is K.UNKNOWN
    assert "ReadTimeout" in outcome.reason


def test_nobody_there_is_no_doubt() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = "http://{}:{}".format(*free.getsockname())
        outcome = play(url, lambda line: line.deliver("/x"))
    assert isinstance(outcome, Outcome)
    assert (outcome.kind, outcome.code) == (K.UNAVAILABLE, "connection")


def test_a_closed_line_writes_nothing(fake: Echo) -> None:
    async def scene(line: Line) -> Answer | Outcome:
        await line.close()
        with pytest.raises(ProviderError, match="has been closed"):
            await line.ask("/x")
        return await line.deliver("/x")

    outcome = play(fake.url, scene)
    assert isinstance(outcome, Outcome)
    assert (outcome.kind, outcome.code) == (K.TRANSIENT, "closed")
    assert not fake.calls


def test_an_endless_answer_is_cut_short(fake: Echo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("paceline.providers.http.MOST_BODY", 10_000)
    answer = deliver(fake, Scripted(200, b" " * 300_000 + b"{}"))
    assert isinstance(answer, Answer)
    assert 10_000 < len(answer.body) < 300_000 and answer.said() is None


def test_no_connection_is_kept(fake: Echo) -> None:
    """One that the other side has closed meanwhile would leave a message in doubt."""

    async def scene(line: Line) -> None:
        for _ in range(2):
            await line.deliver("/x")
        assert not line._client._transport._pool.connections  # type: ignore[attr-defined]

    play(fake.url, scene)
    assert [call.headers["token"] for call in fake.calls] == [KEY, KEY]


def test_secrets_are_taken_out_before_anything_is_cut_off(fake: Echo) -> None:
    async def scene(line: Line) -> None:
        for padding in (0, 280, 295, 299):
            told = line.masked("." * padding + KEY)
            assert KEY[:3] not in told and len(told) <= LONGEST_REASON
        assert line.masked("kEy%2Bof%2Ftests%3D is bad") == f"{MASK} is bad"
        assert KEY not in repr(line)

    play(fake.url, scene)


@pytest.mark.parametrize(
    ("body", "read"),
    [
        (b'{"a": 1}', {"a": 1}),
        (b"[1]", None),
        (b"null", None),
        (b"", None),
        (b"<html>", None),
        (b"\xff\xfe{", None),
        (b"[" * 100_000, None),
        (b'{"a": ' + b"9" * 5_000 + b"}", None),
    ],
    ids=["object", "list", "null", "empty", "html", "broken", "deep", "huge number"],
)
def test_a_body_is_an_object_or_nothing(body: bytes, read: object) -> None:
    assert Answer(200, {}, body).said() == read


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("0", 0),
        (" 60 ", 60 * SECOND),
        ("-5", None),
        ("1.5", None),
        ("²", None),
        ("9" * 10_000, None),
        ("Sun, 15 Nov 2026 09:01:00 GMT", 60 * SECOND),
        ("Sun, 15 Nov 2026 08:00:00 GMT", 0),
        ("Sun, 15 Nov 2026 09:01:00 -0000", None),
        ("Sun, 99 Nov 2026", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(value: str | None, expected: int | None) -> None:
    assert retry_after_us(value, NOW) == expected


@given(st.text())
def test_no_retry_after_breaks_anything(value: str) -> None:
    wait_us = retry_after_us(value, NOW)
    assert wait_us is None or wait_us >= 0


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("x", "x"),
        (" x ", "x"),
        (7, "7"),
        ("", None),
        (" ", None),
        (None, None),
        (True, None),
        ({}, None),
        ("y" * 999, "y" * 255),
    ],
)
def test_names_may_be_missing(raw: object, name: str | None) -> None:
    assert name_of(raw) == name


@given(st.text(max_size=20).filter(lambda text: text.isprintable()))
def test_a_name_is_one_piece_of_a_path(name: str) -> None:
    assert not {"/", "?", "#", "."} & set(segment(name))


def test_addresses_are_spoken_over_tls_unless_they_are_here() -> None:
    assert read_address("Api.Example.com/v1/", "x") == ("https://api.example.com", "/v1")
    assert read_address("http://[::1]:80", "x") == ("http://[::1]:80", "")
    for bad in ("http://example.com", "ftp://x", "https://me:pw@x.com", "https://x.com?k=1", "", 5):
        with pytest.raises(ValueError, match=r"unencrypted|cannot be spoken|no address|quotes"):
            read_address(bad, "x")


def test_a_secret_may_live_in_the_environment() -> None:
    assert secret_in("plain") == "plain"
    assert secret_in("env:K", environment={"K": " found\n"}) == "found"
    for missing in ({}, {"K": ""}, {"K": "two words"}):
        with pytest.raises(ProviderRefused, match="environment variable K holds no API key"):
            secret_in("env:K", environment=missing)
