"""What can be set on a WhatsApp account, and where its session is kept.

There is no secret among the settings: what lets us in is the session, a file that is written when
the account is paired and that nobody else may read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, StrictBool

from paceline.providers.options import read_options, read_text

SUFFIX = ".session"

_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}")


def _read_session(raw: Any) -> str:
    text = read_text(raw)
    if text and not _FILE_NAME.fullmatch(Path(text).name):
        raise ValueError(
            f"{text!r} is no name for a session; use letters, digits and any of . _ @ + -"
        )
    return text


_Session = Annotated[str, BeforeValidator(_read_session)]


class WhatsAppSettings(BaseModel):
    """One phone's linked device."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    session: _Session = ""
    """The file its session is kept in; unless given, ``whatsapp/NAME.session`` beside the
    database. A relative path begins in that folder."""
    look_up: StrictBool = True
    """Whether WhatsApp is asked about a number before the first message to it."""
    online: StrictBool = False
    """Whether the account shows as online. Only then WhatsApp tells who is typing; and the phone
    itself rings no more."""

    def session_in(self, folder: Path, name: str) -> Path:
        """Where the session of the account with this name is."""
        return folder / (self.session or f"{name}{SUFFIX}")

    def to_mapping(self) -> dict[str, Any]:
        """Complete, and fit for JSON."""
        return self.model_dump(mode="json")


def read_settings(raw: Mapping[str, Any]) -> WhatsAppSettings:
    """The settings, or an ``InputError`` that names the first bad key."""
    return read_options(WhatsAppSettings, raw, "whatsapp", ())
