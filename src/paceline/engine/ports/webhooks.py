"""What a provider reports by itself: messages that came in, receipts, and how an account stands.

Plain records, and what is asked of a provider whose reports come over HTTP. Receiving them is not
done here, nor is anything made of them. Every report may come twice, late, or in another order than
things happened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

from paceline.core.enclosures import Enclosed
from paceline.core.instants import Instant
from paceline.engine.ports.records import Account


class Inbound(NamedTuple):
    """A message that came in, or one of the account's own, echoed."""

    provider_id: str
    chat: str
    """Where an answer goes, as a target is written: a person's address, or a group's."""
    sender: str
    text: str
    """What was said; the caption of a file, and empty where there is none."""
    at: Instant
    """0 where the provider does not say when: whoever received the report knows better."""
    from_us: bool = False
    kind: str = "text"
    """As the provider calls it: text, image, audio, …"""
    group: bool = False
    subject: str = ""
    answers: str | None = None
    """Our own name of the message that it answers, where it says so."""
    automatic: bool = False
    """Whether no person wrote it: an absence note, a confirmation."""
    files: tuple[Enclosed, ...] = ()
    """What came with it, or is all of it."""
    also: tuple[str, ...] = ()
    """What else whoever wrote it is called, as targets are written."""


class Accepted(NamedTuple):
    """Somebody has accepted an invitation."""

    names: tuple[str, ...]
    """All that they are called, as targets are written."""
    at: Instant
    """0 where the provider does not say when."""


class Typing(NamedTuple):
    """Somebody is about to say more: they write, or speak. Told often, and nothing is lost with
    one of them."""

    chat: str
    at: Instant
    """0 where the provider does not say when."""


class Receipt(NamedTuple):
    """What became of one of ours."""

    provider_id: str
    state: Literal["sent", "delivered", "read", "failed"]
    at: Instant
    """0 where the provider does not say when."""
    code: str = ""
    reason: str = ""
    key: str | None = None
    """Our own name of the message, where the provider gives it back."""


class Returned(NamedTuple):
    """A letter of ours that came back after it was accepted, or that somebody complained of."""

    kind: Literal["bounced", "failed", "delayed", "complaint"]
    """The address does not exist; it was refused for another reason; it is still being tried; it
    was called spam."""
    address: str
    """Whom it was for, as the report has it; empty where it does not say."""
    reason: str
    """The other side's own words."""
    at: Instant
    """0 where the report does not say when."""
    code: str = ""
    """The enhanced status, or what stands for it."""
    key: str | None = None
    """Our own name of the message, where the report gives it back."""
    reached: tuple[str, ...] = ()
    """Whom the same report says that it did reach, or that it was passed on to."""


class AccountNews(NamedTuple):
    """How the account as a whole stands: paired, offline, banned, logged out."""

    state: Literal["ready", "offline", "refused"]
    reason: str
    at: Instant
    """0 where the provider does not say when."""
    until_at: Instant | None = None


class Withheld(NamedTuple):
    """A letter that lies in a mailbox and that its server does not hand over. Nobody knows what it
    says; those behind it are read."""

    folder: str
    letter: str
    """What the server calls it: its number in the folder (UID)."""
    reason: str
    """The server's own words."""


News = Inbound | Typing | Accepted | Receipt | Returned | AccountNews | Withheld


class Mailbox(Protocol):
    """The open mailbox of an account: what comes in, in order, each message once."""

    async def next(self, cursor: str, within_us: int) -> tuple[str, list[News]]:
        """What came after the cursor, and the cursor behind it. An empty cursor is from now on.

        Waits at most so long for something to come. Whoever has stored the cursor behind some news
        is not given them again; whoever has not is. ``ProviderError`` where the mailbox is away,
        ``ProviderRefused`` where it does not let us in.
        """
        ...

    async def close(self) -> None: ...


class Mailboxes(Protocol):
    """What a provider offers besides whose accounts have a mailbox to be watched."""

    def has_mailbox(self, settings: Mapping[str, Any]) -> bool:
        """Whether an account with these settings has one."""
        ...

    async def open_mailbox(self, account: Account) -> Mailbox:
        """``ProviderRefused`` when the credentials are bad, ``ProviderError`` when it is away."""
        ...


class Heard(NamedTuple):
    """What an account has heard at once."""

    news: list[News]
    mark: str = ""
    """By which it is confirmed; empty where nothing of it has to be."""


class Listening(Protocol):
    """What a driver can do besides whose account hears of things over its own connection."""

    async def listen(self) -> Heard:
        """What has come since the last time; waits until something has. ``ProviderError`` where the
        account is away, ``ProviderRefused`` where somebody has to see to it."""
        ...

    async def confirm(self, mark: str) -> None:
        """All up to this is written down. What is not confirmed is told again."""
        ...


class Listens(Protocol):
    """What a provider offers besides whose drivers listen."""

    def listens(self, account: Account) -> bool:
        """Whether an account should be open at all times, here, to hear what comes."""
        ...


class Webhooks(Protocol):
    """What a provider offers besides whose reports come over HTTP. Pure: nothing is asked or sent.

    ``settings`` are those of the account whose address was called.
    """

    def verify(
        self,
        settings: Mapping[str, Any],
        headers: Mapping[str, str],
        body: bytes,
        query: Mapping[str, str],
    ) -> bool:
        """Whether the provider said this. Where no secret was agreed upon, nobody is believed."""
        ...

    def proves(self, settings: Mapping[str, Any]) -> bool:
        """Whether a secret was agreed upon that reports are proved with. Where none was, only the
        one in the address that was called is left to show who it was."""
        ...

    def parse(self, settings: Mapping[str, Any], body: bytes) -> list[News]:
        """What was reported, which may be nothing of interest; ``InputError`` for what is no report
        at all, and never anything else."""
        ...

    def challenge(self, settings: Mapping[str, Any], query: Mapping[str, str]) -> str | None:
        """What to answer somebody who wants to know whether we are who we say; None where the
        provider asks no such thing, or has not shown who it is."""
        ...


class Letters(Protocol):
    """What a provider offers besides whose accounts get letters, which a mail server may pass on
    as they are. Pure: nothing is asked or sent."""

    def read_letter(self, account: Account, raw: bytes, at: Instant) -> list[News]:
        """What a letter that came at ``at`` says, which may be nothing of interest; ``InputError``
        for what is no letter at all, and never anything else."""
        ...
