"""Asked twice, done once: a key that somebody chose stands for one campaign or one message.

The same key with the same wish gives what was made the first time. With another wish it is an
error: somebody would believe that it was done.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from paceline.core.errors import ConflictError, InputError
from paceline.core.instants import Instant
from paceline.engine.ports import Tx

LONGEST_KEY = 200


def once(
    tx: Tx, key: str | None, kind: str, wish: Any, at: Instant, make: Callable[[], int]
) -> tuple[int, bool]:
    """The number of what the wish has made, and whether it was made now."""
    if key is None:
        return make(), True
    if not key.strip() or len(key) > LONGEST_KEY or not key.isprintable():
        raise InputError(f"must be one line of at most {LONGEST_KEY} characters", key="key")
    kept = tx.keys.reserve(key, kind, digest := _digest(wish), at)
    if kept is None:
        subject_id = make()
        tx.keys.keep(key, subject_id)
        return subject_id, True
    if (kept.kind, kept.digest) != (kind, digest):
        raise ConflictError(
            f"the key '{key}' was used for another {kept.kind}",
            key="key",
            hint="Choose a new key for what is new",
        )
    return kept.subject_id, False


def _digest(wish: Any) -> str:
    written = json.dumps(wish, sort_keys=True, default=str)
    return hashlib.sha256(written.encode()).hexdigest()
