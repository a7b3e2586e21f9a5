"""Which worlds are drawn, and how large the one for long runs is."""

import random

import pytest

from paceline.core.errors import InputError
from paceline.core.instants import DAY
from paceline.sim.atlas import QUICK, WORLDS, draw_world


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
