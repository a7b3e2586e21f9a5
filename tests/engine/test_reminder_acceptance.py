"""Document A's acceptance in virtual time: a thousand groups, an image, forty a minute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND, Instant
from paceline.core.states import RunState
from paceline.engine.commands import reminders
from paceline.engine.firing import ring
from paceline.engine.reminder_spec import ReminderSpec
from tests.engine.reminding import EIGHT, POSTER, ZONE, fresh, groups, remind, runs_of
from tests.engine.world import World
from tests.store.counting import counted

NINE: Instant = EIGHT + HOUR
LATENCY = "300ms..1200ms"
"""What WhatsApp takes to take a message."""


CAPTIONED = [{"media": POSTER, "caption": "see you there"}]
TWO_PARTS = [{"text": "see you there"}, {"media": POSTER}]


@pytest.mark.parametrize(
    ("parts", "least_us", "most_us", "sends"),
    [
        (CAPTIONED, 25 * MINUTE - 2 * SECOND, 26 * MINUTE, 1_000),
        (TWO_PARTS, 50 * MINUTE - 2 * SECOND, 52 * MINUTE, 2_000),
    ],
    ids=["a captioned image", "a text and an image"],
)
def test_a_thousand_groups_take_as_long_as_the_account_can_bear(
    tmp_path: Path, parts: list[dict[str, Any]], least_us: int, most_us: int, sends: int
) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established", latency=LATENCY)
        remind(world, 1_000, parts=parts)
        process = world.process(poll_us=MINUTE)
        await world.wait(HOUR + 2 * SECOND)
        (run,) = runs_of(world)
        assert run.total == 1_000, "everything waits, for everybody to see"
        await world.until(
            lambda: runs_of(world)[0].state is RunState.SUCCESS, 2 * HOUR, 10 * SECOND
        )
        await process.stop()
        calls = sorted(effect.called_at for effect in world.sends())
        assert len(calls) == sends
        assert least_us <= calls[-1] - NINE <= most_us
        uploads = [effect for effect in world.effects.all() if effect.kind == "upload"]
        assert len(uploads) == 1, "five megabytes once, and not five thousand"
        in_order = [effect.key for effect in world.sends() if effect.key.endswith("-1")]
        assert len(in_order) == sends - 1_000

    fresh(tmp_path).play(script)


def test_after_a_crash_the_limiter_and_the_handle_are_as_they_were(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established", latency=LATENCY)
        remind(world, 1_000, parts=CAPTIONED)
        first = world.process(poll_us=MINUTE)
        await world.wait(HOUR + 5 * MINUTE)
        await first.kill()
        second = world.process("two", poll_us=MINUTE)
        await world.until(
            lambda: runs_of(world)[0].state in (RunState.SUCCESS, RunState.PARTIAL),
            2 * HOUR,
            SECOND,
        )
        await second.stop()
        uploads = [effect for effect in world.effects.all() if effect.kind == "upload"]
        assert len(uploads) == 1
        calls = sorted(effect.called_at for effect in world.calls())
        for first_at, later_at in zip(calls, calls[41:], strict=False):
            assert later_at - first_at >= MINUTE, "never more than forty and a burst in a minute"

    fresh(tmp_path).play(script)


def test_after_a_rate_limit_the_account_falls_to_its_floor_and_climbs_back(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established", throttle_at=[50])
        remind(world, 1_000, parts=CAPTIONED)
        process = world.process(poll_us=MINUTE)
        await world.wait(3 * HOUR)
        await process.stop()
        calls = sorted(effect.called_at for effect in world.calls())
        (throttled_at,) = [
            effect.called_at for effect in world.calls() if effect.answer == "throttled"
        ]
        assert len(world.sends()) == 1_000

        def per_minute(after_us: int) -> int:
            begins_at = throttled_at + after_us
            return sum(begins_at <= at < begins_at + MINUTE for at in calls)

        assert per_minute(2 * MINUTE) <= 22, "its floor, and a little of the way back"
        assert 25 <= per_minute(15 * MINUTE) <= 36
        assert 39 <= per_minute(31 * MINUTE) <= 41

    fresh(tmp_path).play(script)


def test_firing_takes_a_handful_of_statements_and_none_per_target(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        world.account(preset="whatsapp-established")
        asked, now = {}, world.clock.now()
        for count in (10, 1_000):
            name, targets = f"to-{count}", groups(count)
            spec = ReminderSpec.from_mapping(
                {
                    "name": name,
                    "account": "ann",
                    "cron": "0 9 * * *",
                    "zone": ZONE,
                    "parts": [{"text": "hello"}],
                }
            )
            with world.store.write() as tx:
                reminders.create(tx, spec, targets, world.providers, now)
            with world.store.write() as tx:
                reminder = reminders.find(tx, name)
                with counted() as statements:
                    ring(tx, reminder, world.providers, NINE)
            asked[count] = len(statements)
        assert asked[1_000] == asked[10]
        assert asked[10] <= 30

    fresh(tmp_path).play(script)
