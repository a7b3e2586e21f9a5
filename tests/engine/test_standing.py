"""What a provider reports of an account as a whole is acted upon, once and in its right order."""

from __future__ import annotations

from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.engine.commands import accounts, returns
from paceline.engine.commands.standing import REPORTED
from paceline.engine.ports import AccountNews, Tx
from tests.engine.scenes import events, finish, to, until
from tests.engine.world import World


def hear(world: World, news: AccountNews, name: str = "ann") -> None:
    def work(tx: Tx) -> None:
        returns.prepare(tx, [news])
        account = tx.accounts.find(name)
        assert account is not None
        returns.take_in(tx, account, [news], world.clock.now())

    assert returns.passes_the_fence([news])
    world.write(work)


def alerts(world: World) -> list[str]:
    return [one.text for one in world.read(lambda tx: tx.alerts.list())]


def test_an_account_that_is_refused_is_suspended_before_the_next_message(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        world.campaign(targets=to(*"abcdef"))
        process = world.process(poll_us=SECOND)
        await until(world, lambda: len(world.calls()) == 2)
        hear(world, AccountNews("refused", "logged out on the phone", 0))
        account = world.account_now()
        assert (account.state, account.state_reason) == (
            "suspended",
            f"{REPORTED}logged out on the phone",
        )
        assert alerts(world) == [f"account ann is suspended: {REPORTED}logged out on the phone"]
        assert len(events(world, "account.suspended")) == 1
        known = len(world.calls())
        await world.wait(MINUTE)
        assert len(world.calls()) <= known + 1, "one may have been on its way"
        hear(world, AccountNews("ready", "", 0))
        assert world.account_now().state == "active" and not alerts(world)
        await finish(world, process=process)

    world.play(script)
    assert world.counts_at_end == {"sent": 6}


def test_a_ban_with_an_end_cools_it_down_until_then(world: World) -> None:
    async def script(world: World) -> None:
        world.account(policy={"rate": "60/min"})
        until_at = world.clock.now() + HOUR
        hear(world, AccountNews("refused", "banned", 0, until_at))
        account = world.account_now()
        assert (account.state, account.state_until_at) == ("cooling_down", until_at)
        hear(world, AccountNews("refused", "banned", 0, until_at))
        assert len(events(world, "account.cooling_down")) == 1, "told twice, it is one ban"
        world.campaign(targets=to("a"))
        process = world.process(poll_us=SECOND)
        await world.wait(HOUR - MINUTE)
        assert not world.calls()
        await finish(world, process=process)
        assert not alerts(world)

    world.play(script)
    assert world.counts_at_end == {"sent": 1}


def test_that_it_is_offline_or_ready_changes_nothing_by_itself(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        for news in (AccountNews("offline", "away", 0), AccountNews("ready", "", 0)):
            hear(world, news)
            assert world.account_now().state == "active" and not alerts(world)

    world.play(script)


def test_what_a_person_or_a_defect_has_stopped_no_report_lets_go_on(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        now = world.clock.now()
        world.write(lambda tx: accounts.pause(tx, "ann", now))
        hear(world, AccountNews("ready", "", 0))
        assert world.account_now().state == "paused"
        world.write(lambda tx: tx.accounts.move(1, "suspend", reason="Too many worker crashes"))
        hear(world, AccountNews("ready", "", 0))
        assert world.account_now().state == "suspended"

    world.play(script)


def test_reports_overtake_each_other(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        now = world.clock.now()
        hear(world, AccountNews("ready", "", now - SECOND))
        hear(world, AccountNews("refused", "logged out", now - MINUTE))
        assert world.account_now().state == "active", "that was before"
        late = AccountNews("refused", "logged out", now)
        hear(world, late)
        assert world.account_now().state == "suspended"
        world.write(lambda tx: accounts.resume(tx, "ann", now))
        hear(world, late)
        assert world.account_now().state == "active", "a person has seen to that one"

    world.play(script)


def test_an_account_that_was_removed_is_nobody_s_any_more(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        now, gone = world.clock.now(), world.account_now()
        world.write(lambda tx: accounts.remove(tx, "ann", now))
        news = [AccountNews("refused", "logged out", 0)]
        world.write(lambda tx: (returns.prepare(tx, news), returns.take_in(tx, gone, news, now)))
        assert not alerts(world)

    world.play(script)
