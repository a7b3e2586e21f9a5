"""Reports with text that no database can keep, or no index: they are taken in all the same.

Whoever reports repeats what was refused, for ever, and with it all that was reported beside it.
"""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from paceline.engine.commands import returns
from paceline.engine.ports import Inbound, News, Receipt
from paceline.engine.ports.webhooks import Accepted, AccountNews, Returned, Typing
from tests.engine.talking import EVA, answered
from tests.engine.world import World

ODD = "a\0b\ud800"
LONG = "".join(map(chr, Random(7).choices(range(0x4E00, 0x9FFF), k=2_500)))
"""At random, for PostgreSQL would pack anything else until it fits into an index."""


def reports(odd: str) -> dict[str, News]:
    return {
        "message": Inbound(odd, odd, odd, odd, 0, kind=odd, subject=odd, answers=odd, also=(odd,)),
        "group": Inbound("g", odd, odd, odd, 0, group=True, also=(odd,)),
        "ours": Inbound("o", odd, odd, odd, 0, from_us=True),
        "stop": Inbound(f"s{odd}", odd, odd, "STOP", 0, also=(odd,)),
        "start": Inbound(f"t{odd}", odd, odd, "START", 0, also=(odd,)),
        "accepted": Accepted((odd,), 0),
        "typing": Typing(odd, 0),
        "receipt": Receipt(odd, "read", 0, code=odd, reason=odd),
        "failed receipt": Receipt(odd, "failed", 0, code=odd, reason=odd, key=odd),
        "returned": Returned("bounced", odd, odd, 0, code=odd, key=odd),
        "complaint": Returned("complaint", odd, odd, 0, code=odd, key=odd),
        "account": AccountNews("refused", odd, 0),
    }


@pytest.mark.parametrize(
    ("odd", "kept_as"), [(ODD, "ab?"), (LONG, LONG[:666]), (LONG[:900], LONG[:666])]
)
def test_a_report_is_taken_in_whatever_it_says(on_either: World, odd: str, kept_as: str) -> None:
    async def script(world: World) -> None:
        answered(world)
        account, every = world.account_now(), reports(odd)
        for name, said in every.items():
            news = [said, Inbound(name, EVA, EVA, f"beside {name}", 0)]
            take_in = partial(returns.take_in, account=account, news=news, at=world.clock.now())
            assert world.write(take_in).received >= 1, name
            assert world.write(take_in).received == 0, f"{name} was here before"
            stopped = world.read(lambda tx: tx.suppressions.find(kept_as)) is not None
            assert stopped is (name == "stop")
        found = world.read(lambda tx: tx.inbox.latest(limit=100))
        assert {one.text for one in found if one.chat == EVA} == {f"beside {one}" for one in every}
        assert {one.chat for one in found} == {EVA, kept_as}

    on_either.play(script)
