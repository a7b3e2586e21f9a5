"""Which worlds are drawn, and how large the one for long runs is."""

import random
from zoneinfo import ZoneInfo

import pytest

from paceline.core.errors import InputError
from paceline.core.instants import DAY, to_datetime
from paceline.sim.atlas import QUICK, WORLDS, draw_world
from paceline.sim.weather import STORM


def test_any_draws_every_world_but_the_one_for_long_runs() -> None:
    drawn = {draw_world("any", random.Random(seed), "heavy").name for seed in range(200)}
    assert drawn == set(QUICK) - {"post"} | {"mail"}  # post is a small mail
    largest = max(
        len(draw_world("any", random.Random(seed), "heavy").senders) for seed in range(200)
    )
    assert largest <= 8


def test_mail_has_accounts_enough_for_long_runs_and_as_many_letters_as_they_may_send() -> None:
    world = draw_world("mail", random.Random(1), "heavy")
    days = world.lasts_us // DAY
    assert len(world.senders) >= 100
    assert sum(mailing.targets for mailing in world.mailings) == 20 * days * len(world.senders)


def test_post_is_mail_drawn_small() -> None:
    small = draw_world("post", random.Random(3), "heavy")
    large = draw_world("mail", random.Random(3), "heavy")
    assert (small.start_at, small.senders[0]) == (large.start_at, large.senders[0])
    assert len(small.senders) == 8 and small.lasts_us == 2 * DAY


def test_a_world_that_does_not_exist_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="post"):
        draw_world("psot", random.Random(0), "none")
    assert "post" in WORLDS


def test_office_has_five_accounts_two_weeks_and_a_change_of_the_clocks() -> None:
    new_york = ZoneInfo("America/New_York")
    for seed in range(8):
        world = draw_world("office", random.Random(seed), "heavy")
        assert [sender.preset for sender in world.senders] == ["cold-email"] * 5
        assert world.mailings[0].planned and world.mailings[0].assignment == "round_robin"
        ends_at = world.start_at + world.lasts_us
        offsets = [
            to_datetime(at).astimezone(new_york).utcoffset() for at in (world.start_at, ends_at)
        ]
        assert world.lasts_us == 14 * DAY and offsets[0] != offsets[1]
        # More than the first of the two weeks has room for, less than both have.
        assert 5 * 20 * 5 < world.mailings[0].targets < 5 * 20 * 10


def test_crashes_come_in_storms_only_where_there_is_weather() -> None:
    assert draw_world("storm", random.Random(1), "heavy").climate is STORM
    assert draw_world("storm", random.Random(1), "none").climate is None


def test_in_talks_the_people_of_a_campaign_write_to_accounts_that_listen() -> None:
    for seed in range(8):
        world = draw_world("talks", random.Random(seed), "heavy")
        assert world.talk is not None and world.processes >= 2
        assert set(world.talk.patience) == {sender.name for sender in world.senders}
        (mailing,) = world.mailings
        assert world.talk.people == tuple(mailing.address(one) for one in range(mailing.targets))
        calm = draw_world("talks", random.Random(seed), "none")
        assert calm.talk is not None and len(calm.talk.minds) == 1 and calm.climate is None


def test_in_replies_people_have_less_time_to_answer_than_they_take_at_times() -> None:
    for seed in range(8):
        world = draw_world("replies", random.Random(seed), "heavy")
        assert world.talk is not None and world.climate is not None
        (mailing,) = world.mailings
        assert mailing.follow_up is not None and mailing.follow_up.on == "reply"
        assert world.talk.people == tuple(mailing.address(one) for one in range(mailing.targets))
        shortest_us, longest_us = world.talk.rest_us
        assert shortest_us <= mailing.follow_up.within_us == world.talk.within_us < longest_us
        assert not world.climate.step_every_us, "by a clock set back nobody can tell what is late"
        assert draw_world("replies", random.Random(seed), "none").climate is None


def test_inbox_lasts_for_days_and_its_campaigns_go_to_the_same_people() -> None:
    for seed in range(8):
        world = draw_world("inbox", random.Random(seed), "heavy")
        assert world.post is not None and world.climate is not None
        assert len(world.senders) >= 2 and world.processes >= 2 and len(world.mailings) == 3
        assert DAY < world.lasts_us < 3 * DAY
        first = {mailing.address(0) for mailing in world.mailings}
        assert len(first) == 1 and "@" in first.pop()
        calm = draw_world("inbox", random.Random(seed), "none")
        assert calm.post is not None and not calm.post.troubles and calm.climate is None
