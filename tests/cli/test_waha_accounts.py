"""Accounts at a WAHA from the command line: checked in one line, with groups, secrets unseen."""

from collections.abc import Iterator

import pytest

from paceline.cli.shapes import MASK
from tests.cli.conftest import CommandLine
from tests.providers.loopback import running
from tests.providers.waha.fake import GROUP, KEY, SESSION, FakeWaha

HOOK = "hOoK+Of/tests"


@pytest.fixture
def fake() -> Iterator[FakeWaha]:
    with running(FakeWaha()) as server:
        yield server


@pytest.fixture
def shop(paceline: CommandLine, fake: FakeWaha) -> CommandLine:
    answer = paceline.ok(
        "account", "add", "shop", "--provider", "waha", "--policy", "whatsapp-new",
        "--option", f"base_url={fake.url}/api", "--option", f"api_key={KEY}",
        "--option", f"session={SESSION}", "--option", f"webhook_secret={HOOK}",
    )  # fmt: skip
    assert answer.out == "account shop added (waha, policy whatsapp-new)\n"
    return paceline


def test_neither_secret_is_shown(shop: CommandLine) -> None:
    shown = shop.ok("account", "show", "shop", "--json")
    assert shown.json["options"]["api_key"] == shown.json["options"]["webhook_secret"] == MASK
    assert shown.json["options"]["session"] == SESSION
    answers = [
        shown,
        shop.ok("account", "show", "shop"),
        shop.ok("account", "list", "--json"),
        shop.ok("account", "set", "shop", "--option", "look_up=false"),
        shop("account", "set", "shop", "--option", "session=a/b"),
        shop.ok("why", "shop"),
        shop.ok("account", "check", "shop"),
    ]
    for told in answers:
        assert KEY not in told.out + told.err and HOOK not in told.out + told.err


@pytest.mark.parametrize(
    ("state", "engine", "told"),
    [
        ("WORKING", "GOWS", "it can be opened"),
        ("SCAN_QR_CODE", "GOWS", "not paired: WAHA says the session is 'SCAN_QR_CODE'; scan its"),
        ("STOPPED", "GOWS", "offline: WAHA says the session is 'STOPPED'; start it in WAHA"),
        (None, "GOWS", "no such session: Session not found"),
        ("WORKING", "WEBJS", "engine is WEBJS, which takes no ids of ours; say so with --option"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    shop: CommandLine, fake: FakeWaha, state: str | None, engine: str, told: str
) -> None:
    fake.state, fake.engine = state, engine
    answer = shop("account", "check", "shop")
    assert answer.out.count("\n") == 1 and told in answer.out
    assert answer.code == (0 if told == "it can be opened" else 1)


def test_a_key_that_is_refused_is_said_to_be(shop: CommandLine) -> None:
    shop.ok("account", "set", "shop", "--option", "api_key=another")
    answer = shop("account", "check", "shop")
    assert answer.out == "shop (waha): token refused: Unauthorized\n"


def test_groups_are_listed_with_their_members(shop: CommandLine, fake: FakeWaha) -> None:
    fake.groups = [
        {"JID": GROUP, "Name": "Team", "ParticipantCount": 12},
        {"JID": "120363041234567891@g.us", "Name": "News", "IsAnnounce": True},
    ]
    listed = shop.ok("account", "groups", "shop", "--json").json
    assert {one["id"]: (one["name"], one["size"], one["may_send"]) for one in listed} == {
        GROUP: ("Team", 12, True),
        "120363041234567891@g.us": ("News", None, False),
    }
    assert "only admins may write" in shop.ok("account", "groups", "shop").out


def test_people_who_know_the_number_may_be_written_to_on(paceline: CommandLine) -> None:
    """As the documentation tells to do about WhatsApp's 463."""
    paceline.ok("signals", "set", "waha 463", "scope=new contacts", "for=1d")
    assert "waha 463" in paceline.ok("signals", "list").out
