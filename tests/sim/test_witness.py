"""The witness judges nobody by what could not be known: an answer is as old as the look for it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from paceline.core.instants import SECOND
from paceline.engine.ports import Media, Upload
from paceline.sim.trace import Trace
from paceline.sim.witness import Witness
from tests.engine.world import World


def test_what_was_written_down_after_the_look_could_not_be_seen(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        account = world.account()
        now = world.clock.now()
        media = world.write(lambda tx: tx.media.put("a.png", "image/png", b"x", now))
        upload = Upload(account.id, media.id, "first", now, None)
        witness = Witness(world.clock, world.store, Trace(world.clock.now))
        uploader: Any = SimpleNamespace(name="process-0", now=world.clock.now)

        def known_to_who_uploads(media: Media) -> Upload | None:
            witness.see_upload(uploader, account.name, media)
            return witness.loaded[-1].known

        assert known_to_who_uploads(media) is None
        looked = witness.shelf()
        world.write(lambda tx: tx.media.uploaded(upload))
        assert known_to_who_uploads(media) == upload, "nobody has looked before it was there"
        await world.wait(SECOND)
        witness.tell(looked)
        assert known_to_who_uploads(media) is None, "the answer has come just now"
        await world.wait(1)
        assert known_to_who_uploads(media) == upload, "after that it should have looked again"
        witness.tell(witness.shelf())
        assert known_to_who_uploads(media) == upload, "it was seen"

    World(f"sqlite:///{tmp_path}/world.db").play(script)


def test_the_witness_knows_who_has_the_lane(tmp_path: Path) -> None:
    async def script(world: World) -> None:
        account = world.account()
        now = world.clock.now()
        media = world.write(lambda tx: tx.media.put("a.png", "image/png", b"x", now))
        witness = Witness(world.clock, world.store, Trace(world.clock.now))
        uploader: Any = SimpleNamespace(name="process-0", now=world.clock.now)
        witness.see_upload(uploader, account.name, media)
        world.write(lambda tx: tx.lanes.take(account.id, tx.processes.join("process-1", SECOND).id))
        witness.see_upload(uploader, account.name, media)
        assert [load.owner for load in witness.loaded] == [None, "process-1"]

    World(f"sqlite:///{tmp_path}/world.db").play(script)
