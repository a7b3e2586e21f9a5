"""Media, uploads, suppressions, settings and events: small things that must simply be kept."""

import hashlib

import pytest

from paceline.core.errors import InputError, NotFoundError
from paceline.core.events import EventKind
from paceline.engine.ports import Upload
from tests.store.scene import T0, Scene


def test_media_are_kept_once_by_their_digest(scene: Scene) -> None:
    content = bytes(range(256)) * 40
    with scene.store.write() as tx:
        made = tx.media.put("a.png", "image/png", content, T0)
        again = tx.media.put("b.png", "image/png", content, T0 + 1)
        assert made == again == tx.media.get(made.id)
        assert tx.media.read(made.id) == content
        assert tx.media.get("nothing") is None
        with pytest.raises(NotFoundError, match="media nothing does not exist"):
            tx.media.read("nothing")
    assert made.id == hashlib.sha256(content).hexdigest()
    assert (made.name, made.mime, made.size) == ("a.png", "image/png", len(content))


def test_a_handle_is_kept_per_account_until_a_newer_one_comes(scene: Scene) -> None:
    first, second = scene.account(), scene.account()
    with scene.store.write() as tx:
        media_id = tx.media.put("a", "text/plain", b"x", T0).id
        old = Upload(first, media_id, "old", T0, T0 + 5)
        new = Upload(first, media_id, "new", T0 + 6, None)
        other = Upload(second, media_id, "other", T0, None)
        tx.media.uploaded(old)
        assert tx.media.upload_of(first, media_id) == old
        tx.media.uploaded(new)
        tx.media.uploaded(other)
        assert tx.media.upload_of(first, media_id) == new
        assert tx.media.upload_of(first, "nothing") is None
        assert tx.media.uploads() == [new, other]
        assert tx.media.uploads(second) == [other]


def test_a_handle_is_forgotten_as_long_as_it_is_the_one_that_is_kept(scene: Scene) -> None:
    account_id = scene.account()
    with scene.store.write() as tx:
        media_id = tx.media.put("a", "text/plain", b"x", T0).id
        kept = Upload(account_id, media_id, "new", T0, None)
        tx.media.uploaded(kept)
        tx.media.forget_upload(account_id, media_id, "old")
        assert tx.media.upload_of(account_id, media_id) == kept
        tx.media.forget_upload(account_id, media_id, "new")
        assert tx.media.upload_of(account_id, media_id) is None
        tx.media.forget_upload(account_id, media_id, "new")


def test_suppressions_are_added_once_and_removed(scene: Scene) -> None:
    with scene.store.write() as tx:
        assert tx.suppressions.add("ann@example.com", "asked", "operator", T0)
        assert not tx.suppressions.add("ann@example.com", "bounced", "bounce", T0 + 1)
        assert tx.suppressions.add("bob@example.com", "bounced", "bounce", T0 + 2)
        assert tx.suppressions.has("ann@example.com")
        assert not tx.suppressions.has("Ann@example.com")
        assert tx.suppressions.list() == [
            ("ann@example.com", "asked", "operator", T0),
            ("bob@example.com", "bounced", "bounce", T0 + 2),
        ]
        assert tx.suppressions.remove("ann@example.com")
        assert not tx.suppressions.remove("ann@example.com")


def test_settings_keep_structured_values(scene: Scene) -> None:
    with scene.store.write() as tx:
        assert tx.settings.get("theme") is None
        tx.settings.put("theme", {"dark": [True, None, 1.5, "é"]})
        tx.settings.put("theme", {"dark": [False]})
        assert tx.settings.get("theme") == {"dark": [False]}
        for forbidden in (
            lambda: tx.settings.put("control", 1),
            lambda: tx.settings.get("control"),
        ):
            with pytest.raises(InputError, match="not a setting"):
                forbidden()


def test_stop_and_go_on(scene: Scene) -> None:
    with scene.store.write() as tx:
        assert tx.settings.stopped() is None
        tx.settings.fence()
        tx.settings.stop("fire drill")
        tx.settings.fence()
    with scene.store.read() as tx:
        assert tx.settings.stopped() == "fire drill"
    with scene.store.write() as tx:
        tx.settings.go_on()
        assert tx.settings.stopped() is None


def test_the_latest_events_come_first(scene: Scene) -> None:
    with scene.store.write() as tx:
        for n in range(30):
            about = {"account_id": n % 2, "run_id": n % 3}
            tx.events.add(EventKind.SENDING_RESUMED, f"event {n}", at=T0 + n, **about)
        tx.events.add(EventKind.SENDING_RESUMED, "delivery", at=T0, delivery_id=9)
        assert [event.text for event in tx.events.latest(limit=2)] == ["delivery", "event 29"]
        assert len(tx.events.latest()) == 20
        found = tx.events.latest(account_id=1, run_id=2, limit=3)
        assert [event.text for event in found] == ["event 29", "event 23", "event 17"]
        event = found[0]
        assert (event.kind, event.at, event.delivery_id) == ("sending.resumed", T0 + 29, None)
