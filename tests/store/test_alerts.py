"""Alerts in both databases: one open per key, counted up, taken by one process at a time."""

from dataclasses import replace

from paceline.core.instants import HOUR, MINUTE
from paceline.engine.ports import Alert, LedgerRow, NewAlert, OpenKind, Tx
from tests.store.scene import T0, Scene

NEW = NewAlert("breaker:1", "campaign.breaker", "paused", (("gone", 2),), account_id=3, run_id=1)


def put(scene: Scene, at: int, new: NewAlert = NEW) -> Alert:
    with scene.store.write() as tx:
        tx.alerts.put(new, at)
        return next(alert for alert in tx.alerts.list() if alert.key == new.key)


def untold(scene: Scene, now: int) -> list[int]:
    with scene.store.read() as tx:
        found = tx.alerts.untold(now, again_us=HOUR, abandoned_us=MINUTE)
    return [alert.id for alert in found]


def test_the_same_thing_while_it_is_open_only_counts_up(scene: Scene) -> None:
    first = put(scene, T0)
    assert first == Alert(
        first.id,
        "breaker:1",
        "campaign.breaker",
        "paused",
        (("gone", 2),),
        1,
        T0,
        T0,
        None,
        None,
        3,
        1,
    )
    again = put(scene, T0 + 5, replace(NEW, text="paused again"))
    assert (again.id, again.count, again.first_at, again.last_at) == (first.id, 2, T0, T0 + 5)
    assert again.text == "paused again"
    with scene.store.write() as tx:
        assert tx.alerts.clear(T0 + 6, run_id=1) == 1
        assert tx.alerts.clear(T0 + 7, run_id=1) == 0
    fresh = put(scene, T0 + 8)
    assert (fresh.id > first.id, fresh.count) == (True, 1)
    with scene.store.read() as tx:
        assert [alert.id for alert in tx.alerts.list()] == [fresh.id]
        both = tx.alerts.list(with_cleared=True)
        assert [alert.id for alert in both] == [fresh.id, first.id]
        assert both[1].cleared_at == T0 + 6
        assert tx.alerts.get(first.id) == both[1]
        assert tx.alerts.get(10_000) is None


def test_whatever_a_stranger_said_can_be_kept(scene: Scene) -> None:
    hostile = 'a\0b\ud800 "quoted" \n end' + "x" * 5_000
    kept = put(scene, T0, NewAlert("k", "account.suspended", hostile, ((hostile, 1),)))
    assert kept.text.startswith('ab? "quoted" \n end')
    assert kept.reasons[0][0] == kept.text


def test_clearing_takes_only_what_is_meant(scene: Scene) -> None:
    for key, kind, account_id in (("a", "x", 1), ("b", "y", 1), ("c", "x", 2)):
        put(scene, T0, NewAlert(key, kind, key, account_id=account_id))
    with scene.store.write() as tx:
        assert tx.alerts.clear(T0, account_id=1, kinds=["x"]) == 1
        assert sorted(alert.key for alert in tx.alerts.list()) == ["b", "c"]
        assert tx.alerts.clear(T0, kinds=["x"], quiet_since_at=T0 - 1) == 0
        assert tx.alerts.clear(T0, kinds=["x"], quiet_since_at=T0) == 1
        assert [alert.key for alert in tx.alerts.list()] == ["b"]


def set_out(tx: Tx, *alerts: Alert, now: int) -> list[int]:
    numbers = [alert.id for alert in alerts]
    ours = tx.alerts.set_out(numbers, now, again_us=HOUR, abandoned_us=MINUTE)
    return [alert.id for alert in ours]


def test_telling_is_taken_by_one_and_given_up_after_a_while(scene: Scene) -> None:
    alert = put(scene, T0)
    assert untold(scene, T0) == [alert.id]
    with scene.store.write() as tx:
        assert set_out(tx, alert, now=T0) == [alert.id]
    with scene.store.write() as tx:
        assert set_out(tx, alert, now=T0 + 1) == []
    assert untold(scene, T0 + MINUTE - 1) == []
    assert untold(scene, T0 + MINUTE) == [alert.id]
    with scene.store.write() as tx:
        tx.alerts.told([alert.id], None)
    assert untold(scene, T0 + 2) == [alert.id]
    with scene.store.write() as tx:
        assert set_out(tx, alert, now=T0 + 2) == [alert.id]
        tx.alerts.told([alert.id], T0 + 2)
    # By what another process has read before, it is untold; its guard knows better.
    with scene.store.write() as tx:
        assert set_out(tx, alert, now=T0 + 9) == []
    assert untold(scene, T0 + 2 * HOUR) == []
    put(scene, T0 + 3)
    assert untold(scene, T0 + 1 + HOUR) == []
    assert untold(scene, T0 + 2 + HOUR) == [alert.id]


def test_a_clock_that_was_ahead_does_not_hide_an_alert(scene: Scene) -> None:
    alert = put(scene, T0)
    with scene.store.write() as tx:
        assert set_out(tx, alert, now=T0 + 900 * HOUR) == [alert.id]
    assert untold(scene, T0) == [alert.id]


def test_told_by_a_clock_that_was_behind_nothing_is_new(scene: Scene) -> None:
    """Whether it has happened again is a matter of how often, and not of whose clock."""
    alert = put(scene, T0)
    with scene.store.write() as tx:
        assert set_out(tx, alert, now=T0 - 2 * HOUR) == [alert.id]
        tx.alerts.told([alert.id], T0 - 2 * HOUR)
    assert untold(scene, T0 + MINUTE) == []
    put(scene, T0 + MINUTE)
    assert untold(scene, T0 + MINUTE) == [alert.id]


def test_told_by_a_clock_that_was_ahead_it_is_told_again_when_it_happens_again(
    scene: Scene,
) -> None:
    alert = put(scene, T0)
    with scene.store.write() as tx:
        assert set_out(tx, alert, now=T0 + 900 * HOUR) == [alert.id]
        tx.alerts.told([alert.id], T0 + 900 * HOUR)
    assert untold(scene, T0 + HOUR) == []
    put(scene, T0 + HOUR)
    assert untold(scene, T0 + HOUR) == [alert.id]


def test_what_happens_while_it_is_being_told_is_news(scene: Scene) -> None:
    alert = put(scene, T0)
    with scene.store.write() as tx:
        assert set_out(tx, alert, now=T0) == [alert.id]
    put(scene, T0)
    with scene.store.write() as tx:
        tx.alerts.told([alert.id], T0)
    assert untold(scene, T0 + HOUR) == [alert.id]


def test_a_clock_that_is_a_little_behind_knows_that_another_tells(scene: Scene) -> None:
    """The clocks of a fleet are never quite the same, and nobody is told twice for that."""
    alert = put(scene, T0)
    with scene.store.write() as tx:
        assert set_out(tx, alert, now=T0 + 9) == [alert.id]
    assert untold(scene, T0 + 5) == []
    with scene.store.write() as tx:
        assert set_out(tx, alert, now=T0 + 5) == []


def test_many_are_taken_and_told_in_one_go(scene: Scene) -> None:
    many = [put(scene, T0, NewAlert(f"k{n}", "x", "y", account_id=n)) for n in range(7)]
    with scene.store.write() as tx:
        assert set_out(tx, many[2], now=T0) == [many[2].id]
    with scene.store.write() as tx:
        tx.alerts.clear(T0, alert_id=many[4].id)
        ours = set_out(tx, *many, now=T0 + 1)
        # Not the one that another process tells, nor the one that is cleared.
        assert ours == [many[number].id for number in (0, 1, 3, 5, 6)]
        tx.alerts.told(ours, T0 + 1)
    assert untold(scene, T0 + MINUTE) == [many[2].id]


def test_what_is_open_of_each_kind_taken_together(scene: Scene) -> None:
    first = put(scene, T0, NewAlert("a", "x", "a"))
    second = put(scene, T0 + 9, NewAlert("b", "x", "b"))
    put(scene, T0 + 5, NewAlert("c", "y", "c"))
    gone = put(scene, T0 + 1, NewAlert("d", "z", "d"))
    with scene.store.write() as tx:
        tx.alerts.clear(T0 + 10, alert_id=gone.id)
        set_out(tx, first, now=T0 + 11)
        tx.alerts.told([first.id], T0 + 11)
        set_out(tx, second, now=T0 + 12)
        assert tx.alerts.kinds() == [
            OpenKind("x", T0, T0 + 11, T0 + 12),
            OpenKind("y", T0 + 5, None, None),
        ]


def test_only_what_is_open_about_somebody_is_found(scene: Scene) -> None:
    one = put(scene, T0, NewAlert("a", "x", "a", account_id=1))
    two = put(scene, T0 + 1, NewAlert("b", "x", "b", account_id=2, run_id=7))
    put(scene, T0, NewAlert("c", "x", "c", account_id=3))
    with scene.store.write() as tx:
        assert tx.alerts.about([1], [7]) == [two, one]
        assert tx.alerts.about([], []) == []
        tx.alerts.clear(T0, alert_id=two.id)
        assert tx.alerts.about([1, 2], [7]) == [one]


def said(scene: Scene, at: int, account_id: int, run_id: int, outcome: str, reason: str) -> None:
    row = LedgerRow(
        delivery_id=at,
        part=0,
        attempt=1,
        kind="outcome",
        account_id=account_id,
        run_id=run_id,
        action="message",
        at=at,
        intent_at=at,
        started_at=at,
        slots=0,
        policy_id=1,
        generation=1,
        outcome=outcome,
        reason=reason,
    )
    with scene.store.write() as tx:
        assert tx.ledger.append(row)


def test_reasons_are_grouped_by_what_was_said(scene: Scene) -> None:
    said(scene, 1, 3, 7, "rejected", "refused")
    said(scene, 2, 3, 7, "bounced", "gone")
    said(scene, 3, 3, 7, "accepted", "")
    said(scene, 4, 3, 7, "bounced", "gone")
    said(scene, 5, 3, 7, "transient", "")
    said(scene, 6, 3, 8, "bounced", "other run")
    said(scene, 7, 4, 7, "bounced", "other account")
    failed = ["rejected", "bounced", "transient"]
    with scene.store.read() as tx:
        ask = tx.alerts.reasons
        most, *rest = ask(3, failed, run_id=7)
        assert most == ("gone", 2)
        assert sorted(rest) == [("refused", 1), ("transient", 1)]
        # The latest two only: what came before is not what tripped the breaker.
        assert sorted(ask(3, failed, run_id=7, latest=2)) == [("gone", 1), ("transient", 1)]
        assert sorted(ask(3, ["bounced"])) == [("gone", 2), ("other run", 1)]
        assert ask(3, ["bounced"], since_at=6) == [("other run", 1)]
        assert ask(3, []) == []
