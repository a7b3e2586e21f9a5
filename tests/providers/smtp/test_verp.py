"""Letters that come back to an address of their own, by which they are known (VERP)."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.core.errors import InputError, ProviderRefused
from paceline.core.names import LONGEST, Names
from paceline.core.outcome import OutcomeKind
from paceline.core.states import DeliveryState
from paceline.engine.commands import returns
from paceline.engine.naming import ensure_names
from paceline.engine.ports import Inbound, News, Returned, Tx
from paceline.providers.mail import dns
from paceline.providers.mail.letters import Sender
from paceline.providers.mail.reports import read_letter
from paceline.providers.smtp import SmtpProvider, read_settings
from paceline.providers.smtp.driver import SmtpDriver
from paceline.providers.smtp.settings import ABLE
from tests.providers.mail.returned import bounce
from tests.providers.remote import NOTE
from tests.providers.smtp.fake import USER, FakeServer
from tests.providers.smtp.live import PEOPLE, LiveWorld
from tests.providers.smtp.stage import CLOCK, letter, play

pytestmark = pytest.mark.usefixtures("way")

NAMED = Names(b"k" * 32).of(7, 0)
BOUNCES = "bounces+{key}@back.example"


def settings(**more: Any) -> dict[str, Any]:
    return {"host": "smtp.example.com", **more}


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        ({"verp": True, "return_path": "bounces@example.com"}, "with verp, return_path is to have"),
        ({"return_path": BOUNCES}, "which needs verp=true"),
        ({"verp": True, "return_path": "bounces@{key}.example.com"}, "once, before the @"),
        ({"verp": True, "return_path": "{key}+{key}@example.com"}, "once, before the @"),
        ({"verp": True, "return_path": "bounces+{key}"}, "once, before the @"),
        ({"verp": True, "return_path": "a b+{key}@example.com"}, "is no e-mail address"),
        ({"verp": True, "return_path": "{key}@"}, "is no e-mail address"),
        ({"verp": True, "return_path": "x" * 22 + "+{key}@example.com"}, "is no e-mail address"),
        (
            {"verp": True, "return_path": "bounces{key}@example.com"},
            "letters or digits right beside",
        ),
        ({"verp": True, "return_path": "{key}2@example.com"}, "letters or digits right beside"),
        ({"verp": True, "return_path": "bücher+{key}@example.com"}, "letters before the @"),
        ({"return_path": "nobody"}, "is no e-mail address"),
        ({"verp": "yes"}, "is to be true or false"),
    ],
)
def test_what_cannot_work_is_refused(bad: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_settings(settings(**bad))


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({}, "anna@shop.example"),
        ({"return_path": "back@example.com"}, "back@example.com"),
        ({"verp": True}, "anna+{key}@shop.example"),
        ({"verp": True, "return_path": BOUNCES}, BOUNCES),
        ({"verp": True, "return_path": "b-{key}@bücher.example"}, "b-{key}@xn--bcher-kva.example"),
        ({"verp": True, "return_path": "x" * 21 + "-{key}@x.org"}, "x" * 21 + "-{key}@x.org"),
    ],
)
def test_where_letters_come_back_to(given: dict[str, Any], path: str) -> None:
    read = read_settings(settings(**given))
    assert read.comes_back_to(Sender("anna@shop.example")) == path
    assert read_settings(read.to_mapping()) == read
    assert len(path.replace("{key}", "x" * LONGEST).partition("@")[0]) <= 64


def test_an_address_that_is_too_long_for_it_is_told_when_it_is_opened(fake: FakeServer) -> None:
    long = f"{'a' * 30}@shop.example"
    with pytest.raises(ProviderRefused, match="set return_path"):
        play(fake.settings(verp=True, from_address=long), lambda driver: driver.send(letter()))


def test_only_whoever_wants_it_has_it() -> None:
    provider = SmtpProvider(CLOCK)
    assert provider.capabilities_of(settings()) == ABLE
    assert provider.capabilities_of(settings(verp=True)).returns


@pytest.mark.parametrize(
    ("given", "name", "sender"),
    [
        ({}, NAMED, USER),
        ({"return_path": "back@example.com"}, "", "back@example.com"),
        ({"verp": True, "return_path": BOUNCES}, NAMED, f"bounces+{NAMED}@back.example"),
        ({"verp": True}, NAMED, f"anna+{NAMED}@shop.example"),
        ({"verp": True}, "", USER),
    ],
)
def test_the_server_is_told_where_a_letter_comes_back_to(
    fake: FakeServer, given: dict[str, Any], name: str, sender: str
) -> None:
    async def scene(driver: SmtpDriver) -> OutcomeKind:
        assert driver.capabilities.returns == bool(given.get("verp"))
        return (await driver.send(letter()._replace(signed_name=name))).kind

    assert play(fake.settings(**given), scene) is OutcomeKind.ACCEPTED
    (got,) = fake.letters
    assert got.sender == sender
    assert str(got.parsed["From"]).endswith(f"<{USER}>"), "people see whom it is from as before"


def test_advice_is_about_the_domain_that_servers_ask(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    async def advice(*domains: str) -> list[str]:
        asked.append(domains)
        return []

    monkeypatch.setattr(dns, "advice", advice)
    for given in ({}, {"verp": True, "return_path": BOUNCES}):
        play(fake.settings(**given), lambda driver: driver.advise())
    assert asked == [("shop.example", "", "shop.example"), ("shop.example", "", "back.example")]


# ---------------------------------------------------------------------- what comes back


def test_what_comes_back_says_its_name_by_the_address_it_came_to() -> None:
    to = f"bounces+{NAMED.upper()}@back.example"
    (back,) = read_letter(bounce("ben@example.com", "", to=to), ours=[USER], at=1)
    assert isinstance(back, Returned) and (back.kind, back.key) == ("bounced", NAMED)
    head = f"From: ben@example.com\r\nTo: {to}\r\nAuto-Submitted: auto-replied"
    (note,) = read_letter(f"{head}\r\n\r\nI am away\r\n".encode(), ours=[USER], at=1)
    assert isinstance(note, Inbound) and note.automatic and note.answers == NAMED


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("User unknown in virtual mailbox table", "bounced"),
        ("Sorry, this mailbox does not exist.", "bounced"),
        ("We regret that nothing can be done about it.", "failed"),
        ("It has been delayed. We will keep trying for four more days.", "delayed"),
    ],
)
def test_words_alone_are_understood_as_far_as_they_go(words: str, kind: str) -> None:
    """Neither an address nor a code in it: only where it came to says which letter it is about."""
    to = f"bounces+{NAMED}@back.example"
    head = f"Return-Path: <>\r\nFrom: MAILER-DAEMON@mx.example\r\nTo: {to}\r\nSubject: Returned"
    (back,) = read_letter(f"{head}\r\n\r\n{words}\r\n".encode(), ours=[USER], at=1)
    assert isinstance(back, Returned) and (back.kind, back.key) == (kind, NAMED)
    head = head.replace(to, USER)
    assert not any(
        isinstance(one, Returned)
        for one in read_letter(f"{head}\r\n\r\n{words}\r\n".encode(), ours=[USER], at=1)
    )


def test_a_bounce_without_any_message_id_finds_its_delivery_and_a_forged_one_none(
    live: LiveWorld, fake: FakeServer
) -> None:
    def take(world: LiveWorld, news: list[News]) -> returns.TakenIn:
        def work(tx: Tx) -> returns.TakenIn:
            returns.prepare(tx, news)
            return returns.take_in(tx, tx.accounts.list()[0], news, world.clock.now())

        return world.write(work)

    def back(to: str) -> list[News]:
        return read_letter(bounce(PEOPLE[1].address, "", to=to), ours=[USER], at=1)

    async def script(world: LiveWorld) -> None:
        world.connect({"verp": True, "return_path": BOUNCES})
        world.campaign(targets=PEOPLE[:2], parts=NOTE, action="email")
        await world.send_all()
        first, second = fake.letters
        assert first.sender != second.sender
        names = world.write(ensure_names)
        assert first.sender == BOUNCES.replace("{key}", names.of(1, 0)), "the same in every process"
        forged = first.sender.replace("pl1-", "pl2-")
        assert take(world, back(forged)) == (0, 0, 0) and world.counts() == {"sent": 2}
        assert take(world, back(second.sender.upper())).bounced == 1
        assert take(world, back(second.sender)).bounced == 0, "known already"
        found = world.read(lambda tx: tx.deliveries.get(2))
        assert found.state is DeliveryState.BOUNCED and found.target == second.recipient
        assert world.read(lambda tx: tx.suppressions.has(second.recipient))

    live.play(script)
