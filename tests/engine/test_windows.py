"""Windows and expiry: what is held until they open, and what becomes of the rest afterwards."""

import pytest

from paceline.core.hours import Hours
from paceline.core.instants import DAY, HOUR, MINUTE, SECOND, Instant, parse_instant
from paceline.core.model import Content, Part, Target
from paceline.core.states import AccountState, DeliveryState
from paceline.engine.campaign_spec import CampaignSpec, Timing
from tests.engine.scenes import (
    TWO_PARTS,
    Begins,
    called,
    deliveries,
    delivery,
    finish,
    in_state,
    say,
    the_run,
    until,
)
from tests.engine.world import World

NOON = parse_instant("2026-03-02T12:00:00Z")


def window(text: str) -> Hours:
    return Hours.parse(text, default_zone="UTC")


# ---------------------------------------------------------------------- closing time


def test_what_the_window_leaves_over_is_skipped_and_the_run_is_partial(world_at: Begins) -> None:
    world = world_at(NOON - 10 * SECOND)

    async def script(world: World) -> None:
        world.account(policy={"rate": "30/min"})
        world.campaign(20, window=window("09:00-12:00"), at_close="skip")
        await finish(world)
        left = in_state(world, DeliveryState.SKIPPED)
        assert {row.reason for row in left} == {"delivery window closed"}
        assert the_run(world).state == "partial"
        assert the_run(world).summary == "5 of 20 delivered (15 skipped)"

    world.play(script)
    assert world.counts_at_end == {"sent": 5, "skipped": 15}
    assert max(called(world)) < NOON


@pytest.mark.parametrize("concurrency", [1, 3])
def test_what_has_started_before_closing_time_finishes_and_counts_as_sent(
    world_at: Begins, concurrency: int
) -> None:
    world = world_at(NOON - 10 * SECOND)

    async def script(world: World) -> None:
        world.account(
            policy={"rate": "60/min", "concurrency": concurrency, "part_gap": "1s"},
            latency="2500ms",
        )
        world.campaign(8, parts=TWO_PARTS, window=window("09:00-12:00"), at_close="skip")
        await finish(world)
        for row in deliveries(world):
            keys = {e.key for e in world.sends() if e.target == row.target}
            assert len(keys) == (2 if row.state is DeliveryState.SENT else 0)

    world.play(script)
    assert set(world.counts_at_end) == {"sent", "skipped"}
    first_parts = [e.called_at for e in world.calls() if e.key.endswith("-0")]
    assert max(first_parts) < NOON < max(called(world))


def test_fired_after_its_window_closed_nothing_is_sent_and_the_run_failed(world_at: Begins) -> None:
    world = world_at(NOON + HOUR)

    async def script(world: World) -> None:
        world.account()
        world.campaign(3, window=window("09:00-12:00"), at_close="skip")
        await finish(world)
        assert the_run(world).state == "failed"
        assert {row.reason for row in deliveries(world)} == {"delivery window closed"}

    world.play(script)
    assert world.counts_at_end == {"skipped": 3}
    assert world.calls() == []


def test_a_day_on_which_the_window_never_opens_fails_at_once(world_at: Begins) -> None:
    world = world_at(parse_instant("2026-03-01T10:00:00Z"))  # a Sunday

    async def script(world: World) -> None:
        world.account()
        world.campaign(2, window=window("Mon-Fri 09:00-12:00"), at_close="skip")
        await finish(world)

    world.play(script)
    assert world.counts_at_end == {"skipped": 2}


def test_the_window_is_that_of_the_day_on_which_the_campaign_is_launched(
    calm: None, world_at: Begins
) -> None:
    """A draft written yesterday is not a run that missed its window."""
    world = world_at(NOON + 2 * HOUR)

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(3, launch=False, window=window("09:00-12:00"), at_close="skip")
        await world.wait(20 * HOUR)
        say(world, "launch campaign")
        await finish(world)
        assert the_run(world).state == "success"

    world.play(script)
    assert world.counts_at_end == {"sent": 3}


def test_a_paused_account_does_not_keep_a_run_open_beyond_its_window(
    calm: None, world_at: Begins
) -> None:
    world = world_at(NOON - HOUR)

    async def script(world: World) -> None:
        world.account(policy={"rate": "1/min"})
        world.campaign(5, window=window("09:00-12:00"), at_close="skip")
        process = world.process(poll_us=MINUTE)
        await until(world, lambda: len(world.sends()) == 1)
        say(world, "pause account")
        await until(world, lambda: world.state() == "finished", MINUTE, 2 * HOUR)
        assert NOON <= world.clock.now() <= NOON + 2 * MINUTE
        assert world.account_now().state is AccountState.PAUSED
        await process.stop()

    world.play(script)
    assert world.counts_at_end == {"sent": 1, "skipped": 4}


def test_a_message_whose_second_part_comes_after_a_stop_and_the_closing_is_not_sent(
    world_at: Begins,
) -> None:
    world = world_at(NOON - 10 * SECOND)

    async def script(world: World) -> None:
        world.account(policy={"part_gap": "3s"})
        world.campaign(1, parts=TWO_PARTS, window=window("09:00-12:00"), at_close="skip")
        process = world.process()
        await until(world, lambda: len(world.sends()) == 1, SECOND // 10)
        say(world, "stop all")
        await world.wait(MINUTE)
        say(world, "go on")
        await finish(world, process=process)
        found = delivery(world, "spring-0000")
        assert (found.state, found.parts_done) == (DeliveryState.SKIPPED, 1)

    world.play(script)
    assert len(world.calls()) == 1


# ---------------------------------------------------------------------- going on the next day


def test_a_campaign_that_resumes_goes_on_the_next_morning(calm: None, world_at: Begins) -> None:
    world = world_at(NOON - 5 * MINUTE)

    async def script(world: World) -> None:
        world.account(policy={"spacing": "2m"})
        world.campaign(6, window=window("09:00-12:00"), at_close="resume")
        await finish(world, every_us=10 * MINUTE, within_us=2 * DAY, poll_us=HOUR)

    world.play(script)
    assert world.counts_at_end == {"sent": 6}
    today = [at for at in called(world) if at < NOON]
    tomorrow = [at for at in called(world) if at > NOON]
    assert (len(today), len(tomorrow)) == (3, 3)
    assert 0 <= tomorrow[0] - (NOON - 3 * HOUR + DAY) <= SECOND


def test_nothing_goes_before_the_window_opens(calm: None, world_at: Begins) -> None:
    world = world_at(NOON - 3 * HOUR - 10 * MINUTE)
    opens_at = NOON - 3 * HOUR

    async def script(world: World) -> None:
        account = world.account(policy={"rate": "60/min"})
        world.campaign(2, window=window("09:00-12:00"), at_close="skip")
        process = world.process(poll_us=HOUR)
        await world.wait(MINUTE)
        assert world.calls() == []
        assert world.read(lambda tx: tx.lanes.get(account.id)).wake_at == opens_at
        await finish(world, process=process, every_us=MINUTE, within_us=HOUR)

    world.play(script)
    assert opens_at <= called(world)[0] <= opens_at + SECOND


def test_the_window_closes_on_the_stroke_even_while_a_message_is_being_prepared(
    world_at: Begins,
) -> None:
    """Opening the account takes ten seconds; the window ends within them."""
    world = world_at(NOON - 5 * SECOND)

    async def script(world: World) -> None:
        world.account(latency="10s")
        world.campaign(2, window=window("09:00-12:00"), at_close="skip")
        await finish(world)

    world.play(script)
    assert world.counts_at_end == {"skipped": 2}
    assert world.calls() == []


def test_runs_whose_window_closes_first_go_first(world_at: Begins) -> None:
    world = world_at(NOON - MINUTE)

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(3, window=window("09:00-18:00"), at_close="skip")
        world.campaign(3, name="hurry", window=window("09:00-12:00"), at_close="skip")
        await finish(world, "spring", "hurry")

    world.play(script)
    order = [effect.target.split("-")[0] for effect in world.sends()]
    assert order == ["hurry"] * 3 + ["spring"] * 3


@pytest.mark.parametrize(
    ("text", "at", "opens", "closes"),
    [
        ("09:00-12:00", "10:00", "09:00", "12:00"),
        ("09:00-12:00", "08:00", "09:00", "12:00"),
        ("09:00-12:00", "13:00", "09:00", "12:00"),
        ("09:00-12:00 14:00-18:00", "12:30", "09:00", "18:00"),
        ("18:00-24:00", "20:00", "18:00", "24:00"),
        ("00:00-24:00", "20:00", "00:00", "24:00"),
    ],
)
def test_a_window_that_skips_is_one_day_long(text: str, at: str, opens: str, closes: str) -> None:
    def clock(time: str) -> Instant:
        hour, minute = time.split(":")
        return parse_instant("2026-03-02T00:00:00Z") + int(hour) * HOUR + int(minute) * MINUTE

    timing = Timing(window(text), "skip")
    assert timing.window_on(clock(at)) == (clock(opens), clock(closes))


def test_a_run_that_resumes_has_no_last_closing() -> None:
    assert Timing(window("09:00-12:00"), "resume").window_on(NOON) == (None, None)


def test_a_timing_is_read_back_as_it_was_stored() -> None:
    hours = window("Mon-Fri 09:00-12:00 Europe/Paris")
    spec = CampaignSpec(
        "x",
        ("ann",),
        Content((Part("text", "hello"),)),
        window=hours,
        at_close="skip",
        start_at=NOON,
        expire_after_us=90 * MINUTE,
    )
    assert Timing.stored(spec.settings()) == Timing(hours, "skip", NOON, 90 * MINUTE)
    assert Timing.stored({}) == Timing()


# ---------------------------------------------------------------------- start and expiry


def test_a_start_in_the_future_is_waited_for(calm: None, world: World) -> None:
    start_at = world.start_at + 2 * HOUR

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(2, start_at=start_at)
        await finish(world, every_us=MINUTE, within_us=4 * HOUR, poll_us=HOUR)

    world.play(script)
    assert start_at <= called(world)[0] <= start_at + SECOND


def test_what_comes_too_late_is_not_sent_at_all(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "6/min"})
        world.campaign(10, expire_after_us=25 * SECOND)
        await finish(world)
        late = in_state(world, DeliveryState.SKIPPED)
        assert {row.reason for row in late} == {"expired at 2026-03-02 09:00 UTC"}
        assert the_run(world).state == "partial"

    world.play(script)
    assert world.counts_at_end == {"sent": 3, "skipped": 7}


def test_expiry_counts_from_the_launch_or_the_start_not_from_the_draft(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account()
        world.campaign(2, launch=False, expire_after_us=HOUR)
        await world.wait(2 * DAY)
        say(world, "launch campaign")
        await finish(world)

    world.play(script)
    assert world.counts_at_end == {"sent": 2}


def test_a_delivery_waiting_for_tomorrow_is_given_up_when_it_expires_tonight(
    calm: None, world: World
) -> None:
    """A raised cap may yet save it, so it is given up when its time is over and not before."""

    async def script(world: World) -> None:
        world.account(policy={"daily": {"message": 1}})
        world.campaign(targets=[Target("eve"), Target("adam")], expire_after_us=2 * HOUR)
        process = world.process(poll_us=HOUR)
        await world.wait(HOUR)
        assert delivery(world, "adam").state is DeliveryState.READY
        await finish(world, process=process, every_us=MINUTE, within_us=2 * HOUR)
        assert world.clock.now() - world.start_at < 2 * HOUR + 2 * MINUTE

    world.play(script)
    assert world.counts_at_end == {"sent": 1, "skipped": 1}


def test_what_may_go_before_its_window_opens_still_ends_with_it(world: World) -> None:
    """The window opens at ten and closes at ten past; it is nine when it is launched."""
    window = Hours.parse("Mon-Sun 10:00-10:10 UTC")

    async def script(world: World) -> None:
        world.account(policy={"rate": "1/min"})
        world.campaign(200, window=window, at_close="skip", before_open="send")
        process = world.process()
        await world.wait(5 * MINUTE)
        assert world.counts()["sent"] >= 5
        await world.until_finished(within_us=3 * HOUR)
        await process.stop()

    world.play(script)
    closes_at = parse_instant("2026-03-02T10:10:00Z")
    assert len(world.sends()) in (70, 71)
    assert max(effect.called_at for effect in world.sends()) < closes_at
    assert world.counts_at_end["skipped"] == 200 - len(world.sends())
