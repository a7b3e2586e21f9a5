"""Broken twins of uploads: by whoever has lost the lane, or though the file is there already."""

from __future__ import annotations

from typing import Any

import pytest

from paceline.engine import media
from paceline.engine.ports import Tx
from tests.sim.small import TAKEN_OVER
from tests.sim.twins import Twin, files_are_uploaded_for_every_message


def whose_the_lane_is_is_not_asked(patch: pytest.MonkeyPatch) -> None:
    def stored(self: media.Handles, tx: Tx, media_id: str) -> Any:
        upload = tx.media.upload_of(self._account.id, media_id)
        good = upload is not None and media._good(upload, self._clock.now())
        return upload if good else media._load(tx, media_id)

    patch.setattr(media.Handles, "_stored", stored)


def a_late_answer_is_as_good_as_any(patch: pytest.MonkeyPatch) -> None:
    class Trusted:
        term = 0

        def safe(self) -> bool:
            return True

    begin = media.Handles.__init__

    def credulous(self: media.Handles, *about: Any) -> None:
        begin(self, *about)
        self._lease: Any = Trusted()

    patch.setattr(media.Handles, "__init__", credulous)


UPLOAD_TWINS = (
    Twin(whose_the_lane_is_is_not_asked, "never by two", TAKEN_OVER, 4),
    Twin(a_late_answer_is_as_good_as_any, "never by two", TAKEN_OVER, 6, first=3),
    Twin(files_are_uploaded_for_every_message, "never wasteful", TAKEN_OVER, 2),
)
