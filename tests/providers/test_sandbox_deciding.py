"""The sandbox's short ways to a decision: they lead where the long ones do."""

from typing import Any

import pytest

from paceline.core.outcome import OutcomeKind
from paceline.providers.sandbox import SandboxSettings, fates, read_settings
from tests.providers.stage import Stage, message


@pytest.mark.parametrize(
    ("target", "word"),
    [
        ("bounce+reject@example.com", "bounce"),
        ("anna+x+reject+bounce@example.com", "reject"),
        ("+lost", "lost"),
        ("FLA\u212aY@example.com", "flaky"),
        ("anna+bouncer@example.com", None),
        ("anna@example.com+bounce", None),
        ("@bounce", None),
        ("", None),
    ],
)
def test_the_first_word_of_the_local_part_counts(target: str, word: str | None) -> None:
    assert fates.speaks(target) == (word is not None)
    expected = None if word is None else fates.fate_of_address(word, 1)
    assert fates.fate_of_address(target, 1) == expected


def test_an_easy_account_decides_as_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["anna", "bounce", "flaky", "ban", "timeout", "lost", "slow"]
    sends = [message(f"k{n}", f"{word}@example.com") for n, word in enumerate(words * 2)]
    sends += [message("x", action="telegram"), message("y", media="m", handle="made up")]
    short, whole = Stage(), Stage()
    answers = short.send_all(sends, timeout_latency="0s")
    monkeypatch.setattr(SandboxSettings, "easy", False)
    assert whole.send_all(sends, timeout_latency="0s") == answers
    assert whole.effects.all() == short.effects.all()


@pytest.mark.parametrize(
    "settings",
    [
        *({f"{fate}_rate": 0.1} for fate in fates.DRAWN_FATES),
        *({f"{fate}_at": [1]} for fate in fates.DRAWN_FATES),
        {"throttle_every": 2},
        {"quota_per_minute": 1},
        {"quota_per_day": 1},
        {"ban_after": 1},
        {"unauthorised": True},
        {"unauthorised_after": 1},
        {"unavailable": ["2026-11-15T09:01Z..2026-11-15T09:02Z"]},
        {"deduplicates": True},
    ],
)
def test_whatever_may_refuse_a_send_is_not_easy(settings: dict[str, Any]) -> None:
    assert read_settings({}).easy
    assert not read_settings(settings).easy


def test_a_ban_outlives_the_setting_that_brought_it_about() -> None:
    stage = Stage()
    answers = stage.send_all([message("k1"), message("k2")], ban_after=1)
    answers += stage.send_all([message("k3")])
    accepted, banned = OutcomeKind.ACCEPTED, OutcomeKind.BANNED
    assert [answer.kind for answer in answers] == [accepted, banned, banned]
