"""The reasons of an alert are those of the errors that raised it."""

from paceline.core.states import AccountState
from paceline.engine.ports import Alert
from tests.engine.scenes import say, send_direct, until
from tests.engine.test_signals import set_signal
from tests.engine.world import World


def opened(world: World) -> list[Alert]:
    return world.read(lambda tx: tx.alerts.list())


def test_after_a_resume_the_reasons_begin_with_a_clean_sheet(world: World) -> None:
    async def script(world: World) -> None:
        breaker = {"above": "20%", "samples": 5}
        world.account(policy={"rate": "120/min", "breaker": breaker}, reject_rate=1, latency="10ms")
        world.campaign(20)
        process = world.process()
        for _ in range(2):
            await until(world, lambda: world.state() == "paused")
            (alert,) = opened(world)
            assert "error rate 5/5" in alert.text
            assert dict(alert.reasons) == {"the message is refused": 5}
            say(world, "resume campaign")
        await process.stop()

    world.play(script)


def test_as_many_reasons_are_told_as_errors_were_counted(world: World) -> None:
    """The campaign was let go on because of another account: this one counts on."""

    async def script(world: World) -> None:
        breaker = {"above": "60%", "samples": 4}
        fast, slow = ({"rate": rate, "breaker": breaker} for rate in ("120/min", "20/min"))
        world.account("ann", policy=fast, reject_rate=1, latency="10ms")
        world.account("bob", policy=slow, reject_rate=1, latency="10ms")
        world.campaign(40, on=("ann", "bob"))
        process = world.process()
        await until(world, lambda: world.state() == "paused")
        assert "on ann: error rate 4/4" in opened(world)[0].text
        say(world, "pause account", "ann")
        say(world, "resume campaign")
        await until(world, lambda: world.state() == "paused")
        (alert,) = opened(world)
        assert "on bob: error rate 4/4" in alert.text
        assert alert.reasons == (("the message is refused", 4),)
        await process.stop()

    world.play(script)


def test_each_alert_of_one_answer_has_its_own_reason(world: World) -> None:
    async def script(world: World) -> None:
        set_signal(world, "* rejected", scope="account", for_="until resumed")
        breaker = {"above": "20%", "samples": 1}
        world.account(policy={"rate": "60/min", "breaker": breaker}, reject_at=[1], latency="10ms")
        world.campaign(4)
        process = world.process()
        await until(world, lambda: world.state() == "paused")
        told = {alert.kind: alert.text for alert in opened(world)}
        assert told == {
            "account.suspended": "account ann is suspended: the message is refused",
            "campaign.breaker": (
                "campaign spring was paused by its breaker on ann: error rate 1/1 is above 20%"
            ),
        }
        await process.stop()

    world.play(script)


def test_a_signal_that_stops_the_account_of_single_messages_is_no_bounce(world: World) -> None:
    async def script(world: World) -> None:
        set_signal(world, "* rejected", scope="campaign", for_="until resumed")
        world.account(policy={"rate": "60/min"}, reject_at=[1], latency="10ms")
        send_direct(world, "eve")
        process = world.process()
        await until(world, lambda: world.account_now().state is AccountState.PAUSED)
        (alert,) = opened(world)
        assert (alert.kind, alert.reasons) == ("account.paused", ())
        assert alert.text == "account ann is paused: the message is refused"
        say(world, "resume account")
        assert opened(world) == []
        await process.stop()

    world.play(script)
