"""What many people have just written, in a few statements for all of it.

Messages come in bursts, and each of them is in the database before its report is answered. On
PostgreSQL every statement is a round trip, and on SQLite putting one together costs more than the
database takes for it; so what came in together is written together, a statement per kind. Nothing
is decided here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import bindparam, select

from paceline.core.instants import Instant
from paceline.core.keepable import keepable_name
from paceline.core.states import TurnState
from paceline.engine.ports.conversations import Conversation
from paceline.engine.ports.listening import Chat, Heard, Looked, Named, Waiting
from paceline.store import rows
from paceline.store.accounts import SEVERAL as ACCOUNTS
from paceline.store.base import BY_KEY, Context, Cursor, Subject, array, columns, dump
from paceline.store.bulk import Bulk
from paceline.store.inbox import values_of
from paceline.store.locks import Lock
from paceline.store.muting import HEARS, hears
from paceline.store.prepared import Prepared, among, listed, worded
from paceline.store.schema import IN_FLIGHT, PARTLY, conversations, inbound
from paceline.store.settings import SEVERAL as SETTINGS

Row = tuple[Any, ...]
NO_NAMES: Mapping[Chat, Collection[str]] = {}

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
_EACH = {
    "pg": "SELECT json_array_elements_text(w.4::json)",
    "sqlite": "SELECT value FROM json_each(w.4)",
}


class _Spelled:
    """A statement over rows of values, as each of the databases wants it. In its text ``{rows}``
    are the rows, ``w.1`` is the first column of them, and ``{each}`` selects what is listed in the
    fourth."""

    def __init__(self, text: str, *types: str) -> None:
        arrays = ", ".join(f"%s::{kind}[]" for kind in types)
        lists = {name: text.replace("{each}", spelled) for name, spelled in _EACH.items()}
        names = ", ".join(f"c{number}" for number in range(1, len(types) + 1))
        unnested = f"unnest({arrays}) AS w ({names})"
        self.on_postgresql = lists["pg"].replace("w.", "w.c").replace("{rows}", unnested)
        valued = lists["sqlite"].replace("w.", "w.column")
        valued = valued.replace("{rows}", "(VALUES {values}) AS w")
        # Whoever writes there is alone, and needs to hold nothing.
        self._on_sqlite = Bulk(valued.replace(_HOLDING, ""), len(types))

    def fetch(self, context: Context, values: Sequence[Row]) -> list[Row]:
        if not values:
            return []
        if context.postgresql:
            found: list[Row] = self._ask(context, values).fetchall()
            return found
        return self._on_sqlite.fetch(context.cursor(), values)

    def run(self, context: Context, values: Sequence[Row]) -> None:
        if not values:
            return
        if context.postgresql:
            self._ask(context, values)
        else:
            self._on_sqlite.run(context.cursor(), values)

    def _ask(self, context: Context, values: Sequence[Row]) -> Cursor:
        arrays = columns(list(values))
        return context.ask(self.on_postgresql, arrays)


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
# Mostly nobody is muted, and then nothing is looked up.
_OPEN = _Spelled(
    f"""
INSERT INTO conversations (account_id, chat, mode, reason, heard_at, created_at)
SELECT w.1, w.2, CASE WHEN EXISTS (SELECT 1 FROM muted_people)
AND (EXISTS (SELECT 1 FROM muted_people WHERE address = w.2 OR address IN ({{each}}))
    OR EXISTS (SELECT 1 FROM addresses AS a JOIN addresses AS b ON b.contact_id = a.contact_id
        JOIN muted_people AS m ON m.address = b.address
        WHERE a.address = w.2 OR a.address IN ({{each}})))
THEN 'muted' ELSE 'auto' END, '', w.3, w.3 FROM {{rows}} WHERE true ORDER BY 1, 2
ON CONFLICT (account_id, chat) DO UPDATE SET heard_at = conversations.heard_at
RETURNING {_COLUMNS}
""",
    *("bigint", "text", "bigint", "text"),
)
_WAIT = _Spelled(
    """
UPDATE conversations SET heard_at = w.2, first_at = w.3, last_at = w.4, due_at = w.5
FROM {rows} WHERE id = w.1
""",
    *("bigint",) * 5,
)

_NEXT_WAITING = Prepared(
    lambda on_postgresql: (
        select(*conversations.c)
        .where(among(conversations.c.account_id, "accounts", on_postgresql=on_postgresql))
        .where(conversations.c.id > bindparam("after"), conversations.c.first_at.is_not(None))
        .order_by(conversations.c.id)
        .limit(bindparam("most"))
        .with_for_update()
    )
)
_RENEW = _Spelled(
    f"""
UPDATE turns SET lease_until_at = w.3 FROM {{rows}}
WHERE id = w.1 AND generation = w.2 AND state = '{TurnState.THINKING}' RETURNING id
""",
    *("bigint",) * 3,
)

# A campaign that has said neither does nothing when somebody answers. Each way to have got
# something follows an index of its own, and all together none.
_MINDS = """
SELECT deliveries.account_id, deliveries.target FROM deliveries
JOIN runs ON runs.id = deliveries.run_id JOIN campaigns ON campaigns.id = runs.campaign_id
WHERE deliveries.target {named} AND {which} AND NOT deliveries.bidden
AND campaigns.kind = 'campaign'
AND ({found}(campaigns.settings, '"follow_up":') > 0
    OR {found}(campaigns.settings, '"stop_on_reply":true') > 0)
"""
_MINDED_BY = ("deliveries.sent_at IS NOT NULL", IN_FLIGHT, PARTLY)


def _minds(named: str, found: str) -> str:
    each = [_MINDS.format(named=named, found=found, which=which) for which in _MINDED_BY]
    return " UNION ".join(each)


_MINDED_SQLITE = _minds("IN (SELECT value FROM json_each(:names))", "instr")
_MINDED_POSTGRESQL = _minds("= ANY (%(names)s::text[])", "strpos")

# On PostgreSQL every statement costs more than what it asks, so there are few. What is of different
# kinds comes as rows of one shape, that of a conversation, with its kind before it.
_BLANK = ", NULL" * (len(conversations.c) - 3)
_MET = f"""
WITH held AS ({_HOLD.on_postgresql}),
known (account_id, name) AS ({_KNOWN.on_postgresql}),
minded (account_id, name) AS ({_minds("= ANY (%s::text[])", "strpos")})
SELECT 'held', {_COLUMNS} FROM held
UNION ALL SELECT 'known', NULL, account_id, name{_BLANK} FROM known
UNION ALL SELECT 'minded', NULL, account_id, name{_BLANK} FROM minded
"""
_SETTINGS = f"""
SELECT key, value FROM settings WHERE key = ANY (%s::text[])
UNION ALL SELECT NULL, concat({HEARS}, {BY_KEY})
"""
_TAKE = f"WITH waiting AS ({_WAIT.on_postgresql}) {_ADD.on_postgresql}"


class _Met(NamedTuple):
    """What there is of all that was asked for, in rows."""

    held: Sequence[Row]
    known: Sequence[Row]
    minded: Sequence[Row]


class Listening(Subject):
    def look(
        self,
        account_ids: Collection[int],
        keys: Collection[str],
        names: Collection[Chat] = (),
        messages: Collection[Named] = (),
        chats: Collection[Chat] = (),
    ) -> Looked:
        context = self._context
        stored = {one: (one[0], keepable_name(one[1])) for one in messages}
        wanted = {chat: (chat[0], keepable_name(chat[1])) for chat in chats}
        with context.pipelined():
            settings = self._settings(keys, by_key=bool(wanted))
            accounts = ACCOUNTS.run(context, wanted=listed(context, account_ids))
            met = self._meet(sorted(set(wanted.values())), sorted(set(stored.values())), names)
        held, known, minded = met()
        there, talks = set(known), _by_chat(held)
        return Looked(
            {row[0]: rows.account(row) for row in accounts.fetchall()},
            {key: json.loads(value) for key, value in settings.fetchall() if key is not None},
            _those(minded, names),
            frozenset(one for one, kept in stored.items() if kept in there),
            {chat: talks[kept] for chat, kept in wanted.items() if kept in talks},
        )

    def _settings(self, keys: Collection[str], *, by_key: bool) -> Cursor:
        wanted = worded(self._context, keys)
        if not (by_key and self._context.postgresql):
            return SETTINGS.run(self._context, wanted=wanted)
        return self._context.ask(_SETTINGS, (wanted,))

    def _meet(
        self, chats: Sequence[Chat], messages: Sequence[Named], names: Collection[Chat]
    ) -> Callable[[], _Met]:
        """What tells it, once it was waited for."""
        context = self._context
        if not (chats or messages or names):
            return lambda: _Met((), (), ())
        if not context.postgresql:
            met = _Met(_HOLD.fetch(context, chats), _KNOWN.fetch(context, messages), ())
            return lambda: met._replace(minded=self._minded(names))
        asked = (
            *_pair(chats),
            *_pair(messages),
            *[worded(context, {keepable_name(name) for _, name in names})] * len(_MINDED_BY),
        )
        cursor = context.ask(_MET, asked)

        def told() -> _Met:
            every: dict[str, list[Row]] = {"held": [], "known": [], "minded": []}
            for kind, *row in cursor.fetchall():
                every[kind].append(tuple(row))
            named = [[row[1:3] for row in every[kind]] for kind in ("known", "minded")]
            return _Met(every["held"], *named)

        return told

    def hold_off(self) -> None:
        # On SQLite whoever writes is alone anyway.
        if self._context.postgresql:
            self._context.ask(f"SELECT pg_advisory_xact_lock({Lock.HEARING:d})").fetchall()

    def minded(self, names: Collection[Chat]) -> frozenset[Chat]:
        return _those(self._minded(names), names)

    def _minded(self, names: Collection[Chat]) -> list[Row]:
        if not names:
            return []
        wanted = {"names": worded(self._context, {keepable_name(name) for _, name in names})}
        spelled = _MINDED_POSTGRESQL if self._context.postgresql else _MINDED_SQLITE
        found: list[Row] = self._context.ask(spelled, wanted).fetchall()
        return found

    def hold(
        self, chats: Mapping[Chat, Instant], names: Mapping[Chat, Collection[str]] = NO_NAMES
    ) -> dict[Chat, Conversation]:
        hears(self._context)
        stored = {chat: (chat[0], keepable_name(chat[1])) for chat in chats}
        there = _by_chat(_HOLD.fetch(self._context, sorted(set(stored.values()))))
        held = {chat: there[kept] for chat, kept in stored.items() if kept in there}
        missing = {chat: at for chat, at in chats.items() if chat not in held}
        return held | self.open(missing, names)

    def open(
        self, chats: Mapping[Chat, Instant], names: Mapping[Chat, Collection[str]] = NO_NAMES
    ) -> dict[Chat, Conversation]:
        stored = {chat: (chat[0], keepable_name(chat[1])) for chat in chats}
        made_at = {kept: chats[chat] for chat, kept in stored.items()}
        others = {kept: _others(kept[1], names.get(chat, ())) for chat, kept in stored.items()}
        made = sorted((*chat, at, others[chat]) for chat, at in made_at.items())
        held = _by_chat(_OPEN.fetch(self._context, made))
        return {chat: held[kept] for chat, kept in stored.items()}

    def add(self, heard: Sequence[Heard], waiting: Sequence[Waiting] = ()) -> list[int | None]:
        written = [
            values_of(one.account_id, one.message, None, one.at) | {"conversation_id": where}
            for one, where in ((one, one.conversation_id) for one in heard)
        ]
        messages = [tuple(map(one.get, _MESSAGE)) for one in written]
        added = {
            (account_id, name): number for account_id, name, number in self._add(messages, waiting)
        }
        # One that is listed twice is there already the second time.
        return [added.pop((one["account_id"], one["provider_id"]), None) for one in written]

    def _add(self, messages: list[Row], waiting: Sequence[Waiting]) -> list[Row]:
        context = self._context
        if context.postgresql and messages and waiting:
            arrays = (*columns(list[Row](sorted(waiting))), *columns(messages))
            found: list[Row] = context.ask(_TAKE, arrays).fetchall()
            return found
        self.let_wait(waiting)
        return _ADD.fetch(context, messages)

    def renew(self, turns: Sequence[tuple[int, int]], lease_us: int) -> set[int]:
        until_at = self._context.now + lease_us
        found = _RENEW.fetch(self._context, sorted((*turn, until_at) for turn in turns))
        return {row[0] for row in found}

    def hold_waiting(
        self, account_ids: Collection[int], after_id: int, limit: int
    ) -> list[Conversation]:
        if not account_ids:
            return []
        wanted = {"accounts": listed(self._context, account_ids), "after": after_id, "most": limit}
        found = _NEXT_WAITING.run(self._context, **wanted)
        return [Conversation(*row) for row in found.fetchall()]

    def let_wait(self, waiting: Sequence[Waiting]) -> None:
        _WAIT.run(self._context, sorted(waiting))


def _others(chat: str, names: Collection[str]) -> str | None:
    """What somebody is called besides, as one value; mostly nothing."""
    others = {keepable_name(name) for name in names} - {chat}
    return dump(sorted(others)) if others else None


def _by_chat(found: Sequence[Row]) -> dict[Chat, Conversation]:
    return {(one.account_id, one.chat): one for one in (Conversation(*row) for row in found)}


def _pair(names: Sequence[tuple[int, str]]) -> tuple[str, str]:
    """Names at accounts as two arrays, which may be empty."""
    return array([number for number, _ in names]), array([name for _, name in names])


def _those(found: Sequence[Row], names: Collection[Chat]) -> frozenset[Chat]:
    """Asked for by their names alone, which may mean other people elsewhere."""
    there = {(row[0], row[1]) for row in found}
    return frozenset(one for one in names if (one[0], keepable_name(one[1])) in there)
