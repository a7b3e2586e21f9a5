"""Alerts: raised with their cause, counted while open, gone when the cause is, told once."""

import asyncio
from typing import Any

import pytest

from paceline.core.errors import ConflictError, NotFoundError, StoreUnavailable
from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.states import AccountState
from paceline.engine import alerts
from paceline.engine.notice import text_of, title_of
from paceline.engine.ports import Alert, Journal, NewAlert, Told
from paceline.engine.teller import ABANDONED_US, AGAIN_US, RETRY_US, Teller
from tests.engine.scenes import finish, say, until
from tests.engine.world import Process, World

FAST = "10ms"


def opened(world: World) -> list[Alert]:
    return world.read(lambda tx: tx.alerts.list())


def ever(world: World) -> list[Alert]:
    return world.read(lambda tx: tx.alerts.list(with_cleared=True))


# ---------------------------------------------------------------------- what raises one


def test_the_breaker_tells_why_messages_failed_grouped_and_counted(world: World) -> None:
    async def script(world: World) -> None:
        world.account(
            policy={"rate": "120/min", "breaker": {"above": "20%"}, "bounce_pause": "90%"},
            reject_at=[3, 8],
            bounce_at=[5, 9, 12],
            latency=FAST,
        )
        world.campaign(40)
        process = world.process()
        await until(world, lambda: world.state() == "paused")
        (alert,) = opened(world)
        assert alert.kind == "campaign.breaker"
        assert alert.text == (
            "campaign spring was paused by its breaker on ann: error rate 5/20 is above 20%"
        )
        assert dict(alert.reasons) == {
            "the address does not exist": 3,
            "the message is refused": 2,
        }
        assert alert.reasons[0][1] == 3
        assert alerts.reasons_text(alert.reasons) == (
            "3 × the address does not exist, 2 × the message is refused"
        )
        assert (alert.count, alert.account_id, alert.run_id) == (1, 1, 1)
        say(world, "resume campaign")
        assert opened(world) == []
        await finish(world, process=process)
        assert [one.cleared_at is not None for one in ever(world)] == [True]

    world.play(script)


def test_only_the_failures_the_breaker_looked_at_are_told(world: World) -> None:
    async def script(world: World) -> None:
        breaker = {"above": "50%", "samples": 3, "window": 100}
        world.account(policy={"rate": "120/min", "breaker": breaker}, reject_at=[1, 2, 3])
        world.campaign(5)
        world.campaign(5, name="autumn", launch=False)
        process = world.process()
        await until(world, lambda: world.state() == "paused")
        say(world, "launch campaign", "autumn")
        await until(world, lambda: world.state("autumn") == "finished")
        (alert,) = opened(world)
        assert alert.reasons == (("the message is refused", 3),)
        say(world, "cancel campaign")
        assert opened(world) == []
        await process.stop()

    world.play(script)


def test_many_bounces_are_told_and_a_resume_ends_it(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "120/min"}, bounce_at=[2, 4], latency=FAST)
        world.campaign(25)
        process = world.process()
        await until(world, lambda: world.account_now().state is AccountState.PAUSED)
        (alert,) = opened(world)
        assert alert.kind == "account.bounces"
        assert alert.text == "account ann is paused: bounce rate 2/20 today is above 5%"
        assert alert.reasons == (("the address does not exist", 2),)
        say(world, "resume account")
        assert opened(world) == []
        await finish(world, process=process)

    world.play(script)


@pytest.mark.parametrize(
    ("settings", "kind", "state"),
    [
        ({"ban_after": 2}, "account.suspended", AccountState.SUSPENDED),
        ({"ban_after": 2, "ban_for": "1h"}, "account.cooling_down", AccountState.COOLING_DOWN),
        ({"unauthorised_after": 2}, "account.suspended", AccountState.SUSPENDED),
        ({"unauthorised": True}, "account.suspended", AccountState.SUSPENDED),
    ],
)
def test_an_account_out_of_service_is_told(
    world: World, settings: dict[str, Any], kind: str, state: AccountState
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, latency=FAST, **settings)
        world.campaign(5)
        process = world.process()
        await until(world, lambda: world.account_now().state is state)
        (alert,) = opened(world)
        assert (alert.kind, alert.count) == (kind, 1)
        assert alert.text.startswith(f"account ann is {state.replace('_', ' ')}: ")
        say(world, "remove account")
        assert opened(world) == []
        await process.stop()

    world.play(script)


def test_a_cool_down_that_is_over_is_no_alert_any_more(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"}, ban_after=3, ban_for="1h", latency=FAST)
        world.campaign(5)
        process = world.process(poll_us=MINUTE)
        await until(world, lambda: bool(opened(world)), SECOND)
        await finish(world, process=process, every_us=MINUTE, within_us=2 * HOUR)
        assert opened(world) == []
        assert len(ever(world)) == 1

    world.play(script)


def test_throttles_in_a_row_are_told_from_the_third_on_and_counted(world: World) -> None:
    async def script(world: World) -> None:
        world.account(
            policy={"rate": "60/min"},
            throttle_at=[2, 3, 4, 5, 7],
            retry_after="5s",
            latency=FAST,
        )
        world.campaign(4)
        process = world.process()
        await until(world, lambda: len(world.calls()) == 3)
        await world.wait(SECOND)
        assert opened(world) == []
        await finish(world, process=process)
        # Five and not six: what came in between has ended the row.
        (alert,) = opened(world)
        assert (alert.kind, alert.count) == ("account.throttled", 2)
        assert alert.text.startswith("account ann was held back 4 times in a row: ")

    world.play(script)


def test_what_is_paused_by_hand_is_no_alert(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        world.campaign(2)
        say(world, "pause account")
        say(world, "pause campaign")
        assert ever(world) == []

    world.play(script)


# ---------------------------------------------------------------------- by hand


def test_clearing_by_hand(world: World) -> None:
    async def script(world: World) -> None:
        now = world.clock.now()
        world.write(lambda tx: tx.alerts.put(NewAlert("k", "account.throttled", "x"), now))
        (alert,) = opened(world)
        assert world.write(lambda tx: alerts.clear(tx, alert.id, now)).text == "x"
        with pytest.raises(ConflictError, match="cleared already"):
            world.write(lambda tx: alerts.clear(tx, alert.id, now))
        with pytest.raises(NotFoundError, match="no alert 99"):
            world.write(lambda tx: alerts.clear(tx, 99, now))

    world.play(script)


# ---------------------------------------------------------------------- telling


class Phone:
    """A notifier that can be out of reach."""

    def __init__(self) -> None:
        self.rings: list[tuple[str, str]] = []
        self.reached = True
        self.others: list[Told] = []

    async def tell(self, title: str, text: str) -> list[Told]:
        self.rings.append((title, text))
        return [Told("phone://…", "" if self.reached else "switched off"), *self.others]


def teller_of(world: World, phone: Phone | None) -> tuple[Teller, Process]:
    process = world.process()
    return Teller(process.journal, world.clock, phone), process


def put(world: World, key: str = "campaign.breaker:1", **more: Any) -> None:
    now = world.clock.now()
    new = NewAlert(key, "campaign.breaker", "spring was paused", (("gone", 12),), **more)
    world.write(lambda tx: tx.alerts.put(new, now))


def test_an_alert_is_told_once_and_again_only_after_an_hour(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        phone = Phone()
        teller, process = teller_of(world, phone)
        assert await teller.look() == 0
        put(world)
        assert await teller.look() == 1
        title, text = phone.rings[0]
        assert title == "Paceline: campaign breaker"
        assert text.splitlines()[:2] == ["spring was paused", "Why: 12 × gone"]
        assert await teller.look() == 0
        await world.wait(MINUTE)
        put(world)
        assert await teller.look() == 0
        await world.wait(AGAIN_US)
        assert await teller.look() == 1
        assert "It has happened 2 times within 1m." in phone.rings[1][1]
        # Nothing has happened since: nobody is told that nothing has changed.
        await world.wait(2 * AGAIN_US)
        assert await teller.look() == 0
        await process.stop()

    world.play(script)


def test_one_process_of_a_fleet_tells(world: World) -> None:
    async def script(world: World) -> None:
        phone = Phone()
        first, process = teller_of(world, phone)
        second, _ = teller_of(world, phone)
        put(world)
        (alert,) = opened(world)
        now = world.clock.now()
        set_out = {"again_us": AGAIN_US, "abandoned_us": ABANDONED_US}
        assert world.write(lambda tx: tx.alerts.set_out([alert.id], now, **set_out)) == [alert]
        # Another has set out to tell. While it lives, nobody else does.
        assert await first.look() == await second.look() == 0
        await world.wait(ABANDONED_US - SECOND)
        assert await first.look() == 0
        # It was killed before it could say that it has told: somebody is told at least once.
        await world.wait(2 * SECOND)
        assert await first.look() + await second.look() == 1
        assert len(phone.rings) == 1
        await process.stop()

    world.play(script)


def test_what_cannot_be_told_is_tried_again_later(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        phone = Phone()
        phone.reached = False
        teller, process = teller_of(world, phone)
        put(world)
        put(world, key="other")
        assert await teller.look() == 0
        assert len(phone.rings) == 1, "a service that is away is not asked once per alert"
        assert await teller.look() == 0
        assert len(phone.rings) == 1
        phone.reached = True
        await world.wait(RETRY_US)
        assert await teller.look() == 2
        await process.stop()

    world.play(script)


def test_one_address_out_of_reach_does_not_repeat_it_to_the_others(world: World) -> None:
    async def script(world: World) -> None:
        phone = Phone()
        phone.others = [Told("mailto://…", "no such host")]
        teller, process = teller_of(world, phone)
        put(world)
        assert await teller.look() == 1
        await world.wait(10 * MINUTE)
        assert await teller.look() == 0
        await process.stop()

    world.play(script)


def test_what_happens_while_it_is_told_is_told_again(calm: None, world: World) -> None:
    class Slow(Phone):
        async def tell(self, title: str, text: str) -> list[Told]:
            await world.wait(SECOND)
            put(world)
            return await super().tell(title, text)

    async def script(world: World) -> None:
        teller, process = teller_of(world, Slow())
        put(world)
        assert await teller.look() == 1
        await world.wait(AGAIN_US)
        assert await teller.look() == 1
        await process.stop()

    world.play(script)


def test_a_cleared_alert_is_told_to_nobody_and_a_new_one_is_another(world: World) -> None:
    async def script(world: World) -> None:
        phone = Phone()
        teller, process = teller_of(world, phone)
        put(world, run_id=1)
        world.write(lambda tx: alerts.campaign_goes_on(tx, 1, world.clock.now()))
        assert await teller.look() == 0
        put(world, run_id=1)
        assert await teller.look() == 1
        assert [(one.id, one.count) for one in ever(world)] == [(2, 1), (1, 1)]
        await process.stop()

    world.play(script)


def test_an_account_that_is_not_throttled_any_more_needs_nobody(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        teller, process = teller_of(world, None)
        account, now = world.account(), world.clock.now()
        world.write(lambda tx: alerts.throttled_again(tx, account, 3, "too fast", now))
        put(world)
        assert await teller.look() == 2
        await world.wait(alerts.QUIET_US)
        await teller.look()
        assert [one.kind for one in opened(world)] == ["campaign.breaker"]
        await process.stop()

    world.play(script)


class _Away:
    """A journal whose store is away, or worse, until somebody mends it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.write = journal.write
        self.submit = journal.submit
        self.asked = 0
        self.error: Exception | None = StoreUnavailable("away")

    async def read(self, work: Any) -> Any:
        self.asked += 1
        if self.error is not None:
            error, self.error = self.error, ValueError("a defect")
            raise error
        return await self._journal.read(work)


def test_the_teller_runs_until_told_to_stop_and_survives_a_lost_store(world: World) -> None:
    async def script(world: World) -> None:
        phone, process = Phone(), world.process()
        journal = _Away(process.journal)
        teller = Teller(journal, world.clock, phone)
        running = asyncio.ensure_future(teller.run())
        put(world)
        await world.wait(12 * SECOND)
        assert (journal.asked > 1, phone.rings) == (True, [])
        journal.error = None
        await until(world, lambda: len(phone.rings) == 1, within_us=MINUTE)
        teller.stop()
        await running
        await process.stop()

    world.play(script)


def test_words_for_a_phone() -> None:
    alert = Alert(7, "k", "account.cooling_down", "ann rests", (), 1, 0, 0, None, None)
    assert title_of(alert) == "Paceline: account cooling down"
    assert text_of(alert).splitlines() == [
        "ann rests",
        "See: paceline alerts; when it is seen to: paceline alert clear 7",
    ]
