"""The three pages, without a service behind them, and the socket they are served on."""

import asyncio
import socket
from collections.abc import Sequence

import httpx
import pytest
from fastapi import FastAPI

from paceline import __version__
from paceline.api.metrics import PrometheusObserver
from paceline.api.server import HttpServer, listen, make_api
from paceline.core.errors import InputError, PacelineError
from paceline.core.outcome import Outcome, OutcomeKind, accepted
from paceline.core.states import DeliveryState


def page(api: FastAPI, path: str) -> httpx.Response:
    async def get() -> httpx.Response:
        transport = httpx.ASGITransport(api)
        async with httpx.AsyncClient(transport=transport, base_url="http://paceline") as client:
            return await client.get(path)

    return asyncio.run(get())


def api_with(reasons: Sequence[str] = (), observer: PrometheusObserver | None = None) -> FastAPI:
    async def readiness() -> Sequence[str]:
        return reasons

    return make_api(observer or PrometheusObserver(), readiness)


def test_a_process_that_answers_lives() -> None:
    answer = page(api_with(["anything"]), "/healthz")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ok", "version": __version__}


def test_ready() -> None:
    answer = page(api_with(), "/readyz")
    assert (answer.status_code, answer.json()) == (200, {"ready": True, "reasons": []})


def test_not_ready_says_why() -> None:
    answer = page(api_with(["the database does not answer"]), "/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"ready": False, "reasons": ["the database does not answer"]}


@pytest.mark.parametrize("path", ["/", "/docs", "/redoc", "/openapi.json"])
def test_nothing_else_is_served(path: str) -> None:
    assert page(api_with(), path).status_code == 404


def test_metrics_follow_what_is_observed() -> None:
    observer = PrometheusObserver()
    observer.intended("sales", 1, 0)
    observer.settled("sales", accepted(), DeliveryState.SENT, 250_000)
    observer.settled("sales", Outcome(OutcomeKind.BOUNCED), DeliveryState.BOUNCED, None)
    observer.lanes_running(3)
    observer.workers_running(2)
    observer.accounts_waiting(5)
    observer.lane_crashed("team")
    observer.committed(7, 2_000)
    answer = page(api_with(observer=observer), "/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = answer.text.splitlines()
    for line in (
        f'paceline_build{{version="{__version__}"}} 1.0',
        'paceline_intents_total{account="sales"} 1.0',
        'paceline_attempts_total{account="sales",outcome="accepted"} 1.0',
        'paceline_attempts_total{account="sales",outcome="bounced"} 1.0',
        'paceline_deliveries_total{state="sent"} 1.0',
        'paceline_provider_latency_seconds_bucket{le="0.25"} 1.0',
        "paceline_provider_latency_seconds_count 1.0",
        'paceline_lane_crashes_total{account="team"} 1.0',
        "paceline_lanes_running 3.0",
        "paceline_workers_running 2.0",
        "paceline_accounts_waiting 5.0",
        "paceline_commit_units_sum 7.0",
        'paceline_commit_seconds_bucket{le="0.0025"} 1.0',
    ):
        assert line in lines


def test_two_observers_know_nothing_of_each_other() -> None:
    first, second = PrometheusObserver(), PrometheusObserver()
    first.lane_crashed("sales")
    assert b"sales" not in second.page()


def test_a_real_port() -> None:
    async def ask() -> httpx.Response:
        server = HttpServer(api_with(), listen("127.0.0.1", 0))
        serving = asyncio.create_task(server.run())
        await server.started()
        async with httpx.AsyncClient() as client:
            answer = await client.get(f"http://127.0.0.1:{server.port}/healthz")
        server.stop()
        await serving
        return answer

    answer = asyncio.run(ask())
    assert answer.status_code == 200
    assert "server" not in answer.headers


def test_an_answer_in_two_pieces_is_not_held_back() -> None:
    """Without it every answer takes 40 ms longer, in which the other side waits for the rest."""
    with listen("127.0.0.1", 0) as bound, socket.create_connection(bound.getsockname()):
        accepted, _ = bound.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_in_use_is_one_clear_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PacelineError, match=f"port {port} on 127.0.0.1 is in use"):
            listen("127.0.0.1", port)


@pytest.mark.parametrize("host", ["203.0.113.7", "no.such.host.invalid"])
def test_a_host_that_is_not_ours(host: str) -> None:
    with pytest.raises(InputError, match="host: "):
        listen(host, 0)
