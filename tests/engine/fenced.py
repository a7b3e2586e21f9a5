"""Who passes the fence, and in what company: whoever needs it comes alone (``Journal.write``)."""

import pytest

from paceline.engine import journal
from paceline.engine.committing import Entry
from paceline.store.settings import Settings


def groups_at_the_fence(patch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all groups in which somebody passes the fence, as they are committed."""
    next_group, fence = journal.GroupJournal._next_group, Settings.fence
    sizes, found = [0], list[int]()

    def counted(self: journal.GroupJournal) -> list[Entry]:
        group = next_group(self)
        sizes[0] = len(group)
        return group

    def passed(self: Settings) -> None:
        found.append(sizes[0])
        fence(self)

    patch.setattr(journal.GroupJournal, "_next_group", counted)
    patch.setattr(Settings, "fence", passed)
    return found
