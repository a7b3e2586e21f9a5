"""No defect of the engine goes unnoticed, however well the engine gets over it.

Whatever a world does on purpose has an answer of its own: a lane whose provider or store is away
goes to rest, and one whose process dies is simply gone. A lane crashes of what nobody foresaw.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from paceline.core.instants import Instant
from paceline.sim.checks.evidence import Evidence, Violation
from paceline.sim.defects import in_words
from paceline.sim.witness import Defect

DEFECT = "never a defect"


def crashed(evidence: Evidence) -> Iterator[Violation]:
    """A lane that crashed; those that crashed of the same are told together."""
    alike: dict[str, list[Defect]] = defaultdict(list)
    for defect in evidence.defects:
        alike[defect.error].append(defect)
    for error, found in alike.items():
        first, times = found[0], len(found)
        lane = f"the lane of {first.account} in {first.process}"
        who = f"{lane} crashed" if times == 1 else f"lanes crashed {times} times, first {lane}"
        yield Violation(DEFECT, f"{who}: {error}", first.at, (first.account,))


def broke_off(error: BaseException, at: Instant) -> Violation:
    """A world that came to no end, because of what got out of the engine, or out of a judge."""
    return Violation(DEFECT, f"the world broke off: {in_words(error)}", at)
