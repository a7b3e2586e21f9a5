"""What can be set on an SMTP account, how it is checked, and what an account can do.

Every key is described where it is declared. The password is the only secret among them; it may be
given as the name of an environment variable, and then it is never stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, model_validator

from paceline.core.errors import ProviderRefused
from paceline.core.hosts import own_name
from paceline.core.names import LONGEST
from paceline.engine.ports import Capabilities
from paceline.providers.mail.addresses import domain_of, wire_address
from paceline.providers.mail.letters import Sender
from paceline.providers.mail.settings import (
    MailboxSettings,
    password_in,
    read_host,
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
nothing is found again where it keeps no copy that can be read."""
MOST = replace(ABLE, returns=True, finds=True, proves_absence=True)
"""What one can do that gives every letter an address of its own to come back to, and whose server
keeps all that was sent where it can be looked for."""

Security = Literal["starttls", "tls", "plain"]

PORTS: Mapping[str, int] = {"starttls": 587, "tls": 465, "plain": 25}
"""Where servers listen, unless they say otherwise."""

_NEEDED = ("host",)


def _read_host(raw: Any) -> str:
    name = read_host(raw, "smtp.example.com")
    if not name:
        raise ValueError("names no server, write it like smtp.example.com")
    return name


def _read_own_name(raw: Any) -> str:
    text = read_text(raw)
    name = own_name(text) if text else ""
    if name is None:
        raise ValueError(
            f"{text[:100]!r} is no name that a server takes, write it like mail.example.com"
        )
    return name


KEY = "{key}"
"""What stands in an address for the name of the letter that comes back to it."""


_APART = re.compile(r"(?<![A-Za-z0-9])\{key\}(?![A-Za-z0-9])")


def _read_return_path(raw: Any) -> str:
    text = read_text(raw)
    local, at, _ = text.rpartition("@")
    if KEY in text and (text.count(KEY) > 1 or not at or KEY not in local):
        raise ValueError(f"is to have {KEY} once, before the @, like bounces+{KEY}@example.com")
    if KEY in text and not _APART.search(local):
        raise ValueError(
            f"has letters or digits right beside {KEY}, so no name would be found there"
        )
    if text:
        _checked_path(text)
    return text


def _checked_path(text: str) -> str:
    """The address with the longest name in it that there can be; ``ValueError`` says what is wrong
    with it."""
    address = wire_address(text.replace(KEY, "x" * LONGEST))
    if not address.isascii():
        raise ValueError(f"{text!r} has letters before the @ that not every server takes")
    return address


def _read_address(raw: Any) -> str:
    text = read_text(raw)
    if text and not wire_address(text).isascii():
        raise ValueError(f"{text!r} has letters before the @ that not every server takes")
    return text


_Host = Annotated[str, BeforeValidator(_read_host)]
_OwnName = Annotated[str, BeforeValidator(_read_own_name)]
_Secret = Annotated[str, BeforeValidator(read_secret)]
_Line = Annotated[str, BeforeValidator(read_line)]
_Address = Annotated[str, BeforeValidator(_read_address)]
_ReturnPath = Annotated[str, BeforeValidator(_read_return_path)]


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
    verp: StrictBool = False
    """Whether every letter comes back to an address of its own, which has its name in it."""
    return_path: _ReturnPath = ""
    """Where letters come back to: ``bounces+{key}@example.com`` with ``verp``, which puts the name
    in the place of ``{key}``; where letters are from, unless it is another address."""
    largest_mib: Annotated[StrictInt, Field(ge=1, le=150)] = 25
    """How large a letter may be, files and all; less where the server says so."""
    dkim_selector: _Line = ""
    """Under which name the server signs letters; only to see whether its key can be found."""
    helo: _OwnName = ""
    """What the server is told as our own name; the domain letters are from unless it is another."""
    sent_folder: _Line = ""
    """Where the server keeps what was sent, for letters whose answer was lost; unless given, the
    folder that the server says is for that. Needs ``imap_host``."""
    sent_complete: StrictBool = False
    """Whether the server itself puts every letter there that it takes, under the name that we gave
    it: then one that is not there was never sent."""
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
        if self.verp and self.return_path and KEY not in self.return_path:
            raise ValueError(f"with verp, return_path is to have {KEY} in it, before the @")
        if (self.sent_folder or self.sent_complete) and not self.has_mailbox:
            raise ValueError("imap_host is missing, which says where what was sent can be seen")
        if not self.verp and KEY in self.return_path:
            raise ValueError(f"return_path has {KEY} in it, which needs verp=true")
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

    def ours(self, account_address: str) -> set[str]:
        """The addresses that letters are from, and come to."""
        return {self.from_address, account_address.strip(), self.reply_to} - {""}

    def comes_back_to(self, sender: Sender) -> str:
        """Where letters come back to, with ``{key}`` in it where each has an address of its own;
        ``ProviderRefused`` where that would be none."""
        own = wire_address(sender.address)
        if not (self.return_path or self.verp):
            return own
        path = self.return_path or f"{own.rpartition('@')[0]}+{KEY}@{domain_of(own)}"
        try:
            domain = domain_of(_checked_path(path))
        except ValueError as error:
            raise ProviderRefused(f"{error}; set return_path") from None
        return f"{path.rpartition('@')[0]}@{domain}"

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


def able(settings: SmtpSettings) -> Capabilities:
    finds = settings.has_mailbox
    proves = finds and settings.sent_complete
    return replace(ABLE, returns=settings.verp, finds=finds, proves_absence=proves)
