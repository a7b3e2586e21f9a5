"""Real services, a real mail server, and ``kill -9`` in the middle of five hundred letters."""

from collections import Counter
from collections.abc import Iterator

import pytest

from paceline.core.states import DeliveryState
from tests.processes.service import Installation, eventually
from tests.providers.smtp.fake import FakeServer, running

COUNT = 500
ACCOUNTS = ("ann", "ben")


@pytest.fixture
def sink() -> Iterator[FakeServer]:
    with running(FakeServer()) as server:
        yield server


def add_accounts(installation: Installation, sink: FakeServer) -> None:
    options = [f"--option={key}={value}" for key, value in sink.settings().items()]
    for name in ACCOUNTS:
        installation.run(
            "account", "add", name, "--provider", "smtp", *options,
            "--set", "rate=60/s burst 5", "--set", "timeout=5s",
        )  # fmt: skip


def mail_to(installation: Installation, count: int) -> None:
    people = "".join(f"p{number:03}@example.com\n" for number in range(count))
    (installation.folder / "people.csv").write_text(f"email\n{people}")
    (installation.folder / "spring.toml").write_text(
        'name = "spring"\naction = "email"\naccounts = ["ann", "ben"]\naudience = "people.csv"\n'
        '[[parts]]\nsubject = "A word"\ntext = "hello {{ target }}"\n'
    )
    installation.run("campaign", "create", "-f", "spring.toml", "--launch")


def states(installation: Installation) -> dict[str, DeliveryState]:
    return installation.look(
        lambda tx: {one.target: one.state for one in tx.deliveries.page(run_id=1, after_id=0)}
    )


def test_a_service_killed_among_letters_sends_none_twice_and_loses_none(
    installation: Installation, sink: FakeServer
) -> None:
    installation.env["PACELINE_KEY"] = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
    add_accounts(installation, sink)
    mail_to(installation, COUNT)
    for killed_after in (COUNT // 5, COUNT // 2):
        with installation.service(f"until {killed_after}") as service:
            eventually(lambda after=killed_after: len(sink.letters) > after, "some were sent")  # type: ignore[misc]
            service.kill()
    assert len(sink.letters) < COUNT, "the kills came too late to show anything"
    with installation.service("last") as service:
        eventually(lambda: installation.finished("spring"), "the campaign ended")
        assert service.terminate() == 0
    arrived = Counter(letter.message_id for letter in sink.letters)
    assert max(arrived.values()) == 1, "a letter arrived twice"
    assert len({letter.recipient for letter in sink.letters}) == len(arrived)
    known = states(installation)
    doubts = {target for target, state in known.items() if state is DeliveryState.UNKNOWN}
    sent = {target for target, state in known.items() if state is DeliveryState.SENT}
    recipients = {letter.recipient for letter in sink.letters}
    assert sent | doubts == known.keys() and len(known) == COUNT
    assert sent <= recipients <= sent | doubts, "what is missing is in doubt, and nothing else is"
    # At most what was under way when a process died: one letter on each account, each time.
    assert len(doubts) <= 2 * len(ACCOUNTS)
    assert installation.ask("verify")["violations"] == []
