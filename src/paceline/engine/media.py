"""Upload once, send many times: the provider handles of an account's media.

A handle is looked up in the lane's memory, then in the store, and only then made by uploading; it
is stored before it is used, so a restart finds it again.
"""

from __future__ import annotations

from dataclasses import dataclass

from paceline.core.instants import MINUTE, Instant
from paceline.core.outcome import Outcome
from paceline.engine.ports import Account, Clock, Driver, Journal, Media, Tx, Upload, Uploaded

EXPIRY_MARGIN_US = 5 * MINUTE
"""A handle about to expire is replaced early, so that it does not lapse between check and send."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    media: Media
    content: bytes


class Handles:
    """The handles of one account, for as long as its lane runs."""

    def __init__(self, account: Account, driver: Driver, journal: Journal, clock: Clock) -> None:
        self._account = account
        self._driver = driver
        self._journal = journal
        self._clock = clock
        self._known: dict[str, Upload] = {}

    def known(self, media_id: str) -> str | None:
        """The handle if it is in memory and still good: the common case, without waiting."""
        upload = self._known.get(media_id)
        return upload.handle if upload is not None and _good(upload, self._clock.now()) else None

    async def ensure(self, media_id: str) -> str | Outcome:
        """The handle, uploading if need be; an outcome if the provider refused the upload."""
        stored = await self._journal.read(lambda tx: tx.media.upload_of(self._account.id, media_id))
        if stored is not None and _good(stored, self._clock.now()):
            self._known[media_id] = stored
            return stored.handle
        loaded = await self._journal.read(lambda tx: _load(tx, media_id))
        answer = await self._driver.upload(loaded.media, loaded.content)
        if not isinstance(answer, Uploaded):
            return answer
        upload = Upload(
            self._account.id, media_id, answer.handle, self._clock.now(), answer.expires_at
        )
        await self._journal.write(lambda tx: tx.media.uploaded(upload))
        self._known[media_id] = upload
        return upload.handle


def _load(tx: Tx, media_id: str) -> _Loaded:
    media = tx.media.get(media_id)
    if media is None:
        raise LookupError(f"media {media_id} is not stored")
    return _Loaded(media, tx.media.read(media_id))


def _good(upload: Upload, now: Instant) -> bool:
    return upload.expires_at is None or upload.expires_at - EXPIRY_MARGIN_US > now
