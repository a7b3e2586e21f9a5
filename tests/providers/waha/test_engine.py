"""Whole campaigns through the engine, the store and real connections to the fake."""

from collections import Counter

import pytest

from paceline.core.instants import MILLISECOND, SECOND
from paceline.core.model import Part, Target
from paceline.engine import leases
from tests.providers.live import BRISK
from tests.providers.loopback import Scripted
from tests.providers.remote import GROUPS, NOTE, PEOPLE
from tests.providers.waha.fake import GROUP, FakeWaha, error, failure, not_working
from tests.providers.waha.live import LiveWorld
from tests.providers.waha.stage import play


def chat(target: Target) -> str:
    address = target.address
    return address if "@" in address else f"{address[1:]}@c.us"


@pytest.mark.parametrize("targets", [PEOPLE, GROUPS], ids=["people", "groups"])
def test_everybody_gets_it_once_and_the_file_with_every_message(
    live: LiveWorld, targets: list[Target]
) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect(concurrency=3)
        media = world.picture()
        world.campaign(targets=targets, parts=(*NOTE, Part("media", "{{ name }}", media=media.id)))
        await world.send_all()
        assert world.counts() == {"sent": 5}
        assert len(world.read(lambda tx: tx.media.uploads())) == 1, "one handle, used five times"

    live.play(script)
    assert live.chats() == Counter({chat(one): 2 for one in targets})
    assert Counter(one["path"] for one in live.fake.messages) == {"/sendText": 5, "/sendImage": 5}
    assert len({one["id"] for one in live.fake.messages}) == 10


def test_a_file_is_at_hand_again_after_a_restart(live: LiveWorld) -> None:
    """The handle of the process before is told to be gone, and no retry is used up for it."""

    async def script(world: LiveWorld) -> None:
        world.connect()
        media = world.picture()
        for name in ("spring", "summer"):
            world.campaign(targets=PEOPLE, parts=(Part("media", "x", media=media.id),), name=name)
            await world.send_all(name)
            assert world.counts(name) == {"sent": 5}
            provider = world.providers.get("waha")
            provider._files._kept.clear()  # type: ignore[attr-defined]

    live.play(script)
    assert len(live.fake.messages) == len(live.fake.sends()) == 10


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    "lost",
    [
        Scripted(drops="read", takes=True),
        Scripted(504, b"<html>", takes=True),
        failure("timed out waiting for message send response", takes=True),
    ],
    ids=["hung up", "gateway", "engine"],
)
@pytest.mark.parametrize("engine", ["GOWS", "NOWEB"])
def test_a_doubt_is_resolved_by_asking(live: LiveWorld, lost: Scripted, engine: str) -> None:
    """It is found by its id as soon as WAHA has written it down, and not sent again."""

    async def script(world: LiveWorld) -> None:
        world.fake.engine = engine
        world.connect()
        world.fake.script.append(lost)
        world.fake.unlisted = True
        world.campaign(targets=PEOPLE[:1], parts=NOTE)
        process = world.lively()
        await world.until_so(lambda: bool(world.fake.asked("/messages/")))
        assert world.counts() == {"unknown": 1}
        world.fake.unlisted = False
        await world.until_so(lambda: world.counts() == {"sent": 1})
        await process.stop()

    live.play(script)
    assert len(live.fake.sends()) == 1


@pytest.mark.usefixtures("soon")
def test_a_crash_after_the_call_is_found_and_nobody_is_written_to_twice(
    live: LiveWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies while WAHA has the message; another one takes over."""
    monkeypatch.setattr(leases, "LEASE_US", 4 * SECOND)
    monkeypatch.setattr(leases, "UNSAFE_TAIL_US", SECOND)
    monkeypatch.setattr(leases, "RENEW_EVERY_US", 500 * MILLISECOND)

    async def script(world: LiveWorld) -> None:
        world.connect(timeout="1s")
        world.fake.script.append(Scripted(hangs=True, takes=True))
        world.campaign(targets=PEOPLE, parts=NOTE)
        first = world.lively()
        await world.until_so(lambda: len(world.fake.messages) == 1)
        await first.kill()
        second = world.process("two", poll_us=BRISK)
        await world.until_so(lambda: world.counts() == {"sent": 5})
        await second.stop()

    live.play(script)
    assert live.chats() == Counter({chat(one): 1 for one in PEOPLE})
    assert len(live.fake.sends()) == 5, "the one in doubt was looked for, and not sent again"
    assert live.fake.asked("/messages/")


@pytest.mark.usefixtures("soon_held")
def test_what_cannot_be_found_is_held_for_a_person(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.script.append(Scripted(drops="read"))
        world.campaign(targets=PEOPLE[:1], parts=NOTE)
        await world.leave_to_a_person()
        assert world.counts() == {"unknown": 1}

    live.play(script)
    assert len(live.fake.sends()) == 1


@pytest.mark.usefixtures("soon_held")
def test_what_is_sent_again_by_choice_has_the_same_id_and_reaches_people_once(
    live: LiveWorld,
) -> None:
    """Even where the first one was out after all."""

    async def script(world: LiveWorld) -> None:
        world.connect(on_unknown="resend", retry="50ms")
        world.fake.script.append(Scripted(drops="read", takes=True))
        world.fake.unlisted = True
        world.campaign(targets=PEOPLE[:1], parts=NOTE)
        process = world.lively()
        await world.until_so(lambda: world.counts() == {"sent": 1})
        await process.stop()

    live.play(script)
    first, again = live.fake.sends()
    assert first.json() == again.json()
    assert len(live.fake.messages) == 1


def test_a_session_that_is_away_is_waited_for(live: LiveWorld) -> None:
    """Nobody is given up for it, no retry is used up, and nothing is tried meanwhile."""

    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.script.append(not_working("STARTING"))
        world.campaign(targets=PEOPLE[:2], parts=NOTE)
        process = world.lively()
        await world.until_so(lambda: len(world.fake.sends()) == 1)
        await world.until_so(lambda: world.counts() == {"ready": 2})
        await process.stop()
        assert world.account_now().state != "suspended"
        held = world.read(lambda tx: tx.deliveries.page(run_id=1, after_id=0))
        assert {one.retries for one in held} == {0}

    live.play(script)
    assert len(live.fake.sends()) == 1 and not live.fake.messages


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (error(401, "Unauthorized"), "Unauthorized"),
        (not_working("SCAN_QR_CODE"), "not paired: WAHA says the session is 'SCAN_QR_CODE'"),
        (not_working("FAILED"), "not paired: WAHA says the session is 'FAILED'"),
    ],
    ids=["key", "unpaired", "logged out"],
)
def test_a_session_that_is_gone_suspends_and_nobody_is_given_up(
    live: LiveWorld, answer: Scripted, reason: str
) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.script.append(answer)
        world.campaign(targets=PEOPLE, parts=NOTE)
        process = world.lively()
        await world.until_so(lambda: world.account_now().state == "suspended")
        await process.stop()
        assert reason in world.account_now().state_reason
        assert world.counts() == {"ready": 5}

    live.play(script)
    assert not live.fake.messages


def test_a_phone_that_is_not_paired_is_never_used(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.state = "SCAN_QR_CODE"
        world.campaign(targets=PEOPLE, parts=NOTE)
        process = world.lively()
        await world.until_so(lambda: world.account_now().state == "suspended")
        await process.stop()
        assert "not paired" in world.account_now().state_reason

    live.play(script)
    assert not live.fake.sends()


def test_whoever_is_not_on_whatsapp_is_never_written_to(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.chats[PEOPLE[1].address[1:]] = None
        world.fake.chats[PEOPLE[2].address[1:]] = "4915100000042@c.us"
        world.campaign(targets=PEOPLE[:3], parts=NOTE)
        await world.send_all()
        assert world.counts() == {"sent": 2, "bounced": 1}

    live.play(script)
    assert set(live.chats()) == {chat(PEOPLE[0]), "4915100000042@c.us"}
    assert len(live.fake.asked("/contacts/check-exists")) == 3


def test_the_fake_minds_what_it_is_sent(fake: FakeWaha) -> None:
    """A fake that takes anything would show nothing."""
    odd = (
        {"session": "shop-1", "text": "x"},
        {"session": "shop-1", "chatId": GROUP, "text": ""},
        {"session": "shop-1", "chatId": "+49151", "text": "x"},
        {"session": "shop-1", "chatId": GROUP, "text": "x", "id": "home-7-0"},
        {"session": "shop-1", "chatId": GROUP, "text": "x", "caption": "y"},
    )

    async def scene(driver: object) -> None:
        line = driver._line  # type: ignore[attr-defined]
        for body in odd:
            await line.deliver("/api/sendText", json=body)

    play(fake.settings(), scene)
    assert len(fake.failures) == len(odd) and not fake.messages
    fake.failures.clear()
