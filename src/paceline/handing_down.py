"""Settings as a service hands them down to its workers: one line of JSON, over the pipe to each.

A worker that read the file by itself would run with whatever the file says by then, and not start
at all while somebody is writing it. What a service was started with holds for all its workers,
until it is started anew.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from paceline.config import Settings
from paceline.core.errors import InputError
from paceline.core.opting_out_settings import opting_out_of

KEPT = frozenset({"policies", "alerts_urls", "webhooks", "answering"})
"""What a worker has no use for: limits stand with the accounts in the database, and nobody is told
or answered by a worker. So it does not get to know the secrets that go with that, either."""


def write_settings(settings: Settings) -> bytes:
    handed = {
        entry.name: getattr(settings, entry.name)
        for entry in fields(settings)
        if entry.name not in KEPT
    }
    handed["opt_out"] = settings.opt_out.to_mapping()
    return json.dumps(handed, separators=(",", ":")).encode() + b"\n"


def read_settings(line: bytes) -> Settings:
    """``InputError`` if these are none: a worker is of the same version as whoever starts it."""
    try:
        handed: dict[str, Any] = json.loads(line)
        return Settings(**{**handed, "opt_out": opting_out_of(handed["opt_out"])})
    except (ValueError, TypeError, KeyError) as error:
        # Without what was said, which may hold a password.
        raise InputError(f"these are no settings of this version: {type(error).__name__}") from None
