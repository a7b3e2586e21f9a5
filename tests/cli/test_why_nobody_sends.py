"""``paceline why`` when every gate is open and still nothing moves: who should, and has died."""

import sqlite3
from collections.abc import Callable

import pytest

from paceline.core.instants import MINUTE, SECOND
from paceline.engine.away import give_back_away
from paceline.engine.ports import Lease
from paceline.store.database import open_store
from tests.cli.conftest import CommandLine

Process = Callable[..., int]
START = "start one with 'paceline up'"


@pytest.fixture
def due(accounts: CommandLine) -> CommandLine:
    """A message that could leave at once; it is 10:00."""
    accounts.ok("send", "team", "anna@example.com", "--text", "hi")
    return accounts


@pytest.fixture
def process(due: CommandLine) -> Process:
    """Puts a process into the fleet, as of so long ago, that may hold the lane of team."""

    def put(name: str, lease_us: int, ago_us: int = 0, *, holds: bool = False) -> int:
        until_at = due.clock.now() - ago_us + lease_us
        connection = sqlite3.connect(due.folder / "paceline.db")
        with connection:
            number = connection.execute(
                "INSERT INTO processes (name, started_at, lease_until_at) VALUES (?, 0, ?)",
                (name, until_at),
            ).lastrowid
            if holds:
                connection.execute(
                    "UPDATE lanes SET owner = ? WHERE account_id = "
                    "(SELECT id FROM accounts WHERE name = 'team')",
                    (number,),
                )
        connection.close()
        assert number is not None
        return number

    return put


def said(line: CommandLine) -> str:
    return line.ok("why", "team").out.splitlines()[-1]


def test_nobody_was_ever_there(due: CommandLine) -> None:
    told = f"every gate is open, but no Paceline process is running: {START}"
    assert said(due) == told


def test_who_holds_the_lane_and_lives_needs_no_word(due: CommandLine, process: Process) -> None:
    process("web-1", 15 * SECOND, 6 * SECOND, holds=True)
    assert said(due) == "every gate is open: it leaves as soon as its lane gets to it"


def test_who_was_killed_holds_the_lane_until_its_lease_ends(
    due: CommandLine, process: Process
) -> None:
    number = process("web-1", 15 * SECOND, 9 * SECOND, holds=True)
    told = (
        f"every gate is open, but its lane is held by process {number} (web-1), which has not "
        "been heard of since 09:59:51 UTC; another can take over at 10:00:06 UTC: " + START
    )
    assert said(due) == told
    assert due.ok("why", "team", "--json").json["outside"] == [told.partition("but ")[2]]
    process("web-2", 15 * SECOND)
    assert said(due).endswith("since 09:59:51 UTC; another takes over at 10:00:06 UTC")
    due.clock.now_at += 7 * SECOND
    assert said(due) == "every gate is open: it leaves as soon as its lane gets to it"


def test_an_idle_process_is_heard_of_less_often(due: CommandLine, process: Process) -> None:
    number = process("web-1", 3 * MINUTE, 59 * SECOND)
    assert said(due).startswith("every gate is open: it leaves")
    due.clock.now_at += 10 * SECOND
    assert said(due) == (
        f"every gate is open, but process {number} (web-1) has not been heard of since "
        f"09:59:01 UTC: if it has died, {START}"
    )
    due.clock.now_at += 3 * MINUTE
    assert said(due).endswith(f"but no Paceline process is running: {START}")


def test_what_was_on_its_way_waits_for_that_lease_as_well(
    due: CommandLine, process: Process
) -> None:
    process("web-1", 15 * SECOND, 9 * SECOND, holds=True)
    connection = sqlite3.connect(due.folder / "paceline.db")
    with connection:
        connection.execute("UPDATE deliveries SET state = 'sending', due_at = NULL, attempts = 1")
    connection.close()
    due.ok("stop-all")
    told = due.ok("why", "1").out.splitlines()[-1]
    assert told.startswith("delivery 1 is sending, but its lane is held by process ")
    assert "stopped" not in told, "what has started finishes"


def test_an_account_that_cannot_be_opened(due: CommandLine) -> None:
    """Also for whoever reads it by program, and beside what is known of the account."""
    reason = "454 4.7.0 Temporary authentication failure"
    now = due.clock.now()
    store = open_store(f"sqlite:///{due.folder / 'paceline.db'}", clock=due.clock.now)
    with store.write() as tx:
        account = tx.accounts.find("team")
        assert account is not None
        process = tx.processes.join("web-1", 15 * SECOND)
        row = tx.lanes.take(account.id, process.id)
        assert row is not None
        lease = Lease(account.id, process.id, row.generation)
        give_back_away(tx, lease, account, 1, reason, now)
    store.close()
    told = f"team could not be opened at 10:00:00 UTC: {reason}; it is tried again at 10:00:20 UTC"
    assert said(due) == f"every gate is open, but {told}"
    known = due.ok("why", "team", "--json").json
    assert known["outside"] == [told]
    assert known["away"] == {
        "reason": reason,
        "at": "2026-11-15T10:00:00Z",
        "tried_again_at": "2026-11-15T10:00:20Z",
    }
    assert reason in " ".join(due.ok("account", "show", "team").out.split())
