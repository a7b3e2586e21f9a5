"""What many people have just written, in a few statements for all of it.

Messages come in bursts, and each of them is in the database before its report is answered. On
PostgreSQL every statement is a round trip, and on SQLite putting one together costs more than the
database takes for it; so what came in together is written together, a statement per kind. Nothing
is decided here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from paceline.core.instants import Instant
from paceline.core.states import TurnState
from paceline.engine.ports.conversations import Conversation
from paceline.engine.ports.listening import Chat, Heard, Looked, Named, Waiting
from paceline.store import rows
from paceline.store.accounts import SEVERAL as ACCOUNTS
from paceline.store.base import Context, Cursor, Subject, columns, storable
from paceline.store.bulk import Bulk
from paceline.store.inbox import values_of
from paceline.store.prepared import listed, worded
from paceline.store.schema import IN_FLIGHT, conversations, inbound
from paceline.store.settings import SEVERAL as SETTINGS

Row = tuple[Any, ...]

_MESSAGE = {
    column.name: str(column.type).lower()
    for column in inbound.c
    if column.name not in ("id", "turn_id")
}
"""The columns of a message that has just come, with their types."""
_NAMES = ", ".join(f'"{name}"' for name in _MESSAGE)
_CONVERSATION = ", ".join(f"c.{column.name}" for column in conversations.c)
_COLUMNS = ", ".join(column.name for column in conversations.c)
_HOLDING = "FOR NO KEY UPDATE OF c"


class _Spelled:
    """A statement over rows of values, as each of the databases wants it. In its text ``{rows}``
    are the rows, and ``w.1`` is the first column of them."""

    def __init__(self, text: str, *types: str) -> None:
        arrays = ", ".join(f"%s::{kind}[]" for kind in types)
        names = ", ".join(f"c{number}" for number in range(1, len(types) + 1))
        unnested = f"unnest({arrays}) AS w ({names})"
        self._on_postgresql = text.replace("w.", "w.c").replace("{rows}", unnested)
        valued = text.replace("w.", "w.column").replace("{rows}", "(VALUES {values}) AS w")
        # Whoever writes there is alone, and needs to hold nothing.
        self._on_sqlite = Bulk(valued.replace(_HOLDING, ""), len(types))

    def fetch(self, context: Context, values: Sequence[Row]) -> list[Row]:
        return self.ask(context, values)()

    def ask(self, context: Context, values: Sequence[Row]) -> Callable[[], list[Row]]:
        """What tells what it answers, once it was waited for."""
        if not values:
            return list
        if context.postgresql:
            fetch: Callable[[], list[Row]] = self._ask(context, values).fetchall
            return fetch
        found = self._on_sqlite.fetch(context.cursor(), values)
        return lambda: found

    def run(self, context: Context, values: Sequence[Row]) -> None:
        if context.postgresql:
            self._ask(context, values)
        else:
            self._on_sqlite.run(context.cursor(), values)

    def _ask(self, context: Context, values: Sequence[Row]) -> Cursor:
        arrays = columns(list(values))
        return context.cursor().execute(self._on_postgresql, arrays, prepare=True)


# The numbers of messages follow the order in which they are listed. "WHERE true" tells SQLite's
# parser that ON belongs to the INSERT and not to a join.
_ADD = _Spelled(
    f"""
INSERT INTO inbound ({_NAMES}) SELECT * FROM {{rows}} WHERE true
ON CONFLICT DO NOTHING RETURNING account_id, provider_id, id
""",
    *_MESSAGE.values(),
)
_KNOWN = _Spelled(
    """
SELECT w.1, w.2 FROM {rows} JOIN inbound ON account_id = w.1 AND provider_id = w.2
""",
    *("bigint", "text"),
)
# Both in one order for everybody, so that no two who hear of the same people wait for each other.
_HOLD = _Spelled(
    f"""
SELECT {_CONVERSATION} FROM {{rows}} JOIN conversations AS c
ON c.account_id = w.1 AND c.chat = w.2 ORDER BY c.id {_HOLDING}
""",
    *("bigint", "text"),
)
_OPEN = _Spelled(
    f"""
INSERT INTO conversations (account_id, chat, mode, reason, heard_at, created_at)
SELECT w.1, w.2, 'auto', '', w.3, w.3 FROM {{rows}} WHERE true ORDER BY 1, 2
ON CONFLICT (account_id, chat) DO UPDATE SET heard_at = conversations.heard_at
RETURNING {_COLUMNS}
""",
    *("bigint", "text", "bigint"),
)
_WAIT = _Spelled(
    """
UPDATE conversations SET heard_at = w.2, first_at = w.3, last_at = w.4, due_at = w.5
FROM {rows} WHERE id = w.1
""",
    *("bigint",) * 5,
)

_RENEW = _Spelled(
    f"""
UPDATE turns SET lease_until_at = w.3 FROM {{rows}}
WHERE id = w.1 AND generation = w.2 AND state = '{TurnState.THINKING}' RETURNING id
""",
    *("bigint",) * 3,
)

# A campaign that has said neither does nothing when somebody answers. Each of the two follows an
# index of its own, and both together none.
_MINDS = """
SELECT deliveries.account_id, deliveries.target FROM deliveries
JOIN runs ON runs.id = deliveries.run_id JOIN campaigns ON campaigns.id = runs.campaign_id
WHERE deliveries.target {named} AND {which} AND NOT deliveries.bidden
AND campaigns.kind = 'campaign'
AND ({found}(campaigns.settings, '"follow_up":') > 0
    OR {found}(campaigns.settings, '"stop_on_reply":true') > 0)
"""
_SENT = "deliveries.sent_at IS NOT NULL"


def _minds(named: str, found: str) -> str:
    each = [_MINDS.format(named=named, found=found, which=which) for which in (_SENT, IN_FLIGHT)]
    return " UNION ".join(each)


_MINDED_POSTGRESQL = _minds("= ANY (%(names)s::text[])", "strpos")
_MINDED_SQLITE = _minds("IN (SELECT value FROM json_each(:names))", "instr")


class Listening(Subject):
    def look(
        self,
        account_ids: Collection[int],
        keys: Collection[str],
        names: Collection[Chat],
        messages: Collection[Named],
    ) -> Looked:
        context = self._context
        stored = {one: (one[0], storable(one[1])) for one in messages}
        with context.pipelined():
            accounts = ACCOUNTS.run(context, wanted=listed(context, account_ids))
            settings = SETTINGS.run(context, wanted=worded(context, keys))
            minded = self._minded(names)
            known = _KNOWN.ask(context, sorted(set(stored.values())))
        there = set(known())
        return Looked(
            {row[0]: rows.account(row) for row in accounts.fetchall()},
            {key: json.loads(value) for key, value in settings.fetchall()},
            _those(minded, names),
            frozenset(one for one, kept in stored.items() if kept in there),
        )

    def minded(self, names: Collection[Chat]) -> frozenset[Chat]:
        return _those(self._minded(names), names)

    def _minded(self, names: Collection[Chat]) -> Cursor:
        wanted = {"names": worded(self._context, {name for _, name in names})}
        text = _MINDED_POSTGRESQL if self._context.postgresql else _MINDED_SQLITE
        return self._context.cursor().execute(text, wanted)

    def hold(self, chats: Mapping[Chat, Instant]) -> dict[Chat, Conversation]:
        stored = {chat: (chat[0], storable(chat[1])) for chat in chats}
        made_at = {kept: chats[chat] for chat, kept in stored.items()}
        held = self._found(_HOLD, sorted(made_at))
        missing = sorted((*chat, at) for chat, at in made_at.items() if chat not in held)
        held |= self._found(_OPEN, missing)
        return {chat: held[kept] for chat, kept in stored.items()}

    def _found(self, statement: _Spelled, values: Sequence[Row]) -> dict[Chat, Conversation]:
        found = statement.fetch(self._context, values)
        return {(one.account_id, one.chat): one for one in (Conversation(*row) for row in found)}

    def add(self, heard: Sequence[Heard]) -> list[int | None]:
        if not heard:
            return []
        written = [
            values_of(one.account_id, one.message, None, one.at) | {"conversation_id": where}
            for one, where in ((one, one.conversation_id) for one in heard)
        ]
        found = _ADD.fetch(self._context, [tuple(map(one.get, _MESSAGE)) for one in written])
        added = {(account_id, name): number for account_id, name, number in found}
        # One that is listed twice is there already the second time.
        return [added.pop((one["account_id"], one["provider_id"]), None) for one in written]

    def renew(self, turns: Sequence[tuple[int, int]], lease_us: int) -> set[int]:
        until_at = self._context.now + lease_us
        found = _RENEW.fetch(self._context, sorted((*turn, until_at) for turn in turns))
        return {row[0] for row in found}

    def let_wait(self, waiting: Sequence[Waiting]) -> None:
        if waiting:
            _WAIT.run(self._context, sorted(waiting))


def _those(found: Cursor, names: Collection[Chat]) -> frozenset[Chat]:
    """Asked for by their names alone, which may mean other people elsewhere."""
    return frozenset(names).intersection((row[0], row[1]) for row in found.fetchall())
