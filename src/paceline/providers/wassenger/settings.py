"""What can be set on a Wassenger account, and how it is checked.

Every key is described where it is declared. The secrets among them may be given as the name of an
environment variable, and then they are never stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool

from paceline.core.durations import parse_duration
from paceline.providers.options import (
    HeaderName,
    OptionalWord,
    Word,
    is_local,
    read_address,
    read_options,
    read_text,
    secret_in,
)

BASE_URL = "https://api.wassenger.com/v1"

_NEEDED = ("api_key", "device")
_DEVICE = re.compile(r"[0-9a-f]{24}")

Kept = Literal[
    "10m", "30m", "1h", "6h", "12h", "1d", "2d", "3d", "5d", "7d", "15d", "30d", "60d", "90d",
    "120d", "180d", "360d",
]  # fmt: skip
"""How long Wassenger can be told to keep a file."""


def _read_device(raw: Any) -> str:
    text = read_text(raw).lower()
    if not _DEVICE.fullmatch(text):
        raise ValueError(f"{text!r} is no device id, which has 24 characters of 0-9 and a-f")
    return text


def _read_base_url(raw: Any) -> str:
    origin, path = read_address(raw, BASE_URL)
    return f"{origin}{path}"


class WassengerSettings(BaseModel):
    """One WhatsApp number as Wassenger knows it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    api_key: Word = Field(repr=False)
    """The key to the API, or ``env:NAME`` for the environment variable that holds it."""
    device: Annotated[str, BeforeValidator(_read_device)]
    """The id of the WhatsApp number at Wassenger: 24 characters of 0-9 and a-f."""
    base_url: Annotated[str, BeforeValidator(_read_base_url)] = BASE_URL
    """The address of the API; another one for a test, or a gateway of the same make."""
    groups: StrictBool = True
    """Whether the number can write to groups. Numbers of the WhatsApp Business API cannot."""
    keep_files: Kept = "30d"
    """How long Wassenger keeps a file that was uploaded to be sent many times."""
    webhook_auth: Literal["signature", "header", "token"] = "signature"
    """How Wassenger shows that a report is its own: by signing it, by a header that only it knows,
    or by a token in the address."""
    webhook_secret: OptionalWord = Field(default=None, repr=False)
    """What it signs with, or the header's or the token's value; without it whoever
    knows the account's address is believed. ``env:NAME`` as above."""
    webhook_header: HeaderName = "X-Webhook-Secret"
    """The header in which the secret comes, where ``webhook_auth`` is ``header``."""

    @property
    def is_local(self) -> bool:
        """Whether the other side is this very machine, where no proxy belongs in between."""
        return is_local(self.base_url)

    @property
    def keep_files_us(self) -> int:
        return parse_duration(self.keep_files)

    def key(self, environment: Mapping[str, str] | None = None) -> str:
        """The key itself, wherever it is kept."""
        return secret_in(self.api_key, environment=environment)

    def to_mapping(self) -> dict[str, Any]:
        """Complete, and fit for JSON."""
        return self.model_dump(mode="json")


def read_settings(raw: Mapping[str, Any]) -> WassengerSettings:
    """The settings, or an ``InputError`` that names the first bad key."""
    return read_options(WassengerSettings, raw, "wassenger", _NEEDED)
