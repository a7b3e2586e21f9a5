"""Media: uploaded once per account, reused until the handle expires, and failing with manners."""

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.model import Part
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.states import AccountState, DeliveryState
from paceline.engine.ports import Driver, Media, Uploaded
from paceline.providers.sandbox import SandboxDriver
from paceline.providers.sandbox.effects import Effect
from tests.engine.scenes import called, delivery, finish, gaps, in_state, intents, until
from tests.engine.test_slow_commits import SlowRunner
from tests.engine.world import World


def picture(world: World, name: str = "a.png", content: bytes = b"picture") -> Part:
    now = world.clock.now()
    media = world.write(lambda tx: tx.media.put(name, "image/png", content, now))
    return Part("media", "for {{ target }}", media=media.id)


def uploads(world: World) -> list[Effect]:
    return [effect for effect in world.effects.all() if effect.kind == "upload"]


def test_a_picture_is_uploaded_once_per_account_and_not_per_target(world: World) -> None:
    async def script(world: World) -> None:
        world.account("ann", policy={"rate": "120/min", "concurrency": 3})
        world.account("bob", policy={"rate": "120/min"})
        world.campaign(20, on=("ann", "bob"), parts=(picture(world),))
        await finish(world)
        stored = world.read(lambda tx: tx.media.uploads())
        assert len(stored) == 2

    world.play(script)
    assert world.counts_at_end == {"sent": 20}
    assert sorted((e.account, e.accepted) for e in uploads(world)) == [("ann", True), ("bob", True)]
    handles = {(e.account, e.part.handle) for e in world.sends()}
    assert len(handles) == 2


def test_two_pictures_are_two_uploads_and_a_caption_is_no_part_of_its_own(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        parts = (picture(world), picture(world, "b.png", b"another"))
        world.campaign(3, parts=parts)
        await finish(world)

    world.play(script)
    assert len(uploads(world)) == 2
    assert len(world.sends()) == 6
    assert min(gaps(called(world))) == SECOND


def test_an_upload_survives_a_restart(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(6, parts=(picture(world),))
        process = world.process()
        await until(world, lambda: len(world.sends()) == 3)
        await process.stop()
        await finish(world, process=world.process("two"))

    world.play(script)
    assert len(uploads(world)) == 1
    assert world.counts_at_end == {"sent": 6}


def test_who_has_lost_the_lane_while_it_looked_uploads_nothing(world: World) -> None:
    """Its look is answered so late that another process has uploaded the file long ago."""

    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency="2s")
        world.campaign(3, parts=(picture(world),))
        slow = world.process()
        await until(world, lambda: world.read(lambda tx: tx.lanes.get(1).owner) is not None)
        slow.journal._reader = slow.journal._writer = SlowRunner(world, MINUTE)
        await world.wait(SECOND)
        other = world.process("two")
        await until(world, lambda: world.counts() == {"sent": 3})
        slow.journal._reader = slow.journal._writer = SlowRunner(world, 0)
        await world.wait(2 * MINUTE)
        await slow.stop()
        await other.stop()

    world.play(script)
    assert len(uploads(world)) == 1
    assert world.counts_at_end == {"sent": 3}


def test_an_expired_handle_is_replaced_before_it_lapses(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "20m"}, handle_expires="1h")
        world.campaign(8, parts=(picture(world),))
        await finish(world, every_us=10 * MINUTE, within_us=DAY, poll_us=HOUR)

    world.play(script)
    assert world.counts_at_end == {"sent": 8}
    assert len(uploads(world)) == 3
    assert all(effect.answer == "accepted" for effect in world.calls())


def test_a_handle_that_never_lives_long_is_still_used_more_than_once(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"spacing": "30s"}, handle_expires="4m")
        world.campaign(12, parts=(picture(world),))
        await finish(world, every_us=30 * SECOND, within_us=HOUR, poll_us=HOUR)

    world.play(script)
    assert world.counts_at_end == {"sent": 12}
    assert len(uploads(world)) == 2


def test_a_failed_upload_is_tried_again_by_the_ladder_and_costs_nothing(world: World) -> None:
    async def script(world: World) -> None:
        world.account(
            policy={"rate": "60/min", "daily": {"message": 2}, "retry": "5s,10s"},
            upload_failure_at=[1],
        )
        world.campaign(2, parts=(picture(world),))
        await finish(world)
        # Neither a token, nor a slot, nor an attempt: nothing had been intended yet.
        assert [row.attempt for row in intents(world)] == [1, 1]

    world.play(script)
    assert world.counts_at_end == {"sent": 2}
    assert [effect.accepted for effect in uploads(world)] == [False, True]
    assert called(world)[0] >= uploads(world)[0].at + 5 * SECOND


def test_uploads_that_keep_failing_fail_the_deliveries_without_storming_the_provider(
    world: World,
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"retry": "5s,10s"}, upload_failure_rate=1)
        world.campaign(30, parts=(picture(world),))
        await finish(world)
        reasons = {row.reason for row in in_state(world, DeliveryState.FAILED)}
        assert reasons == {"the upload failed (after 2 retries)"}

    world.play(script)
    assert world.counts_at_end == {"failed": 30}
    assert world.calls() == []
    # One upload per rung of the ladder for all of them, not three for each.
    assert len(uploads(world)) == 3


def test_a_failed_upload_does_not_hold_up_a_campaign_without_media(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, upload_failure_at=[1, 2])
        world.campaign(3, parts=(picture(world),))
        world.campaign(3, name="plain")
        process = world.process()
        await until(world, lambda: world.state("plain") == "finished")
        assert world.clock.now() - world.start_at < 10 * SECOND
        await finish(world, process=process)

    world.play(script)
    assert world.counts_at_end == {"sent": 3}


def test_a_file_the_provider_will_never_take_fails_its_deliveries_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    async def refuse(self: Driver, media: Media, content: bytes) -> Uploaded | Outcome:
        tried.append(media.id)
        return Outcome(OutcomeKind.REJECTED, "the file is too large")

    monkeypatch.setattr(SandboxDriver, "upload", refuse)

    async def script(world: World) -> None:
        world.account()
        world.campaign(10, parts=(picture(world),))
        await finish(world)
        found = delivery(world, "spring-0000")
        assert (found.state, found.attempts) == (DeliveryState.FAILED, 0)
        assert found.reason == "the file is too large"

    world.play(script)
    assert world.counts_at_end == {"failed": 10}
    assert len(tried) == 1


def test_credentials_refused_at_the_upload_suspend_the_account(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(self: Driver, media: Media, content: bytes) -> Uploaded | Outcome:
        return Outcome(OutcomeKind.UNAUTHORISED, "the credentials are refused")

    monkeypatch.setattr(SandboxDriver, "upload", refuse)

    async def script(world: World) -> None:
        world.account()
        world.campaign(2, parts=(picture(world),))
        process = world.process()
        await until(world, lambda: world.account_now().state is AccountState.SUSPENDED)
        assert world.account_now().state_reason == "the credentials are refused"
        await world.wait(10 * SECOND)
        assert world.counts() == {"ready": 2}
        await process.stop()

    world.play(script)
    assert world.calls() == []


def test_an_upload_that_is_throttled_holds_the_account_as_asked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = SandboxDriver.upload
    answers = iter([Outcome(OutcomeKind.THROTTLED, "too fast", retry_after_us=40 * SECOND)])

    async def refuse_once(self: SandboxDriver, media: Media, content: bytes) -> Uploaded | Outcome:
        refusal = next(answers, None)
        return refusal if refusal is not None else await upload(self, media, content)

    monkeypatch.setattr(SandboxDriver, "upload", refuse_once)

    async def script(world: World) -> None:
        world.account()
        world.campaign(2, parts=(picture(world),))
        await finish(world)

    world.play(script)
    assert world.counts_at_end == {"sent": 2}
    assert called(world)[0] >= world.start_at + 40 * SECOND


def test_the_second_part_waits_for_its_upload_and_the_first_is_not_repeated(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"retry": "5s,10s"}, upload_failure_at=[1])
        world.campaign(1, parts=(Part("text", "first"), picture(world)))
        await finish(world)

    world.play(script)
    assert world.counts_at_end == {"sent": 1}
    assert [effect.key for effect in world.calls()] == ["test-1-0", "test-1-1"]
    assert gaps(called(world))[0] >= 5 * SECOND


def test_an_upload_that_hangs_is_given_up_and_tried_again(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"timeout": "5s", "retry": "3s"}, upload_latency="1m")
        world.campaign(1, parts=(picture(world),))
        await finish(world)
        assert delivery(world, "spring-0000").reason == "upload took too long (after 1 retry)"

    world.play(script)
    assert world.counts_at_end == {"failed": 1}
