"""Single messages, doubts, and the question why."""

from paceline.core import outcome
from paceline.core.states import DeliveryState
from paceline.engine.ports import Intent, LaneUnit, Lease, Settlement
from paceline.store.database import open_store
from tests.cli.conftest import NOW, CommandLine

DELIVERY_KEYS = {
    "id", "campaign", "account", "target", "action", "state", "reason", "scheduled_at", "due_at",
    "expires_at", "sent_at", "delivered_at", "read_at", "attempts", "retries", "parts_done",
    "provider_id", "fields",
}  # fmt: skip


def test_a_message_waits_for_its_turn(accounts: CommandLine) -> None:
    answer = accounts.ok("send", "team", "anna@example.com", "--text", "Hello")
    assert answer.out.splitlines() == [
        "delivery 1 to anna@example.com is waiting for its turn on team",
        "every gate is open, but no Paceline process is running: start one with 'paceline up'",
    ]
    sent = accounts.ok("send", "team", "--self", "--text", "Hello", "--json").json
    assert set(sent) == DELIVERY_KEYS
    assert (sent["target"], sent["state"]) == ("team", "ready")


def test_waiting_for_a_message_that_does_not_leave(accounts: CommandLine) -> None:
    answer = accounts("send", "sales", "anna@example.com", "--text", "Hello", "--wait")
    assert answer.code == 1
    assert answer.err == "no Paceline process is running: start one with 'paceline up'\n"
    assert answer.out.splitlines()[1].startswith(
        "waits until 2026-11-16 09:00 America/New_York: outside business hours"
    )
    assert accounts.clock.now() - NOW == 60_000_000, "it waits as long as it was told to"


def test_a_message_says_how_often_it_is_tried_again(accounts: CommandLine) -> None:
    accounts.ok("send", "team", "anna", "--text", "Hello", "--retries", "1")
    accounts.ok("send", "team", "anna", "--text", "Hello")
    store = open_store("sqlite:///paceline.db", clock=accounts.clock.now)
    with store.read() as tx:
        kept = [tx.deliveries.get(number).content for number in (1, 2)]
    store.close()
    assert kept == [
        [{"kind": "text", "text": "Hello", "retries": 1}],
        [{"kind": "text", "text": "Hello"}],
    ]


def test_a_message_with_a_picture(accounts: CommandLine) -> None:
    accounts.write("cat.png", b"cat")
    accounts.ok("send", "team", "anna", "--media", "cat.png", "--text", "My cat")
    assert accounts.counts()["media"] == 1


def test_an_account_that_can_do_one_thing_does_that(paceline: CommandLine) -> None:
    server = ("--option", "host=smtp.example.com")
    paceline.ok("account", "add", "anna", "--provider", "smtp", "--address", "a@x.org", *server)
    sent = paceline.ok("send", "anna", "ben@example.com", "--text", "Hello", "--json").json
    assert sent["action"] == "email"
    complaint = paceline.refused("send", "anna", "b@x.org", "--text", "x", "--action", "message")
    assert "smtp cannot send action 'message' from anna (it can: email)" in complaint


def test_messages_that_cannot_be(accounts: CommandLine) -> None:
    before = accounts.counts()
    for words, complaint in [
        (("team", "--text", "x"), "target: say either to whom, or --self"),
        (("team", "anna", "--self", "--text", "x"), "target: say either to whom, or --self"),
        (("team", "anna"), "--text: is missing"),
        (("team", "a\nb", "--text", "x"), "target: the address has a control character"),
        (("team", " ", "--text", "x"), "target: a message needs somebody to go to"),
        (("team", "anna", "--text", "{{ name }}"), "text: a single message has no value for name"),
        (("team", "anna", "--text", "x", "--action", "fax"), "action: sandbox cannot send action"),
        (("team", "anna", "--media", "no.png"), "--media: no such file 'no.png'"),
        (("team", "anna", "--text", "x", "--for", "long"), "--for: 'long' is not a duration"),
        (
            ("team", "anna", "--text", "x", "--retries", "11"),
            "--retries: must be a whole number from 0 to 10",
        ),
        (("teem", "anna", "--text", "x"), "no account named 'teem', did you mean 'team'?"),
    ]:
        assert complaint in accounts.refused("send", *words)
    assert accounts.counts() == before


def test_why_an_account_waits(accounts: CommandLine) -> None:
    accounts.ok("send", "sales", "anna@example.com", "--text", "Hello")
    out = accounts.ok("why", "sales").out
    assert out.startswith("sales: delivery 1 to anna@example.com, ready\n")
    assert "OPENS (America/New_York)" in out
    hours = next(line for line in out.splitlines() if line.startswith("hours"))
    assert "2026-11-16 09:00" in hours
    assert "outside business hours (Mon-Fri 09:00-18:00 America/New_York)" in hours
    assert out.splitlines()[-2:] == [
        "waits until 2026-11-16 09:00 America/New_York: "
        "outside business hours (Mon-Fri 09:00-18:00 America/New_York)",
        "besides, no Paceline process is running: start one with 'paceline up'",
    ]


def test_why_as_json(accounts: CommandLine) -> None:
    accounts.ok("send", "sales", "anna@example.com", "--text", "Hello")
    by_account, by_number = accounts.ok("why", "sales", "--json"), accounts.ok("why", "1", "--json")
    assert by_account.json == by_number.json
    answer = by_account.json
    assert set(answer) == {
        "account", "delivery", "target", "state", "sent_at", "delivered_at", "read_at", "settled",
        "verdict", "gates", "outside", "away", "answers_held", "cures", "alerts",
    }  # fmt: skip
    assert answer["verdict"] == {
        "kind": "wait",
        "until_at": "2026-11-16T14:00:00Z",
        "gate": "hours",
        "why": "outside business hours (Mon-Fri 09:00-18:00 America/New_York)",
    }
    assert set(answer["gates"][0]) == {"gate", "open", "opens_at", "why"}


def test_why_with_nothing_to_send(accounts: CommandLine) -> None:
    out = accounts.ok("why", "team").out
    assert out.startswith("team: nothing waits; this is what the next message would meet\n")
    assert "nothing waits on this account" in out
    # What has a cap is what such an account sends, so its cap is what is asked about.
    gates = accounts.ok("why", "sales", "--json").json["gates"]
    assert "daily" in [gate["gate"] for gate in gates]


def test_why_when_somebody_has_to_act(accounts: CommandLine) -> None:
    accounts.ok("send", "team", "anna@example.com", "--text", "Hello")
    accounts.ok("account", "pause", "team", "--reason", "holidays")
    accounts.ok("stop-all", "--reason", "fire")
    out = accounts.ok("why", "team").out
    assert "by hand" in out
    assert "waits until somebody acts: account is paused: holidays" in out
    assert "besides, everything is stopped: fire" in out


def test_why_of_nothing(accounts: CommandLine) -> None:
    assert "delivery 99 does not exist" in accounts.refused("why", "99")
    assert "did you mean 'sales'?" in accounts.refused("why", "sale")


def in_doubt(accounts: CommandLine) -> int:
    """A delivery of which nobody knows whether it went out."""
    sent = accounts.ok("send", "team", "anna@example.com", "--text", "Hello", "--json").json
    accounts.clock.now_at += 60_000_000
    now = accounts.clock.now()
    store = open_store("sqlite:///paceline.db", clock=accounts.clock.now)
    with store.write() as tx:
        account, delivery = tx.accounts.list()[1], tx.deliveries.get(sent["id"])
        process = tx.processes.join("test", 60_000_000)
        row = tx.lanes.take(account.id, process.id)
        assert row is not None
        lease = Lease(account.id, process.id, row.generation)
        intent = Intent(delivery.id, delivery.run_id, 0, 1, "message", now, account.policy_id)
        assert tx.path.apply([LaneUnit(lease, row.revision, intent=intent)])[0].intended
        lost = Settlement(
            delivery.id, delivery.run_id, 0, 1, "message", now, now + 2_000_000, now + 9_000_000,
            outcome.unknown("no answer"), account.policy_id, DeliveryState.UNKNOWN,
            reason="no answer",
        )  # fmt: skip
        tx.path.apply([LaneUnit(lease, row.revision, settlements=(lost,))])
        tx.processes.leave(process.id)
    store.close()
    return int(sent["id"])


def test_doubts_are_listed(accounts: CommandLine) -> None:
    assert accounts.ok("unknown", "list").out == "nothing is in doubt\n"
    number = in_doubt(accounts)
    line = accounts.ok("unknown", "list").out.splitlines()[1]
    # When the call was made is what somebody looks for in the provider's outbox.
    called = "2026-11-15T10:01:02"
    known = [str(number), "team", "(direct)", "anna@example.com", called, "1", "a", "person"]
    assert line.split() == [*known, "no", "answer"]
    listed = accounts.ok("unknown", "list", "--json").json
    assert [set(entry) for entry in listed] == [DELIVERY_KEYS | {"called_at"}]
    assert listed[0]["called_at"] == f"{called}Z"


def test_doubts_are_resolved_by_hand(accounts: CommandLine) -> None:
    for answer, state in (("--sent", "sent"), ("--resend", "ready"), ("--failed", "failed")):
        number = str(in_doubt(accounts))
        said = accounts.ok("unknown", "resolve", number, answer, "--yes").out
        assert said == f"delivery {number} is {state} now\n"
        assert accounts.ok("why", number, "--json").json["state"] == state
    assert accounts.ok("unknown", "list", "--json").json == []
    assert accounts.ok("verify").out == "every invariant holds\n"


def test_doubts_that_cannot_be_resolved(accounts: CommandLine) -> None:
    number = str(in_doubt(accounts))
    for words in ((), ("--sent", "--failed")):
        complaint = accounts.refused("unknown", "resolve", number, *words)
        assert complaint == "paceline: say one of --sent, --resend and --failed"
    accounts.ok("unknown", "resolve", number, "--sent")
    assert "is sent, not unknown" in accounts.refused("unknown", "resolve", number, "--sent")


def test_why_of_what_is_settled(accounts: CommandLine) -> None:
    number = str(in_doubt(accounts))
    accounts.ok("unknown", "resolve", number, "--failed")
    out = accounts.ok("why", number).out
    assert out.splitlines()[-1] == f"delivery {number} is failed: given up by an operator"
    assert "GATE" not in out


def test_why_of_what_was_sent(accounts: CommandLine) -> None:
    number = str(in_doubt(accounts))
    accounts.ok("unknown", "resolve", number, "--sent")
    said = accounts.ok("why", number).out.splitlines()[-1]
    assert said.startswith(f"delivery {number} was sent at 2026-11-15 10:01 UTC")
