"""A campaign on a real clock, with a policy whose pauses are short enough to be waited for."""

from itertools import pairwise

from tests.processes.service import Installation, eventually

COUNT = 100
SPACING_US = 20_000
BATCH, PAUSE_US = 25, 400_000


def test_a_hundred_messages_keep_their_pace_on_a_real_clock(installation: Installation) -> None:
    installation.run(
        "account", "add", "ann", "--provider", "sandbox", "--option", "latency=5ms",
        "--set", "spacing=20ms..40ms", "--set", "batch=25 then 400ms", "--set", "retry=100ms",
        "--set", "daily.message=1000",
    )  # fmt: skip
    with installation.service("first") as first:
        installation.campaign("spring", COUNT, "ann")
        eventually(lambda: installation.finished("spring"), "the campaign ended")
        assert first.terminate() == 0
    sends = sorted(
        (effect for effect in installation.effects() if effect.kind == "send" and effect.accepted),
        key=lambda effect: effect.called_at,
    )
    assert len({effect.key for effect in sends}) == len(sends) == COUNT
    gaps = [after.called_at - before.called_at for before, after in pairwise(sends)]
    assert min(gaps) >= SPACING_US
    # After every full batch the pause comes on top of the spacing.
    rests = [gaps[number - 1] for number in range(BATCH, COUNT, BATCH)]
    assert min(rests) >= SPACING_US + PAUSE_US
    status = installation.ask("campaign", "status", "spring")
    assert status["counts"]["sent"] == status["total"] == COUNT
    assert installation.ask("verify")["violations"] == []
    rows = installation.run("campaign", "export", "spring").stdout.splitlines()
    assert len(rows) == COUNT + 1
