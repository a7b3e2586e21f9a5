"""The list of events: closed, complete, and refusing what nobody knows."""

import re
from pathlib import Path

import pytest

from paceline.core.errors import InputError
from paceline.core.events import EVENTS, FIELDS, EventKind, Wanted, checked, page
from paceline.core.states import AccountState


def test_every_event_is_described_and_every_field_explained() -> None:
    assert list(EVENTS) == list(EventKind)
    used = {name for described in EVENTS.values() for name in described.fields}
    assert used == set(FIELDS)
    for described in EVENTS.values():
        assert len(set(described.fields)) == len(described.fields)


def test_kinds_are_two_words() -> None:
    for kind in EventKind:
        assert re.fullmatch(r"[a-z]+\.[a-z_]+", kind)


@pytest.mark.parametrize("state", AccountState)
def test_every_state_of_an_account_has_its_event(state: AccountState) -> None:
    assert "account" in EVENTS[EventKind(f"account.{state}")].fields


def test_what_is_not_on_the_list_is_refused() -> None:
    assert checked("sending.resumed", {}) is EventKind.SENDING_RESUMED
    with pytest.raises(ValueError, match=r"'run.finish' is not .*, did you mean 'run.finished'\?"):
        checked("run.finish", {})
    with pytest.raises(ValueError, match=r"sending.stopped tells \[\], and the list says"):
        checked("sending.stopped", {})
    with pytest.raises(ValueError, match=r"tells \['reason', 'who'\]"):
        checked("sending.stopped", {"reason": "fire drill", "who": "me"})


@pytest.mark.parametrize(
    ("patterns", "wanted", "unwanted"),
    [
        (["*"], ["run.finished", "webhook.skipped"], []),
        (["run.*"], ["run.finished", "run.missed"], ["reminder.created", "account.paused"]),
        (["account.suspended", " run.missed "], ["run.missed"], ["run.finished", "account.paused"]),
    ],
)
def test_what_somebody_wants_to_hear_of(
    patterns: list[str], wanted: list[str], unwanted: list[str]
) -> None:
    found = Wanted.parse(patterns)
    assert all(kind in found for kind in wanted)
    assert not any(kind in found for kind in unwanted)
    assert set(wanted) <= set(found.kinds) <= set(EventKind)
    assert Wanted.parse(str(found).split(", ")) == found


@pytest.mark.parametrize(
    ("patterns", "complaint"),
    [
        (["run.finish"], "unknown event 'run.finish', did you mean 'run.finished'?"),
        (["runs.*"], "unknown event 'runs.*', did you mean 'run.*'?"),
        (["run.*", "*.finished"], "unknown event '*.finished', did you mean 'run.finished'?"),
        (["nonsense"], "unknown event 'nonsense'. See: paceline events --kinds"),
        ([], "names no events"),
    ],
)
def test_what_nobody_could_ever_hear_is_refused(patterns: list[str], complaint: str) -> None:
    with pytest.raises(InputError) as refused:
        Wanted.parse(patterns)
    assert complaint in str(refused.value)


def test_the_page_has_a_row_for_each() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|", page(), re.M)
    assert rows == [*EventKind, *FIELDS]


def test_the_docs_have_the_list_as_it_is() -> None:
    docs = Path(__file__).parents[2] / "docs" / "notifications.md"
    assert page() in docs.read_text(), "write it anew: paceline.core.events.page()"
