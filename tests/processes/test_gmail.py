"""``kill -9`` of a worker and of its supervisor among letters to Gmail, over real HTTP.

Of a letter that was with Gmail just then nobody has an answer. It is searched for by its
Message-ID: what is found was sent. That it is not found proves nothing there, so that one is held.
"""

import os
import signal
from collections import Counter
from collections.abc import Iterator

import pytest

from paceline.app import open_app
from paceline.config import Settings
from paceline.core.model import Content, Part, Target
from paceline.core.states import DeliveryState
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.clock import SystemClock
from paceline.engine.commands import accounts, campaigns
from paceline.engine.commands.accounts import NewAccount
from paceline.engine.verify import verify
from tests.processes.service import Installation, eventually, worker_of
from tests.providers.gmail.fake import FakeGmail
from tests.providers.loopback import Scripted, running

COUNT = 300
ACCOUNTS = ("ann", "ben")
KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


@pytest.fixture
def gmail() -> Iterator[FakeGmail]:
    with running(FakeGmail()) as server:
        yield server


@pytest.fixture
def mailing(
    installation: Installation, gmail: FakeGmail, monkeypatch: pytest.MonkeyPatch
) -> Installation:
    """Two accounts of one worker, and a campaign that was launched."""
    monkeypatch.setenv("PACELINE_KEY", KEY)
    installation.env.update(
        PACELINE_KEY=KEY, PACELINE_ISOLATION="process", PACELINE_ACCOUNTS_PER_PROCESS="2"
    )
    policy = {"rate": "40/s burst 5", "timeout": "2s"}
    people = [Target(f"p{number:03}@example.com") for number in range(COUNT)]
    content = Content((Part("text", "hello {{ target }}", subject="A word"),))
    now = SystemClock().now()
    settings = Settings(database=installation.env["PACELINE_DATABASE"])
    with open_app(settings) as app, app.store.write() as tx:
        for name in ACCOUNTS:
            new = NewAccount(name, "gmail", settings=gmail.settings(), overrides=policy)
            accounts.add(tx, new, app.house, now)
        spec = CampaignSpec("spring", ACCOUNTS, content, action="email")
        campaigns.create(tx, spec, people, app.providers, now)
        campaigns.launch(tx, "spring", now)
    return installation


def test_a_worker_and_a_supervisor_that_are_killed_send_none_twice_and_lose_none(
    mailing: Installation, gmail: FakeGmail
) -> None:
    with mailing.service("first") as service:
        names, worker = worker_of(service)
        assert sorted(names) == sorted(ACCOUNTS)
        silent_after(gmail, COUNT // 5, takes=True)
        os.kill(worker, signal.SIGKILL)
        again, _ = worker_of(service)
        assert set(again) <= set(ACCOUNTS), "it has been replaced"
        silent_after(gmail, COUNT // 2, takes=False)
        service.kill()
    assert len(gmail.sent) < COUNT, "the kills came too late to show anything"
    with mailing.service("last") as service:
        eventually(lambda: is_clear(mailing, gmail), "all were sent or held, and searched for")
        assert service.terminate() == 0
    judge(mailing, gmail)


def silent_after(gmail: FakeGmail, sent: int, *, takes: bool) -> None:
    """Until a letter after so many is with Gmail, which says nothing to it any more."""
    eventually(lambda: len(gmail.sent) > sent, "some were sent")
    gmail.script.append(Scripted(hangs=True, takes=takes))
    eventually(lambda: not gmail.script, "one is with Gmail")


def states(installation: Installation) -> dict[DeliveryState, set[str]]:
    rows = installation.look(lambda tx: tx.deliveries.page(run_id=1, after_id=0))
    return {state: {one.target for one in rows if one.state is state} for state in DeliveryState}


def is_clear(installation: Installation, gmail: FakeGmail) -> bool:
    """Whether nothing is left to send, and all that arrived is known to have."""
    known = states(installation)
    sent, held = known[DeliveryState.SENT], known[DeliveryState.UNKNOWN]
    return len(sent) + len(held) == COUNT and sent >= {one.to for one in gmail.sent}


def judge(installation: Installation, gmail: FakeGmail) -> None:
    arrived = Counter(one.own_id for one in gmail.sent)
    assert max(arrived.values()) == 1, "a letter arrived twice"
    recipients = {one.to for one in gmail.sent}
    assert len(recipients) == len(arrived)
    known = states(installation)
    assert known[DeliveryState.SENT] == recipients, "what was found there is resolved"
    held = known[DeliveryState.UNKNOWN]
    # One letter of each lane that died, at most; and Gmail was not given one of them for sure.
    assert 1 <= len(held) <= 2 * len(ACCOUNTS) - 1 and not held & recipients
    assert len(known[DeliveryState.SENT]) + len(held) == COUNT and gmail.searches()
    assert installation.look(lambda tx: verify(tx, SystemClock().now())) == []
