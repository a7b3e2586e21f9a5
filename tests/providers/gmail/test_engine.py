"""Whole campaigns through the engine, the store and real connections to the fake."""

from collections import Counter

import pytest

from paceline.core.calendar import next_day_start
from paceline.core.instants import HOUR, MILLISECOND, SECOND, iso
from paceline.core.model import Part, Target
from paceline.engine import leases
from paceline.engine.ports import Account
from paceline.providers.mail.letters import key_in
from tests.providers.gmail.bodies import BODIES
from tests.providers.gmail.fake import STALE, FakeGmail, error, no_token
from tests.providers.gmail.live import LiveWorld
from tests.providers.gmail.stage import play
from tests.providers.live import BRISK
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


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    "lost",
    [
        Scripted(drops="read", takes=True),
        Scripted(502, b"<html>", HTML, takes=True),
        error(500, "backendError", "Backend Error", takes=True),
        Scripted(200, b"<html>", HTML, takes=True),
    ],
    ids=["hung up", "gateway", "gmail", "odd yes"],
)
def test_a_lost_answer_is_resolved_by_looking_for_the_letter(
    live: LiveWorld, lost: Scripted
) -> None:
    """A search lags at first: the letter is found when it has caught up, and not sent again."""

    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.script.append(lost)
        world.fake.lags = True
        world.campaign(targets=PEOPLE[:1], parts=NOTE, action="email")
        process = world.lively()
        await world.until_so(lambda: bool(world.fake.searches()))
        assert world.counts() == {"unknown": 1}
        world.fake.lags = False
        await world.until_so(lambda: world.counts() == {"sent": 1})
        await process.stop()

    live.play(script)
    assert len(live.fake.sends()) == 1


@pytest.mark.usefixtures("soon")
def test_a_crash_after_the_call_is_found_and_nobody_is_written_to_twice(
    live: LiveWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies while Gmail has the letter; another one takes over."""
    monkeypatch.setattr(leases, "LEASE_US", 4 * SECOND)
    monkeypatch.setattr(leases, "UNSAFE_TAIL_US", SECOND)
    monkeypatch.setattr(leases, "RENEW_EVERY_US", 500 * MILLISECOND)

    async def script(world: LiveWorld) -> None:
        world.connect(timeout="1s")
        world.fake.script.append(Scripted(hangs=True, takes=True))
        world.campaign(targets=PEOPLE, parts=NOTE, action="email")
        first = world.lively()
        await world.until_so(lambda: len(world.fake.sent) == 1)
        await first.kill()
        second = world.process("two", poll_us=BRISK)
        await world.until_so(lambda: world.counts() == {"sent": 5})
        await second.stop()

    live.play(script)
    assert live.targets() == everybody()
    assert len(live.fake.sends()) == 5, "the one in doubt was looked for, and not sent again"


@pytest.mark.usefixtures("soon_held")
def test_what_cannot_be_found_is_held_for_a_person(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.script.append(Scripted(drops="read"))
        world.campaign(targets=PEOPLE[:1], parts=NOTE, action="email")
        await world.leave_to_a_person()
        assert world.counts() == {"unknown": 1}

    live.play(script)
    assert len(live.fake.sends()) == 1


@pytest.mark.usefixtures("soon_held")
def test_what_is_sent_again_by_choice_has_the_same_id(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect(on_unknown="resend", retry="50ms")
        world.twice_allowed = True
        world.fake.script.append(Scripted(drops="read", takes=True))
        world.fake.lags = True
        world.campaign(targets=PEOPLE[:1], parts=NOTE, action="email")
        process = world.lively()
        await world.until_so(lambda: world.counts() == {"sent": 1})
        await process.stop()

    live.play(script)
    first, again = live.fake.sent
    assert first.own_id == again.own_id and key_in(first.own_id) is not None


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


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([STALE, STALE], "invalid authentication credentials"),
        ([BODIES["no mailbox"].answer], "Mail service not enabled"),
        ([BODIES["domain"].answer], "have disabled Gmail apps"),
    ],
    ids=["token", "mailbox", "domain"],
)
def test_a_mailbox_that_may_not_send_is_suspended_with_the_reason(
    live: LiveWorld, answers: list[Scripted], reason: str
) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.script.extend(answers)
        world.campaign(targets=PEOPLE, parts=NOTE, action="email")
        account = await suspended(world)
        assert reason in account.state_reason
        assert world.counts() == {"ready": 5}, "nobody is given up because of the account"

    live.play(script)
    assert not live.fake.sent


async def suspended(world: LiveWorld) -> Account:
    process = world.lively()
    await world.until_so(lambda: world.account_now().state == "suspended")
    await process.stop()
    return world.account_now()


REFUSAL = no_token(401, "unauthorized_client", "Client is unauthorized")


def test_a_grant_that_is_refused_at_once_suspends_with_the_reason(live: LiveWorld) -> None:
    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.token_answers.append(REFUSAL)
        world.campaign(targets=PEOPLE, parts=NOTE, action="email")
        account = await suspended(world)
        assert "unauthorized_client: Client is unauthorized" in account.state_reason
        assert world.counts() == {"ready": 5}

    live.play(script)
    assert not live.fake.sends()


def test_a_grant_that_is_refused_later_suspends_with_the_reason(live: LiveWorld) -> None:
    """In the middle of a campaign the token is not good any more, and there is no other."""

    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.script.append(STALE)
        world.fake.later_token_answers.append(REFUSAL)
        world.campaign(targets=PEOPLE, parts=NOTE, action="email")
        account = await suspended(world)
        assert "unauthorized_client: Client is unauthorized" in account.state_reason
        assert world.counts() == {"ready": 5}

    live.play(script)
    assert len(live.fake.sends()) == 1 and not live.fake.sent


@pytest.mark.parametrize(
    "trouble",
    [Scripted(drops="read"), Scripted(503, b"<html>", HTML), no_token(500, "internal_failure")],
    ids=["network", "page", "google"],
)
def test_trouble_on_the_way_to_a_token_suspends_nobody(live: LiveWorld, trouble: Scripted) -> None:
    """The mailbox is waited for, nobody is given up, and no retry is used up."""

    async def script(world: LiveWorld) -> None:
        world.connect()
        world.fake.token_answers.append(trouble)
        world.campaign(targets=PEOPLE, parts=NOTE, action="email")
        process = world.lively()
        await world.until_so(lambda: len(world.fake.asked_for_tokens()) == 1)
        await world.until_so(lambda: world.counts() == {"ready": 5})
        await process.stop()
        assert world.account_now().state != "suspended"
        held = world.read(lambda tx: tx.deliveries.page(run_id=1, after_id=0))
        assert {one.retries for one in held} == {0}

    live.play(script)
    assert not live.fake.sends()


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
