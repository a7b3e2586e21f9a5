"""People who come with a campaign: the addresses of one row are one person's, in every campaign."""

from collections.abc import Sequence

from paceline.core.instants import DAY, HOUR, MINUTE, SECOND
from paceline.core.model import Content, Part, Target
from paceline.engine import planning
from paceline.engine.audience_columns import Columns
from paceline.engine.campaign_spec import CampaignSpec
from paceline.engine.commands import audiences, erasing
from paceline.engine.commands.introducing import CHUNK, introduced
from paceline.engine.launching import launch
from paceline.engine.plan_view import Plan
from tests.engine.scenes import deliveries, finish
from tests.engine.world import World

ONCE = {"per_recipient": "1/day", "spacing": "1m"}
HELLO = Content((Part("text", "hello"),))


def mail(number: int) -> str:
    return f"p{number}@example.com"


def phone(number: int) -> str:
    return f"+49151{10_000_000 + number}"


def person(number: int, at: str) -> Target:
    """Somebody as a row with both addresses tells of them, to be written to at one of these."""
    both = (("email", mail(number)), ("phone", phone(number)))
    return Target(dict(both)[at], addresses=both)


def everybody(count: int, at: str) -> list[Target]:
    return [person(number, at) for number in range(count)]


def introduce(world: World, targets: Sequence[Target]) -> list[tuple[str, int | None]]:
    found = world.write(lambda tx: introduced(tx, targets, world.clock.now()))
    return [(target.address, target.contact_id) for target in found]


def reached(world: World, address: str) -> list[str]:
    contact = world.read(lambda tx: tx.contacts.find(address))
    return [] if contact is None else [entry.address for entry in contact.addresses]


def test_nobody_gets_a_mail_and_a_message_the_same_day_who_comes_from_a_file(
    calm: None, world: World
) -> None:
    async def script(world: World) -> None:
        world.account("em", policy=ONCE)
        world.account("dm", policy=ONCE)
        mails, messages = everybody(6, "email"), everybody(6, "phone")
        world.campaign(name="mails", on=("em",), targets=mails, action="email")
        world.campaign(name="messages", on=("dm",), targets=messages)
        process = world.process(poll_us=HOUR)
        await world.wait(HOUR)
        assert len(world.sends()) == 6, "one for each, today"
        await finish(world, "mails", "messages", process=process, every_us=HOUR, within_us=3 * DAY)

    world.play(script)
    for number in range(6):
        calls = [
            effect for effect in world.sends() if effect.target in (mail(number), phone(number))
        ]
        first, second = sorted(calls, key=lambda call: call.called_at)
        assert {first.account, second.account} == {"em", "dm"}
        assert second.called_at - first.called_at >= DAY - SECOND


def test_nor_if_the_one_campaign_was_created_before_anybody_knew_who_they_are(
    calm: None, world: World
) -> None:
    """The first file has addresses only; the second says whose they are, and sends at once."""

    async def script(world: World) -> None:
        world.account("em", policy=ONCE | {"hours": "Mon-Sun 12:00-18:00 UTC"})
        world.account("dm", policy=ONCE)
        mails = [Target(mail(number)) for number in range(4)]
        world.campaign(name="mails", on=("em",), targets=mails, action="email")
        world.campaign(name="messages", on=("dm",), targets=everybody(4, "phone"))
        process = world.process(poll_us=HOUR)
        await world.wait(DAY // 2)
        assert {effect.account for effect in world.sends()} == {"dm"}
        await finish(world, "mails", "messages", process=process, every_us=HOUR, within_us=3 * DAY)

    world.play(script)


def test_they_are_merged_with_those_who_are_known(world: World) -> None:
    async def script(world: World) -> None:
        columns, now = Columns.of(["email", "linkedin"]), world.clock.now()
        row = columns.person(2, {"email": mail(0), "linkedin": "anna"})
        news = world.write(lambda tx: tx.audiences.open("news", now))
        world.write(lambda tx: audiences.take_in(tx, news.id, [row], now))
        assert introduce(world, [person(0, "phone"), person(1, "email")]) == [
            (phone(0), 1),
            (mail(1), 2),
        ]
        assert sorted(reached(world, phone(0))) == [phone(0), "anna", mail(0)]
        assert introduce(world, [person(1, "phone"), person(1, "email")]) == [
            (phone(1), 2),
            (mail(1), 2),
        ], "told again it changes nothing"
        assert reached(world, mail(1)) == [mail(1), phone(1)]

    world.play(script)


def test_a_row_that_an_import_would_reject_makes_one_person_of_nobody(world: World) -> None:
    async def script(world: World) -> None:
        introduce(world, everybody(2, "email"))
        shared = Target(mail(9), addresses=(("email", mail(9)), ("phone", phone(0))))
        two = Target(mail(0), addresses=(("email", mail(0)), ("phone", phone(1))))
        assert introduce(world, [shared, two]) == [(mail(9), None), (mail(0), 1)]
        assert reached(world, phone(0)) == [mail(0), phone(0)]
        assert reached(world, mail(9)) == []

    world.play(script)


def test_a_single_address_is_made_nobodys_and_can_be_joined_later(world: World) -> None:
    async def script(world: World) -> None:
        alone = [Target(mail(0), addresses=(("email", mail(0)),)), Target(phone(0))]
        assert introduce(world, alone) == [(mail(0), None), (phone(0), None)]
        assert introduce(world, [person(0, "email")]) == [(mail(0), 1)]

    world.play(script)


def test_rows_of_one_person_far_apart_are_one_person(world: World) -> None:
    async def script(world: World) -> None:
        count = CHUNK + 2
        profile = Target("anna", addresses=(("linkedin", "anna"), ("email", mail(0))))
        found = introduce(world, [*everybody(count, "email"), profile])
        assert found[-1] == ("anna", 1) and found[0] == (mail(0), 1)
        assert [number for _, number in found[:-1]] == list(range(1, count + 1))

    world.play(script)


def test_whoever_was_erased_is_known_by_any_address_of_the_row(world: World) -> None:
    async def script(world: World) -> None:
        world.account()
        now = world.clock.now()
        world.campaign(targets=everybody(2, "email"), launch=False)
        world.write(lambda tx: erasing.erase(tx, mail(0), now))
        traces = {row.target for row in deliveries(world)} | {
            str(r.fields) for r in deliveries(world)
        }
        assert not any(phone(0) in trace or mail(0) in trace for trace in traces)
        profile = Target("anna", addresses=(("linkedin", "anna"), ("phone", phone(0))))
        (target,) = world.write(lambda tx: introduced(tx, [profile], now))
        assert target.address.startswith("erased:") and target.contact_id == 1
        assert world.read(lambda tx: tx.contacts.find("anna")) is None

    world.play(script)


# ---------------------------------------------------------------------- plans


def planned(world: World, targets: list[Target]) -> Plan:
    spec, now = CampaignSpec("wanted", ("dm",), HELLO), world.clock.now()
    return world.read(lambda tx: planning.plan_campaign(tx, spec, targets, world.house, now))


def lasts_us(world: World, targets: list[Target]) -> int:
    finish_at = planned(world, targets).finish_at
    assert finish_at is not None
    return finish_at - world.clock.now()


def known(world: World) -> list[int]:
    return world.read(lambda tx: list(tx.contacts.several(range(100))))


def test_a_plan_sees_what_the_same_people_get_elsewhere_and_writes_nothing(world: World) -> None:
    async def script(world: World) -> None:
        world.account("em", policy=ONCE)
        world.account("dm", policy=ONCE)
        assert lasts_us(world, everybody(5, "phone")) == 4 * MINUTE
        world.campaign(name="mails", on=("em",), targets=everybody(3, "email"), launch=False)
        launch(world.store, "mails", world.clock.now(), world.providers)
        assert known(world) == [1, 2, 3]
        assert lasts_us(world, everybody(5, "phone")) == DAY + 2 * MINUTE
        assert planned(world, everybody(5, "phone")).gates["frequency"] > 0
        assert known(world) == [1, 2, 3]

    world.play(script)


def test_a_plan_knows_whom_creating_it_would_make_known(world: World) -> None:
    """What waits for an address, and what was sent there, is a stranger's until then."""

    async def script(world: World) -> None:
        world.account("em", policy=ONCE)
        world.account("dm", policy=ONCE)
        mails = [Target(mail(number)) for number in range(3)]
        world.campaign(name="mails", on=("em",), targets=mails, launch=False)
        launch(world.store, "mails", world.clock.now(), world.providers)
        assert lasts_us(world, everybody(5, "phone")) == DAY + 2 * MINUTE
        process = world.process()
        await finish(world, "mails", process=process)
        now = world.clock.now()
        first_at = min(effect.called_at for effect in world.sends())
        left_us = lasts_us(world, everybody(1, "phone"))
        assert abs(left_us - (first_at + DAY - now)) < SECOND
        assert known(world) == []

    world.play(script)
