"""Whole campaigns through the engine, the store and real connections to the fake."""

from collections import Counter

from paceline.core.calendar import next_day_start
from paceline.core.instants import HOUR, SECOND, iso
from paceline.core.model import Part, Target
from tests.providers.gmail.bodies import BODIES
from tests.providers.gmail.fake import FakeGmail, error
from tests.providers.gmail.live import LiveWorld
from tests.providers.gmail.stage import play
from tests.providers.loopback import HTML, Scripted

PEOPLE = [Target(f"p{number}@example.org", {"name": f"N{number}"}) for number in range(5)]
NOTE = (Part("text", "Hello {{ name }}", subject="A word, {{ name }}"),)


def everybody(count: int = 1) -> Counter[str]:
    return Counter({one.address: count for one in PEOPLE})


def test_everybody_gets_it_once_with_the_file(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect({"from_name": "Anna"}, concurrency=3)
        media = world.picture()
        parts = (Part("media", "Hello {{ name }}", subject="For {{ name }}", media=media.id),)
        world.campaign(targets=PEOPLE, parts=parts, action="email")
        await world.send_all()
        assert world.counts() == {"sent": 5}

    live.play(script)
    assert live.targets() == everybody()
    assert {one.files[0] for one in live.fake.sent} == {b"PNG"}
    assert {one.letter["Subject"] for one in live.fake.sent} == {f"For N{n}" for n in range(5)}
    assert len({one.own_id for one in live.fake.sent}) == 5
    assert len(live.fake.issued) == 1


def due_ats(world: LiveWorld) -> set[int]:
    return {one.due_at for one in world.read(lambda tx: tx.deliveries.page(run_id=1, after_id=0))}


async def stop_at_limit(world: LiveWorld, answer: Scripted, words: str) -> None:
    """Let the first letter meet this answer; afterwards nobody else is written to."""
    world.fake.script.append(answer)
    world.campaign(targets=PEOPLE, parts=NOTE, action="email")
    process = world.lively()
    await world.until_so(lambda: any(words in reason for reason in world.reasons()))
    await process.stop()
    assert world.counts() == {"ready": 5}, "nobody is given up for it"
    assert world.account_now().state != "suspended"


def test_the_daily_limit_waits_for_tomorrow(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect(zone="UTC")
        tomorrow_at = next_day_start(world.clock.now(), "UTC")
        await stop_at_limit(world, BODIES["guide: daily"].answer, "Daily Limit Exceeded")
        assert tomorrow_at in due_ats(world)

    live.play(script)
    assert len(live.fake.sends()) == 1


def test_the_sending_limit_waits_until_the_time_that_gmail_names(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        until_at = world.clock.now() // SECOND * SECOND + 7 * HOUR
        words = f"User-rate limit exceeded.  Retry after {iso(until_at)} (Mail sending)"
        await stop_at_limit(world, error(429, "rateLimitExceeded", words), "Mail sending")
        # What was left to wait was reckoned a moment before it was written down.
        assert any(abs(at - until_at) < 5 * SECOND for at in due_ats(world))

    live.play(script)
    assert len(live.fake.sends()) == 1


def test_a_lost_connection_is_tried_again_and_suspends_nobody(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect(retry="50ms")
        world.fake.script.append(Scripted(403, b"<html>Captive portal", HTML))
        world.campaign(targets=PEOPLE, parts=NOTE, action="email")
        await world.send_all()
        assert world.counts() == {"sent": 5}

    live.play(script)
    assert live.targets() == everybody()


def test_whom_gmail_will_not_write_to_fails_and_is_not_suppressed(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.script.append(BODIES["to"].answer)
        world.campaign(targets=PEOPLE, parts=NOTE, action="email")
        await world.send_all()
        assert world.counts() == {"sent": 4, "failed": 1}
        world.campaign(targets=PEOPLE, parts=NOTE, action="email", name="again")
        await world.send_all("again")
        assert world.counts("again") == {"sent": 5}

    live.play(script)


def test_the_fake_minds_what_it_is_sent(fake: FakeGmail) -> None:
    """A fake that takes anything would show nothing."""

    async def scene(driver: object) -> list[int]:
        line, token = driver._line, fake.issued[0]  # type: ignore[attr-defined]
        bearer = {"Authorization": f"Bearer {token}"}
        path = "/gmail/v1/users/me/messages/send"
        answers = [
            await line.call("POST", path, json={"raw": "VG86"}),
            await line.call("POST", path, json={"raw": "a+/="}, headers=bearer),
            await line.call("POST", path, json={"message": "x"}, headers=bearer),
            await line.call("POST", path, json={"raw": "VG86IHg="}, headers=bearer),
            await line.call("POST", f"/upload{path}", content=b"To: x", headers=bearer),
            await line.call("POST", "/token", data={"grant_type": "password"}),
        ]
        return [answer.status for answer in answers]

    assert play(fake.settings(), scene) == [401, 400, 400, 400, 400, 400]
    assert not fake.sent
