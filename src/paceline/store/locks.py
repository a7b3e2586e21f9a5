"""The advisory locks of PostgreSQL: one list, so that no two of them are the same by accident.

They are locks in memory rather than on rows: they are fair, so a command is not starved by intents
that keep coming, and taking one writes nothing. On SQLite whoever writes is alone anyway.
"""

from __future__ import annotations

from enum import IntEnum, unique

_OURS = 0x7061_6365_0000
"""In the upper half of every one: other programs may lock in the same database."""


@unique
class Lock(IntEnum):
    FENCE = _OURS + 1
    """Shared by every group of intents, exclusive to commands."""
    PEOPLE = _OURS + 2
    """Shared by whoever creates deliveries, exclusive to changes of people."""
    ADDING = _OURS + 5
    """Of those who create deliveries and make the people known to whom these go."""
    HEARING = _OURS + 7
    """Shared by whoever hears of a message, exclusive to who changes whom nobody answers, or how
    accounts are answered. After lanes, before conversations."""
    MIGRATION = _OURS + 6
    """Under which a database is prepared: by one process, the others wait."""
