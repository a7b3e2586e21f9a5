"""A reminder on a real clock: fired by its own rule, killed in the middle, ended by another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from paceline.engine.commands import reminders
from tests.processes.service import Installation, eventually

COUNT = 60
GAP_US = 50_000


def _runs(installation: Installation) -> list[Any]:
    return installation.look(
        lambda tx: tx.runs.of_campaign(reminders.find(tx, "standup").campaign_id)
    )


def _where_it_is_noon(at: datetime) -> str:
    """Whatever the hour of this test, the window does not end in the middle of it."""
    return f"Etc/GMT{at.hour - 12:+d}"


def test_sixty_groups_and_one_image_on_a_real_clock(installation: Installation) -> None:
    installation.run(
        "account", "add", "team", "--provider", "sandbox", "--policy", "whatsapp-established",
        "--set", "rate=1200/min", "--set", "part_gap=5ms..10ms", "--set", "retry=100ms",
        "--option", "latency=5ms..20ms",
    )  # fmt: skip
    soon = datetime.now(UTC) + timedelta(seconds=8)
    targets = ", ".join(f'"120363{number:012}@g.us"' for number in range(COUNT))
    (installation.folder / "plan.png").write_bytes(b"a picture " * 1_000)
    (installation.folder / "standup.toml").write_text(
        f'name = "standup"\naccount = "team"\ntargets = [{targets}]\n'
        f'at = "{soon:%Y-%m-%dT%H:%M:%SZ}"\nwindow = "0-24"\nzone = "{_where_it_is_noon(soon)}"\n'
        '[[parts]]\nmedia = "plan.png"\ncaption = "the plan"\n'
    )
    installation.run("reminder", "create", "-f", "standup.toml")
    with installation.service("first") as first:
        eventually(lambda: len(installation.accepted()) >= COUNT // 4, "it fired")
        first.kill()
    with installation.service("second") as second:
        eventually(lambda: _runs(installation)[0].finished_at is not None, "it ended")
        assert second.terminate() == 0
    (run,) = _runs(installation)
    assert run.total == COUNT
    accepted = installation.accepted()
    assert len(accepted) == COUNT
    assert set(accepted.values()) == {1}, "nobody was reminded twice"
    uploads = [effect for effect in installation.effects() if effect.kind == "upload"]
    assert len(uploads) == 1, "the second process sends with the first one's upload"
    calls = sorted(effect.called_at for effect in installation.effects() if effect.kind == "send")
    assert calls[-1] - calls[0] >= (COUNT - 2) * GAP_US, "never faster than its rate"
    assert installation.ask("verify")["violations"] == []
    (told,) = installation.ask("reminder", "runs", "standup")
    assert (told["state"], told["delivered"]) == ("success", COUNT)
