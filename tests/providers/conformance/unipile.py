"""Unipile's cases: LinkedIn, which has neither files nor proof, and e-mail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from paceline.engine.ports import Message
from paceline.providers.unipile import UnipileProvider
from paceline.providers.unipile.errors import BY_STATUS, ERRORS, TABLE
from tests.providers.conformance.case import Case, Seen
from tests.providers.conformance.web import WebStage
from tests.providers.loopback import HTML, Scripted, running
from tests.providers.unipile.fake import KEY, FakeUnipile, error
from tests.providers.unipile.stage import letter, message

ROWS = {row.code: row.kind for row in ERRORS} | {
    f"http-{status}": kind for status, kind in BY_STATUS.items()
}


class UnipileStage(WebStage):
    """Files travel with every e-mail, so that there is nothing to be uploaded ahead."""

    fake: FakeUnipile

    def __init__(self, fake: FakeUnipile, kind: str) -> None:
        super().__init__(
            fake,
            lambda clock, timeout: UnipileProvider(clock, timeout=timeout),
            fake.settings(kind),
        )
        self._kind = kind
        fake.now = self.now

    def message(
        self, key: str = "home-7-0", text: str = "Hello", *, handle: str | None = None
    ) -> Message:
        if self._kind == "linkedin":
            media = {} if handle is None else {"media": "a" * 64}
            return message(key=key, text=text, handle=handle, **media)
        media = {} if handle is None else {"media": handle}
        return letter(key=key, text=text, handle=handle, **media)

    def answer(self, row: str) -> None:
        if row in TABLE.by_code:
            self.script(error(TABLE.by_code[row].status, row))
        else:
            self.script(Scripted(int(row.removeprefix("http-")), b"<html>", HTML))

    def mute(self) -> None:
        for path in ("/users/invite/sent", "/emails", "/chat_attendees/ACoAA-anna/chats"):
            self.fake.answers[path] = Scripted(502, b"<html>", HTML)

    def sent(self) -> list[Seen]:
        return [
            Seen(one["target"], one.get("text") or one["body"], _file(one), _key(one))
            for one in self.fake.sent
        ]

    def uploads(self) -> int:
        return 0

    def forget_uploads(self) -> None:
        self.restart()


def _file(one: dict[str, object]) -> bytes | None:
    files = one.get("files")
    return files[0][2] if isinstance(files, list) else None


def _key(one: dict[str, object]) -> str | None:
    headers = one.get("headers")
    return headers[0]["value"] if isinstance(headers, list) else None


def _stage(kind: str) -> Callable[[], AbstractContextManager[UnipileStage]]:
    @contextmanager
    def staged() -> Iterator[UnipileStage]:
        with running(FakeUnipile()) as fake:
            yield UnipileStage(fake, kind)

    return staged


CASES = [
    Case(
        "unipile-linkedin",
        _stage("linkedin"),
        ROWS,
        media=False,
        secret=KEY,
        speaks_http=True,
        actions=frozenset({"message", "connection_request", "inmail"}),
    ),
    Case(
        "unipile-email",
        _stage("email"),
        ROWS,
        secret=KEY,
        speaks_http=True,
        actions=frozenset({"email"}),
    ),
]
