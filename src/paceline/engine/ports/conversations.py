"""What the engine asks of the store about conversations and their turns."""

from __future__ import annotations

from builtins import list as list_of
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from paceline.core.instants import Instant
from paceline.core.states import DeliveryState, TurnState
from paceline.engine.ports.inbox import Received

Mode = Literal["auto", "human", "muted"]
"""Who answers: whoever was set up to, a person, nobody at all."""


class Conversation(NamedTuple):
    """What one person and one account say to each other."""

    id: int
    account_id: int
    chat: str
    mode: Mode
    reason: str
    """Why a person has to answer; empty where nobody does."""
    first_at: Instant | None
    last_at: Instant | None
    """Of what waits for an answer: when the first and the last of it came."""
    due_at: Instant | None
    """When its turn begins; None where nothing waits, or nobody was set up to answer."""
    heard_at: Instant
    """When they wrote last."""
    created_at: Instant
    before_mute: str | None = None
    """Of one that is muted: why a person had it before; None where none had."""


class Turn(NamedTuple):
    """One answer in the making, or made. While it is active there is no other in its
    conversation."""

    id: int
    conversation_id: int
    state: TurnState
    owner: str
    """Who makes the answer, or made it: the name of a process, or ``a person``."""
    generation: int
    lease_until_at: Instant | None
    attempts: int
    delivery_id: int | None
    reason: str
    started_at: Instant
    ended_at: Instant | None


class Replied(NamedTuple):
    """A turn whose answer has come to its end at the provider."""

    turn: Turn
    state: DeliveryState
    reason: str


class Waiting(NamedTuple):
    """Conversations of one mode where something waits."""

    mode: Mode
    how_many: int
    oldest_at: Instant


class Met(NamedTuple):
    """Of some messages that came in, how many found a turn of their conversation active."""

    heard: int
    meeting: int


class Conversations(Protocol):
    """Whoever changes one holds its row first, so that what comes in and what is taken are one
    after the other."""

    def hear(
        self, account_id: int, chat: str, at: Instant, names: Collection[str] = ()
    ) -> Conversation:
        """The one they have, or a new one; held until the end of the transaction, and heard of at
        that instant. A new one is muted where somebody is who has one of these ``names``, or an
        address of the same contact."""
        ...

    def hold(self, conversation_id: int) -> Conversation:
        """The same of one that there is; ``NotFoundError`` if there is not."""
        ...

    def get(self, conversation_id: int) -> Conversation | None: ...

    def find(self, account_id: int, chat: str) -> Conversation | None: ...

    def change(self, conversation_id: int, **changes: Any) -> None:
        """Set mode, reason, before_mute, first_at, last_at or due_at."""
        ...

    def due(
        self, at: Instant, limit: int, ways: Collection[str], anyway_at: Instant
    ) -> list_of[Conversation]:
        """Those whose turn begins, and that have none yet, of accounts that are answered in one of
        these ways; those that were due before ``anyway_at`` in whichever way. None of a way that
        is held. The longest due first."""
        ...

    def next_due_at(self) -> Instant | None:
        """When the next turn begins of those that are due by themselves."""
        ...

    def list(
        self,
        *,
        account_id: int | None = None,
        modes: Sequence[Mode] = (),
        waiting: bool = False,
        limit: int = 50,
    ) -> list_of[Conversation]:
        """The one heard of last first; with ``waiting`` only those where something waits."""
        ...

    def waiting(self) -> list_of[Waiting]:
        """How many there are where something waits, and since when, by who is to answer."""
        ...

    def blot_out(self, renamed: Mapping[str, str]) -> None:
        """Let these people be known by another name; nobody answers them any more."""
        ...


class Turns(Protocol):
    """Held by naming their generation until the lease ends, by the database's clock."""

    def begin(
        self, conversation_id: int, owner: str, lease_us: int | None, at: Instant
    ) -> Turn | None:
        """With everything that waits; None where another turn is active, or nothing waits."""
        ...

    def add_waiting(self, turn: Turn) -> int:
        """Take what has come since into the same turn; how many."""
        ...

    def give_back(self, turn: Turn) -> None:
        """What it took waits again."""
        ...

    def stale(self, longest_us: int, limit: int) -> list_of[Turn]:
        """Those in the making of whose owner nothing was heard until its lease was over, or whose
        lease reaches further than any may: it was written by a clock that was wrong."""
        ...

    def take_over(
        self, turn: Turn, owner: str, lease_us: int, at: Instant, longest_us: int
    ) -> Turn | None:
        """Go on with it from now; None if somebody was faster, or it is still held by one who
        lives, for no more than ``longest_us``."""
        ...

    def renew(self, turn: Turn, lease_us: int) -> bool:
        """Whether it is still ours, and now for so much longer."""
        ...

    def move(self, turn: Turn, event: str, at: Instant, **changes: Any) -> bool:
        """Apply an event, if the turn is still ours and where the event leaves; with changes of
        reason, delivery_id."""
        ...

    def again(self, turn: Turn, lease_us: int) -> Turn | None:
        """Count one more attempt; None if it is not ours any more, or over."""
        ...

    def get(self, turn_id: int) -> Turn: ...

    def active(self, conversation_id: int | None = None) -> list_of[Turn]:
        """Those that are in the making or on their way; the oldest first."""
        ...

    def replied(self, limit: int) -> list_of[Replied]:
        """Turns whose answers are over at the provider, one way or the other."""
        ...

    def met(self, since_at: Instant, latest: int) -> Met:
        """Of the latest messages, those that came since then."""
        ...

    def of_conversation(self, conversation_id: int, limit: int) -> list_of[Turn]:
        """The latest, latest first."""
        ...

    def taken(self, turn_id: int) -> list_of[Received]:
        """The messages of a turn, in the order in which they were written."""
        ...
