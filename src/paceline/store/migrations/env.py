"""What Alembic runs around every migration: on the connection, and in the transaction, it is given.

Not imported by anything of ours; Alembic loads it by its path.
"""

from __future__ import annotations

from alembic import context

from paceline.store.migrate import VERSION_TABLE
from paceline.store.schema import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table=VERSION_TABLE,
)
context.run_migrations()
