"""What the engine asks of a provider, and of time."""

from __future__ import annotations

from asyncio import Future
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from paceline.core.instants import Instant
from paceline.core.model import Part
from paceline.core.outcome import Outcome
from paceline.engine.ports.records import Account, Media
from paceline.engine.ports.sealing import Vault


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a driver can do; a campaign that needs more is refused before it starts."""

    channel: str
    actions: frozenset[str]
    media: bool = False
    attachments: bool = False
    """Whether a message may have several files; else there is one, and it is the message."""
    groups: bool = False
    receipts: bool = False
    templates: bool = False
    """Whether it can send texts that the provider has approved, by their name."""
    needs_templates: bool = False
    """Whether nothing else reaches a person who has not just written to the account."""
    finds: bool = False
    proves_absence: bool = False
    resolves: bool = False
    """Whether a target may have to be looked up before anything can be sent to it."""
    longest_text: Mapping[str, int] = field(default_factory=dict)
    """How many characters the text of an action may have, where the provider sets a limit."""
    exclusive: bool = False
    """Whether an account can be open in one place only: a second one throws out the first."""
    threads: bool = False
    """Whether a message can go on with an earlier one, so that people find both together."""
    unsubscribes: bool = False
    """Whether a message carries an address at which people can unsubscribe."""
    returns: bool = False
    """Whether a message has an address of its own that it comes back to."""
    single_part: frozenset[str] = frozenset()
    """Actions that are made once per target: there is no second part to them."""


class Thread(NamedTuple):
    """The messages that this one goes on with: of the same campaign, or what it answers."""

    keys: tuple[str, ...]
    """Of their first parts, the oldest first. What somebody else has written is in angle brackets,
    under the name that it came with."""
    subject: str
    """Of the first one, as that person got it."""


class Message(NamedTuple):
    """One part, rendered, on its way to one target."""

    key: str
    target: str
    action: str
    part: Part
    handle: str | None = None
    """The provider's handle of the part's media, from an earlier upload."""
    attached: tuple[str, ...] = ()
    """The handles of its attachments, in the part's order."""
    thread: Thread | None = None
    """What it goes on with, where it follows earlier messages to the same person."""
    unsubscribe: str = ""
    """The address where whoever gets it can unsubscribe; empty where there is none."""
    signed_name: str = ""
    """Our own name of it that nobody can make up, for the address that it comes back to; empty
    where the driver has no use for one."""


Finding = Literal["present", "absent", "unclear"]


@dataclass(frozen=True, slots=True)
class Found:
    finding: Finding
    provider_id: str | None = None


@dataclass(frozen=True, slots=True)
class Uploaded:
    handle: str
    expires_at: Instant | None = None


class Driver(Protocol):
    """An open account at a provider. Effects only: no pace, no retries, no policy."""

    @property
    def capabilities(self) -> Capabilities:
        """What this account can do: the provider's capabilities, or fewer."""
        ...

    async def send(self, message: Message) -> Outcome: ...

    async def upload(self, media: Media, content: bytes) -> Uploaded | Outcome: ...

    async def find(self, message: Message, since_at: Instant) -> Found:
        """What became of a message whose attempt in doubt began at ``since_at``.

        Few providers can be asked for our key, so a driver is given the whole message, without its
        handle. What it had sent before that instant is another message, however much alike.
        """
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Prompt(Protocol):
    """What a driver can do besides that need not always be waited for before it writes."""

    def begin(self, message: Message) -> Future[Outcome | None] | None:
        """The same as ``send``, begun: what it does at once is done. None where it would have to
        wait before it can begin, or nothing can go; then nothing was done, and ``send`` sees to it.
        So it does where the answer is None: nobody has heard of the message yet.

        It is a future and no task, so whoever cancels it has called it off: from then on nothing
        more is written, and nobody who clings to it has to be left behind.
        """
        ...


@runtime_checkable
class Forehanded(Protocol):
    """What a driver can do besides that has something to do before it calls anybody."""

    def make_ready(self, message: Message) -> None:
        """Do it now: the message's intent is being committed, and nothing else can be done for it
        meanwhile. It may not be sent after all, or the driver be called without this."""
        ...


class Group(NamedTuple):
    """A group that an account is a member of."""

    id: str
    """As a target is written."""
    name: str
    size: int | None = None
    may_send: bool = True
    """False where only admins may write, and the account is none."""


class Grouped(Protocol):
    """What a driver with the capability ``groups`` can do besides."""

    async def groups(self) -> list[Group]: ...


@runtime_checkable
class Remarking(Protocol):
    """What a driver can do besides whose provider tells how an account is doing."""

    @property
    def remark(self) -> str:
        """What an operator should know, though the account can send; empty where nothing is."""
        ...


@runtime_checkable
class Advising(Protocol):
    """What a driver can do besides that can say how its letters will be looked upon."""

    async def advise(self) -> list[str]:
        """What an operator should know of where it sends from, a line each."""
        ...


class Resolver(Protocol):
    """What a driver with the capability ``resolves`` can do besides."""

    async def resolve(self, message: Message) -> str | Outcome:
        """The message's target as the provider takes it, or why it cannot be written to.

        Nothing is sent by it, so no answer leaves anything in doubt. What was found is remembered,
        up to a limit: asking twice costs one call.
        """
        ...


class Provider(Protocol):
    """A kind of account: what it can do, what it needs to know, how to open one."""

    name: str
    capabilities: Capabilities
    """What it can do at most; an account of it may be able to do less."""
    secrets: frozenset[str]
    """The settings that nobody may see again once they were typed."""

    def capabilities_of(self, settings: Mapping[str, Any]) -> Capabilities:
        """What an account with these settings can do, known without opening it."""
        ...

    def check(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """The account's settings, validated and complete; ``InputError`` names the bad key."""
        ...

    async def open(self, account: Account) -> Driver:
        """``ProviderRefused`` when the credentials are bad, ``ProviderError`` when it is away."""
        ...


@runtime_checkable
class Addressed(Protocol):
    """What a provider can do besides whose accounts send from an address."""

    def check_address(self, settings: Mapping[str, Any], address: str) -> None:
        """``InputError`` where an account with these settings and this address of its own could
        never be opened, because that is no address to send from."""
        ...


class Providers(Protocol):
    def get(self, name: str) -> Provider: ...

    def names(self) -> list[str]: ...

    def sealed(self, provider: str, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
        """An account's settings as they are stored: nobody who reads them learns a secret."""
        ...

    def unsealed(self, account: Account) -> Account:
        """The account with its secrets readable; ``VaultError`` where they cannot be read."""
        ...

    def is_sealed(self, account: Account) -> bool:
        """Whether every secret is stored as one is stored now: sealed, with the key in use."""
        ...

    def vault(self) -> Vault:
        """Who keeps what is secret about an account and none of its provider's settings."""
        ...


class Alarm(Protocol):
    """Something that will ring; until then it can be called off."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Time as the process sees it."""

    def now(self) -> Instant: ...

    def monotonic_us(self) -> int: ...

    async def sleep_until(self, at: Instant) -> None:
        """For instants: returns when the wall clock has got there."""
        ...

    async def sleep(self, us: int) -> None:
        """For periods and pauses: goes by the monotonic clock, which nobody sets."""
        ...

    def alarm(self, at: Instant, ring: Callable[[], None]) -> Alarm:
        """Call ``ring`` once, when the wall clock has got to ``at``: a sleep without a sleeper."""
        ...

    def timer(self, us: int, ring: Callable[[], None]) -> Alarm:
        """The same after so long, by the monotonic clock."""
        ...
