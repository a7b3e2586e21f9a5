"""What can be set on an account of the Cloud API, and how it is checked.

Every key is described where it is declared. The secrets among them may be given as the name of an
environment variable, and then they are never stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from paceline.providers.options import (
    OptionalWord,
    Word,
    is_local,
    read_address,
    read_options,
    read_text,
    secret_in,
)

BASE_URL = "https://graph.facebook.com"
API_VERSION = "v25.0"
"""The oldest one that is good for some years: Meta keeps a version for about two."""

_NEEDED = ("access_token", "phone_number_id")
_ID = re.compile(r"[1-9]\d{4,24}")
_VERSION = re.compile(r"v[1-9]\d{0,2}\.\d")


def _read_id(raw: Any) -> str:
    # Ids have nothing but digits, and none of them in front that reading a number would lose.
    text = str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else read_text(raw)
    if not _ID.fullmatch(text):
        raise ValueError(f"{text!r} is no id of Meta's, which has nothing but digits")
    return text


def _read_optional_id(raw: Any) -> str | None:
    return None if raw is None else _read_id(raw)


def _read_version(raw: Any) -> str:
    text = read_text(raw).lower()
    text = text if text.startswith("v") else f"v{text}"
    if not _VERSION.fullmatch(text):
        raise ValueError(f"{text!r} is no version, write it like {API_VERSION}")
    return text


def _read_base_url(raw: Any) -> str:
    origin, path = read_address(raw, BASE_URL)
    return f"{origin}{path}"


_Id = Annotated[str, BeforeValidator(_read_id)]
_OptionalId = Annotated[str | None, BeforeValidator(_read_optional_id)]


class WhatsAppCloudSettings(BaseModel):
    """One business phone number as Meta knows it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    access_token: Word = Field(repr=False)
    """The token of a system user, or ``env:NAME`` for the environment variable that holds it."""
    phone_number_id: _Id
    """The id of the business phone number, which is not the number itself."""
    api_version: Annotated[str, BeforeValidator(_read_version)] = API_VERSION
    """The version of the Graph API that is spoken."""
    base_url: Annotated[str, BeforeValidator(_read_base_url)] = BASE_URL
    """The address of the API; another one for a test."""
    app_secret: OptionalWord = Field(default=None, repr=False)
    """What Meta signs its reports with; without it whoever knows the account's address is believed.
    ``env:NAME`` as above."""
    verify_token: OptionalWord = Field(default=None, repr=False)
    """What Meta shows when it asks whether we are who we say, before it reports anything."""
    business_account_id: _OptionalId = None
    """The id of the WhatsApp Business Account that the number is in. Bans and restrictions are
    reported by it; without it they are heard of when the next message is refused."""

    @property
    def is_local(self) -> bool:
        """Whether the other side is this very machine, where no proxy belongs in between."""
        return is_local(self.base_url)

    @property
    def versioned_url(self) -> str:
        return f"{self.base_url}/{self.api_version}"

    def token(self, environment: Mapping[str, str] | None = None) -> str:
        """The token itself, wherever it is kept."""
        return secret_in(self.access_token, environment=environment)

    def to_mapping(self) -> dict[str, Any]:
        """Complete, and fit for JSON."""
        return self.model_dump(mode="json")


def read_settings(raw: Mapping[str, Any]) -> WhatsAppCloudSettings:
    """The settings, or an ``InputError`` that names the first bad key."""
    return read_options(WhatsAppCloudSettings, raw, "whatsapp_cloud", _NEEDED)
