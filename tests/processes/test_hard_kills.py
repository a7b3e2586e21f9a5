"""``kill -9`` in the middle of a campaign, for real, judged by the sandbox's own log."""

import signal

from tests.processes.service import Installation, eventually, services

COUNT = 120
POLICY = ("--set", "timeout=2s", "--set", "rate=50/s burst 5")


def test_a_killed_service_is_restarted_and_nobody_is_contacted_twice(
    installation: Installation,
) -> None:
    for account in ("ann", "ben", "cleo"):
        installation.run("account", "add", account, "--provider", "sandbox", *POLICY)
    installation.campaign("spring", COUNT, "ann", "ben", "cleo")
    with installation.service("first") as first:
        eventually(lambda: len(installation.accepted()) > COUNT // 4, "a quarter was sent")
        first.kill()
    before = len(installation.accepted())
    assert before < COUNT, "the kill came too late to show anything"
    with installation.service("second") as second:
        eventually(lambda: installation.finished("spring"), "the campaign ended")
        assert second.terminate() == 0
    accepted = installation.accepted()
    assert len(accepted) == COUNT, "somebody was never contacted"
    assert max(accepted.values()) == 1, "somebody was contacted twice"
    status = installation.ask("campaign", "status", "spring")
    assert status["counts"]["sent"] == status["total"] == COUNT
    assert installation.ask("verify")["violations"] == []


def test_a_second_service_takes_over_from_a_killed_one(installation: Installation) -> None:
    installation.run("account", "add", "ann", "--provider", "sandbox", *POLICY)
    with services(installation, "first", "second") as (first, second):
        installation.campaign("spring", COUNT, "ann")
        eventually(lambda: len(installation.accepted()) > COUNT // 4, "a quarter was sent")
        first.kill()  # either owned the lane or did not; both must end well
        eventually(lambda: installation.finished("spring"), "the campaign ended")
        assert second.terminate() == 0
    accepted = installation.accepted()
    assert (len(accepted), max(accepted.values())) == (COUNT, 1)
    assert installation.ask("verify")["violations"] == []


def test_sigterm_settles_what_is_under_way_and_hands_the_lanes_back(
    installation: Installation,
) -> None:
    installation.run(
        "account", "add", "ann", "--provider", "sandbox", "--option", "latency=400ms",
        "--set", "concurrency=3",
    )  # fmt: skip
    installation.campaign("spring", 40, "ann")
    with installation.service("first") as first:
        eventually(lambda: len(installation.accepted()) >= 3, "something was sent")
        assert first.terminate(signal.SIGTERM) == 0
    status = installation.ask("campaign", "status", "spring")
    assert status["counts"]["sending"] == status["counts"]["unknown"] == 0
    assert status["counts"]["sent"] == len(installation.accepted()) < 40
    with installation.service("second") as second:
        # Handed back, so nobody has to wait for a lease to run out: the lane starts at once.
        second.wait_for_line('"event": "lane started"')
        eventually(lambda: installation.finished("spring"), "the campaign ended")
        assert second.terminate(signal.SIGINT) == 0
    accepted = installation.accepted()
    assert (len(accepted), max(accepted.values())) == (40, 1)


def test_a_command_beside_two_services_is_in_force_before_the_next_message(
    installation: Installation,
) -> None:
    for account in ("ann", "ben"):
        installation.run("account", "add", account, "--provider", "sandbox", "--set", "rate=20/s")
    with services(installation, "first", "second"):
        installation.campaign("spring", 2000, "ann", "ben")
        eventually(lambda: len(installation.accepted()) > 5, "something was sent")
        installation.run_apart("campaign", "pause", "spring")
        paused = installation.ask("campaign", "status", "spring")["counts"]["sent"]
        installation.run_apart("stop-all", "--reason", "test")
        counts = installation.ask("campaign", "status", "spring")["counts"]
        # What had started may have settled meanwhile: at most one message on each account.
        assert counts["sent"] - paused <= 2
        assert counts["ready"] == 2000 - counts["sent"] - counts["sending"]
        installation.run_apart("go-on")
        installation.run_apart("campaign", "cancel", "spring", "--yes")
        after = installation.ask("campaign", "status", "spring")["counts"]
        assert after["sent"] + after["cancelled"] + after["sending"] == 2000
    assert installation.ask("verify")["violations"] == []
    assert max(installation.accepted().values()) == 1
