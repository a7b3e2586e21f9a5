"""What can be set on a Unipile account, and how it is checked.

Every key is described where it is declared. The key to the API is the only secret among them; it
may be given as the name of an environment variable, and then it is never stored.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, ValidationError

from paceline.core.errors import InputError, ProviderRefused
from paceline.core.nearest import did_you_mean

FROM_ENVIRONMENT = "env:"
API = "/api/v1"

_WORD = re.compile(r"[\x21-\x7e]{1,512}")
"""What fits into a header and a form alike."""
_HOST = re.compile(r"[a-z0-9._-]{1,253}|[0-9a-f:.]{2,45}")
_NEEDED = ("dsn", "api_key", "account_id", "kind")


def _text(raw: Any) -> str:
    if not isinstance(raw, str):
        # A number was read as one on the way here, and may have lost a zero or a sign.
        raise ValueError("is to be a text, so write it in quotes")
    return raw.strip()


def _read_word(raw: Any) -> str:
    text = _text(raw)
    if not _WORD.fullmatch(text):
        # Without the text itself: it may be a secret.
        raise ValueError("is empty, too long, or has characters in it that no such value has")
    return text


def _read_dsn(raw: Any) -> str:
    text = _text(raw)
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"{text!r} is no address: {error}") from error
    if not host or not _HOST.fullmatch(host) or not _is_bare(parts):
        raise ValueError(f"{text!r} is no address, write it like https://api1.unipile.com:13111")
    if parts.scheme == "http" and not is_loopback(host):
        raise ValueError("the API key would travel unencrypted over http://, write https://")
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"{parts.scheme}:// cannot be spoken here, write https://")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port is not None else "")


def _is_bare(parts: SplitResult) -> bool:
    """Whether the address names a host and no more; Unipile's own path is often copied along."""
    path = parts.path.rstrip("/").removesuffix(API)
    return not (path or parts.query or parts.fragment or parts.username or parts.password)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


_Word = Annotated[str, BeforeValidator(_read_word)]
_Dsn = Annotated[str, BeforeValidator(_read_dsn)]


class UnipileSettings(BaseModel):
    """One account as Unipile knows it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dsn: _Dsn
    """The address from Unipile's dashboard: ``https://api1.unipile.com:13111``."""
    api_key: _Word = Field(repr=False)
    """The key to the API, or ``env:NAME`` for the environment variable that holds it."""
    account_id: _Word
    """The connected account's id at Unipile."""
    kind: Literal["linkedin", "email"]
    """What was connected there; it decides which actions the account can send."""
    linkedin_api: Literal["classic", "recruiter", "sales_navigator"] = "classic"
    """The LinkedIn product that new conversations are started with."""
    track_opens: StrictBool = False
    """Whether Unipile puts a picture into e-mails that tells when they are opened."""
    track_links: StrictBool = False
    """Whether Unipile rewrites the links of e-mails to tell when they are followed."""

    @property
    def base_url(self) -> str:
        return f"{self.dsn}{API}"

    @property
    def is_local(self) -> bool:
        """Whether the other side is this very machine, where no proxy belongs in between."""
        return is_loopback(urlsplit(self.dsn).hostname or "")

    def key(self, environment: Mapping[str, str] | None = None) -> str:
        """The key itself, wherever it is kept."""
        if not self.api_key.startswith(FROM_ENVIRONMENT):
            return self.api_key
        name = self.api_key.removeprefix(FROM_ENVIRONMENT)
        found = (os.environ if environment is None else environment).get(name, "").strip()
        if not _WORD.fullmatch(found):
            raise ProviderRefused(f"the environment variable {name} holds no API key")
        return found

    def to_mapping(self) -> dict[str, Any]:
        """Complete, and fit for JSON."""
        return self.model_dump(mode="json")


def read_settings(raw: Mapping[str, Any]) -> UnipileSettings:
    """The settings, or an ``InputError`` that names the first bad key."""
    for key in raw:
        if key not in UnipileSettings.model_fields:
            meant = did_you_mean(key, UnipileSettings.model_fields)
            raise InputError(f"unipile has no such setting{meant}", key=key)
    for key in _NEEDED:
        if key not in raw:
            raise InputError(
                "unipile needs this setting", key=key, hint=f"Give it with --option {key}=…"
            )
    try:
        return UnipileSettings.model_validate(dict(raw))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        reason = first["msg"].removeprefix("Value error, ")
        raise InputError(reason, key=str(first["loc"][0]) if first["loc"] else None) from None
