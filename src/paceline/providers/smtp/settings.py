"""What can be set on an SMTP account, how it is checked, and what an account can do.

Every key is described where it is declared. The password is the only secret among them; it may be
given as the name of an environment variable, and then it is never stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictInt, model_validator

from paceline.core.errors import ProviderRefused
from paceline.engine.ports import Capabilities
from paceline.providers.mail.addresses import domain_of, wire_address
from paceline.providers.mail.letters import Sender
from paceline.providers.mail.settings import (
    MailboxSettings,
    password_in,
    read_line,
    read_secret,
)
from paceline.providers.options import is_loopback, read_options, read_text

ABLE = Capabilities(
    channel="email",
    actions=frozenset({"email"}),
    media=True,
    attachments=True,
    threads=True,
    unsubscribes=True,
)
"""What every account can do. A mail server can be asked nothing about a letter it was given, so
nothing is found again."""

Security = Literal["starttls", "tls", "plain"]

PORTS: Mapping[str, int] = {"starttls": 587, "tls": 465, "plain": 25}
"""Where servers listen, unless they say otherwise."""

_NEEDED = ("host",)
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?|[0-9a-f:.]{2,45}")


def _read_host(raw: Any) -> str:
    text = read_text(raw).lower()
    if not _HOST.fullmatch(text):
        raise ValueError(f"{text!r} is no server, write it like smtp.example.com")
    return text


def _read_address(raw: Any) -> str:
    text = read_text(raw)
    if text and not wire_address(text).isascii():
        raise ValueError(f"{text!r} has letters before the @ that not every server takes")
    return text


_Host = Annotated[str, BeforeValidator(_read_host)]
_Secret = Annotated[str, BeforeValidator(read_secret)]
_Line = Annotated[str, BeforeValidator(read_line)]
_Address = Annotated[str, BeforeValidator(_read_address)]


class SmtpSettings(MailboxSettings):
    """One mailbox, and the server that takes its letters. What comes to it is watched where
    ``imap_host`` says how."""

    host: _Host
    """The server: ``smtp.example.com``."""
    port: Annotated[StrictInt, Field(ge=1, le=65_535)] | None = None
    """Its port; 587 with STARTTLS, 465 with TLS unless it is another."""
    security: Security = "starttls"
    """``starttls`` or ``tls``; ``plain`` only where the server is this very machine."""
    username: _Line = ""
    """Who logs in; empty where the server wants no login."""
    password: _Secret = Field(default="", repr=False)
    """The password, or ``env:NAME`` for the environment variable that holds it."""
    from_address: _Address = ""
    """Whom letters are from; the account's own address unless it is another."""
    from_name: _Line = ""
    """The name that people see beside that address."""
    reply_to: _Address = ""
    """Where answers go, unless they go to where letters are from."""
    largest_mib: Annotated[StrictInt, Field(ge=1, le=150)] = 25
    """How large a letter may be, files and all; less where the server says so."""
    dkim_selector: _Line = ""
    """Under which name the server signs letters; only to see whether its key can be found."""
    helo: _Line = ""
    """What the server is told as our own name; the domain letters are from unless it is another."""
    ca_file: _Line = ""
    """A file with the certificate of whoever vouches for the server, besides those known."""

    @model_validator(mode="after")
    def _fits_together(self) -> SmtpSettings:
        if self.security == "plain" and not is_loopback(self.host):
            raise ValueError(
                "the password and every letter would travel unencrypted, "
                "so write security=starttls or security=tls"
            )
        if bool(self.username) != bool(self.password):
            raise ValueError("username and password go together")
        return self

    @property
    def at_port(self) -> int:
        return PORTS[self.security] if self.port is None else self.port

    @property
    def largest(self) -> int:
        return self.largest_mib * 2**20

    def sender(self, account_address: str) -> Sender:
        """Whom letters are from; ``ProviderRefused`` where that is no address."""
        address = self.from_address or account_address.strip()
        try:
            wire = wire_address(address)
        except ValueError as error:
            raise ProviderRefused(f"{error}; set from_address") from None
        if not wire.isascii():
            raise ProviderRefused(f"{address!r} has letters that not every server takes")
        return Sender(address, self.from_name, self.reply_to)

    def greeting(self, sender: Sender) -> str:
        return self.helo or domain_of(wire_address(sender.address))

    def secret(self, environment: Mapping[str, str] | None = None) -> str:
        """The password itself, wherever it is kept."""
        return password_in(self.password, environment)

    def to_mapping(self) -> dict[str, Any]:
        """Complete, and fit for JSON."""
        return self.model_dump(mode="json")


def read_settings(raw: Mapping[str, Any]) -> SmtpSettings:
    """The settings, or an ``InputError`` that names the first bad key."""
    return read_options(SmtpSettings, raw, "smtp", _NEEDED)
