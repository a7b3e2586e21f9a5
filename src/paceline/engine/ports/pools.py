"""What the engine asks of the store about pools of accounts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

NOBODY = 0
"""The account under which pooled deliveries are counted until somebody takes them."""


class Pools(Protocol):
    def open(self, run_id: int, account_ids: Iterable[int]) -> None:
        """Let any of these accounts take the run's deliveries that are nobody's."""
        ...

    def members(self, run_id: int) -> list[int]:
        """The accounts that may, in the order of their ids; none where every delivery has one."""
        ...

    def of_account(self, account_id: int) -> list[int]:
        """The runs of which this account may take deliveries, and that are not over."""
        ...

    def hand_over(self, account_id: int, run_id: int, owners: Mapping[int, int]) -> dict[int, int]:
        """Give deliveries of one account to others, by their ids, as far as they wait there and
        were never begun; how many each other account has got."""
        ...

    def give_back(self, account_id: int) -> list[int]:
        """Make what waits with this account, and was never begun, nobody's again; its runs."""
        ...
