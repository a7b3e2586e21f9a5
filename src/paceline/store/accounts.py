"""Accounts and the versions of their policies."""

from __future__ import annotations

import hashlib
from builtins import list as list_of
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Select, Table, bindparam, select, update

from paceline.core.errors import ConflictError
from paceline.core.instants import Instant
from paceline.core.states import ACCOUNT, AccountState
from paceline.engine.ports.records import Account
from paceline.store import rows
from paceline.store.base import Subject, dump, dump_sorted, insert_into, storable
from paceline.store.moves import next_state
from paceline.store.prepared import Prepared, among, listed
from paceline.store.schema import accounts, lanes, policies, usage

CHANGEABLE = frozenset(
    {
        "answering",
        "address",
        "settings",
        "policy_name",
        "overrides",
        "policy_id",
        "warm_since_at",
        "removed_at",
    }
)
STRUCTURED = frozenset({"settings", "overrides", "answering"})


class Accounts(Subject):
    """Sending identities."""

    def add(
        self,
        *,
        name: str,
        provider: str,
        address: str,
        settings: Mapping[str, Any],
        policy_name: str | None,
        overrides: Mapping[str, Any],
        policy_id: int,
        at: Instant,
    ) -> Account:
        """Create the account with its lane and its empty usage."""
        added = _ADD.run(
            self._context,
            name=name,
            provider=provider,
            address=address,
            settings=dump(dict(settings)),
            policy_name=policy_name,
            overrides=dump(dict(overrides)),
            policy_id=policy_id,
            state=ACCOUNT.start.value,
            state_reason="",
            warm_since_at=at,
            created_at=at,
        ).fetchone()
        if added is None:
            raise ConflictError(f"an account named {name!r} exists already")
        (account_id,) = added
        _ADD_LANE.run(self._context, account_id=account_id, generation=0, revision=0)
        _ADD_USAGE.run(self._context, account_id=account_id)
        return self.get(account_id)

    def get(self, account_id: int) -> Account:
        row = ONE.run(self._context, account_id=account_id).fetchone()
        return rows.account(rows.found(row, "account", account_id))

    def several(self, account_ids: Sequence[int]) -> dict[int, Account]:
        found = SEVERAL.run(self._context, wanted=listed(self._context, account_ids))
        return {row[0]: rows.account(row) for row in found.fetchall()}

    def find(self, name: str) -> Account | None:
        """The account that bears this name now; a removed one no longer does."""
        row = _NAMED.run(self._context, name=name).fetchone()
        return rows.account(row) if row else None

    def list(self, *, with_removed: bool = False) -> list_of[Account]:
        statement = select_accounts().order_by(accounts.c.name, accounts.c.id)
        if not with_removed:
            statement = statement.where(accounts.c.removed_at.is_(None))
        return [rows.account(row) for row in self._connection.execute(statement)]

    def providers(self) -> set[str]:
        return {row[0] for row in _PROVIDERS.run(self._context).fetchall()}

    def update(self, account_id: int, **changes: Any) -> None:
        unknown = changes.keys() - CHANGEABLE
        if unknown:
            raise TypeError(f"an account has no changeable {', '.join(sorted(unknown))}")
        values = {
            key: dump(dict(value)) if key in STRUCTURED else value for key, value in changes.items()
        }
        if values:
            statement = update(accounts).where(accounts.c.id == account_id).values(values)
            rows.found(
                (account_id,) if self._connection.execute(statement).rowcount else None,
                "account",
                account_id,
            )

    def move(
        self,
        account_id: int,
        event: str,
        *,
        reason: str = "",
        until_at: Instant | None = None,
    ) -> AccountState | None:
        state = next_state(self._connection, accounts, ACCOUNT, account_id, event)
        if state is None:
            return None
        # What was removed stands as it was: an answer that comes late stops nobody any more.
        changed = self._connection.execute(
            update(accounts)
            .where(accounts.c.id == account_id, accounts.c.removed_at.is_(None))
            .values(state=state.value, state_reason=storable(reason), state_until_at=until_at)
        )
        return state if changed.rowcount else None


class Policies(Subject):
    """Policies as they once were: a version is never changed, only followed by another."""

    def version(self, name: str | None, body: Mapping[str, Any], at: Instant) -> int:
        stored_name = name or ""
        digest = hashlib.sha256(dump_sorted(body).encode()).hexdigest()
        sought = {"name": stored_name, "digest": digest}
        _ADD_VERSION.run(self._context, body=dump(dict(body)), created_at=at, **sought)
        policy_id: int = _VERSION.run(self._context, **sought).fetchone()[0]
        return policy_id

    def body(self, policy_id: int) -> Mapping[str, Any]:
        found = _BODY.run(self._context, policy_id=policy_id).fetchone()
        body: Mapping[str, Any] = rows.shared(rows.found(found, "policy", policy_id)[0])
        return body


def select_accounts(*more: Any) -> Select[Any]:
    """Accounts with their effective policy, and whatever else is asked for."""
    return select(*rows.ACCOUNT, *more).join_from(
        accounts, policies, policies.c.id == accounts.c.policy_id
    )


def _adding(table: Table, *names: str) -> Callable[[bool], Any]:
    """A new row."""
    values: dict[str, Any] = {name: bindparam(name) for name in names}
    return lambda on_postgresql: insert_into(table, on_postgresql=on_postgresql).values(values)


def _adding_once(table: Table, *names: str) -> Callable[[bool], Any]:
    """The same, unless there is one like it."""
    adding = _adding(table, *names)
    return lambda on_postgresql: adding(on_postgresql).on_conflict_do_nothing()


_ACCOUNT = _adding_once(
    accounts,
    *("name", "provider", "address", "settings", "policy_name", "overrides", "policy_id"),
    *("state", "state_reason", "warm_since_at", "created_at"),
)
_ADD = Prepared(lambda on_postgresql: _ACCOUNT(on_postgresql).returning(accounts.c.id))
_ADD_LANE = Prepared(_adding(lanes, "account_id", "generation", "revision"))
_ADD_USAGE = Prepared(_adding(usage, "account_id"))
_ADD_VERSION = Prepared(_adding_once(policies, "name", "digest", "body", "created_at"))
_VERSION = Prepared(
    lambda _: select(policies.c.id).where(
        policies.c.name == bindparam("name"), policies.c.digest == bindparam("digest")
    )
)
_NAMED = Prepared(
    lambda _: select_accounts().where(
        accounts.c.name == bindparam("name"), accounts.c.removed_at.is_(None)
    )
)
ONE = Prepared(lambda _: select_accounts().where(accounts.c.id == bindparam("account_id")))
SEVERAL = Prepared(
    lambda on_postgresql: select_accounts().where(
        among(accounts.c.id, "wanted", on_postgresql=on_postgresql)
    )
)
_PROVIDERS = Prepared(
    lambda _: select(accounts.c.provider).where(accounts.c.removed_at.is_(None)).distinct()
)
_BODY = Prepared(lambda _: select(policies.c.body).where(policies.c.id == bindparam("policy_id")))
