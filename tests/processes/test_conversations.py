"""Four processes answer what comes in over real HTTP: once each, and in turn."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.processes.service import eventually
from tests.processes.shop import Shop, shop

__all__ = ["shop"]


def test_rapid_messages_of_one_customer_and_four_customers_at_once(shop: Shop) -> None:
    with shop.open():
        for number in (1, 2, 3):
            shop.hear(f"Message {number}")
        shop.hear("Message 3", name="in-3")  # reported twice
        eventually(lambda: bool(shop.told()), "an answer")
        assert shop.told() == ["re: Message 1\nMessage 2\nMessage 3"]
        everybody = [f"3460022233{number}" for number in range(4)]
        shop.model.takes_its_time.clear()
        before = len(shop.model.calls)
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda who: shop.hear("Test", who), everybody))
        assert shop.model.await_calls(before + 4), "all four are asked about at the same time"
        shop.model.takes_its_time.set()
        eventually(lambda: all(shop.told(who) for who in everybody), "four answers")
        eventually(shop.at_rest, "everything answered")
        assert [shop.told(who) for who in everybody] == [["re: Test"]] * 4
        assert len(shop.wati.messages) == 5
