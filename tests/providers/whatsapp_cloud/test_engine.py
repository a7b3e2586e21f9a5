"""Whole campaigns through the engine, the store and real connections to the fake."""

import json
from collections import Counter
from typing import Any

import pytest

from paceline.core.errors import InputError
from paceline.core.instants import HOUR, MILLISECOND, SECOND
from paceline.core.model import Content, Part, Target
from paceline.engine import leases
from paceline.engine.commands import campaigns, reminders
from paceline.engine.reminder_spec import ReminderSpec
from tests.providers.loopback import Scripted
from tests.providers.remote import PEOPLE
from tests.providers.whatsapp_cloud.fake import Approved, error, report, reported, signed, value
from tests.providers.whatsapp_cloud.live import LiveWorld

GROUP = "120363041234567890@g.us"
NOTE = Part("template", template="order_ready", language="en_US", values=(("", "{{ name }}"),))


def world_with(live: LiveWorld, **policy: Any) -> LiveWorld:
    live.fake.templates["order_ready"] = Approved(blanks=1)
    live.fake.talking = set()
    live.connect(**policy)
    return live


def seconds(world: LiveWorld) -> int:
    return world.clock.now() // SECOND


def test_everybody_gets_the_template_once_with_their_own_name(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world_with(world, concurrency=3)
        world.campaign(targets=PEOPLE, parts=(NOTE,))
        await world.send_all()
        assert world.counts() == {"sent": 5}

    live.play(script)
    assert live.targets() == Counter({one.address: 1 for one in PEOPLE})
    filled = {
        one["to"]: one["body"]["template"]["components"][0]["parameters"][0]["text"]
        for one in live.fake.messages
    }
    assert filled == {one.address: one.fields["name"] for one in PEOPLE}
    assert len({one["key"] for one in live.fake.messages}) == 5


# ---------------------------------------------------------------------- refused before a run


def test_what_needs_a_template_is_refused_before_it_starts(live: LiveWorld) -> None:
    complaint = (
        r"^parts\[1\]: whatsapp_cloud lets ann write to people only with a template, unless they "
        r"have written in the last 24 hours\. Name one that is approved: template = "
    )

    async def script(world: LiveWorld) -> None:
        world_with(world)
        with pytest.raises(InputError, match=complaint):
            world.campaign(targets=PEOPLE, parts=(Part("text", "Hello {{ name }}"),))
        with pytest.raises(InputError, match=r"^parts\[2\]: whatsapp_cloud lets ann write"):
            world.campaign(targets=PEOPLE, parts=(NOTE, Part("text", "And this")))
        assert world.read(lambda tx: tx.campaigns.find("spring")) is None

    live.play(script)
    assert not live.fake.sends()


def test_a_reminder_that_needs_a_template_is_refused_when_it_is_created(live: LiveWorld) -> None:
    raw: dict[str, Any] = {"name": "rent", "account": "ann", "cron": "0 9 * * *", "targets": ["x"]}

    def create(world: LiveWorld, part: dict[str, Any]) -> None:
        spec = ReminderSpec.from_mapping({**raw, "parts": [part]})
        now = world.clock.now()
        world.write(lambda tx: reminders.create(tx, spec, PEOPLE, world.providers, now))

    async def script(world: LiveWorld) -> None:
        world_with(world)
        with pytest.raises(InputError, match="only with a template"):
            create(world, {"text": "The rent is due"})
        create(world, {"template": "order_ready", "language": "en_US", "values": ["{{ name }}"]})
        assert world.read(lambda tx: [one.name for one in tx.reminders.list()]) == ["rent"]

    live.play(script)


def test_groups_are_refused_before_a_run(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world_with(world)
        with pytest.raises(InputError, match=rf"{GROUP} is a group, not a phone number"):
            world.campaign(targets=[Target(GROUP, {"name": "x"})], parts=(NOTE,))

    live.play(script)


def test_a_blank_that_would_be_empty_is_found_before_a_run(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world_with(world)
        with pytest.raises(InputError, match=r"values: for target \S+: a blank .* left empty"):
            world.campaign(targets=[Target(PEOPLE[0].address, {"name": " "})], parts=(NOTE,))

    live.play(script)


# ---------------------------------------------------------------------- answers and their ends


def test_an_answer_may_say_what_it_likes_and_meta_decides(live: LiveWorld) -> None:
    """A single message is taken for an answer. Whoever has not written gets none: it fails."""

    def say(world: LiveWorld, target: str) -> int:
        content, now = Content((Part("text", "At six"),)), world.clock.now()
        return world.write(
            lambda tx: campaigns.send_direct(
                tx, "ann", target, content, "message", now, providers=world.providers
            )
        )

    async def script(world: LiveWorld) -> None:
        world_with(world)
        anna, bob = PEOPLE[0].address, PEOPLE[1].address
        world.fake.talking = {anna}
        ids = [say(world, anna), say(world, bob)]
        process = world.lively()

        def states() -> list[str]:
            return world.read(lambda tx: [str(tx.deliveries.get(one).state) for one in ids])

        await world.until_so(lambda: "ready" not in states() and "sending" not in states())
        await process.stop()
        assert states() == ["sent", "failed"]
        assert "Re-engagement" in world.read(lambda tx: tx.deliveries.get(ids[1])).reason
        assert world.account_now().state == "active"

    live.play(script)
    assert len(live.fake.sends()) == 2


def test_a_template_that_is_not_there_pauses_the_campaign_after_one(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world_with(world)
        world.fake.templates.clear()
        world.campaign(targets=PEOPLE, parts=(NOTE,))
        process = world.lively()
        await world.until_so(lambda: world.state() == "paused")
        await process.stop()
        assert world.counts() == {"failed": 1, "ready": 4}

    live.play(script)


def test_one_person_too_often_holds_up_nobody_else(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world_with(world)
        world.fake.script.append(error(131056, headers={"Retry-After": "3600"}))
        world.campaign(targets=PEOPLE, parts=(NOTE,))
        process = world.lively()
        await world.until_so(lambda: world.counts() == {"sent": 4, "ready": 1})
        await process.stop()
        rows = world.read(lambda tx: list(tx.deliveries.page(run_id=1, after_id=0)))
        (put_off,) = [one for one in rows if one.state == "ready"]
        assert put_off.retries == 0 and "(#131056)" in put_off.reason
        assert put_off.due_at is not None and put_off.due_at > world.clock.now() + HOUR // 2
        assert world.account_now().state == "active"

    live.play(script)
    first, *others = live.fake.sends()
    assert first.json()["to"] not in {call.json()["to"] for call in others}


# ---------------------------------------------------------------------- lost answers


@pytest.mark.parametrize(
    "lost",
    [
        Scripted(drops="read", takes=True),
        Scripted(504, b"<html>", takes=True),
        Scripted(200, b"<html>", takes=True),
    ],
    ids=["hung up", "gateway", "a page"],
)
def test_a_lost_answer_is_held_until_meta_reports_what_became_of_it(
    live: LiveWorld, lost: Scripted
) -> None:
    async def script(world: LiveWorld) -> None:
        world_with(world)
        world.fake.script.append(lost)
        world.campaign(targets=PEOPLE[:2], parts=(NOTE,))
        process = world.lively()
        await world.until_so(lambda: world.state() == "finished")
        assert world.counts() == {"sent": 1, "unknown": 1}
        body = reported(world.fake.messages[0], ("delivered", "sent"), seconds(world))
        assert world.hear({}, body) == [], "anybody could say that"
        assert world.hear(signed(body, "guessed"), body) == []
        assert world.hear(signed(body), body) == ["resolved", "nothing"]
        assert world.counts() == {"sent": 2}
        await process.stop()

    live.play(script)
    assert live.targets() == Counter({one.address: 1 for one in PEOPLE[:2]})


def test_a_lost_answer_may_turn_out_to_have_failed(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world_with(world)
        world.fake.script.append(Scripted(drops="read", takes=True))
        world.campaign(targets=PEOPLE[:1], parts=(NOTE,))
        process = world.lively()
        await world.until_so(lambda: world.counts() == {"unknown": 1})
        await process.stop()
        entry = world.fake.messages[0]
        errors = [{"code": 131026, "title": "Message undeliverable", "message": "Undeliverable"}]
        body = reported(entry, ("failed",), seconds(world), errors=errors)
        assert world.hear(signed(body), body) == ["resolved"]
        assert (world.counts(), world.reasons()) == ({"failed": 1}, ["Undeliverable"])

    live.play(script)
    assert len(live.fake.sends()) == 1


def test_a_crash_after_the_call_is_cleared_up_by_meta_s_report(
    live: LiveWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies while Meta has the message. Nobody is written to twice, whoever goes on."""
    monkeypatch.setattr(leases, "LEASE_US", 4 * SECOND)
    monkeypatch.setattr(leases, "UNSAFE_TAIL_US", SECOND)
    monkeypatch.setattr(leases, "RENEW_EVERY_US", 500 * MILLISECOND)

    async def script(world: LiveWorld) -> None:
        world_with(world)
        world.fake.script.append(Scripted(hangs=True, takes=True))
        world.campaign(targets=PEOPLE, parts=(NOTE,))
        first = world.lively()
        await world.until_so(lambda: len(world.fake.messages) == 1)
        await first.kill()
        entry = world.fake.messages[0]
        body = reported(entry, ("sent", "delivered"), seconds(world))
        assert world.hear(signed(body), body) == ["early", "early"], "Meta is to say it again"
        second = world.process("two", poll_us=20 * MILLISECOND)
        await world.until_so(lambda: world.counts() == {"sent": 4, "unknown": 1})
        assert world.hear(signed(body), body) == ["resolved", "nothing"]
        assert world.counts() == {"sent": 5}
        await second.stop()

    live.play(script)
    assert live.targets() == Counter({one.address: 1 for one in PEOPLE})
    assert len(live.fake.sends()) == 5


def test_a_report_about_somebody_else_s_message_changes_nothing(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world_with(world)
        world.fake.script.append(Scripted(drops="read", takes=True))
        world.campaign(targets=PEOPLE[:1], parts=(NOTE,))
        process = world.lively()
        await world.until_so(lambda: world.counts() == {"unknown": 1})
        await process.stop()
        entry = world.fake.messages[0]
        for key in ("other-1-0", "home-1-1", "home-2-0"):
            body = reported({**entry, "key": key}, ("sent",), seconds(world))
            assert world.hear(signed(body), body) == ["nothing"]
        another = {"id": entry["id"], "status": "sent", "biz_opaque_callback_data": entry["key"]}
        body = json.dumps(report(value("999999", statuses=[another]))).encode()
        assert world.hear(signed(body), body) == [], "another number's"
        assert world.counts() == {"unknown": 1}

    live.play(script)
