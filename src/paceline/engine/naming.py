"""What a key or a signed name that comes back from outside means here, and how names are signed.

The key to the signatures is the installation's own, and is made when it is first needed.
"""

from __future__ import annotations

import secrets

from paceline.core.names import Named, Names
from paceline.engine.ports import Tx

KEY = "names.key"
SEALED = "keys.sealed"


def names_of(tx: Tx) -> Names | None:
    """How names are signed here; None as long as none was needed."""
    stored = tx.settings.get(KEY)
    return None if stored is None else Names(bytes.fromhex(stored))


def ensure_names(tx: Tx) -> Names:
    """The same, with a key of the installation's own, which is made when it is first needed."""
    names = names_of(tx)
    if names is None:
        # Behind the fence the second of two processes finds what the first has written.
        tx.settings.fence()
        names = names_of(tx)
    if names is None:
        stored = secrets.token_hex(32)
        tx.settings.put(KEY, stored)
        names = Names(bytes.fromhex(stored))
    return names


def named_by(tx: Tx, written: str | None) -> Named | None:
    """What a key or a signed name of this installation names; None for anybody else's."""
    if written is None:
        return None
    names = names_of(tx)
    if names is not None and (named := names.meant_by(written)) is not None:
        return named
    instance = str(tx.settings.get("instance"))
    ours, _, rest = written.rpartition(f"{instance}-")
    delivery_id, _, rest = rest.partition("-")
    part, _, seal = rest.partition("-")
    if ours or not (_is_number(delivery_id) and _is_number(part)):
        return None
    named, seals = Named(int(delivery_id), int(part)), seals_of(tx)
    believed = not seal if seals is None else seals.is_sealed(named, seal)
    return named if believed else None


def seals_of(tx: Tx) -> Names | None:
    """How keys are sealed here; None in an installation that is older than seals: were its keys to
    change, no message in doubt could be asked for any more."""
    return names_of(tx) if tx.settings.get(SEALED) else None


def seal_keys(tx: Tx) -> None:
    """Once, when an installation is made: from its first message on its keys are sealed."""
    ensure_names(tx)
    tx.settings.put(SEALED, "1")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 18
