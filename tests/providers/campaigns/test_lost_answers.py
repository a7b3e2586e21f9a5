"""Answers that never come: whoever can be asked is asked, and nobody is written to twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from paceline.core.instants import MILLISECOND, SECOND
from paceline.engine import leases
from tests.providers.campaigns.case import Case, Doubt
from tests.providers.campaigns.cases import CASES
from tests.providers.live import BRISK
from tests.providers.loopback import Scripted

DOUBTS = [(case, doubt) for case in CASES for doubt in case.doubts]
CRASHING = [case for case in CASES if case.crashes]
HOLDING = [case for case in CASES if case.holds]
RESENDING = [case for case in CASES if case.resent is not None]


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(("case", "doubt"), DOUBTS, ids=lambda one: one.name)
def test_a_doubt_is_resolved_by_asking(case: Case, doubt: Doubt, tmp_path: Path) -> None:
    """Providers show a message late: it is found when they do, and not sent again."""

    async def script(world: Any) -> None:
        fake = world.fake
        for name, value in doubt.fake.items():
            setattr(fake, name, value)
        world.connect()
        fake.script.append(doubt.lost)
        case.hide(fake, True)
        case.campaign(world, 1, action=doubt.action or case.action)
        process = world.lively()
        await world.until_so(lambda: case.asked(fake))
        assert world.counts() == {"unknown": 1}
        case.hide(fake, False)
        await world.until_so(lambda: world.counts() == {"sent": 1})
        await process.stop()

    with case.live(tmp_path) as world:
        world.play(script)
        assert len(world.fake.sends()) == 1


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("case", CRASHING, ids=str)
def test_a_crash_after_the_call_is_found_and_nobody_is_written_to_twice(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process dies while the provider has the message; another one takes over."""
    monkeypatch.setattr(leases, "LEASE_US", 4 * SECOND)
    monkeypatch.setattr(leases, "UNSAFE_TAIL_US", SECOND)
    monkeypatch.setattr(leases, "RENEW_EVERY_US", 500 * MILLISECOND)

    async def script(world: Any) -> None:
        world.connect(timeout="1s")
        world.fake.script.append(Scripted(hangs=True, takes=True))
        case.campaign(world)
        first = world.lively()
        await world.until_so(lambda: world.targets().total() == 1)
        await first.kill()
        second = world.process("two", poll_us=BRISK)
        await world.until_so(lambda: world.counts() == {"sent": 5})
        await second.stop()

    with case.live(tmp_path) as world:
        world.play(script)
        assert world.targets() == Counter(one.address for one in case.people)
        assert len(world.fake.sends()) == 5, "the one in doubt was looked for, and not sent again"
        assert case.asked(world.fake)


@pytest.mark.usefixtures("soon_held")
@pytest.mark.parametrize("case", HOLDING, ids=str)
def test_what_cannot_be_found_is_held_for_a_person(case: Case, tmp_path: Path) -> None:
    async def script(world: Any) -> None:
        world.connect()
        world.fake.script.append(Scripted(drops="read"))
        case.campaign(world, 1)
        await world.leave_to_a_person()
        assert world.counts() == {"unknown": 1}

    with case.live(tmp_path) as world:
        world.play(script)
        assert len(world.fake.sends()) == 1


@pytest.mark.usefixtures("soon_held")
@pytest.mark.parametrize("case", RESENDING, ids=str)
def test_what_is_sent_again_by_choice_has_the_same_id(case: Case, tmp_path: Path) -> None:
    """Even where the first one was out after all."""

    async def script(world: Any) -> None:
        world.connect(on_unknown="resend", retry="50ms")
        world.twice_allowed = case.takes_twice
        world.fake.script.append(Scripted(drops="read", takes=True))
        case.hide(world.fake, True)
        case.campaign(world, 1)
        process = world.lively()
        await world.until_so(lambda: world.counts() == {"sent": 1})
        await process.stop()

    with case.live(tmp_path) as world:
        world.play(script)
        assert case.resent is not None
        case.resent(world)
