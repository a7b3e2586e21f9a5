"""Engines with a defect that they get over by themselves: it shows in nothing but the crashes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from paceline.engine.lane import Lane
from paceline.engine.memory import LaneMemory
from tests.sim.small import RATE, SOON
from tests.sim.twins import Twin

DEFECT = "never a defect"
ALTOGETHER = 30


def lanes_cannot_be_parked(patch: pytest.MonkeyPatch) -> None:
    async def park(*_: Any) -> None:
        raise KeyError(1)

    patch.setattr(Lane, "_park", park)


def answers_cannot_be_settled_any_more(patch: pytest.MonkeyPatch) -> None:
    """After a while. What was under way when its lane crashed is put right by the next."""
    settled = LaneMemory.settled
    answers: list[Any] = []

    def amiss(self: LaneMemory, *answer: Any) -> Any:
        answers.append(answer)
        if len(answers) == ALTOGETHER:
            raise KeyError("what it was about")
        return settled(self, *answer)

    patch.setattr(LaneMemory, "settled", amiss)


def lanes_hang_and_are_restarted(patch: pytest.MonkeyPatch) -> None:
    async def park(*_: Any) -> None:
        await asyncio.get_running_loop().create_future()

    patch.setattr(Lane, "_park", park)


DEFECT_TWINS = (
    Twin(lanes_cannot_be_parked, DEFECT, RATE, 1),
    Twin(lanes_hang_and_are_restarted, DEFECT, SOON, 1, faults="none"),
    Twin(answers_cannot_be_settled_any_more, DEFECT, RATE, 1),
)
