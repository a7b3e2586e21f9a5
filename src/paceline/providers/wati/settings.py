"""What can be set on a WATI account, and how it is checked.

Every key is described where it is declared. The secrets among them may be given as the name of an
environment variable, and then they are never stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from paceline.providers.options import (
    HeaderName,
    OptionalWord,
    is_local,
    read_address,
    read_options,
    read_text,
    read_word,
    secret_in,
)

ENDPOINT = "https://live-mt-server.wati.io/123456"
"""What an endpoint looks like; everybody has one of their own."""

SHARED = "live-mt-"
"""What the names of servers begin with that many tenants share: there a tenant has an id."""

_NEEDED = ("endpoint", "access_token")
_TENANT = re.compile(r"/[A-Za-z0-9_-]{1,64}")
_CALL = re.compile(r"/api(?:/.*)?", re.IGNORECASE)
_SCHEME = re.compile(r"^bearer(?:\s+|$)", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s().+-]")
_NUMBER = re.compile(r"[1-9]\d{6,14}")


def _read_endpoint(raw: Any) -> str:
    origin, path = read_address(raw, ENDPOINT)
    # Some copy it from an example of a call.
    tenant = _CALL.sub("", path)
    if not tenant and (urlsplit(origin).hostname or "").startswith(SHARED):
        raise ValueError(f"'{origin}' has no tenant id in it, write it like {ENDPOINT}")
    if tenant and not _TENANT.fullmatch(tenant):
        raise ValueError(f"'{origin}{path}' is no endpoint of WATI's, write it like {ENDPOINT}")
    return f"{origin}{tenant}"


def _read_token(raw: Any) -> str:
    # WATI shows it with the word before it that the header begins with.
    return read_word(_SCHEME.sub("", read_text(raw), count=1))


def _read_channel(raw: Any) -> str | None:
    if raw is None:
        return None
    text = str(raw) if isinstance(raw, int) and not isinstance(raw, bool) else read_text(raw)
    number = _BETWEEN.sub("", text)
    if not _NUMBER.fullmatch(number):
        raise ValueError(f"{text!r} is no phone number, write it like 85264318722")
    return number


class WatiSettings(BaseModel):
    """One WhatsApp number as WATI knows it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    endpoint: Annotated[str, BeforeValidator(_read_endpoint)]
    """The API endpoint as WATI shows it, with the tenant's id in it."""
    access_token: Annotated[str, BeforeValidator(_read_token)] = Field(repr=False)
    """The token, or ``env:NAME`` for the environment variable that holds it."""
    channel: Annotated[str | None, BeforeValidator(_read_channel)] = None
    """The number to send from, where the tenant has several; else WATI takes its default."""
    webhook_auth: Literal["token", "header", "passkey"] = "token"
    """How a report shows that it is WATI's, which signs none, besides coming to the account's own
    address: by a secret behind that, in a header, or in the body itself."""
    webhook_secret: OptionalWord = Field(default=None, repr=False)
    """That secret; without it whoever knows the account's address is believed. ``env:NAME`` as
    above."""
    webhook_header: HeaderName = "X-Webhook-Secret"
    """The header in which the secret comes, where ``webhook_auth`` is ``header``."""

    @property
    def is_local(self) -> bool:
        """Whether the other side is this very machine, where no proxy belongs in between."""
        return is_local(self.endpoint)

    @property
    def origin(self) -> str:
        """Where the newer calls are: the token alone says whose they are."""
        parts = urlsplit(self.endpoint)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def tenant(self) -> str:
        """What the paths of the older calls begin with."""
        return urlsplit(self.endpoint).path

    def token(self, environment: Mapping[str, str] | None = None) -> str:
        """The token itself, wherever it is kept."""
        return secret_in(self.access_token, environment=environment)

    def to_mapping(self) -> dict[str, Any]:
        """Complete, and fit for JSON."""
        return self.model_dump(mode="json")


def read_settings(raw: Mapping[str, Any]) -> WatiSettings:
    """The settings, or an ``InputError`` that names the first bad key."""
    return read_options(WatiSettings, raw, "wati", _NEEDED)
