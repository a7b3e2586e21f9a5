"""Real services and a webhook: one of them is killed while it brings an event, two others go on."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator

import pytest

from tests.processes.service import Installation, eventually, services
from tests.providers.loopback import Call, Fake, Scripted, running

SECRET = "a-secret-of-some-length"


class Receiver(Fake):
    def answer(self, call: Call) -> Scripted:
        return self.script.popleft() if self.script else Scripted(204)

    @property
    def told(self) -> list[tuple[str, int, str]]:
        """What it was told, in the order it came: the name, the number and the kind of each."""
        events = [(call.headers["paceline-event-id"], call.json()) for call in self.calls]
        return [(name, event["id"], event["kind"]) for name, event in events]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running(Receiver()) as fake:
        yield fake


def test_an_event_arrives_though_whoever_brought_it_was_killed(
    installation: Installation, receiver: Receiver
) -> None:
    installation.env["HOOK_SECRET"] = SECRET
    installation.env["PACELINE_WEBHOOKS"] = (
        f'[{{ name = "crm", url = "{receiver.url}/hook", secret = "env:HOOK_SECRET", '
        'events = ["sending.*", "run.*"] }]'
    )
    installation.run("account", "add", "ann", "--provider", "sandbox", "--set", "rate=20/s")
    with installation.service("first") as first:
        eventually(
            lambda: bool(installation.look(lambda tx: tx.hooks.list())), "the webhook is known"
        )
        receiver.script.append(Scripted(hangs=True))
        installation.run("stop-all", "--reason", "drill")
        assert receiver.await_calls(1)
        first.kill()
    with services(installation, "second", "third") as both:
        installation.run("go-on")
        installation.campaign("spring", 20, "ann")
        eventually(lambda: installation.finished("spring"), "the campaign ended")
        eventually(lambda: len(receiver.calls) >= 5, "another one took over")
        for service in both:
            assert service.terminate() == 0
    told = receiver.told
    assert told[0] == told[1], "the same event once more, under the same name"
    assert [kind for _, _, kind in told[1:]] == [
        "sending.stopped",
        "sending.resumed",
        "run.started",
        "run.finished",
    ]
    assert [number for _, number, _ in told[1:]] == sorted({number for _, number, _ in told})
    for call in receiver.calls:
        signed = f"{call.headers['paceline-timestamp']}.".encode() + call.body
        expected = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
        assert call.headers["paceline-signature"] == f"v1={expected}"
    (row,) = installation.ask("webhook", "list")
    assert (row["delivered"], row["waiting"], row["skipped"]) == (4, 0, 0)
    log = "".join(line for service in (first, *both) for line in service.log)
    assert SECRET not in log
