"""Telling operators: real apprise, a real HTTP server on loopback, and no secret anywhere."""

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import structlog

from paceline import logs
from paceline.core.errors import InputError
from paceline.engine.ports import Told
from paceline.providers.notices import AppriseNotifier, scrubbed, shown

SECRET = "s3cr3t-token"


class Inbox(ThreadingHTTPServer):
    """A service that takes notices, unless told otherwise."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.taken: list[dict[str, Any]] = []
        self.status = 200
        self.go_on = threading.Event()
        self.go_on.set()

    @property
    def url(self) -> str:
        return f"json://ops:{SECRET}@127.0.0.1:{self.server_address[1]}/hook"


class _Answering(BaseHTTPRequestHandler):
    server: Inbox

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        notice = json.loads(self.rfile.read(length))
        self.server.taken.append({**notice, "auth": self.headers.get("Authorization")})
        self.server.go_on.wait(30)
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    server = Inbox()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.go_on.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def talkative() -> Iterator[None]:
    """The log as it is written with ``log_level = "debug"``."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    logs.configure("debug", "json")
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def tell(
    notifier: AppriseNotifier, title: str = "Paceline: test", text: str = "hello"
) -> list[Told]:
    return asyncio.run(notifier.tell(title, text))


def test_a_notice_arrives(inbox: Inbox) -> None:
    text = "campaign spring was paused\nWhy: 12 × <b>gone</b>"
    assert tell(AppriseNotifier([inbox.url]), text=text) == [Told("json://…")]
    (taken,) = inbox.taken
    assert (taken["title"], taken["message"], taken["type"]) == ("Paceline: test", text, "warning")
    assert taken["auth"].startswith("Basic ")


def test_what_went_wrong_is_told_without_the_secret(
    inbox: Inbox, talkative: None, capsys: pytest.CaptureFixture[str]
) -> None:
    inbox.status = 500
    (told,) = tell(AppriseNotifier([inbox.url]))
    assert not told.ok
    assert "500" in told.problem
    shut = AppriseNotifier([f"json://ops:{SECRET}@127.0.0.1:1/{SECRET}"])
    (refused,) = tell(shut)
    assert not refused.ok
    logging.getLogger("paceline.test").debug("the log is open")
    logged = capsys.readouterr().err
    assert "the log is open" in logged
    assert SECRET not in f"{told}{refused}{logged}"


def test_one_that_fails_does_not_keep_the_others_from_being_told(inbox: Inbox) -> None:
    answers = tell(AppriseNotifier(["json://127.0.0.1:1/", inbox.url]))
    assert [answer.ok for answer in answers] == [False, True]


def test_a_service_that_hangs_is_given_up_and_not_asked_again_meanwhile(inbox: Inbox) -> None:
    inbox.go_on.clear()
    # Apprise would give up by itself after four seconds; we do not want to wait for that here.
    notifier = AppriseNotifier([inbox.url], timeout_s=0.2)

    async def twice() -> list[Told]:
        first = await notifier.tell("one", "x")
        second = await notifier.tell("two", "x")
        return [*first, *second]

    first, second = asyncio.run(twice())
    assert first.problem == "no answer within 0.2 s"
    assert second.problem == "an earlier notice is still under way"
    assert [notice["title"] for notice in inbox.taken] == ["one"]


def test_an_address_nobody_knows_is_refused_without_being_shown() -> None:
    with pytest.raises(InputError, match="number 2") as caught:
        AppriseNotifier(["json://localhost/", f"smoke://{SECRET}/"])
    assert "smoke://…" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_secrets_are_scrubbed_however_they_are_written() -> None:
    url = "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#general?format=text&pw=a%20bcd"
    text = scrubbed(
        "slack://T1JJ3T3L2/A1BRTD4JD/ failed: TIiajkdnlazkcOXrIdevi7FQ, 'a bcd',\n 500", url
    )
    for secret in ("T1JJ3T3L2", "A1BRTD4JD", "TIiajkdnlazkcOXrIdevi7FQ", "a bcd"):
        assert secret not in text
    assert "500" in text
    assert shown(url) == "slack://…"
    assert shown("no address") == "…"
