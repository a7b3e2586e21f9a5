"""Named policies: the presets, and those an installation defines in ``paceline.toml``.

An account names a policy and may set values of its own. What holds in the end is worked out here
and stored as a version, so that the ledger can say under which limits a message was sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paceline.core.errors import ConflictError, InputError
from paceline.core.instants import Instant
from paceline.core.nearest import did_you_mean
from paceline.core.policy import Policy, merge
from paceline.core.presets import PRESETS, preset
from paceline.core.states import AccountState
from paceline.engine.pooling import bring_forward
from paceline.engine.ports import Account, Tx

EXTENDS = "extends"


class Catalogue:
    """Every policy that can be named here."""

    def __init__(
        self,
        own: Mapping[str, Mapping[str, Any]] | None = None,
        everywhere: Mapping[str, Any] | None = None,
    ) -> None:
        """``everywhere`` holds for every account that says nothing else, nor its policy."""
        self._own = dict(own or {})
        self._everywhere = dict(everywhere or {})
        for name, written in self._own.items():
            if not isinstance(written, Mapping):
                raise InputError("must be a table of limits", key=f"policy.{name}")
            if name in PRESETS:
                raise ConflictError(
                    "a preset has this name already",
                    key=f"policy.{name}",
                    hint=f'Choose another name and write extends = "{name}"',
                )
            self.effective(name, {}, where=f"policy.{name}")

    def names(self) -> list[str]:
        return sorted([*PRESETS, *self._own])

    def raw(self, name: str) -> dict[str, Any]:
        """A named policy as written, with whatever it extends merged in."""
        if name not in self._own:
            if name in PRESETS:
                return preset(name)
            known = did_you_mean(name, self.names())
            raise InputError(f"unknown policy '{name}'{known}", key="policy")
        written = dict(self._own[name])
        base = written.pop(EXTENDS, None)
        if base is None:
            return written
        if not isinstance(base, str) or base in self._own:
            raise InputError("can only extend a preset", key=f"policy.{name}.{EXTENDS}")
        return merge(self.raw(base), written)

    def layers(self, name: str | None) -> list[tuple[str, Mapping[str, Any]]]:
        """What a named policy is made of, the weakest first, each with whose words they are."""
        found: list[tuple[str, Mapping[str, Any]]] = []
        if self._everywhere:
            found.append(("paceline.toml, for all", self._everywhere))
        if name is None:
            return found
        base = self._own[name].get(EXTENDS) if name in self._own else name
        if base is not None:
            found.append((f"preset {base}", preset(base)))
        if name in self._own:
            written = {key: value for key, value in self._own[name].items() if key != EXTENDS}
            found.append((f"policy {name} in paceline.toml", written))
        return found

    def effective(self, name: str | None, overrides: Mapping[str, Any], *, where: str) -> Policy:
        """Account's own value, then the named policy, then the house's, then the default."""
        base = merge(self._everywhere, self.raw(name) if name is not None else {})
        return Policy.from_mapping(merge(base, overrides), where=where)

    def version(
        self, tx: Tx, name: str | None, overrides: Mapping[str, Any], at: Instant, *, where: str
    ) -> int:
        """The stored version of what holds for this name and these values."""
        body = self.effective(name, overrides, where=where).to_mapping()
        return tx.policies.version(name, body, at)


def limits_changed(tx: Tx, account: Account, at: Instant) -> None:
    """Wake the lane under its new limits, before its next message. It is held, as it is before an
    account is changed."""
    if account.state is AccountState.LIMIT_REACHED:
        # The limit may be higher now. The cap gate decides; the label is set again if it is not.
        tx.accounts.move(account.id, "resume")
    if tx.accounts.get(account.id).policy.get("warmup") != account.policy.get("warmup"):
        # A ramp starts on the day it is given, not on the day the account was added.
        tx.accounts.update(account.id, warm_since_at=at)
    tx.lanes.touch(account.id, at)
    # What the old limits have put off may fit under the new ones.
    tx.timetable.recall(account.id, at)
    bring_forward(tx, tx.accounts.get(account.id), at)


def apply_catalogue(tx: Tx, catalogue: Catalogue, at: Instant) -> list[Account]:
    """Bring every account up to date with the policies as they are written now."""
    changed = []
    for account in tx.accounts.list():
        try:
            version = catalogue.version(
                tx, account.policy_name, account.overrides, at, where=account.name
            )
        except InputError as error:
            raise error if error.where else error.within(f"account {account.name}") from None
        if version != account.policy_id:
            tx.lanes.hold(account.id)
            tx.accounts.update(account.id, policy_id=version)
            limits_changed(tx, account, at)
            changed.append(account)
    return changed
