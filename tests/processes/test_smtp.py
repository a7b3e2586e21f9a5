"""Real services, a real mail server, and ``kill -9`` in the middle of five hundred letters."""

import os
import signal
from collections import Counter
from collections.abc import Iterator

import pytest

from paceline.app import open_app
from paceline.config import Settings
from paceline.core.instants import Instant
from paceline.core.model import Content, Part, Target
from paceline.core.states import DeliveryState
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.clock import SystemClock
from paceline.engine.commands import accounts, campaigns
from paceline.engine.commands.accounts import NewAccount
from paceline.engine.verify import verify
from tests.processes.service import Installation, eventually, worker_of
from tests.providers.smtp.fake import FakeServer, running

COUNT = 500
ACCOUNTS = ("ann", "ben")


@pytest.fixture
def sink() -> Iterator[FakeServer]:
    with running(FakeServer()) as server:
        yield server


@pytest.fixture
def mailing(
    installation: Installation, sink: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> Installation:
    """Two accounts at the sink, and a campaign that was launched. Made in this process, for every
    command takes a second to start."""
    key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
    monkeypatch.setenv("PACELINE_KEY", key)
    installation.env["PACELINE_KEY"] = key
    policy = {"rate": "60/s burst 5", "timeout": "5s"}
    people = [Target(f"p{number:03}@example.com") for number in range(COUNT)]
    content, now = Content((Part("text", "hello {{ target }}", subject="A word"),)), _now()
    settings = Settings(database=installation.env["PACELINE_DATABASE"])
    with open_app(settings) as app, app.store.write() as tx:
        for name in ACCOUNTS:
            new = NewAccount(name, "smtp", settings=sink.settings(), overrides=policy)
            accounts.add(tx, new, app.house, now)
        spec = CampaignSpec("spring", ACCOUNTS, content, action="email")
        campaigns.create(tx, spec, people, app.providers, now)
        campaigns.launch(tx, "spring", now)
    return installation


def _now() -> Instant:
    return SystemClock().now()


def states(installation: Installation) -> dict[str, DeliveryState]:
    return installation.look(
        lambda tx: {one.target: one.state for one in tx.deliveries.page(run_id=1, after_id=0)}
    )


def test_a_service_killed_among_letters_sends_none_twice_and_loses_none(
    mailing: Installation, sink: FakeServer
) -> None:
    for killed_after in (COUNT // 5, COUNT // 2):
        with mailing.service(f"until {killed_after}") as service:
            eventually(lambda after=killed_after: len(sink.letters) > after, "some were sent")  # type: ignore[misc]
            service.kill()
    assert len(sink.letters) < COUNT, "the kills came too late to show anything"
    with mailing.service("last") as service:
        eventually(lambda: mailing.finished("spring"), "the campaign ended")
        assert service.terminate() == 0
    judge(mailing, sink, deaths=2 * len(ACCOUNTS))


def judge(installation: Installation, sink: FakeServer, *, deaths: int) -> None:
    """None arrived twice, and none is missing but those in doubt: one for each lane that died."""
    arrived = Counter(letter.message_id for letter in sink.letters)
    assert max(arrived.values()) == 1, "a letter arrived twice"
    assert len({letter.recipient for letter in sink.letters}) == len(arrived)
    known = states(installation)
    doubts = {target for target, state in known.items() if state is DeliveryState.UNKNOWN}
    sent = {target for target, state in known.items() if state is DeliveryState.SENT}
    recipients = {letter.recipient for letter in sink.letters}
    assert sent | doubts == known.keys() and len(known) == COUNT
    assert sent <= recipients <= sent | doubts, "what is missing is in doubt, and nothing else is"
    # At most what was under way when a lane died: one letter each time.
    assert len(doubts) <= deaths
    assert installation.look(lambda tx: verify(tx, _now())) == []


def test_workers_killed_among_letters_send_none_twice_and_lose_none(
    mailing: Installation, sink: FakeServer
) -> None:
    mailing.env["PACELINE_ISOLATION"] = "process"
    with mailing.service("only") as service:
        pids = [worker_of(service) for _ in ACCOUNTS]
        assert sorted(names for names, _ in pids) == [[name] for name in ACCOUNTS]
        for sent, (_, pid) in zip((COUNT // 5, COUNT // 2), pids, strict=True):
            eventually(lambda sent=sent: len(sink.letters) > sent, "some were sent")  # type: ignore[misc]
            os.kill(pid, signal.SIGKILL)
            assert len(sink.letters) < COUNT, "the kill came too late to show anything"
        # Each has been replaced, and nobody has waited for a lease to end.
        again = sorted(worker_of(service)[0] for _ in ACCOUNTS)
        assert again == [[name] for name in ACCOUNTS]
        eventually(lambda: mailing.finished("spring"), "the campaign ended")
        assert service.terminate() == 0
    judge(mailing, sink, deaths=len(ACCOUNTS))
