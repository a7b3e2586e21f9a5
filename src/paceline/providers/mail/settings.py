"""What can be set on an account whose mailbox is watched over IMAP, and how it is checked.

The keys are flat, so that the settings of whoever sends can have them beside their own: a model of
settings that inherits from ``MailboxSettings`` has them, and ``access`` says how to get in.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt, model_validator

from paceline.core.errors import ProviderRefused
from paceline.core.hosts import host_name
from paceline.providers.options import FROM_ENVIRONMENT, is_loopback, read_text

Security = Literal["tls", "starttls", "plain"]

PORTS: Mapping[str, int] = {"tls": 993, "starttls": 143, "plain": 143}
"""Where servers listen, unless they say otherwise."""

SECRETS = frozenset({"imap_password"})
"""What nobody is to see, for the ``secrets`` of whoever has these settings."""

MOST_FOLDERS = 5

_STEERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def read_host(raw: Any, like: str = "imap.example.com") -> str:
    text = read_text(raw)
    name = host_name(text) if text else ""
    if name is None:
        raise ValueError(f"{text[:100]!r} is no server, write it like {like}")
    return name


def read_secret(raw: Any) -> str:
    # Not stripped: a password may end as it likes.
    if not isinstance(raw, str):
        raise ValueError("is to be a text, so write it in quotes")
    if len(raw) > 512 or _STEERS.search(raw):
        raise ValueError("is too long, or has characters in it that no such value has")
    return raw


def read_line(raw: Any) -> str:
    text = read_text(raw)
    if len(text) > 200 or _STEERS.search(text):
        raise ValueError("is to be one line of at most 200 characters")
    return text


def read_folders(raw: Any) -> str:
    names = [name.strip() for name in read_line(raw).split(",")]
    if not all(names) or len(set(names)) != len(names) or len(names) > MOST_FOLDERS:
        raise ValueError(
            f"is to be one to {MOST_FOLDERS} different folders, write them like INBOX, Junk"
        )
    return ", ".join(names)


def password_in(value: str, environment: Mapping[str, str] | None = None) -> str:
    """The password itself, wherever it is kept."""
    if not value.startswith(FROM_ENVIRONMENT):
        return value
    name = value.removeprefix(FROM_ENVIRONMENT)
    found = (os.environ if environment is None else environment).get(name, "")
    if not found or _STEERS.search(found):
        raise ProviderRefused(f"the environment variable {name} holds no password")
    return found


@dataclass(frozen=True, slots=True)
class Access:
    """How to get into a mailbox, and what of it is watched."""

    host: str
    port: int
    security: Security
    username: str
    password: str = field(repr=False)
    folders: tuple[str, ...] = ("INBOX",)
    trust: ssl.SSLContext | None = field(default=None, repr=False)
    """Whose certificates are good; None for those known to everybody."""


class MailboxSettings(BaseModel):
    """The mailbox that answers and bounces come to, where it is watched at all."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    imap_host: Annotated[str, BeforeValidator(read_host)] = ""
    """The server: ``imap.example.com``. Empty where no mailbox is watched."""
    imap_port: Annotated[StrictInt, Field(ge=1, le=65_535)] | None = None
    """Its port; 993 with TLS, 143 with STARTTLS unless it is another."""
    imap_security: Security = "tls"
    """``tls`` or ``starttls``; ``plain`` only where the server is this very machine."""
    imap_username: Annotated[str, BeforeValidator(read_line)] = ""
    """Who logs in; empty if it is who logs in to send."""
    imap_password: Annotated[str, BeforeValidator(read_secret)] = Field(default="", repr=False)
    """The password, or ``env:NAME``; empty if it is the one for sending."""
    imap_folders: Annotated[str, BeforeValidator(read_folders)] = "INBOX"
    """What is watched. The first is heard of at once, others within half a minute."""

    @model_validator(mode="after")
    def _mailbox_fits_together(self) -> MailboxSettings:
        if self.imap_security == "plain" and self.imap_host and not is_loopback(self.imap_host):
            raise ValueError(
                "the password and every letter would travel unencrypted, "
                "so write imap_security=tls or imap_security=starttls"
            )
        if not self.imap_host and (self.imap_username or self.imap_password):
            raise ValueError("imap_host is missing, which says where the mailbox is")
        return self

    @property
    def has_mailbox(self) -> bool:
        return bool(self.imap_host)

    def access(self, username: str, password: str, trust: ssl.SSLContext | None = None) -> Access:
        """How to get in, for somebody who sends as this user with this password.

        ``ProviderRefused`` where nobody could, because one of them is missing.
        """
        name = self.imap_username or username
        secret = password_in(self.imap_password) or password
        if not name or not secret:
            raise ProviderRefused("imap_username and imap_password are needed to read the mailbox")
        return Access(
            self.imap_host,
            PORTS[self.imap_security] if self.imap_port is None else self.imap_port,
            self.imap_security,
            name,
            secret,
            tuple(self.imap_folders.split(", ")),
            trust,
        )
