"""Named policies: presets, an installation's own, and what holds for an account in the end."""

from typing import Any

import pytest

from paceline.core.errors import ConflictError, InputError
from paceline.core.presets import PRESETS
from paceline.engine.catalogue import Catalogue, apply_catalogue
from paceline.engine.commands.accounts import House
from tests.engine.world import World


def test_every_preset_can_be_named_and_holds_as_written() -> None:
    catalogue = Catalogue()
    assert catalogue.names() == sorted(PRESETS)
    for name in PRESETS:
        policy = catalogue.effective(name, {}, where=name)
        assert catalogue.effective(None, policy.to_mapping(), where=name) == policy


def test_an_accounts_own_value_comes_before_the_policys_and_the_default() -> None:
    catalogue = Catalogue({"ours": {"extends": "gmail", "daily": {"email": 100}, "rate": "9/min"}})
    found = catalogue.effective("ours", {"rate": "3/min", "daily": {"message": 5}}, where="x")
    assert str(found.rate) == "3/min"
    assert dict(found.daily) == {"email": 100, "message": 5}
    assert (found.zone, found.concurrency) == ("UTC", 1)


def test_a_policy_without_extends_stands_alone() -> None:
    catalogue = Catalogue({"ours": {"rate": "9/min"}})
    assert catalogue.effective("ours", {}, where="x").to_mapping() == {"rate": "9/min"}
    assert "ours" in catalogue.names()


def test_a_limit_of_a_preset_can_be_switched_off() -> None:
    found = Catalogue().effective("cold-email", {"spacing": "off", "hours": "off"}, where="x")
    assert (found.spacing, found.hours) == (None, None)
    assert dict(found.daily) == {"email": 20}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a name of a preset": ({"gmail": {"rate": "1/s"}}, "policy.gmail: a preset has this name"),
    "an unknown key": ({"ours": {"rte": "1/s"}}, "policy.ours: unknown key 'rte'"),
    "a bad value": ({"ours": {"rate": "fast"}}, "policy.ours: rate: "),
    "no such base": ({"ours": {"extends": "gmial"}}, "did you mean 'gmail'"),
    "one's own as a base": (
        {"ours": {"extends": "base"}, "base": {"rate": "1/s"}},
        "policy.ours.extends: can only extend a preset",
    ),
    "itself as a base": ({"ours": {"extends": "ours"}}, "policy.ours.extends: "),
    "a base that is none": ({"ours": {"extends": ["gmail"]}}, "policy.ours.extends: "),
    "no table": ({"ours": "fast"}, "policy.ours: "),
}


@pytest.mark.parametrize(("own", "text"), BAD.values(), ids=BAD.keys())
def test_a_bad_policy_is_refused_with_its_name_and_key(own: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError) as caught:
        Catalogue(own)
    assert text in str(caught.value), str(caught.value)


def test_a_preset_may_not_be_redefined() -> None:
    with pytest.raises(ConflictError, match='write extends = "gmail"'):
        Catalogue({"gmail": {}})


def test_an_unknown_policy_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown policy 'cold-mail', did you mean 'cold-email'"):
        Catalogue().raw("cold-mail")


def test_a_changed_file_reaches_the_accounts_that_name_the_policy_and_no_other(
    world: World,
) -> None:
    async def script(world: World) -> None:
        world.house = House(world.providers, Catalogue({"ours": {"rate": "9/min"}}))
        world.account("ann", preset="ours")
        world.account("bob", preset="gmail")
        world.account("cid", preset="ours", policy={"rate": "5/min"})
        before = {name: world.account_now(name) for name in ("ann", "bob", "cid")}
        lanes = world.read(lambda tx: [tx.lanes.get(a.id).revision for a in tx.accounts.list()])
        changed = Catalogue({"ours": {"rate": "7/min"}})
        touched = world.write(lambda tx: apply_catalogue(tx, changed, 1))
        assert [account.name for account in touched] == ["ann"]
        assert world.account_now("ann").policy == {"rate": "7/min"}
        assert world.account_now("bob") == before["bob"]
        assert world.account_now("cid") == before["cid"]
        after = world.read(lambda tx: [tx.lanes.get(a.id).revision for a in tx.accounts.list()])
        assert [b - a for a, b in zip(lanes, after, strict=True)] == [1, 0, 0]
        assert world.write(lambda tx: apply_catalogue(tx, changed, 1)) == []

    world.play(script)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({}, "account ann: policy: unknown policy 'ours'"),
        ({"ours": {"spacing": "3s", "adaptive": {"between": "2s..4s"}}}, "ann: spacing: "),
    ],
)
def test_a_file_that_no_longer_suits_an_account_is_refused_naming_it(
    world: World, changed: dict[str, Any], text: str
) -> None:
    async def script(world: World) -> None:
        world.house = House(world.providers, Catalogue({"ours": {"rate": "9/min"}}))
        world.account("ann", preset="ours", policy={"spacing": "9s"})
        before = world.account_now()
        with pytest.raises(InputError) as caught:
            world.write(lambda tx: apply_catalogue(tx, Catalogue(changed), 1))
        assert text in str(caught.value), str(caught.value)
        assert world.account_now() == before

    world.play(script)
