"""How often a person may be written to, looked at once more where it cannot change any more.

Lanes of different accounts know nothing of each other, and two of them may come to the same person
in the same moment. Each has asked before and found nothing. So those who write to one person are
put in a row, by a lock that lasts until the commit, and whoever comes second finds the first one's
intent. On SQLite whoever writes is alone anyway.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from hashlib import sha256

from paceline.engine.ports.path import LaneUnit, Sparing
from paceline.store.base import Context, array
from paceline.store.contacted import contacted, owners

_HOLD = """
SELECT pg_advisory_xact_lock(key) FROM (SELECT unnest(%s::bigint[]) AS key ORDER BY 1) AS keys
"""


def spared(context: Context, units: Sequence[LaneUnit]) -> Sequence[LaneUnit]:
    """The units without those intents whose recipients have had enough for now."""
    asked = [unit.intent.sparing for unit in units if unit.intent and unit.intent.sparing]
    if not asked:
        return units
    people = {wish.target: wish.contact_id for wish in asked if wish.contact_id is not None}
    people |= owners(context, [wish.target for wish in asked if wish.target not in people])
    if context.postgresql:
        keys = sorted({_number(key) for wish in asked for key in _keys(wish, people)})
        context.ask(_HOLD, (array(keys),))
    since_at = min(wish.since_at for wish in asked)
    found = contacted(context, [wish.target for wish in asked], since_at, people)
    passing: Counter[Hashable] = Counter()
    left = []
    for unit in units:
        wish = unit.intent.sparing if unit.intent else None
        if wish is not None:
            instants = [at for at in found.get(wish.target, ()) if at >= wish.since_at]
            # Others of this very group come to the same person, too.
            others = max(passing[key] for key in _keys(wish, people))
            if len(instants) + others >= wish.most:
                left.append(unit._replace(intent=None))
                continue
            passing.update(_keys(wish, people))
        left.append(unit)
    return left


def _keys(wish: Sparing, people: Mapping[str, int]) -> list[Hashable]:
    """By whom others would know the recipient."""
    person = wish.contact_id or people.get(wish.target)
    return [wish.target] if person is None else [wish.target, person]


def _number(key: Hashable) -> int:
    return int.from_bytes(sha256(repr(key).encode()).digest()[:8], signed=True)
