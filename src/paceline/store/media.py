"""Media files and the providers' handles for them.

The bytes live in the database, named by their digest, so that every process of a fleet finds them.
"""

from __future__ import annotations

import hashlib

from sqlalchemy import delete, select

from paceline.core.instants import Instant
from paceline.engine.ports.records import Media, Upload
from paceline.store import rows
from paceline.store.base import Subject
from paceline.store.schema import media, uploads


class MediaShelf(Subject):
    """Each file once, whatever it is called and however often it is put."""

    def put(self, name: str, mime: str, content: bytes, at: Instant) -> Media:
        media_id = hashlib.sha256(content).hexdigest()
        self._connection.execute(
            self._context.insert(media)
            .values(
                id=media_id,
                name=name,
                mime=mime,
                size=len(content),
                content=content,
                created_at=at,
            )
            .on_conflict_do_nothing()
        )
        statement = select(*rows.MEDIA).where(media.c.id == media_id)
        return rows.media_of(self._connection.execute(statement).one())

    def get(self, media_id: str) -> Media | None:
        statement = select(*rows.MEDIA).where(media.c.id == media_id)
        row = self._connection.execute(statement).first()
        return rows.media_of(row) if row else None

    def read(self, media_id: str) -> bytes:
        statement = select(media.c.content).where(media.c.id == media_id)
        row = rows.found(self._connection.execute(statement).first(), "media", media_id)
        return bytes(row[0])

    def upload_of(self, account_id: int, media_id: str) -> Upload | None:
        statement = select(*rows.UPLOAD).where(
            uploads.c.account_id == account_id, uploads.c.media_id == media_id
        )
        row = self._connection.execute(statement).first()
        return rows.upload(row) if row else None

    def uploaded(self, upload: Upload) -> None:
        """Keep the handle; a later one replaces an earlier one."""
        changing = {
            "handle": upload.handle,
            "uploaded_at": upload.uploaded_at,
            "expires_at": upload.expires_at,
        }
        self._connection.execute(
            self._context.insert(uploads)
            .values(account_id=upload.account_id, media_id=upload.media_id, **changing)
            .on_conflict_do_update(index_elements=["account_id", "media_id"], set_=changing)
        )

    def forget_upload(self, account_id: int, media_id: str, handle: str) -> None:
        self._connection.execute(
            delete(uploads).where(
                uploads.c.account_id == account_id,
                uploads.c.media_id == media_id,
                uploads.c.handle == handle,
            )
        )

    def uploads(self, account_id: int | None = None) -> list[Upload]:
        statement = select(*rows.UPLOAD).order_by(uploads.c.account_id, uploads.c.media_id)
        if account_id is not None:
            statement = statement.where(uploads.c.account_id == account_id)
        return [rows.upload(row) for row in self._connection.execute(statement)]
