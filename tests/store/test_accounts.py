"""Accounts and their policies' versions."""

import pytest

from paceline.core.errors import ConflictError, IllegalTransition, NotFoundError, StoreError
from paceline.core.states import ACCOUNT, AccountState
from tests.store.scene import T0, Scene


def test_an_account_is_kept_as_it_was_given(scene: Scene) -> None:
    body = {"rate": "40/min", "daily": {"email": 20}}
    with scene.store.write() as tx:
        policy_id = tx.policies.version("own", body, T0)
        made = tx.accounts.add(
            name="ann",
            provider="smtp",
            address="ann@example.com",
            settings={"host": "mail", "port": 25},
            policy_name="smtp",
            overrides={"rate": "40/min"},
            policy_id=policy_id,
            at=T0,
        )
        assert tx.accounts.get(made.id) == made
        assert tx.accounts.find("ann") == made
        assert tx.accounts.list() == [made]
        assert tx.lanes.get(made.id).generation == 0
    assert made.settings == {"host": "mail", "port": 25}
    assert (made.overrides, made.policy) == ({"rate": "40/min"}, body)
    assert (made.state, made.state_reason, made.state_until_at) == (AccountState.ACTIVE, "", None)
    assert (made.warm_since_at, made.created_at, made.removed_at) == (T0, T0, None)


def test_a_name_is_used_once_and_the_transaction_survives_the_refusal(scene: Scene) -> None:
    scene.account("ann")
    with scene.store.write() as tx:
        policy_id = tx.policies.version("preset", {"rate": "1/s"}, T0)
        with pytest.raises(ConflictError, match="an account named 'ann' exists already"):
            tx.accounts.add(
                name="ann",
                provider="sandbox",
                address="",
                settings={},
                policy_name=None,
                overrides={},
                policy_id=policy_id,
                at=T0,
            )
        assert len(tx.accounts.list()) == 1


@pytest.mark.parametrize("table", ["lanes", "usage"])
def test_an_account_is_not_made_where_its_lane_or_its_usage_is_there_already(
    fresh_scene: Scene, table: str
) -> None:
    """Somebody else's generation and limits are not taken for those of a new account."""
    scene = fresh_scene
    first = scene.account()
    if scene.kind == "postgresql":
        scene.sql(f"ALTER TABLE {table} DISABLE TRIGGER ALL")  # a row of nobody's
    columns = "account_id, generation, revision" if table == "lanes" else "account_id"
    values = ":id, 7, 9" if table == "lanes" else ":id"
    scene.sql(f"INSERT INTO {table} ({columns}) VALUES ({values})", id=first + 1)
    with pytest.raises(StoreError, match=table):
        scene.account()
    with scene.store.read() as tx:
        assert [account.id for account in tx.accounts.list()] == [first]


def test_a_removed_account_gives_its_name_back(scene: Scene) -> None:
    first = scene.account("ann")
    with scene.store.write() as tx:
        tx.accounts.update(first, removed_at=T0 + 1)
        assert tx.accounts.find("ann") is None
        assert tx.accounts.list() == []
    second = scene.account("ann")
    with scene.store.read() as tx:
        assert [account.id for account in tx.accounts.list()] == [second]
        assert [account.id for account in tx.accounts.list(with_removed=True)] == [first, second]
        assert tx.accounts.get(first).removed_at == T0 + 1


def test_changes_are_named(scene: Scene) -> None:
    account_id = scene.account()
    with scene.store.write() as tx:
        policy_id = tx.policies.version(None, {"rate": "2/s"}, T0)
        tx.accounts.update(
            account_id,
            address="new@example.com",
            settings={"a": [1]},
            overrides={"rate": "2/s"},
            policy_id=policy_id,
            policy_name=None,
            warm_since_at=T0 + 5,
        )
        tx.accounts.update(account_id)
        account = tx.accounts.get(account_id)
        assert (account.address, account.settings) == ("new@example.com", {"a": [1]})
        assert (account.policy_name, account.policy) == (None, {"rate": "2/s"})
        assert account.warm_since_at == T0 + 5
        with pytest.raises(TypeError, match="state"):
            tx.accounts.update(account_id, state="paused")
        with pytest.raises(NotFoundError, match="account 999999 does not exist"):
            tx.accounts.update(999_999, address="")
        with pytest.raises(NotFoundError, match="account 999999 does not exist"):
            tx.accounts.get(999_999)


def test_every_event_moves_exactly_where_the_table_says(scene: Scene) -> None:
    account_id = scene.account()
    events = sorted({event for _, event in ACCOUNT.table})
    for state in AccountState:
        for event in events:
            scene.sql(
                "UPDATE accounts SET state = :state WHERE id = :id",
                state=state.value,
                id=account_id,
            )
            expected = ACCOUNT.table.get((state, event))
            with scene.store.write() as tx:
                found = tx.accounts.move(account_id, event, reason="why", until_at=T0 + 1)
                assert found is expected
                after = tx.accounts.get(account_id)
                assert after.state is (expected or state)
    with scene.store.write() as tx:
        assert (after.state_reason, after.state_until_at) == ("why", T0 + 1)
        with pytest.raises(IllegalTransition):
            tx.accounts.move(account_id, "explode")
        with pytest.raises(NotFoundError):
            tx.accounts.move(999_999, "pause")


def test_a_policy_has_a_version_for_every_body_it_ever_had(scene: Scene) -> None:
    with scene.store.write() as tx:
        first = tx.policies.version("cold", {"rate": "1/s", "hours": "Mon-Fri"}, T0)
        again = tx.policies.version("cold", {"hours": "Mon-Fri", "rate": "1/s"}, T0 + 1)
        second = tx.policies.version("cold", {"rate": "2/s"}, T0 + 2)
        nameless = tx.policies.version(None, {"rate": "2/s"}, T0 + 3)
        assert tx.policies.version(None, {"rate": "2/s"}, T0 + 4) == nameless
        assert first == again
        assert len({first, second, nameless}) == 3
        assert list(tx.policies.body(first)) == ["rate", "hours"]
        assert tx.policies.body(second) == {"rate": "2/s"}
        with pytest.raises(NotFoundError, match="policy 999999 does not exist"):
            tx.policies.body(999_999)
