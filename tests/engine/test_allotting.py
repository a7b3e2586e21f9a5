"""Who sends to whom: shared out as evenly as the members of the groups allow."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.engine.allotting import dealt

ABLE = st.lists(st.lists(st.integers(1, 5), unique=True, max_size=4), max_size=60)


def test_one_that_is_a_member_of_the_first_half_only_gets_all_of_that_half() -> None:
    owners = dealt([[1, 2]] * 500 + [[1]] * 500)
    assert Counter(owners) == {1: 500, 2: 500}
    assert owners == [2] * 500 + [1] * 500


def test_those_that_are_alike_are_dealt_in_turn() -> None:
    assert dealt([[7, 3], [7, 3], [7, 3], [7, 3]]) == [7, 3, 7, 3]


def test_what_nobody_can_write_to_is_nobodys() -> None:
    assert dealt([[], [4], []]) == [0, 4, 0]


def test_a_chain_of_members_is_evened_out() -> None:
    """Dealt one by one, the first and the last would be two apart from the one between."""
    owners = dealt([[1, 2]] * 10 + [[2, 3]] * 10)
    assert max(Counter(owners).values()) - min(Counter(owners).values()) <= 1


@settings(max_examples=300, deadline=None)
@given(ABLE)
def test_nobody_could_hand_one_over_to_somebody_who_has_two_less(able: list[list[int]]) -> None:
    owners = dealt(able)
    load = Counter(owner for owner in owners if owner)
    for some, owner in zip(able, owners, strict=True):
        assert owner in some if some else owner == 0
        assert all(load[owner] - load[other] <= 1 for other in some)
