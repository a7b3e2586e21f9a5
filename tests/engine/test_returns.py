"""What comes back: letters that bounce after they were accepted, complaints, and answers."""

from collections.abc import Sequence
from typing import Any

import pytest

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.model import Content, Part, Step, Target
from paceline.core.states import DeliveryState
from paceline.engine import queries
from paceline.engine.commands import erasing, returns
from paceline.engine.naming import seal_keys
from paceline.engine.ports import Inbound, News, Receipt, Returned, Tx
from tests.engine.scenes import delivery, events, finish, until
from tests.engine.world import World

PEOPLE = [Target(f"p{number}@example.com", {"name": f"N{number}"}) for number in range(30)]


def key_of(world: World, target: str) -> str:
    (key,) = {effect.key for effect in world.sends() if effect.target == target}
    return key


def returned(kind: Any, key: str | None, reason: str = "550 5.1.1 no such user") -> Returned:
    return Returned(kind, "", reason, 0, "5.1.1", key)


def take(world: World, *news: News, account: str = "ann") -> returns.TakenIn:
    def work(tx: Tx) -> returns.TakenIn:
        returns.prepare(tx, news)
        found = tx.accounts.find(account)
        assert found is not None
        return returns.take_in(tx, found, news, world.clock.now())

    return world.write(work)


async def campaign(
    world: World, count: int = 3, reject_at: Sequence[int] = (), **policy: Any
) -> None:
    world.account(policy=policy, reject_at=reject_at)
    world.campaign(targets=PEOPLE[:count], parts=(Part("text", "Hello {{ name }}"),))
    await finish(world)


def test_a_letter_that_comes_back_is_bounced_and_its_address_never_written_to_again(
    world: World,
) -> None:
    async def script(world: World) -> None:
        await campaign(world)
        anna = PEOPLE[0].address
        words = f"550 5.1.1 <{anna}> N0 is unknown here"
        news = returned("bounced", key_of(world, anna), words)
        assert take(world, news) == (1, 0, 0)
        assert take(world, news) == (0, 0, 0), "told twice, it is known already"
        found = delivery(world, anna)
        assert found.state is DeliveryState.BOUNCED and found.reason.startswith("came back: 550")
        assert anna not in found.reason
        entry = world.read(lambda tx: tx.suppressions.find(anna))
        assert entry is not None and (entry.source, anna in entry.reason) == ("bounce", False)
        told = events(world, "delivery.returned")
        assert [one.data for one in told] == [{"delivery": found.id, "suppressed": True}]
        world.campaign(targets=PEOPLE[:3], name="autumn")
        await finish(world, "autumn")
        assert world.counts("autumn") == {"sent": 2, "skipped": 1}

    world.play(script)


def test_an_address_that_does_not_exist_is_suppressed_whatever_became_of_the_letter(
    world: World,
) -> None:
    async def script(world: World) -> None:
        await campaign(world, reject_at=[1])
        anna = PEOPLE[0].address
        assert delivery(world, anna).state is DeliveryState.FAILED
        instance = world.read(lambda tx: tx.settings.get("instance"))
        news = returned("bounced", f"{instance}-{delivery(world, anna).id}-0")
        assert take(world, news).bounced == 0
        assert world.read(lambda tx: tx.suppressions.has(anna))
        assert delivery(world, anna).state is DeliveryState.FAILED

    world.play(script)


def test_a_letter_that_is_being_sent_comes_back_too_early_to_be_judged(world: World) -> None:
    async def script(world: World) -> None:
        account = world.account(latency="12s")
        world.campaign(targets=PEOPLE[:1])
        process = world.process()
        await until(world, lambda: world.counts() == {"sending": 1})
        back = returned("failed", f"{world.read(lambda tx: tx.settings.get('instance'))}-1-0")

        def early(*news: News, after_us: int = 0) -> bool:
            now = world.clock.now() + after_us
            return world.read(lambda tx: returns.come_early(tx, account, news, now))

        assert early(answer(world), back) and not early(back._replace(kind="delayed"))
        assert not early(back._replace(key="other-1-0"))
        assert not early(back, after_us=returns.EARLY_FOR_US), "one that is stuck is not waited for"
        await finish(world, process=process)
        assert not early(back) and take(world, back).bounced == 1

    world.play(script)


def test_what_is_refused_for_another_reason_bounces_and_suppresses_nobody(world: World) -> None:
    async def script(world: World) -> None:
        await campaign(world)
        anna = PEOPLE[0].address
        assert take(world, returned("failed", key_of(world, anna), "552 5.2.2 full")).bounced == 1
        assert delivery(world, anna).state is DeliveryState.BOUNCED
        assert not world.read(lambda tx: tx.suppressions.has(anna))

    world.play(script)


@pytest.mark.parametrize("key", [None, "", "other-1-0", "home-99-0", "home-1", "home-1-0-x"])
def test_what_is_not_ours_is_not_believed(world: World, key: str | None) -> None:
    async def script(world: World) -> None:
        await campaign(world)
        for kind in ("bounced", "failed", "complaint", "delayed"):
            assert take(world, returned(kind, key)) == (0, 0, 0)

    world.play(script)
    assert world.counts_at_end == {"sent": 3}


def test_nobody_is_believed_about_a_letter_that_never_left(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        world.campaign(targets=PEOPLE[:1], assignment="pooled", launch=True)
        world.campaign(targets=PEOPLE[1:2], name="autumn")
        instance = world.read(lambda tx: tx.settings.get("instance"))
        for kind in ("bounced", "failed", "complaint"):
            for number in (1, 2):
                assert take(world, returned(kind, f"{instance}-{number}-0")) == (0, 0, 0)
        assert not world.read(lambda tx: tx.suppressions.count())
        await finish(world, "spring", "autumn")

    world.play(script)


def test_another_account_s_mailbox_says_nothing_about_this_one(world: World) -> None:
    async def script(world: World) -> None:
        await campaign(world)
        world.account("ben")
        news = returned("bounced", key_of(world, PEOPLE[0].address))
        assert take(world, news, account="ben") == (0, 0, 0)

    world.play(script)
    assert world.counts_at_end == {"sent": 3}


def test_a_letter_that_is_only_delayed_is_still_sent(world: World) -> None:
    async def script(world: World) -> None:
        await campaign(world)
        take(world, returned("delayed", key_of(world, PEOPLE[0].address)))

    world.play(script)
    assert world.counts_at_end == {"sent": 3}


def test_a_complaint_suppresses_and_is_told(world: World) -> None:
    async def script(world: World) -> None:
        await campaign(world)
        anna = PEOPLE[0].address
        news = returned("complaint", key_of(world, anna), "abuse")
        assert [take(world, news).complaints for _ in range(2)] == [1, 0]
        entry = world.read(lambda tx: tx.suppressions.find(anna))
        assert entry is not None and entry.source == "complaint"
        assert delivery(world, anna).state is DeliveryState.SENT
        assert len(events(world, "recipient.complained")) == 1
        (alert,) = world.read(lambda tx: tx.alerts.list())
        assert alert.kind == "account.complaints" and "ann" in alert.text

    world.play(script)


def test_what_follows_a_letter_that_came_back_is_called_off(world: World) -> None:
    follow_up = Step(HOUR, Content((Part("text", "again"),)))

    async def script(world: World) -> None:
        world.account()
        world.campaign(targets=PEOPLE[:2], steps=(follow_up,))
        process = world.process()
        await until(world, lambda: len(world.sends()) == 2)
        await world.wait(30 * MINUTE)
        take(world, returned("bounced", key_of(world, PEOPLE[0].address)))
        await finish(world, process=process, within_us=3 * HOUR)

    world.play(script)
    assert world.counts_at_end == {"sent": 2, "bounced": 1, "skipped": 1}


def test_a_bounce_of_a_letter_in_doubt_ends_the_doubt(world: World) -> None:
    async def script(world: World) -> None:
        world.account(lost_at=[1], finds=False, policy={"timeout": "1s"})
        world.campaign(targets=PEOPLE[:1])
        process = world.process()
        await until(world, lambda: world.counts() == {"unknown": 1})
        key = f"{world.read(lambda tx: tx.settings.get('instance'))}-1-0"
        assert take(world, returned("bounced", key)).bounced == 1
        await process.stop()
        assert world.counts() == {"bounced": 1}

    world.play(script)


def test_a_campaign_that_is_over_is_told_as_it_is_by_now(world: World) -> None:
    async def script(world: World) -> None:
        await campaign(world)

        def told() -> list[str]:
            view = world.read(lambda tx: queries.campaign_view(tx, "spring"))
            return [run.summary for run in view.runs]

        assert told() == ["3 of 3 delivered"]
        take(world, returned("failed", key_of(world, PEOPLE[0].address)))
        assert told() == ["2 of 3 delivered (1 bounced)"]

    world.play(script)


# ---------------------------------------------------------------------- too many


def test_too_many_that_come_back_in_a_day_pause_the_account(world: World) -> None:
    async def script(world: World) -> None:
        await campaign(world, 30, bounce_pause="5%")
        back = [returned("bounced", key_of(world, one.address)) for one in PEOPLE[:2]]
        take(world, back[0])
        assert world.account_now().state == "active", "1 of 30 is not above 5 %"
        take(world, back[1])
        account = world.account_now()
        assert account.state == "paused"
        assert account.state_reason == "bounce rate 2/30 today is above 5%"
        (alert,) = world.read(lambda tx: tx.alerts.list())
        assert alert.kind == "account.bounces"

    world.play(script)


def test_too_many_that_come_back_when_the_cap_is_reached_pause_the_account_as_well(
    world: World,
) -> None:
    async def script(world: World) -> None:
        world.account(policy={"bounce_pause": "5%", "daily": {"message": 20}})
        world.campaign(targets=PEOPLE)
        process = world.process()
        await until(world, lambda: world.account_now().state == "limit_reached")
        first, second = sorted({effect.key for effect in world.sends()})[:2]
        take(world, returned("failed", first))
        assert world.account_now().state == "limit_reached"
        take(world, returned("failed", second))
        assert world.account_now().state == "paused", "tomorrow it would go on"
        await process.stop()

    world.play(script)


def test_the_bounces_of_yesterday_are_over(world: World) -> None:
    async def script(world: World) -> None:
        await campaign(world, 30, bounce_pause="5%")
        take(world, returned("bounced", key_of(world, PEOPLE[0].address)))
        await world.wait(DAY)
        take(world, returned("bounced", key_of(world, PEOPLE[1].address)))
        assert world.account_now().state == "active"

    world.play(script)


# ---------------------------------------------------------------------- answers


def answer(world: World, number: str = "m1", **more: Any) -> Inbound:
    given = {"chat": "p0@example.com", "sender": "p0@example.com", "text": "Yes", **more}
    return Inbound(number, at=world.clock.now(), **given)


def test_an_answer_is_kept_once_with_what_it_answers(world: World) -> None:
    async def script(world: World) -> None:
        await campaign(world)
        key = key_of(world, PEOPLE[0].address)
        news = answer(world, subject="Re: Hello", answers=key)
        assert [take(world, news, news).received, take(world, news).received] == [1, 0]
        away = answer(world, "m2", automatic=True, text="I am away", answers="nonsense")
        assert take(world, away).received == 1
        second, first = world.read(lambda tx: tx.inbox.latest())
        assert (first.delivery_id, first.text, first.automatic) == (1, "Yes", False)
        assert (second.delivery_id, second.automatic) == (None, True)
        assert world.counts() == {"sent": 3}

    world.play(script)


def test_who_is_erased_is_erased_from_what_they_wrote(world: World) -> None:
    async def script(world: World) -> None:
        await campaign(world)
        await world.wait(SECOND)
        take(world, answer(world, subject="Secret", text="My number is 123"))
        world.write(lambda tx: erasing.erase(tx, "p0@example.com", world.clock.now()))
        (kept,) = world.read(lambda tx: tx.inbox.latest())
        assert kept.sender == kept.chat != "p0@example.com" and kept.sender.startswith("erased:")
        assert (kept.subject, kept.text) == ("", "")

    world.play(script)


def test_a_receipt_ends_a_doubt_as_it_does_elsewhere(world: World) -> None:
    async def script(world: World) -> None:
        world.account(lost_at=[1], finds=False, policy={"timeout": "1s"})
        world.campaign(targets=PEOPLE[:1])
        process = world.process()
        await until(world, lambda: world.counts() == {"unknown": 1})
        key = f"{world.read(lambda tx: tx.settings.get('instance'))}-1-0"
        take(world, Receipt("x", "delivered", world.clock.now(), key=key))
        await process.stop()
        assert world.counts() == {"sent": 1}

    world.play(script)


def test_one_that_is_refused_at_once_counts_with_those_that_came_back_later(world: World) -> None:
    """One of thirty either way; both together are too many."""

    async def script(world: World) -> None:
        slow = {"bounce_pause": "5%", "spacing": "10s"}
        world.account(policy=slow, bounce_at=[30])
        world.campaign(targets=PEOPLE)
        process = world.process()
        await until(world, lambda: len(world.sends()) == 28)
        take(world, returned("failed", world.sends()[0].key))
        assert world.account_now().state == "active"
        await until(world, lambda: world.account_now().state == "paused")
        assert world.account_now().state_reason == "bounce rate 2/30 today is above 5%"
        (alert,) = world.read(lambda tx: tx.alerts.list())
        assert alert.kind == "account.bounces"
        await process.stop()

    world.play(script)


def test_nobody_who_got_a_letter_can_make_up_the_bounce_of_another(world: World) -> None:
    """Its number can be guessed, and where it came from stands in every other; its seal cannot."""

    async def script(world: World) -> None:
        world.write(seal_keys)
        await campaign(world)
        anna, ben = (key_of(world, one.address) for one in PEOPLE[:2])
        number = anna.split("-")[1]
        forged = ben.replace(f"-{ben.split('-')[1]}-", f"-{number}-")
        unsealed = anna.rpartition("-")[0]
        for made_up in (forged, unsealed, f"{unsealed}-"):
            assert take(world, returned("bounced", made_up)).bounced == 0
            assert take(world, returned("complaint", made_up)).complaints == 0
        assert world.counts() == {"sent": 3}
        assert take(world, returned("bounced", anna)).bounced == 1

    world.play(script)
