"""A connection to PostgreSQL, spoken to without cursors.

A cursor takes longer over a small statement than the server does, and each time that it looks for
an answer it gives the interpreter away, which has to be waited for where a loop is busy. Here all
that is known to be asked goes out at once, and is waited for once: libpq's own pipeline, by the
driver's documented wrapper of it (``psycopg.pq``).

A transaction's BEGIN is owed until there is something to send it with. Whoever wants to use the
connection in another way pays it first.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar, cast

import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import ConnStatus, ExecStatus, TransactionStatus
from psycopg.pq.abc import PGconn, PGresult
from sqlalchemy import Connection

from paceline.store.asked import Asked, Values, ordered, spelled, type_of
from paceline.store.watch import EITHER, READABLE, Watch

T = TypeVar("T")
Waiting = Generator[int, None, T]
"""Something that says for which events of the socket it waits, until it has its answer."""
_GOES = "57P"
"""SQLSTATEs by which a server takes its leave."""


class Wire:
    """One connection, used by one thread at a time. It knows what the server has prepared.

    One that was lost before anything of a transaction was answered is replaced: nothing was
    committed, and whoever asked need not know.
    """

    __slots__ = (
        "_awaited",
        "_connect",
        "_gathered",
        "_is_new",
        "_known",
        "_opening",
        "_owed",
        "_pgconn",
        "_readable",
        "_together",
        "_transformer",
        "_watch",
        "sql",
    )

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._owed: bytes | None = None
        self._opening: tuple[bytes, list[Asked]] | None = None
        self._together = False
        self._gathered: list[Asked] = []
        self._awaited: list[Asked | bytes | None] = []
        self._watch: Watch | None = None
        self._adopt(connect())

    def _adopt(self, connection: Connection) -> None:
        self.sql = connection
        driver = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
        self._pgconn: PGconn = driver.pgconn
        self._transformer = Transformer.from_context(driver)
        self._readable = select.poll()
        self._readable.register(driver.pgconn.socket, select.POLLIN)
        self._known: set[bytes] = set()
        self._is_new = True

    def _replace(self) -> None:
        self.drop()
        self._adopt(self._connect())

    def drop(self) -> None:
        """Close it, and keep one that is dead out of SQLAlchemy's hands, which has not seen the
        error that says so."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        if self.lost and not self.sql.invalidated and not self.sql.closed:
            self.sql.invalidate()
        self.sql.close()

    # ------------------------------------------------------------------ transactions

    def watch(self) -> Watch:
        """For whoever waits for it in a loop."""
        if self._watch is None:
            self._watch = Watch(self._pgconn.socket)
        return self._watch

    @property
    def usable(self) -> bool:
        """Whether the server has not ended the session meanwhile, and nobody has left it in the
        middle of a transaction."""
        return not self._is_new and self._is_alive()

    def begin(self, kind: bytes) -> None:
        """A server that was stopped or has ended the session has closed its end: that is seen
        without asking. What was left in the middle of a transaction is undone first."""
        if not self._is_new:
            self.roll_back()
            if not self._is_alive():
                self._replace()
        self._owed = kind

    def _is_alive(self) -> bool:
        try:
            while self._readable.poll(0):
                self._pgconn.consume_input()
        except psycopg.OperationalError:
            return False
        return self._pgconn.transaction_status == TransactionStatus.IDLE

    def settle(self) -> None:
        """Send what is owed, for whoever uses the connection in another way."""
        self.wait()
        if self._owed is not None:
            owed, self._owed = self._owed, None
            try:
                self._say(owed)
            except psycopg.OperationalError:
                if self._is_new:
                    raise
                self._replace()
                self._say(owed)

    def commit(self) -> None:
        """With all that was only told, in one flight. That one is never begun again: whether it was
        committed cannot be known when nobody answers."""
        if self._gathered:
            self._commit_what_was_told()
        elif self._owed is not None:  # nothing was ever asked
            self._owed = None
        elif self._say(b"COMMIT") != b"COMMIT":
            # A statement had failed, and somebody has gone on as if nothing were the matter.
            raise psycopg.errors.InFailedSqlTransaction("the transaction was rolled back")
        self._is_new = False

    def _commit_what_was_told(self) -> None:
        if self._pgconn.transaction_status == TransactionStatus.INERROR:
            raise psycopg.errors.InFailedSqlTransaction("the transaction was rolled back")
        self._wait_for(self.committing())

    def committing(self) -> Waiting[None]:
        """The same for whoever waits otherwise: all that was told, and its COMMIT."""
        with self._surely():
            self._awaited = self._sent(last=b"COMMIT")
            yield from self._push()
            failed = yield from self._answered()
        if failed is not None:
            raise self._failure(failed)
        self._is_new = False

    def roll_back(self) -> None:
        """What cannot be said to a server it finds out when the connection ends."""
        self._owed = self._opening = None
        self._gathered.clear()
        if self._awaited:
            self._awaited = []
            self._pgconn.finish()
        elif not self.lost and self._pgconn.transaction_status != TransactionStatus.IDLE:
            try:
                self._say(b"ROLLBACK")
            except psycopg.OperationalError:
                self._pgconn.finish()

    @property
    def lost(self) -> bool:
        return self._pgconn.status == ConnStatus.BAD

    def _say(self, command: bytes) -> bytes | None:
        """A command without parameters and without rows, to a connection that does nothing else;
        what has been done, in the server's words."""
        result = self._pgconn.exec_(command)
        if result.status != ExecStatus.COMMAND_OK:
            raise self._failure(result)
        return result.command_status

    # ------------------------------------------------------------------ statements

    def ask(self, statement: str, values: Values = ()) -> Asked:
        """Send a statement, and wait for its answer; inside ``together`` it is waited for when it
        is fetched, or at the block's end. The server keeps it, so it must be one of a few; and a
        value that is not always of one type, or of one that cannot be told from the statement, is
        cast there."""
        known = spelled(statement)
        asked = Asked(known, ordered(known, values), self.wait)
        self._gathered.append(asked)
        if not self._together:
            self.wait()
        return asked

    def tell(self, statement: str, values: Values) -> None:
        """The same for a statement whose answer nobody needs, unless it is refused: it goes with
        whatever is asked next, or with the COMMIT."""
        known = spelled(statement)
        self._gathered.append(Asked(known, ordered(known, values), self.wait))

    @contextmanager
    def together(self) -> Iterator[None]:
        self._together = True
        try:
            yield
            self.wait()
        except BaseException:
            self._gathered.clear()
            if self._awaited:  # nobody wants to know any more
                self._pgconn.finish()
            raise
        finally:
            self._together = False

    def send(self) -> None:
        """Let the server begin with what was asked so far, while we do something else."""
        if self._gathered and not self._awaited:
            try:
                with self._surely():
                    self._awaited = self._sent()
                    self._wait_for(self._push())
            except psycopg.OperationalError:
                if not self._begins_again():
                    raise

    def wait(self) -> None:
        """Until everything that was asked is answered."""
        while self._awaited or self._gathered:
            self.send()
            if not self._awaited:  # there was nobody, and it is begun again
                continue
            failed = None
            try:
                with self._surely():
                    failed = self._wait_for(self._answered())
            except psycopg.OperationalError:
                if not self._begins_again():
                    raise
            if failed is None:
                continue
            if not (self.lost and self._begins_again()):
                self._gathered.clear()
                raise self._failure(failed)

    def _begins_again(self) -> bool:
        """Whether a transaction of which nothing was answered is begun anew on a connection that
        was made for it."""
        if self._opening is None or self._is_new:
            return False
        (self._owed, asked), self._opening = self._opening, None
        self._gathered[:0] = asked
        self._awaited = []
        self._replace()
        return True

    @contextmanager
    def _surely(self) -> Iterator[None]:
        """Or never: what is still to come of a conversation that was broken off nobody knows."""
        try:
            yield
        except Exception:
            self._pgconn.finish()
            raise
        except BaseException:
            # Somebody wants to end this: the statement must not go on by itself, with its locks.
            with suppress(psycopg.Error):
                self._pgconn.get_cancel().cancel()
            self._pgconn.finish()
            raise

    def _sent(self, last: bytes | None = None) -> list[Asked | bytes | None]:
        """What is to be answered now, in this order: statements, those that are prepared, and None
        for a command."""
        pgconn, awaited = self._pgconn, list[Asked | bytes | None]()
        gathered, self._gathered = self._gathered, []
        pgconn.enter_pipeline_mode()
        if self._owed is not None:
            self._opening = self._owed, gathered
            pgconn.send_query_params(self._owed, None)
            awaited.append(None)
            self._owed = None
        for one in gathered:
            name = one.spelled.name
            if name not in self._known and name not in awaited:
                types = [type_of(value) for value in one.values]
                pgconn.send_prepare(name, one.spelled.text, param_types=types)
                awaited.append(name)
            pgconn.send_query_prepared(name, one.written)
            awaited.append(one)
        if last is not None:
            pgconn.send_query_params(last, None)
            awaited.append(None)
        pgconn.pipeline_sync()
        return awaited

    def _answered(self) -> Waiting[PGresult | None]:
        """The first statement that was refused, if one was: those behind it were not looked at."""
        awaited = self._awaited
        failed = None
        try:
            for of in awaited:
                result = yield from self._next()
                if result.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
                    failed = failed or result
                elif isinstance(of, Asked):
                    of.answer(result, self._transformer)
                elif of is not None:
                    self._known.add(of)
            yield from self._next()  # the pipeline's own end
            self._pgconn.exit_pipeline_mode()
            self._awaited, self._opening = [], None
        except psycopg.OperationalError:
            # What the server said before it went away tells more than that it did.
            if failed is None:
                raise
            self._pgconn.finish()
        return failed

    def _push(self) -> Waiting[None]:
        """Send what libpq has gathered, and take in what comes meanwhile: a server that cannot get
        rid of its answers listens to no more questions."""
        while self._pgconn.flush():
            yield EITHER
            self._pgconn.consume_input()

    def _next(self) -> Waiting[PGresult]:
        pgconn = self._pgconn
        while True:
            while pgconn.is_busy():
                yield READABLE
                pgconn.consume_input()
            result = pgconn.get_result()
            if result is not None:  # else it was the end of a statement's results
                return result
            if self.lost:
                raise psycopg.OperationalError(self._said())

    def _wait_for(self, talk: Waiting[T]) -> T:
        try:
            while True:
                if (events := next(talk)) == READABLE:
                    self._readable.poll()
                else:
                    either = select.poll()
                    either.register(self._pgconn.socket, events)
                    either.poll()
        except StopIteration as end:
            answer: T = end.value
            return answer

    def _failure(self, result: PGresult) -> psycopg.Error:
        """What a server said last before it was gone is no refusal, whatever name it has for what
        befell it: what has become of a COMMIT nobody knows. Unless it said that it goes."""
        error = psycopg.errors.error_from_result(result, encoding="utf-8")
        if self.lost and not (error.sqlstate or "").startswith(_GOES):
            return psycopg.OperationalError(str(error).strip() or self._said())
        return error

    def _said(self) -> str:
        return self._pgconn.error_message.decode(errors="replace").strip()
