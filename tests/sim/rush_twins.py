"""Broken twins of lanes that look ahead: the next intent is written while a call is out, and with
one precaution taken away it goes when it must not.
"""

from __future__ import annotations

from typing import Any

import pytest

from paceline.engine import lookahead
from tests.sim.small import RUSHING
from tests.sim.twins import Twin


def the_answer_before_is_not_heard(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(lookahead, "is_plain_yes", lambda *_: True)


def the_call_before_is_not_waited_for(patch: pytest.MonkeyPatch) -> None:
    async def at_once(self: lookahead.Lookahead, landed: Any) -> None:
        return None

    patch.setattr(lookahead.Lookahead, "turn", at_once)


RUSH_TWINS = (
    Twin(the_answer_before_is_not_heard, "never impatient", RUSHING, 6),
    Twin(the_call_before_is_not_waited_for, "never too close", RUSHING, 2),
)
