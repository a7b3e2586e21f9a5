"""People whom nobody answers, whichever account they write to."""

from __future__ import annotations

from tests.store.scene import T0, Scene
from tests.store.test_talking import EVA, account_of, write

BEN = "+34600333444"


def test_who_is_muted_is_muted_once(scene: Scene) -> None:
    with scene.store.write() as tx:
        tx.muting.add([], T0)
        tx.muting.add([EVA, "eva@example.org"], T0)
        tx.muting.add([EVA], T0 + 1)
        assert tx.muting.among([EVA, BEN]) == {EVA}
        assert tx.muting.remove([EVA, BEN]) == 1
        assert tx.muting.among([EVA, "eva@example.org"]) == {"eva@example.org"}


def test_a_conversation_with_them_begins_muted(scene: Scene) -> None:
    before, ann = write(scene, "a"), account_of(scene)
    with scene.store.write() as tx:
        tx.muting.add([EVA, BEN], T0)
        assert [one.id for one in tx.muting.conversations([EVA, BEN])] == [before]
        assert tx.conversations.hear(ann, EVA, T0).mode == "auto", "it has begun before"
        assert tx.conversations.hear(ann, BEN, T0).mode == "muted"
        assert tx.conversations.hear(ann, "+1", T0).mode == "auto"
    ben = scene.account()
    with scene.store.write() as tx:
        held = tx.listening.hold({(ben, EVA): T0, (ben, "+1"): T0, (ann, EVA): T0})
        modes = {chat: one.mode for chat, one in held.items()}
    assert modes == {(ben, EVA): "muted", (ben, "+1"): "auto", (ann, EVA): "auto"}
