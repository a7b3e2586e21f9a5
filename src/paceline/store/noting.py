"""What one statement after the other does to a simulated world: which intents were written while
what was in force, and whose lane was taken from whom.

Noted by triggers inside the database, so in the very order of the statements, and undone with a
transaction that is undone. They last as long as their connection, and no other database has any.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from paceline.core.instants import Instant
from paceline.engine.ports.audit import IntentNote, TakingNote

_TABLES = """
CREATE TEMP TABLE noted_intents (
    at, delivery_id, part, attempt, account_id, suppressed, account, run, stopped
);
CREATE TEMP TABLE noted_takings (at, account_id, generation, silent_us);
CREATE TEMP TABLE heard_of (process_id INTEGER PRIMARY KEY, at);
"""
_TRIGGERS = """
CREATE TEMP TRIGGER note_intent AFTER INSERT ON main.ledger WHEN NEW.kind = 'intent' BEGIN
    INSERT INTO noted_intents SELECT true_now(), NEW.delivery_id, NEW.part, NEW.attempt,
        NEW.account_id,
        EXISTS (SELECT 1 FROM main.suppressions s WHERE s.confirmation_id IS NOT d.id
            AND (s.address = d.target OR s.address = substr(d.target, instr(d.target, '@')))),
        CASE WHEN a.removed_at IS NULL THEN a.state ELSE 'removed' END,
        (SELECT state FROM main.runs WHERE id = NEW.run_id),
        (SELECT json_extract(value, '$.stopped') FROM main.settings WHERE key = 'control')
    FROM main.deliveries d JOIN main.accounts a ON a.id = NEW.account_id
    WHERE d.id = NEW.delivery_id;
END;
CREATE TEMP TRIGGER note_joining AFTER INSERT ON main.processes BEGIN
    INSERT INTO heard_of VALUES (NEW.id, database_now());
END;
CREATE TEMP TRIGGER note_renewal AFTER UPDATE OF lease_until_at ON main.processes BEGIN
    UPDATE heard_of SET at = database_now() WHERE process_id = NEW.id;
END;
CREATE TEMP TRIGGER note_taking AFTER UPDATE OF owner ON main.lanes
WHEN OLD.owner <> NEW.owner BEGIN
    INSERT INTO noted_takings SELECT true_now(), NEW.account_id, NEW.generation,
        database_now() - at FROM heard_of WHERE process_id = OLD.owner;
END;
"""
_INTENTS = "SELECT * FROM noted_intents ORDER BY rowid"
_TAKINGS = "SELECT * FROM noted_takings ORDER BY rowid"


class Notes:
    """Those of one database, from when they were begun."""

    def __init__(
        self,
        driver: sqlite3.Connection,
        true_now: Callable[[], Instant],
        database_now: Callable[[], Instant],
    ) -> None:
        self._driver = driver
        driver.create_function("true_now", 0, true_now)
        driver.create_function("database_now", 0, database_now)
        driver.executescript(_TABLES + _TRIGGERS)

    def intents(self) -> tuple[IntentNote, ...]:
        return tuple(
            IntentNote(at, delivery_id, part, attempt, account_id, bool(suppressed), *standing)
            for at, delivery_id, part, attempt, account_id, suppressed, *standing in (
                self._driver.execute(_INTENTS)
            )
        )

    def takings(self) -> tuple[TakingNote, ...]:
        return tuple(TakingNote(*row) for row in self._driver.execute(_TAKINGS))


__all__ = ["Notes"]
