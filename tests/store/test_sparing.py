"""How often a person is written to: counted at every address, and kept in the intent itself."""

from concurrent.futures import ThreadPoolExecutor

from paceline.core.instants import DAY
from paceline.engine.ports import Address, Contact, Intent
from paceline.engine.ports.path import Sparing
from tests.store.counting import counted
from tests.store.scene import T0, Lane, Scene, intent, settlement, unit

MAIL, PHONE = "anna@example.com", "+4915112345678"


def anna(scene: Scene) -> int:
    with scene.store.write() as tx:
        (contact_id,) = tx.contacts.add([Contact(0, ())], T0)
        both = (Address("email", MAIL), Address("phone", PHONE))
        tx.contacts.give([(contact_id, entry) for entry in both])
    return contact_id


def sent(scene: Scene, at: int, target: str, contact_id: int | None = None) -> None:
    lane, run_id, delivery_id = scene.on_its_way(target=target, contact_id=contact_id)
    done = settlement(delivery_id, run_id, settled_at=at)
    assert scene.settle(lane, done).settled == (True,)


def test_a_person_is_the_same_at_every_address(scene: Scene) -> None:
    contact_id = anna(scene)
    sent(scene, T0 + 10, MAIL)
    sent(scene, T0 + 20, PHONE, contact_id)
    sent(scene, T0 + 30, "anna@old.example.com", contact_id)
    sent(scene, T0 + 40, "bob@example.com")
    sent(scene, T0 + 50, PHONE)
    scene.on_its_way(target="another", contact_id=contact_id)  # its intent is of T0
    with scene.store.read() as tx:
        contacted = tx.deliveries.contacted
        people = {MAIL: contact_id}
        every = (T0, T0 + 10, T0 + 20, T0 + 30, T0 + 50)
        assert contacted([MAIL], T0, people) == {MAIL: every}
        assert contacted([MAIL], T0 + 25, people) == {MAIL: (T0 + 30, T0 + 50)}
        assert contacted([MAIL], T0) == {MAIL: every}, "whoever has the address by now"
        assert contacted([PHONE, "bob@example.com"], T0) == {
            PHONE: every,
            "bob@example.com": (T0 + 40,),
        }


def test_five_hundred_people_take_a_handful_of_statements(scene: Scene) -> None:
    with scene.store.write() as tx:
        ids = tx.contacts.add([Contact(0, ())] * 500, T0)
        mails = [f"p{n}@example.com" for n in range(500)]
        tx.contacts.give([(i, Address("email", m)) for i, m in zip(ids, mails, strict=True)])
    sent(scene, T0 + 1, "p7@example.com")
    with scene.store.read() as tx, counted() as asked:
        found = tx.deliveries.contacted(mails, T0, dict(zip(mails, ids, strict=True)))
    assert found == {"p7@example.com": (T0 + 1,)}
    assert len(asked) == 5


def ready(
    scene: Scene, target: str, contact_id: int | None, sparing: bool = True
) -> tuple[Lane, Intent]:
    """A lane, and its wish to write to somebody who is to hear from us once a day."""
    account_id, run_id = scene.account(), scene.run()
    lane = scene.lane(account_id)
    delivery_id = scene.delivery(run_id, account_id, target=target, contact_id=contact_id)
    spare = Sparing(target, contact_id, 1, T0 - DAY) if sparing else None
    return lane, intent(delivery_id, run_id, sparing=spare)


def test_of_two_intents_for_one_person_the_second_does_not_pass(scene: Scene) -> None:
    contact_id = anna(scene)
    one, first = ready(scene, MAIL, contact_id)
    two, second = ready(scene, PHONE, contact_id)
    three, reckless = ready(scene, PHONE, contact_id, sparing=False)
    assert scene.intend(one, first).intended
    result = scene.intend(two, second)
    assert (result.held, result.intended) == (True, False)
    assert scene.state(second.delivery_id) == "ready"
    assert scene.intend(three, reckless).intended, "an account without the limit does not look"


def test_nor_does_one_that_was_created_before_the_person_was_known(scene: Scene) -> None:
    contact_id = anna(scene)
    one, first = ready(scene, PHONE, contact_id)
    two, second = ready(scene, MAIL, None)
    assert scene.intend(one, first).intended
    assert not scene.intend(two, second).intended
    group = [ready(scene, "anna-2", None), ready(scene, MAIL, None)]
    results = scene.apply(*(unit(lane, wish) for lane, wish in group))
    assert [result.intended for result in results] == [True, False], "nobody's counts alone"


def test_nor_do_two_in_one_group(scene: Scene) -> None:
    contact_id = anna(scene)
    wishes = [
        ready(scene, MAIL, contact_id),
        ready(scene, PHONE, contact_id),
        ready(scene, "bob@example.com", None),
        ready(scene, "bob@example.com", None),
    ]
    results = scene.apply(*(unit(lane, wish) for lane, wish in wishes))
    assert [result.intended for result in results] == [True, False, True, False]


def test_two_processes_cannot_write_to_one_person_at_once(postgres_scene: Scene) -> None:
    """On a server both are under way at the same time: the second waits for the first."""
    scene, contact_id = postgres_scene, anna(postgres_scene)
    one, first = ready(scene, MAIL, contact_id)
    two, second = ready(scene, PHONE, contact_id)
    with ThreadPoolExecutor(1) as pool:
        with scene.store.write() as tx:
            assert tx.path.apply([unit(one, first)])[0].intended
            later = pool.submit(scene.intend, two, second)
            waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            while not scene.sql(waiting):
                assert not later.done(), "it did not wait"
        assert not later.result().intended


def test_who_was_written_to_long_ago_may_be_again(scene: Scene) -> None:
    contact_id = anna(scene)
    sent(scene, T0 - 2 * DAY, PHONE, contact_id)
    one, wish = ready(scene, MAIL, contact_id)
    assert scene.intend(one, wish).intended
