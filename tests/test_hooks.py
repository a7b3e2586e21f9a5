"""Providers that report to a running service, over real HTTP, on both databases."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import httpx
import pytest

from paceline.app import App, open_app
from paceline.config import Settings
from paceline.core.model import Content, Part
from paceline.core.states import DeliveryState
from paceline.engine.commands import accounts, campaigns, hooking
from paceline.engine.commands.accounts import NewAccount
from paceline.engine.ports import Inbound
from paceline.vault import new_key
from tests import test_app
from tests.providers.conformance.case import Reports
from tests.providers.conformance.cases import CASES
from tests.providers.conformance.whatsapp_cloud import SHAKE
from tests.providers.mail.returned import answer, bounce
from tests.providers.smtp.fake import FakeServer, running
from tests.test_app import served, until

database = test_app.database

TOLD: dict[str, Reports] = {case.name: case.reports for case in CASES if case.reports is not None}


@pytest.fixture
def settings(database: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("PACELINE_KEY", new_key())
    effects = str(tmp_path / "effects.jsonl")
    return Settings(database=database, port=0, poll_us=test_app.POLL_US, sandbox_effects=effects)


def add(app: App, name: str, provider: str, options: Mapping[str, Any]) -> str:
    """An account, and the address at which its provider reports."""
    with app.store.write() as tx:
        new = NewAccount(name, provider, "anna@shop.example", options)
        account = accounts.add(tx, new, app.house, app.clock.now())
    # In a transaction of its own: the fence comes before the first write.
    with app.store.write() as tx:
        secret = hooking.ensure_secret(tx, app.providers, account)
    return hooking.url_of("", account, secret)


def inbox(app: App, name: str) -> list[str]:
    with app.store.read() as tx:
        account = tx.accounts.find(name)
        assert account is not None
        return [one.provider_id for one in tx.inbox.latest(account.id)]


def play(settings: Settings, scene: Any) -> None:
    async def whole(app: App) -> None:
        async with served(app) as client:
            await scene(app, client)

    with open_app(settings, sends=True) as app:
        asyncio.run(whole(app))


def test_every_provider_that_reports_is_heard_at_its_own_address(
    settings: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    """With the samples, proofs and secrets of the conformance suite."""
    assert {"wassenger", "waha", "whatsapp_cloud", "unipile"} <= {
        reports.webhooks().name  # type: ignore[attr-defined]
        for reports in TOLD.values()
    }
    addresses: list[str] = []

    async def scene(app: App, client: httpx.AsyncClient) -> None:
        for case, reports in TOLD.items():
            provider = reports.webhooks().name  # type: ignore[attr-defined]
            for way, options in reports.settings.items():
                name = f"{case}-{way}"
                addresses.append(address := add(app, name, provider, options))
                await _told(client, address, reports, way)
                expected = {
                    one.provider_id
                    for sample in reports.samples
                    for one in sample.news
                    if isinstance(one, Inbound)
                }
                assert Counter(inbox(app, name)) == Counter(expected), "each is there once"
            bare = add(app, f"{case}-bare", provider, reports.unproved)
            body = json.dumps(reports.samples[0].body)
            assert (await client.post(bare, content=body)).status_code == 200
            assert inbox(app, f"{case}-bare"), "its secret address is all that was agreed upon"

    play(settings, scene)
    heard = "".join(capfd.readouterr())
    assert "reports taken in" in heard
    for address in addresses:
        assert address.rpartition("/")[2] not in heard


async def _told(client: httpx.AsyncClient, address: str, reports: Reports, way: str) -> None:
    options = reports.settings[way]
    for sample in (*reports.samples, *reports.samples[:1]):
        body = json.dumps(reports.enclose(way, options, sample.body)).encode()
        headers, query = reports.prove(way, options, body)
        # Whatever it calls itself, or nothing at all.
        kind = {"Content-Type": "text/plain"} if sample is reports.samples[0] else {}
        told = {**headers, **kind}
        got = await client.post(address, content=body, headers=told, params=query)
        assert got.status_code == 200, (way, sample.name, got.text)
    first = json.dumps(reports.samples[0].body).encode()
    unproved = await client.post(address, content=first)
    assert (unproved.status_code, unproved.json()) == (404, {"detail": "Not Found"})
    if way in ("signature", "header", "token"):
        for bad in (b"{", b"\xff", b"[]", b""):
            headers, query = reports.prove(way, options, bad)
            got = await client.post(address, content=bad, headers=headers, params=query)
            assert got.status_code == 400 and "Traceback" not in got.text


def test_a_handshake_is_answered_to_whoever_knows_both_secrets(settings: Settings) -> None:
    reports = TOLD["whatsapp_cloud"]

    async def scene(app: App, client: httpx.AsyncClient) -> None:
        options = reports.settings["signature"]
        address = add(app, "cloud+1@shop.example", "whatsapp_cloud", options)
        got = await client.get(address, params=SHAKE)
        assert (got.status_code, got.text) == (200, SHAKE["hub.challenge"])
        assert (await client.get(f"{address}x", params=SHAKE)).status_code == 404
        wrong = {**SHAKE, "hub.verify_token": "wrong"}
        assert (await client.get(address, params=wrong)).status_code == 404

    play(settings, scene)


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    with running(FakeServer()) as server:
        yield server


def test_a_letter_that_a_mail_server_passes_on(settings: Settings, fake: FakeServer) -> None:
    """A bounce is believed before it is answered, twice is as good as once, an answer is kept."""

    async def scene(app: App, client: httpx.AsyncClient) -> None:
        address = add(app, "anna", "smtp", fake.settings(verp=True))
        ids = [_write_to(app, f"n{number}@example.com") for number in (1, 2)]
        await until(app, lambda: all(_state(app, one) == "sent" for one in ids))
        by_target = {one.recipient: one for one in fake.letters}
        gone, keen = by_target["n1@example.com"], by_target["n2@example.com"]
        back = bounce(gone.recipient, "", to=gone.sender)
        mail = {"Content-Type": "message/rfc822"}
        for _ in range(2):
            assert (await client.post(address, content=back, headers=mail)).status_code == 200
            assert _state(app, ids[0]) is DeliveryState.BOUNCED
        piped = b"From bounces@mx.example Mon Nov 16 09:00:00 2026\n" + answer(
            keen.recipient, keen.message_id
        )
        large = piped + b"x" * 3_000_000
        for raw in (piped, large):
            assert (await client.post(address, content=raw)).status_code == 200
        with app.store.read() as tx:
            assert tx.suppressions.has("n1@example.com")
            (kept,) = tx.inbox.latest()
        assert (kept.sender, kept.delivery_id) == ("n2@example.com", ids[1])
        for bad in (b"", b'{"from": "x"}', b"<html>", b"\x00\xff"):
            assert (await client.post(address, content=bad)).status_code == 400
        assert (await client.get(address)).status_code == 404

    play(settings, scene)


def _write_to(app: App, target: str) -> int:
    content = Content((Part("text", "Hello", subject="A word"),))
    with app.store.write() as tx:
        return campaigns.send_direct(
            tx, "anna", target, content, "email", app.clock.now(), providers=app.providers
        )


def _state(app: App, delivery_id: int) -> DeliveryState:
    with app.store.read() as tx:
        return tx.deliveries.get(delivery_id).state


async def _raw(client: httpx.AsyncClient, request: bytes) -> bytes:
    """What a real socket is answered, up to its end."""
    url = client.base_url
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(request)
    told = await reader.read()
    writer.close()
    return told


def test_what_is_too_large_is_refused_before_it_has_come(settings: Settings) -> None:
    reports = TOLD["wassenger"]

    async def scene(app: App, client: httpx.AsyncClient) -> None:
        address = add(app, "shop", "wassenger", reports.unproved)
        head = f"POST {address} HTTP/1.1\r\nHost: x\r\nContent-Length: "
        told = await _raw(client, f"{head}{2**40}\r\n\r\n".encode())
        assert told.startswith(b"HTTP/1.1 413 ")
        chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
        head = f"POST {address} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        told = await _raw(client, head.encode() + chunk * 17)
        assert told.startswith(b"HTTP/1.1 413 ")
        assert (await client.get("/healthz")).status_code == 200

    play(settings, scene)


def test_accounts_that_are_not_there_are_told_apart_by_nobody(settings: Settings) -> None:
    async def scene(app: App, client: httpx.AsyncClient) -> None:
        address = add(app, "shop", "wassenger", TOLD["wassenger"].unproved)
        with app.store.write() as tx:
            accounts.add(tx, NewAccount("team", "sandbox"), app.house, app.clock.now())
        secret = address.rpartition("/")[2]
        answers = [
            await client.post(path, content=b"{}")
            for path in (
                f"/hooks/nobody/{secret}",
                f"/hooks/team/{secret}",
                f"{address[:-1]}{'a' if address[-1] != 'a' else 'b'}",
                "/x",
            )
        ]
        told = {(one.status_code, one.text, str(sorted(one.headers.keys()))) for one in answers}
        assert len(told) == 1 and answers[0].status_code == 404

    play(replace(settings, base_url="https://mail.example.com"), scene)


def test_without_the_key_the_provider_is_to_come_again_and_nobody_else_learns_anything(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = TOLD["waha"]
    (options, *_) = reports.settings.values()
    made: list[str] = []

    async def with_key(app: App, client: httpx.AsyncClient) -> None:
        made.append(add(app, "shop", "waha", options))

    play(settings, with_key)
    (address,) = made
    monkeypatch.setenv("PACELINE_KEY", new_key())

    async def without(app: App, client: httpx.AsyncClient) -> None:
        wrong = f"{address[:-1]}{'a' if address[-1] != 'a' else 'b'}"
        nobody = address.replace("/shop/", "/nobody/")
        told = [await client.post(path, content=b"{}") for path in (wrong, nobody)]
        assert {(one.status_code, one.text) for one in told} == {(404, '{"detail":"Not Found"}')}
        right = await client.post(address, content=b"{}")
        assert (right.status_code, right.headers["retry-after"]) == (503, "15")

    play(settings, without)
