"""What a status says of a campaign's end, and how often that is worked out."""

import io
import json
from itertools import pairwise

import pytest
from rich.console import Console

from paceline.cli import campaign_status
from paceline.cli.campaign_status import AHEAD_EVERY_US, RESTS, Ahead
from paceline.core.instants import SECOND
from paceline.engine import arrival, queries
from paceline.engine.commands import campaigns
from paceline.engine.ports import NewAlert, Tx
from paceline.engine.queries import CampaignView
from paceline.store.database import open_store
from tests.cli.conftest import NOW, CommandLine, StillClock

MANY = """
name = "many"
accounts = ["ann"]
audience = "many.csv"
[[parts]]
text = "hello"
"""


@pytest.fixture
def launched(paceline: CommandLine) -> CommandLine:
    """A campaign of sixty, one a minute, that was laid out when it was launched."""
    paceline.ok("account", "add", "ann", "--provider", "sandbox", "--set", "spacing=1m")
    paceline.write("many.csv", "address\n" + "".join(f"p{n}@example.com\n" for n in range(60)))
    paceline.write("many.toml", MANY)
    paceline.ok("campaign", "create", "-f", "many.toml", "--launch")
    return paceline


def test_a_large_campaign_says_what_its_end_was_reckoned_by(
    launched: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = launched.ok("campaign", "status", "many", "--json").json["eta"]
    assert whole["going_by"] is None
    monkeypatch.setattr(arrival, "NEAR", 20)
    some = launched.ok("campaign", "status", "many", "--json").json["eta"]
    assert some == whole | {"going_by": 21}
    (done,) = launched.ok("campaign", "status", "many").out.splitlines()[-1:]
    assert done.startswith("done about ") and done.endswith(", going by the 21 that are due next")
    launched.ok("account", "pause", "ann")
    (stuck,) = launched.ok("campaign", "status", "many").out.splitlines()[-1:]
    assert stuck == "at least 60 cannot go: account is paused: paused by an operator"


def test_who_watches_does_not_have_it_worked_out_again_every_second(
    launched: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What takes long is done seldom: twenty times as long passes in between."""
    from paceline.config import load

    clock, looks, took_us = StillClock(NOW), [], 3 * SECOND

    def slow(tx: Tx, view: CampaignView, now: int) -> CampaignView:
        looks.append(now)
        clock.now_at += took_us
        return view

    monkeypatch.setattr(campaign_status.queries, "with_eta", slow)
    store = open_store(load().database, clock=clock.now)
    try:
        with store.read() as tx:
            view = queries.campaign_view(tx, "many")
        ahead = Ahead(store, clock)
        for _ in range(200):
            ahead.look(view)
            clock.now_at += SECOND
    finally:
        store.close()
    assert len(looks) == 4
    gaps = [later - sooner for sooner, later in pairwise(looks)]
    assert min(gaps) >= max(AHEAD_EVERY_US, RESTS * took_us)


ACCOUNT_LINE = (
    "alert 1 since 2026-11-15 10:00 UTC: account ann is suspended: banned (see: paceline alerts)"
)


def alarm(
    launched: CommandLine, *new: NewAlert, clear: int | None = None, cancel: bool = False
) -> None:
    from paceline.config import load

    store = open_store(load().database, clock=launched.clock.now)
    with store.write() as tx:
        for alert in new:
            tx.alerts.put(alert, NOW)
        if clear is not None:
            tx.alerts.clear(NOW, alert_id=clear)
        if cancel:
            campaigns.cancel(tx, "many", NOW)
    store.close()


SUSPENDED = NewAlert("s:1", "account.suspended", "account ann is suspended: banned", account_id=1)
PAUSED = NewAlert("b:1", "campaign.breaker", "campaign many was paused", (), 1, 1)
OTHERS = NewAlert("b:9", "campaign.breaker", "campaign other was paused", (), 1, 9)
ELSEWHERE = NewAlert("s:7", "account.suspended", "account eve is suspended", account_id=7)


def test_a_status_tells_of_its_accounts_as_well(launched: CommandLine) -> None:
    alarm(launched, SUSPENDED, OTHERS, ELSEWHERE)
    assert launched.ok("campaign", "status", "many").out.splitlines()[0] == ACCOUNT_LINE
    (told,) = launched.ok("campaign", "status", "many", "--json").json["alerts"]
    assert (told["id"], told["account"]) == (1, "ann")


@pytest.mark.parametrize("as_json", [False, True], ids=["lines", "json"])
def test_who_watches_is_told_of_alerts_as_they_come_and_go(
    launched: CommandLine, monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    happens = [
        lambda: alarm(launched, SUSPENDED, OTHERS),
        lambda: alarm(launched, PAUSED),
        lambda: None,
        lambda: alarm(launched, clear=1),
        lambda: alarm(launched, cancel=True),
    ]
    sleep_until = launched.clock.sleep_until

    async def meanwhile(at: int) -> None:
        happens.pop(0)()
        await sleep_until(at)

    monkeypatch.setattr(launched.clock, "sleep_until", meanwhile)
    watched = launched("campaign", "status", "many", "--watch", *(["--json"] if as_json else []))
    assert happens == []
    *lines, last = watched.out.splitlines()
    assert "cancelled" in last
    if as_json:
        told = [[alert["text"] for alert in json.loads(line)["alerts"]] for line in lines]
        assert told == [[], [SUSPENDED.text], [PAUSED.text, SUSPENDED.text], [PAUSED.text]]
        return
    assert [line.partition("; ")[0] for line in lines] == ["many is running: 60 ready"] * 4
    assert "alert" not in lines[0]
    assert lines[1].endswith(f"; {ACCOUNT_LINE}")
    assert lines[2].endswith(f"; 2 open alerts, the latest: {PAUSED.text} (see: paceline alerts)")
    assert f"alert 3 since 2026-11-15 10:00 UTC: {PAUSED.text}" in lines[3]


def test_on_a_terminal_the_alert_stands_under_the_table(launched: CommandLine) -> None:
    from paceline.config import load

    alarm(launched, SUSPENDED)
    store = open_store(load().database, clock=launched.clock.now)
    with store.read() as tx:
        shown = campaign_status.look(tx, "many")
    store.close()
    console = Console(width=200, file=io.StringIO())
    console.print(campaign_status.picture(shown.view, NOW, shown.alerts))
    told = [line.strip() for line in console.file.getvalue().splitlines() if line.strip()]
    table = next(number for number, line in enumerate(told) if line.startswith("ACCOUNT"))
    assert told.index(ACCOUNT_LINE) > table


FOLLOWED = """
name = "many"
accounts = ["ann"]
targets = ["+34600111222", "+34600333444"]
[[steps]]
[[steps.parts]]
text = "shall I?"
[[steps]]
on = "reply"
[[steps.parts]]
text = "here it is"
"""


def test_a_status_says_how_follow_ups_stand(paceline: CommandLine) -> None:
    paceline.ok("account", "add", "ann", "--provider", "sandbox")
    paceline.write("many.toml", FOLLOWED)
    made = paceline.ok("campaign", "create", "-f", "many.toml", "--launch").out
    assert "campaign many created: 2 deliveries on ann" in made
    assert "and a follow-up to whoever answers within 1d" in made
    found = paceline.ok("campaign", "status", "many", "--json").json["follow_ups"]
    assert (found["on"], found["within"], found["until"], found["over"]) == (
        "reply",
        "1d",
        None,
        False,
    )
    (told,) = [
        line
        for line in paceline.ok("campaign", "status", "many").out.splitlines()
        if "follow-ups" in line
    ]
    assert told == "follow-ups on an answer within 1d: none so far"
