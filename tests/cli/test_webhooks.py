"""Webhooks and events on the command line: what is there, a test event, and going on."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.core.events import EventKind
from paceline.store.database import open_store
from tests.cli.conftest import CommandLine
from tests.providers.loopback import Call, Fake, Scripted, running

SECRET = "a-secret-of-some-length"
TOKEN = "t0ken-in-the-path"
NOW = 1_794_736_800_000_000


class Receiver(Fake):
    def answer(self, call: Call) -> Scripted:
        return self.script.popleft() if self.script else Scripted(204)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running(Receiver()) as fake:
        yield fake


def write(paceline: CommandLine, *urls: str, events: str = '["run.*"]', secret: str = "") -> None:
    paceline.write(
        "paceline.toml",
        "".join(
            f'[[webhooks]]\nname = "hook-{number}"\nurl = "{url}"\n'
            f'secret = "{secret or SECRET}"\nevents = {events}\n'
            for number, url in enumerate(urls, start=1)
        ),
    )


def test_a_test_event_is_signed_and_reaches_a_real_server(
    paceline: CommandLine, receiver: Receiver
) -> None:
    assert "no webhooks: name them in paceline.toml" in paceline.refused("webhook", "test")
    url = f"{receiver.url}/{TOKEN}"
    write(paceline, url)
    shown = f"{receiver.url}/…"
    assert paceline.ok("webhook", "test").out == f"hook-1 ({shown}): taken (204)\n"
    (call,) = receiver.calls
    told = call.json()
    assert (told["id"], told["kind"], told["data"]) == (0, "webhook.test", {"webhook": "hook-1"})
    signed = f"{call.headers['paceline-timestamp']}.".encode() + call.body
    expected = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
    assert call.headers["paceline-signature"] == f"v1={expected}"
    receiver.script.append(Scripted(401, f"no, not {SECRET}".encode()))
    write(paceline, url, "http://127.0.0.1:1/")
    answer = paceline("webhook", "test")
    assert answer.code == 1
    first = answer.out.splitlines()[0]
    assert first == f"hook-1 ({shown}): not taken: answered 401: no, not (secret)"
    assert "hook-2 (http://127.0.0.1:1/…): not taken: no answer: ConnectError" in answer.out
    assert "2 of 2 did not take it" in answer.err
    assert SECRET not in answer.out + answer.err
    assert TOKEN not in answer.out + answer.err
    assert paceline("webhook", "test", "hook-1").code == 0
    assert "no webhook named 'hok-1', did you mean 'hook-1'?" in paceline.refused(
        "webhook", "test", "hok-1"
    )


def test_a_secret_in_a_variable_is_needed_by_whoever_signs_and_by_nobody_else(
    paceline: CommandLine, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(paceline, receiver.url, secret="env:HOOK_SECRET")
    paceline.ok("account", "add", "team", "--provider", "sandbox")
    told = paceline.refused("webhook", "test")
    assert "paceline.toml: webhooks: hook-1: secret: the variable HOOK_SECRET is shorter" in told
    monkeypatch.setenv("HOOK_SECRET", SECRET)
    paceline.ok("webhook", "test")


@pytest.mark.parametrize(
    ("events", "complaint"),
    [
        ('["run.finish"]', "number 1: events: unknown event 'run.finish', did you mean"),
        ('["account"]', "unknown event 'account', did you mean 'account.*'?"),
        ('"run.*"', "number 1: events: must be a list"),
    ],
)
def test_what_is_wrong_is_refused(paceline: CommandLine, events: str, complaint: str) -> None:
    write(paceline, "https://example.com/", events=events)
    told = paceline.refused("webhook", "list")
    assert told.startswith("paceline: paceline.toml: webhooks: ")
    assert complaint in told
    assert SECRET not in told


def test_what_is_there_and_how_far_it_has_come(
    paceline: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    paceline.ok("account", "add", "team", "--provider", "sandbox")
    assert paceline.ok("webhook", "list").out.startswith("no webhooks: name them")
    write(paceline, f"https://crm.example.com/{TOKEN}", events='["sending.*"]')
    (row,) = paceline.ok("webhook", "list", "--json").json
    assert row == {
        "name": "hook-1",
        "where": "https://crm.example.com/…",
        "events": ["sending.*"],
        "started": False,
    }
    assert "not started yet" in paceline.ok("webhook", "list").out
    assert "no webhook named 'hook-1' was ever sent" in paceline.refused(
        "webhook", "resume", "hook-1"
    )
    store = open_store(f"sqlite:///{Path('paceline.db')}", clock=lambda: NOW)
    with store.write() as tx:
        tx.hooks.open("hook-1")
    store.close()
    paceline.ok("stop-all", "--reason", "drill")
    paceline.ok("go-on")
    paceline.ok("account", "pause", "team")
    (row,) = paceline.ok("webhook", "list", "--json").json
    assert (row["cursor"], row["waiting"], row["delivered"]) == (1, 2, 0)
    store = open_store(f"sqlite:///{Path('paceline.db')}", clock=lambda: NOW)
    with store.write() as tx:
        held = tx.hooks.take("hook-1", 1)
        assert held is not None
        problem, since = {"problem": "answered 500: oops"}, {"failing_since_at": NOW}
        tx.hooks.change(held, failures=3, next_try_at=NOW + 10**15, **problem, **since)
    store.close()
    table = paceline.ok("webhook", "list").out
    assert "fails since 2026-11-15" in table and "answered 500: oops" in table
    assert TOKEN not in table
    assert (
        paceline.ok("webhook", "resume", "hook-1").out == "webhook hook-1 goes on after event 1\n"
    )
    assert paceline.ok("webhook", "resume", "hook-1", "--from", "4").out.endswith("event 3\n")
    assert "there are events from 1 to 4" in paceline.refused(
        "webhook", "resume", "hook-1", "--from", "9"
    )
    (row,) = paceline.ok("webhook", "list", "--json").json
    assert (row["failures"], row["cursor"], row["disabled_at"]) == (0, 3, None)


def test_events_are_shown_with_the_latest_last(paceline: CommandLine) -> None:
    paceline.ok("account", "add", "team", "--provider", "sandbox")
    paceline.ok("stop-all", "--reason", "fire drill")
    paceline.ok("go-on")
    lines = paceline.ok("events").out.splitlines()
    assert [line.split()[3] for line in lines[1:]] == [
        "account.added",
        "sending.stopped",
        "sending.resumed",
    ]
    (told,) = paceline.ok("events", "sending.stopped", "--json").json
    assert (told["id"], told["kind"], told["data"]) == (
        2,
        "sending.stopped",
        {"reason": "fire drill"},
    )
    assert len(paceline.ok("events", "sending.*", "--json").json) == 2
    assert len(paceline.ok("events", "-n", "1", "--json").json) == 1
    assert paceline.ok("events", "run.*").out == "nothing has happened yet\n"
    assert "did you mean 'run.missed'" in paceline.refused("events", "run.mised")


def test_what_can_happen_is_listed(paceline: CommandLine) -> None:
    listed = paceline.ok("events", "--kinds", "--json").json
    assert [entry["kind"] for entry in listed] == list(EventKind)
    assert "run.missed" in paceline.ok("events", "--kinds", "run.*").out
