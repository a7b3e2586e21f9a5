"""What can be set on a WAHA account, and how it is checked.

Every key is described where it is declared. The secrets among them may be given as the name of an
environment variable, and then they are never stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, ValidationInfo

from paceline.providers.options import (
    OptionalWord,
    Word,
    is_local,
    read_address,
    read_options,
    read_text,
    secret_in,
)

LIKE = "https://waha.example.com"

_NEEDED = ("base_url", "api_key")
_SESSION = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PLAIN = "http://"


def _read_session(raw: Any) -> str:
    text = read_text(raw)
    if not _SESSION.fullmatch(text):
        raise ValueError(f"{text!r} is no session's name, which has letters, digits, _ and - only")
    return text


def _read_base_url(raw: Any, info: ValidationInfo) -> str:
    text = read_text(raw)
    plain = info.data.get("allow_http") is True and text.lower().startswith(_PLAIN)
    # The same strict look at everything else, whatever it is spoken over.
    origin, path = read_address(f"https://{text[len(_PLAIN) :]}" if plain else text, LIKE)
    if plain:
        origin = _PLAIN + origin.removeprefix("https://")
    # Its documentation writes every call with it, so people copy it along.
    return f"{origin}{path.removesuffix('/api')}"


class WahaSettings(BaseModel):
    """One WhatsApp number as a WAHA knows it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    allow_http: StrictBool = False
    """Whether ``base_url`` may be ``http://`` on another machine: the key and every message then
    travel unencrypted, which only a network of one's own may see."""
    base_url: Annotated[str, BeforeValidator(_read_base_url)]
    """Where WAHA listens, without ``/api``."""
    api_key: Word = Field(repr=False)
    """The key to the API, or ``env:NAME`` for the environment variable that holds it."""
    session: Annotated[str, BeforeValidator(_read_session)] = "default"
    """The session that the phone is paired with."""
    own_ids: StrictBool = True
    """Whether the session's engine takes message ids of ours: GOWS and NOWEB do, WEBJS does not."""
    look_up: StrictBool = True
    """Whether WAHA is asked about a number before the first message to it."""
    webhook_secret: OptionalWord = Field(default=None, repr=False)
    """The webhook's HMAC key; without it whoever knows the account's address is believed.
    ``env:NAME`` as above."""

    @property
    def is_local(self) -> bool:
        """Whether the other side is this very machine, where no proxy belongs in between."""
        return is_local(self.base_url)

    def key(self, environment: Mapping[str, str] | None = None) -> str:
        """The key itself, wherever it is kept."""
        return secret_in(self.api_key, environment=environment)

    def to_mapping(self) -> dict[str, Any]:
        """Complete, and fit for JSON."""
        return self.model_dump(mode="json")


def read_settings(raw: Mapping[str, Any]) -> WahaSettings:
    """The settings, or an ``InputError`` that names the first bad key."""
    return read_options(WahaSettings, raw, "waha", _NEEDED)
