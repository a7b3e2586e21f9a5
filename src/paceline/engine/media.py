"""Upload once, send many times: the provider handles of an account's media.

A handle is looked up in the lane's memory, then in the store, and only then made by uploading; it
is stored before it is used, so a restart finds it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import structlog

from paceline.core.errors import LeaseLost
from paceline.core.instants import HOUR, MINUTE, SECOND, Instant
from paceline.core.outcome import Outcome, OutcomeKind, transient
from paceline.engine.drivers import within_time
from paceline.engine.leases import ProcessLease
from paceline.engine.ports import (
    Account,
    Clock,
    Driver,
    Journal,
    Lease,
    Media,
    Tx,
    Upload,
    Uploaded,
)

log = structlog.get_logger("paceline.media")

EXPIRY_MARGIN_US = 5 * MINUTE
"""A handle about to expire is replaced early, so that it does not lapse between check and send."""

REFUSED_FOR_NOW_US = 2 * SECOND
REFUSED_FOR_GOOD_US = HOUR
"""How long a failed upload is not tried again. A whole campaign needs the same file, and without
this its every delivery would try for itself, at once, and at no pace at all."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    media: Media
    content: bytes


class Handles:
    """The handles of one account, for as long as its lane runs."""

    def __init__(
        self,
        account: Account,
        driver: Driver,
        journal: Journal,
        clock: Clock,
        lease: ProcessLease,
        lane: Lease,
    ) -> None:
        self._account = account
        self._lease = lease
        self._lane = lane
        self._driver = driver
        self._journal = journal
        self._clock = clock
        self._known: dict[str, Upload] = {}
        self._refused: dict[str, tuple[Outcome, Instant]] = {}
        self._gone: dict[str, str] = {}
        """Handles that the provider no longer has, by file."""
        self.made = 0
        """How many uploads were made so far."""

    def refused(self, media_id: str) -> Outcome | None:
        """What the last upload failed with, while it is too early to try again."""
        refusal, until_at = self._refused.get(media_id, (None, 0))
        return refusal if self._clock.now() < until_at else None

    def remember(self, media_id: str, refusal: Outcome) -> None:
        for_good = refusal.kind is OutcomeKind.REJECTED
        pause_us = REFUSED_FOR_GOOD_US if for_good else REFUSED_FOR_NOW_US
        self._refused[media_id] = (refusal, self._clock.now() + pause_us)

    async def handle_of(self, media_id: str, timeout_us: int) -> str | Outcome:
        """The handle to send with. A new upload takes no token and no slot, but its failure is
        answered like a send's, and not tried again for every delivery that wants the same."""
        answer = self.known(media_id) or self.refused(media_id)
        if answer is None:
            answer = await self.ensure(media_id, timeout_us)
            if isinstance(answer, Outcome):
                if answer.kind is OutcomeKind.UNKNOWN:
                    # Nobody has received anything: an upload in doubt may simply be made again.
                    answer = transient(answer.reason, answer.code)
                self.remember(media_id, answer)
        return answer

    def known(self, media_id: str) -> str | None:
        """The handle if it is in memory and still good: the common case, without waiting."""
        upload = self._known.get(media_id)
        return upload.handle if upload is not None and _good(upload, self._clock.now()) else None

    def forget(self, media_id: str, handle: str) -> None:
        """The provider no longer has this upload: the next message that needs it makes another.

        Several messages may have been under way with it. Only the first of their refusals is about
        the handle that is used now, so it says which one it means.
        """
        upload = self._known.get(media_id)
        if upload is not None and upload.handle == handle:
            del self._known[media_id]
            self._gone[media_id] = handle
            log.info("upload is gone", account=self._account.name, media=media_id)

    async def clean_up(self) -> None:
        """Forget in the store too what is gone: whoever runs the lane next must not try it.
        What was uploaded since, by whoever has it by now, is another handle and stays."""
        for gone in sorted(self._gone.items()):
            await self._journal.write(
                partial(_forget_upload, account_id=self._account.id, gone=gone)
            )
            if self._gone.get(gone[0]) == gone[1]:
                del self._gone[gone[0]]

    async def ensure(self, media_id: str, timeout_us: int) -> str | Outcome:
        """The handle, uploading if need be; an outcome if the provider refused the upload."""
        await self.clean_up()
        # All in one look: while the file was read in a second one, whoever has taken the lane from
        # us meanwhile had uploaded it.
        term = self._lease.term
        stored = await self._journal.read(lambda tx: self._stored(tx, media_id))
        if isinstance(stored, Upload):
            self._known[media_id] = stored
            return stored.handle
        if not self._lease.safe() or self._lease.term != term:
            # The look took so long that somebody else may have uploaded it meanwhile.
            raise LeaseLost("the lease had run out while a file was looked for")
        answer = await self._upload(stored, timeout_us)
        if not isinstance(answer, Uploaded):
            return answer
        upload = Upload(
            self._account.id, media_id, answer.handle, self._clock.now(), answer.expires_at
        )
        await self._journal.write(lambda tx: tx.media.uploaded(upload))
        self._known[media_id] = upload
        self.made += 1
        return upload.handle

    def _stored(self, tx: Tx, media_id: str) -> Upload | _Loaded:
        """An upload that is still good, or else the file itself, for whoever has the lane."""
        stored = tx.media.upload_of(self._account.id, media_id)
        if stored is not None and _good(stored, self._clock.now()):
            return stored
        row = tx.lanes.get(self._account.id)
        if (row.generation, row.owner) != (self._lane.generation, self._lane.process_id):
            # Taken before our lease was good again: its owner may be uploading it just now. Asked
            # after the upload, so that nobody can have had the lane in between.
            raise LeaseLost("another process owns this lane now")
        return _load(tx, media_id)

    async def _upload(self, loaded: _Loaded, timeout_us: int) -> Uploaded | Outcome:
        try:
            return await within_time(self._driver.upload(loaded.media, loaded.content), timeout_us)
        except TimeoutError:
            return transient("upload took too long")
        except Exception as error:
            # A driver must answer with an outcome; when it raises, nobody has received anything.
            log.exception("driver failed", account=self._account.name, media=loaded.media.id)
            return transient(f"driver failed: {type(error).__name__}: {error}")


def _forget_upload(tx: Tx, account_id: int, gone: tuple[str, str]) -> None:
    tx.media.forget_upload(account_id, *gone)


def _load(tx: Tx, media_id: str) -> _Loaded:
    media = tx.media.get(media_id)
    if media is None:
        raise LookupError(f"media {media_id} is not stored")
    return _Loaded(media, tx.media.read(media_id))


def _good(upload: Upload, now: Instant) -> bool:
    if upload.expires_at is None:
        return True
    # One that never lives as long as the margin would otherwise be replaced for every send.
    margin_us = min(EXPIRY_MARGIN_US, (upload.expires_at - upload.uploaded_at) // 4)
    return upload.expires_at - margin_us > now
