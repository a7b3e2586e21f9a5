"""``kill -9`` among letters, at a mail server that keeps what it took: every doubt is looked for in
its Sent folder. What lies there was sent; what does not is sent again where all is kept there, and
nowhere else."""

import os
import signal
from collections import Counter, defaultdict
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
from tests.processes.service import ROGUE, Installation, Service, eventually, worker_of
from tests.providers.mail import imap_server
from tests.providers.mail.imap_server import ImapServer
from tests.providers.smtp import fake as fakes
from tests.providers.smtp.fake import FakeServer, Step

COUNT = 30
ACCOUNTS = ("taken", "lost", "unsure")
"""Named after what becomes of the letter that is with the server when their process is killed: it
was taken, or it was not; and of the last nobody says that all is kept."""
SENT = "Sent"
KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


@pytest.fixture
def imap() -> Iterator[ImapServer]:
    with imap_server.running(ImapServer()) as server:
        server.make(SENT)
        yield server


@pytest.fixture
def sink(imap: ImapServer) -> Iterator[FakeServer]:
    with fakes.running(FakeServer()) as server, imap.filing(SENT) as server.files:
        yield server


@pytest.fixture
def mailing(
    installation: Installation,
    sink: FakeServer,
    imap: ImapServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Installation:
    """An account of each kind, each with a campaign in the middle of which its server falls
    silent."""
    monkeypatch.setenv("PACELINE_KEY", KEY)
    installation.env.update(PACELINE_KEY=KEY, PYTHONPATH=str(ROGUE))
    policy = {"rate": "60/s burst 5", "timeout": "2s"}
    content, now = Content((Part("text", "hello", subject="A word"),)), SystemClock().now()
    settings = Settings(database=installation.env["PACELINE_DATABASE"])
    with open_app(settings) as app, app.store.write() as tx:
        for name in ACCOUNTS:
            box = imap.settings(sent_folder=SENT, sent_complete=name != "unsure")
            new = NewAccount(name, "smtp", settings=sink.settings(**box), overrides=policy)
            accounts.add(tx, new, app.house, now)
            people = [Target(address(name, number)) for number in range(COUNT)]
            spec = CampaignSpec(name, (name,), content, action="email")
            campaigns.create(tx, spec, people, app.providers, now)
            campaigns.launch(tx, name, now)
    for name in ACCOUNTS:
        middle = address(name, COUNT // 2)
        sink.script.append(Step("content", hangs=True, takes=name == "taken", after=middle))
    return installation


def states(installation: Installation) -> dict[DeliveryState, set[str]]:
    found = defaultdict[DeliveryState, set[str]](set)
    for one in installation.look(lambda tx: tx.deliveries.page()):
        found[one.state].add(one.target)
    return found


def looked_for(imap: ImapServer) -> int:
    """How many letters somebody has asked the mailbox for."""
    return len({command for command in imap.commands() if "Message-ID" in command})


def address(account: str, number: int) -> str:
    return f"{account}-{number:02}@example.com"


# Who is killed is one thing, where it is written down another: ``test_smtp.py`` has all of both.
@pytest.mark.parametrize("installation", ["postgresql"], indirect=True)
def test_a_service_that_is_killed(
    mailing: Installation, sink: FakeServer, imap: ImapServer
) -> None:
    with mailing.service("first") as service:
        eventually(lambda: not sink.script, "every account has a letter with its server")
        service.kill()
    with mailing.service("second") as service:
        judge(mailing, sink, imap, service)


@pytest.mark.parametrize("installation", ["sqlite"], indirect=True)
def test_a_worker_that_is_killed(mailing: Installation, sink: FakeServer, imap: ImapServer) -> None:
    mailing.env.update(PACELINE_ISOLATION="process", PACELINE_ACCOUNTS_PER_PROCESS="3")
    with mailing.service("only") as service:
        names, worker = worker_of(service)
        assert set(names) == set(ACCOUNTS)
        eventually(lambda: not sink.script, "every account has a letter with its server")
        os.kill(worker, signal.SIGKILL)
        judge(mailing, sink, imap, service)


def judge(installation: Installation, sink: FakeServer, imap: ImapServer, service: Service) -> None:
    assert len(sink.letters) < 2 * COUNT, "the kill came too late to show anything"
    in_doubt = address("unsure", COUNT // 2)
    wanted = {address(name, number) for name in ACCOUNTS for number in range(COUNT)} - {in_doubt}
    eventually(lambda: looked_for(imap) == len(ACCOUNTS), "every doubt was looked for")
    eventually(lambda: states(installation)[DeliveryState.SENT] >= wanted, "all others are sent")
    assert service.terminate() == 0
    assert states(installation) == {
        DeliveryState.SENT: wanted,
        DeliveryState.UNKNOWN: {in_doubt},
    }
    assert Counter(letter.recipient for letter in sink.letters) == Counter(wanted)
    assert len({letter.message_id for letter in sink.letters}) == len(wanted)
    rows = installation.look(lambda tx: tx.deliveries.page())
    again = {one.target for one in rows if one.attempts > 1}
    assert again == {address("lost", COUNT // 2)}
    assert installation.look(lambda tx: verify(tx, SystemClock().now())) == []
