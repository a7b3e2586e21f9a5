"""Notices: one for each alert, and one for all of a kind when trouble comes in numbers."""

import pytest

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.engine import alerts
from paceline.engine.notice import notice_of_many, spans
from paceline.engine.ports import Alert, NewAlert, Told
from paceline.engine.teller import ABANDONED_US, GATHER_US, LOOK_EVERY_US, RETRY_US, Teller
from tests.engine.world import World


class Phone:
    """A notifier that can be out of reach."""

    def __init__(self) -> None:
        self.rings: list[tuple[str, str]] = []
        self.reached = True

    async def tell(self, title: str, text: str) -> list[Told]:
        self.rings.append((title, text))
        return [Told("phone://…", "" if self.reached else "switched off")]


def trip(world: World, account_id: int, run_id: int | None = None, key: str = "") -> None:
    """A breaker trips on an account."""
    now = world.clock.now()
    new = NewAlert(
        f"campaign.breaker:{key or account_id}",
        alerts.BREAKER,
        f"campaign spring was paused by its breaker on account {account_id}: error rate 5/20",
        (("gone", 3), (f"said {account_id % 2}", 1)),
        account_id=account_id,
        run_id=run_id,
    )
    world.write(lambda tx: tx.alerts.put(new, now))


def suspend(world: World, account_id: int, reason: str = "banned") -> None:
    now, text = world.clock.now(), f"account no. {account_id} is suspended: {reason}"
    new = NewAlert(f"s:{account_id}", "account.suspended", text, account_id=account_id)
    world.write(lambda tx: tx.alerts.put(new, now))


def untold(world: World) -> list[Alert]:
    everything = world.read(lambda tx: tx.alerts.list(with_cleared=True, limit=5_000))
    return [alert for alert in everything if alert.told_at is None]


def test_an_outage_of_a_thousand_accounts_rings_a_few_times(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        phone, process = Phone(), world.process()
        first = Teller(process.journal, world.clock, phone)
        second = Teller(process.journal, world.clock, phone)
        for name in ("ann", "bob", "eve"):
            world.account(name)
        told = 0
        for number in range(1, 1_001):
            trip(world, 1 + number % 3, key=str(number))
            if number % 84 == 0:  # a thousand in a minute, looked at every five seconds
                told += await first.look() + await second.look()
                await world.wait(LOOK_EVERY_US)
        await world.wait(GATHER_US)
        told += await second.look()
        assert (told, untold(world)) == (1_000, [])
        assert 2 <= len(phone.rings) <= 3, "each process and each look would else ring anew"
        await process.stop()

    world.play(script)


def test_the_words_for_many(world: World) -> None:
    async def script(world: World) -> None:
        for name in ("ann", "bob", "eve", "dan", "joe"):
            world.account(name)
        world.campaign(1)
        world.campaign(1, name="autumn")
        for account_id in range(1, 6):
            trip(world, account_id, run_id=1 + account_id % 2)
        suspend(world, 1)
        suspend(world, 2, "the credentials are refused")
        suspend(world, 3)
        found = world.read(lambda tx: sorted(tx.alerts.list(), key=lambda alert: alert.id))
        title, text = world.read(lambda tx: notice_of_many(tx, found[:5]))
        assert title == "Paceline: campaign breaker (5 alerts)"
        assert text.splitlines() == [
            "breaker open on 5 accounts: ann, bob, eve and 2 more",
            "2 campaigns paused: autumn, spring",
            "Why: 15 × gone, 3 × said 1, 2 × said 0",
            "Alerts 1-5. See: paceline alerts; when one is seen to: paceline alert clear ID",
        ]
        title, text = world.read(lambda tx: notice_of_many(tx, found[5:]))
        assert title == "Paceline: account suspended (3 alerts)"
        assert text.splitlines() == [
            "3 accounts suspended: ann, bob, eve",
            "Why: 2 × banned, 1 × the credentials are refused",
            "Alerts 6-8. See: paceline alerts; when one is seen to: paceline alert clear ID",
        ]

    world.play(script)


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        (alerts.SIGNALLED, "campaigns paused by a signal on 2 accounts: ann, bob"),
        (alerts.BOUNCES, "2 accounts paused for too many bounces: ann, bob"),
        (alerts.THROTTLED, "2 accounts held back time and again: ann, bob"),
        ("account.cooling_down", "2 accounts cooling down: ann, bob"),
    ],
)
def test_every_kind_has_its_words(world: World, kind: str, told: str) -> None:
    async def script(world: World) -> None:
        world.account("ann")
        world.account("bob")
        many = [Alert(n, str(n), kind, "it: so", (), n, 0, 0, None, None, n) for n in (1, 2)]
        notice = world.read(lambda tx: notice_of_many(tx, many))
        assert notice.text.splitlines()[:3] == [told, "Why: 2 × so", "It has happened 3 times."]

    world.play(script)


def test_what_is_about_no_account_is_told_one_by_one(world: World) -> None:
    async def script(world: World) -> None:
        many = [
            Alert(n, str(n), alerts.MISSED, f"reminder r{n}: Missed.", (), 1, 0, 0, None, None)
            for n in range(1, 6)
        ]
        title, text = world.read(lambda tx: notice_of_many(tx, many))
        assert title == "Paceline: reminder missed (5 alerts)"
        assert text.splitlines() == [
            "5 reminders missed:",
            *(f"reminder r{n}: Missed." for n in (1, 2, 3)),
            "and 2 more",
            "Alerts 1-5. See: paceline alerts; when one is seen to: paceline alert clear ID",
        ]
        _, text = world.read(lambda tx: notice_of_many(tx, many[:2]))
        assert "more" not in text

    world.play(script)


def test_one_at_a_time_is_told_at_once_and_as_ever(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        phone, process = Phone(), world.process()
        teller = Teller(process.journal, world.clock, phone)
        world.account()
        trip(world, 1)
        assert await teller.look() == 1
        suspend(world, 1)
        # Another kind does not wait for this one.
        assert await teller.look() == 1
        await world.wait(GATHER_US)
        trip(world, 2)
        assert await teller.look() == 1
        assert [title for title, _ in phone.rings] == [
            "Paceline: campaign breaker",
            "Paceline: account suspended",
            "Paceline: campaign breaker",
        ]
        assert phone.rings[2][1].endswith("when it is seen to: paceline alert clear 3")
        await process.stop()

    world.play(script)


def test_what_is_gathered_is_told_after_a_minute_even_if_it_was_only_one(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        phone, process = Phone(), world.process()
        teller = Teller(process.journal, world.clock, phone)
        trip(world, 1)
        assert await teller.look() == 1
        await world.wait(SECOND)
        trip(world, 2)
        assert await teller.look() == 0
        await world.wait(GATHER_US - 2 * SECOND)
        assert await teller.look() == 0
        await world.wait(SECOND)
        assert await teller.look() == 1
        assert untold(world) == []
        await process.stop()

    world.play(script)


def test_the_log_alone_is_told_each_at_once(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        process = world.process()
        teller = Teller(process.journal, world.clock, None)
        for account_id in (1, 2):
            trip(world, account_id)
            assert await teller.look() == 1
        await process.stop()

    world.play(script)


def test_a_gathered_notice_that_reaches_nobody_is_kept_whole(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        phone, process = Phone(), world.process()
        teller = Teller(process.journal, world.clock, phone)
        world.account("ann")
        world.account("bob")
        phone.reached = False
        trip(world, 1)
        trip(world, 2)
        assert await teller.look() == 0
        assert len(untold(world)) == 2
        phone.reached = True
        await world.wait(RETRY_US)
        assert await teller.look() == 2
        assert phone.rings[0] == phone.rings[1]
        await process.stop()

    world.play(script)


def test_of_a_process_that_was_killed_while_it_told_many_none_is_lost(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        phone, process = Phone(), world.process()
        teller = Teller(process.journal, world.clock, phone)
        for account_id in (1, 2, 3):
            world.account(f"a{account_id}")
            trip(world, account_id)
        now = world.clock.now()
        asked = {"again_us": MINUTE, "abandoned_us": ABANDONED_US}
        world.write(lambda tx: tx.alerts.set_out([1, 2, 3], now, **asked))
        await world.wait(ABANDONED_US - SECOND)
        assert await teller.look() == 0
        await world.wait(SECOND)
        assert await teller.look() == 3
        await process.stop()

    world.play(script)


def test_a_clock_that_was_ahead_keeps_nobody_waiting(calm: None, world: World) -> None:
    async def script(world: World) -> None:
        phone, process = Phone(), world.process()
        teller = Teller(process.journal, world.clock, phone)
        trip(world, 1)
        ahead = world.clock.now() + 90 * MINUTE
        world.write(lambda tx: tx.alerts.set_out([1], ahead, again_us=HOUR, abandoned_us=MINUTE))
        world.write(lambda tx: tx.alerts.told([1], ahead))
        trip(world, 2)
        assert await teller.look() == 1
        await process.stop()

    world.play(script)


def test_numbers_that_follow_each_other_are_one() -> None:
    assert spans([3]) == "3"
    assert spans([9, 3, 8, 7, 12]) == "3, 7-9, 12"
    assert spans([]) == ""
