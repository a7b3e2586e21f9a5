"""Lanes that crash, hang, block or leak for real, beside one that does nothing of the kind."""

import json
import os
import signal
from collections.abc import Iterable

import httpx
import pytest

from paceline.app import open_app
from paceline.config import Settings
from paceline.core.model import Content, Part, Target, Wait
from paceline.core.states import DeliveryState
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.clock import SystemClock
from paceline.engine.commands import accounts, campaigns
from paceline.engine.commands.accounts import NewAccount
from paceline.engine.ports import Account, Alert
from paceline.engine.queries import why_account
from paceline.engine.verify import verify
from paceline.interpreter import EXIT_BLOCKED, EXIT_MEMORY
from tests.processes.service import ROGUE, Installation, Service, eventually, lives

COUNT = 40


@pytest.fixture
def rogues(installation: Installation) -> Installation:
    """An installation whose processes live faster, and whose sandbox may be told to misbehave."""
    installation.env["PYTHONPATH"] = str(ROGUE)
    installation.env["PACELINE_GRACE"] = "5s"
    return installation


def set_up(installation: Installation, *deeds: str) -> None:
    """A good account, and one for each misdeed, which is named after it; all with a campaign."""
    env = installation.env
    env["PACELINE_TEST_ROGUES"] = json.dumps({deed: deed for deed in deeds})
    settings = Settings(
        database=env["PACELINE_DATABASE"], sandbox_effects=env["PACELINE_SANDBOX_EFFECTS"]
    )
    content, now = Content((Part("text", "hello {{ target }}"),)), SystemClock().now()
    with open_app(settings) as app, app.store.write() as tx:
        for name in ("good", *deeds):
            good = name == "good"
            policy = {"rate": "20/s" if good else "4/s", "timeout": "1s", "on_unknown": "hold"}
            new = NewAccount(name, "sandbox", settings={"finds": good}, overrides=policy)
            accounts.add(tx, new, app.house, now)
            spec = CampaignSpec(name=name, accounts=(name,), content=content)
            people = [Target(f"{name}-{n:04}") for n in range(COUNT if good else 40)]
            campaigns.create(tx, spec, people, app.providers, now)
            campaigns.launch(tx, name, now)


def account(installation: Installation, name: str) -> Account:
    found = installation.look(lambda tx: tx.accounts.find(name))
    assert found is not None
    return found


def suspended(installation: Installation, names: Iterable[str]) -> bool:
    return all(account(installation, name).state == "suspended" for name in names)


def alerts(installation: Installation) -> list[Alert]:
    return installation.look(lambda tx: tx.alerts.list())


def judge(installation: Installation) -> None:
    """Everybody the good account writes to has got it once, and nobody anything twice."""
    accepted = installation.accepted()
    assert max(accepted.values()) == 1, "somebody was contacted twice"
    good = [e for e in installation.effects() if e.accepted and e.account == "good"]
    assert len(good) == COUNT, "somebody was never contacted"
    rows = installation.look(
        lambda tx: tx.deliveries.page(account_id=account(installation, "good").id)
    )
    assert {row.state for row in rows} == {DeliveryState.SENT} and len(rows) == COUNT
    assert installation.look(lambda tx: verify(tx, SystemClock().now())) == []


CRASHING = {
    "abort": "its worker was ended by SIGABRT)",
    "nonsense": "AttributeError",
    "block": "its driver blocked its worker for ",
    "leak": "its worker took ",
}
"""What is told of each, last."""


def pids(service: Service) -> dict[str, int]:
    """The workers that were started, by the account of each, as far as the log was read."""
    lines = [json.loads(line) for line in service.log if '"worker started"' in line]
    return {name: line["pid"] for line in lines for name in line["accounts"]}


# ---------------------------------------------------------------------- a process each


def test_workers_that_crash_hang_block_or_leak_harm_nobody_else(rogues: Installation) -> None:
    rogues.env["PACELINE_ISOLATION"] = "process"
    rogues.env["PACELINE_WORKER_MEMORY"] = "250 MB"
    # Whoever takes longest to be found out begins first: only a few workers start at a time.
    set_up(rogues, "block", "leak", "abort", "nonsense", "hang")
    with rogues.service("first") as service:
        eventually(lambda: rogues.finished("good"), "the good one is done")
        eventually(lambda: suspended(rogues, CRASHING), "all that crash are out of service")
        metrics = httpx.get(f"{service.url}/metrics").text
        assert httpx.get(f"{service.url}/readyz").status_code == 200
        why = rogues.look(lambda tx: why_account(tx, "block", SystemClock().now()))
        assert service.terminate() == 0
    judge(rogues)
    reasons = {name: account(rogues, name).state_reason for name in CRASHING}
    for name, last in CRASHING.items():
        assert reasons[name].startswith(f"Too many worker crashes (last: {last}")
    assert "more than 250 MB" in reasons["leak"]
    assert isinstance(why.verdict, Wait) and reasons["block"] in why.verdict.why
    told = " ".join(alert.text for alert in alerts(rogues))
    assert all(reason in told for reason in reasons.values())
    hung = rogues.look(lambda tx: tx.deliveries.page(account_id=account(rogues, "hang").id))
    assert "no answer within 1 s" in {row.reason for row in hung}
    assert f'paceline_attempts_total{{account="good",outcome="accepted"}} {COUNT}.0' in metrics
    assert 'paceline_lane_crashes_total{account="abort"} 2.0' in metrics


def test_killed_workers_and_a_killed_service_lose_nothing_and_leave_nobody_behind(
    rogues: Installation,
) -> None:
    rogues.env["PACELINE_ISOLATION"] = "process"
    set_up(rogues, "hang")
    with rogues.service("first") as service:
        service.wait_for_line('"event": "lane started"')
        eventually(lambda: len(rogues.accepted()) > 5, "some were sent")
        os.kill(pids(service)["good"], signal.SIGKILL)
        service.wait_for_line('"event": "worker crashed"')
        service.wait_for_line('"event": "worker started"')
        sent = len(rogues.accepted())
        eventually(lambda: len(rogues.accepted()) > sent + 5, "it goes on")
        workers = pids(service)
        service.kill()
        eventually(lambda: not any(map(lives, workers.values())), "its workers have ended")
    assert len(rogues.accepted()) < COUNT, "the kills came too late to show anything"
    with rogues.service("second") as service:
        eventually(lambda: rogues.finished("good"), "the campaign ended")
        assert service.terminate() == 0
    judge(rogues)


# ---------------------------------------------------------------------- all in one


def test_lanes_of_one_process_that_crash_hang_block_or_leak_harm_nobody_for_long(
    rogues: Installation,
) -> None:
    """The test is the service manager: whatever ends is started again."""
    rogues.env["PACELINE_WORKER_MEMORY"] = "600 MB"
    set_up(rogues, "nonsense", "hang", "block", "leak")
    codes: list[int] = []

    def is_over() -> bool:
        out = suspended(rogues, ("block", "nonsense"))
        return out and EXIT_MEMORY in codes and rogues.finished("good")

    while not is_over():
        assert len(codes) < 10, codes
        with rogues.service("only") as service:
            eventually(lambda s=service: s.code is not None or is_over(), "it ended")  # type: ignore[misc]
            codes.append(service.code if service.code is not None else service.terminate())
    assert {EXIT_BLOCKED, EXIT_MEMORY} <= set(codes) <= {0, EXIT_BLOCKED, EXIT_MEMORY}
    judge(rogues)
    assert account(rogues, "block").state_reason.startswith("its driver blocked the whole process")
    told = " ".join(alert.text for alert in alerts(rogues))
    assert account(rogues, "block").state_reason in told
    assert "account nonsense is suspended: Too many worker crashes (last: Attrib" in told
    assert "process only took " in told and "more than 600 MB" in told
