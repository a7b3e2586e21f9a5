"""Message 2 over real HTTP and with real deaths: to whoever answers, once, and to nobody else."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from paceline.core.states import DeliveryState
from paceline.vault import new_key
from tests.processes.service import Installation, Service, eventually, services
from tests.providers.loopback import running
from tests.providers.wati.fake import FakeWati

UNKNOWN = DeliveryState.UNKNOWN
PASSKEY = "agreed-upon-2026"
PEOPLE = [f"346001110{number:02}" for number in range(12)]
ANSWERING = PEOPLE[:8]

CAMPAIGN = """
name = "offer"
accounts = "shop"
targets = [{targets}]
[[steps]]
[[steps.parts]]
template = "may_i"
language = "en"
[[steps]]
on = "reply"
[[steps.parts]]
text = "here it is"
"""


class Outreach:
    """A campaign from a number at WATI, and those who answer it."""

    def __init__(self, installation: Installation, wati: FakeWati) -> None:
        self.installation = installation
        self.wati = wati
        wati.templates["may_i"] = ()
        wati.talking = set()  # nobody may be written to in words of one's own before they answer
        installation.env["PACELINE_KEY"] = new_key()
        options = wati.settings(webhook_auth="passkey", webhook_secret=PASSKEY)
        given = [word for pair in options.items() for word in ("--option", "=".join(pair))]
        installation.run("account", "add", "shop", "--provider", "wati", *given)
        self.path = urlsplit(installation.ask("account", "hook", "shop")["url"]).path
        targets = ", ".join(f'"+{who}"' for who in PEOPLE)
        file = installation.folder / "offer.toml"
        file.write_text(CAMPAIGN.format(targets=targets))
        installation.run("campaign", "create", "-f", file.name, "--launch")

    def answer(self, who: str, by: Service, hook: str = "") -> bool:
        """Whether the report was taken; who is not answered tells it again."""
        self.wati.talking = (self.wati.talking or set()) | {who}
        body = {"waId": who, "text": "yes", "passkey": PASSKEY, "type": "text"}
        body["id"] = f"yes-{hook}{who}"
        request = urllib.request.Request(f"{by.url}{self.path}", json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=30) as answered:
                return bool(answered.status == 200)
        except (urllib.error.URLError, ConnectionError):
            return False

    def settled(self) -> dict[str, str]:
        """What became of each follow-up of which nothing moves by itself any more."""
        rows = self.installation.look(lambda tx: tx.deliveries.page(limit=100))
        return {
            row.target.removeprefix("+"): row.state.value
            for row in rows
            if row.step == 2
            and (row.state is DeliveryState.SENT or (row.state is UNKNOWN and row.due_at is None))
        }

    def sent(self, template: str | None) -> list[str]:
        return sorted(one["to"] for one in self.wati.messages if one["template"] == template)


@pytest.fixture
def outreach(installation: Installation) -> Iterator[Outreach]:
    with running(FakeWati()) as wati:
        yield Outreach(installation, wati)


def test_told_twice_by_two_hooks_and_to_processes_that_die(outreach: Outreach) -> None:
    with services(outreach.installation, "one", "two", "three") as (one, two, three):
        eventually(lambda: outreach.sent("may_i") == PEOPLE, "the first message for everybody")
        with ThreadPoolExecutor(8) as threads:
            tells = [
                threads.submit(outreach.answer, who, by, hook)
                for who in ANSWERING
                for by in (one, two)
                for hook in ("", "", "other-")
            ]
            eventually(lambda: any(tell.done() for tell in tells), "the first report")
            one.kill()
            assert not any(tell.exception() for tell in tells)
        two.kill()
        for who in ANSWERING:
            assert outreach.answer(who, three), "whoever was not answered is told it again"
        eventually(lambda: len(outreach.settled()) == len(ANSWERING), "the second message")
        for who in ANSWERING:
            assert outreach.answer(who, three, "late-")
        settled = outreach.settled()
        assert sorted(settled) == ANSWERING, "one each, and for nobody else"
    got = outreach.sent(None)
    assert len(got) == len(set(got)), "nobody was sent it twice"
    # Whoever dies while a message is on its way leaves a doubt, and that is held for a person.
    assert {who for who, state in settled.items() if state == "sent"} <= set(got)
    assert set(got) <= set(ANSWERING)
    assert outreach.installation.run("verify").returncode == 0
