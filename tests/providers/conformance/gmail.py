"""Gmail's case: a mailbox of a Workspace. A letter is found again, but never proved absent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from paceline.core.outcome import OutcomeKind
from paceline.engine.ports import Message
from paceline.providers.gmail import GmailProvider
from paceline.providers.gmail.errors import BY_STATUS, ERRORS, SENDING_LIMIT, STALE, TABLE
from paceline.providers.mail.letters import key_in
from tests.providers.conformance.case import Case, Seen
from tests.providers.conformance.web import WebStage
from tests.providers.gmail.fake import USER, FakeGmail, error, key_text
from tests.providers.gmail.stage import letter
from tests.providers.loopback import HTML, Scripted, running

ROWS = {row.code: row.kind for row in ERRORS} | {
    f"http-{status}": kind for status, kind in BY_STATUS.items()
}


class GmailStage(WebStage):
    """Files travel with every letter, so that there is nothing to be uploaded ahead."""

    fake: FakeGmail

    def __init__(self, fake: FakeGmail) -> None:
        super().__init__(
            fake, lambda clock, timeout: GmailProvider(clock, timeout=timeout), fake.settings()
        )
        fake.now = self.now

    def message(
        self, key: str = "home-7-0", text: str = "Hello", *, handle: str | None = None
    ) -> Message:
        media = {} if handle is None else {"media": handle}
        return letter(key=key, text=text, handle=handle, **media)

    def answer(self, row: str) -> None:
        if row not in TABLE.by_code:
            self.script(Scripted(int(row.removeprefix("http-")), b"<html>", HTML))
            return
        told = error(TABLE.by_code[row].status, row, f"Told: {row}.")
        if row == SENDING_LIMIT:
            told = error(429, "rateLimitExceeded", "User-rate limit exceeded. (Mail sending)")
        # A token that is refused is replaced once: only then it is the answer.
        self.script(*[told] * (2 if row == STALE else 1))

    def mute(self) -> None:
        self.fake.answers[f"{USER}/messages"] = Scripted(502, b"<html>", HTML)

    def sent(self) -> list[Seen]:
        return [
            Seen(one.to, one.text, one.files[0] if one.files else None, key_in(one.own_id))
            for one in self.fake.sent
        ]

    def uploads(self) -> int:
        return 0

    def forget_uploads(self) -> None:
        self.restart()


@contextmanager
def _staged() -> Iterator[GmailStage]:
    with running(FakeGmail()) as fake:
        yield GmailStage(fake)


CASES = [
    Case(
        "gmail",
        _staged,
        ROWS,
        secret=key_text(),
        speaks_http=True,
        shut_out=OutcomeKind.UNAVAILABLE,
        actions=frozenset({"email"}),
    )
]
