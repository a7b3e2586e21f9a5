"""What can be set on a Unipile account, and how it is checked.

Every key is described where it is declared. The secrets among them may be given as the name of an
environment variable, and then they are never stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool

from paceline.providers.options import (
    HeaderName,
    OptionalWord,
    Word,
    is_local,
    read_address,
    read_options,
    secret_in,
)

API = "/api/v1"

_LIKE = "https://api1.unipile.com:13111"
_NEEDED = ("dsn", "api_key", "account_id", "kind")


def _read_dsn(raw: Any) -> str:
    origin, path = read_address(raw, _LIKE)
    # Unipile's own path is often copied along.
    if path.removesuffix(API):
        raise ValueError(f"{raw!r} is no address, write it like {_LIKE}")
    return origin


_Dsn = Annotated[str, BeforeValidator(_read_dsn)]


class UnipileSettings(BaseModel):
    """One account as Unipile knows it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    dsn: _Dsn
    """The address from Unipile's dashboard: ``https://api1.unipile.com:13111``."""
    api_key: Word = Field(repr=False)
    """The key to the API, or ``env:NAME`` for the environment variable that holds it."""
    account_id: Word
    """The connected account's id at Unipile."""
    kind: Literal["linkedin", "email"]
    """What was connected there; it decides which actions the account can send."""
    linkedin_api: Literal["classic", "recruiter", "sales_navigator"] = "classic"
    """The LinkedIn product that new conversations are started with."""
    track_opens: StrictBool = False
    """Whether Unipile puts a picture into e-mails that tells when they are opened."""
    track_links: StrictBool = False
    """Whether Unipile rewrites the links of e-mails to tell when they are followed."""
    webhook_secret: OptionalWord = Field(default=None, repr=False)
    """The value of the header that was chosen when the webhook was made; ``env:NAME`` as above."""
    webhook_header: HeaderName = "Unipile-Auth"
    """The header in which it comes."""

    @property
    def base_url(self) -> str:
        return f"{self.dsn}{API}"

    @property
    def is_local(self) -> bool:
        """Whether the other side is this very machine, where no proxy belongs in between."""
        return is_local(self.dsn)

    def key(self, environment: Mapping[str, str] | None = None) -> str:
        """The key itself, wherever it is kept."""
        return secret_in(self.api_key, environment=environment)

    def to_mapping(self) -> dict[str, Any]:
        """Complete, and fit for JSON."""
        return self.model_dump(mode="json")


def read_settings(raw: Mapping[str, Any]) -> UnipileSettings:
    """The settings, or an ``InputError`` that names the first bad key."""
    return read_options(UnipileSettings, raw, "unipile", _NEEDED)
