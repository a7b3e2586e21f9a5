"""What can be set on a Gmail account, how it is checked, and what an account can do.

Every key is described where it is declared. The service account's key is the only secret among
them. It is given as the text of the file that Google makes, as the name of an environment variable
that holds that text, or as the path of the file; in the latter two cases it is never stored.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, model_validator

from paceline.core.errors import ProviderRefused
from paceline.engine.ports import Capabilities
from paceline.providers.mail.addresses import wire_address
from paceline.providers.mail.letters import Sender
from paceline.providers.options import (
    FROM_ENVIRONMENT,
    is_local,
    read_address,
    read_options,
    read_text,
)

ABLE = Capabilities(
    channel="email",
    actions=frozenset({"email"}),
    media=True,
    attachments=True,
    finds=True,
    threads=True,
    unsubscribes=True,
)
"""What every account can do. A search lags behind what was sent, so that something is not found
proves nothing."""

API = "https://gmail.googleapis.com"
TOKEN_URI = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address, not a password
LARGEST_KEY = 64 * 1024
"""Bytes of a key's file. Google's have about 2 400."""

_NO_KEY = "holds no API key of a service account"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_PEM = re.compile(r"-----BEGIN (?:RSA )?PRIVATE KEY-----\s.+-----END", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Key:
    """What a service account proves itself with."""

    email: str
    id: str
    private: str = field(repr=False)
    text: str = field(repr=False)
    """The whole file, as it was given."""


def read_key(text: str) -> Key:
    """The key in the text of a file; ``ValueError`` says what is wrong, and repeats none of it."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("is not the JSON text of a service account's key") from None
    if not isinstance(said, dict) or said.get("type") != "service_account":
        raise ValueError('is no key of a service account: its "type" is another')
    email, private, name = (
        said.get(key) for key in ("client_email", "private_key", "private_key_id")
    )
    if not isinstance(email, str) or "@" not in email:
        raise ValueError("is no key of a service account: it has no client_email")
    if not isinstance(private, str) or not _PEM.search(private):
        raise ValueError("is no key of a service account: it has no private_key")
    return Key(email, name if isinstance(name, str) else "", private, text)


def _read_service_account(raw: Any) -> str:
    # Whoever speaks JSON anyway may give the object instead of its text.
    text = json.dumps(raw) if isinstance(raw, Mapping) else read_text(raw)
    if len(text) > LARGEST_KEY:
        raise ValueError("is too long for a service account's key")
    if text.startswith(FROM_ENVIRONMENT):
        if not _VARIABLE.fullmatch(text.removeprefix(FROM_ENVIRONMENT)):
            raise ValueError("is no name of a variable, write it like env:GMAIL_KEY")
    elif text:
        read_key(text)
    return text


def _read_line(raw: Any) -> str:
    text = read_text(raw)
    if len(text) > 200 or not text.isprintable():
        raise ValueError("is to be one line of at most 200 characters")
    return text


def _read_path(raw: Any) -> str:
    text = read_text(raw)
    if len(text) > 4_096 or not text.isprintable():
        raise ValueError("is no path")
    if text and not os.path.isabs(text):
        raise ValueError("is to be the whole path, because not every process runs in this folder")
    return text


def _read_mailbox(raw: Any) -> str:
    text = read_text(raw)
    if text and not wire_address(text).isascii():
        raise ValueError(f"{text!r} has letters before the @ that Gmail's mailboxes do not have")
    return text


def _read_api(raw: Any) -> str:
    origin, path = read_address(raw, API)
    if path:
        raise ValueError(f"is to be an address without a path, like {API}")
    return origin


def _read_token_uri(raw: Any) -> str:
    return "".join(read_address(raw, TOKEN_URI))


_Line = Annotated[str, BeforeValidator(_read_line)]
_Mailbox = Annotated[str, BeforeValidator(_read_mailbox)]


class GmailSettings(BaseModel):
    """One mailbox, and the service account that writes in its name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    service_account: Annotated[str, BeforeValidator(_read_service_account)] = Field(
        default="", repr=False
    )
    """The key: the text of its file, or ``env:NAME`` for the environment variable that holds it."""
    service_account_file: Annotated[str, BeforeValidator(_read_path)] = ""
    """Instead of it the file's path, which is read whenever the account is opened."""
    subject: _Mailbox = ""
    """The mailbox that sends; the account's own address unless it is another."""
    from_address: _Mailbox = ""
    """Whom letters are from, where it is another address that the mailbox may send as."""
    from_name: _Line = ""
    """The name that people see beside that address."""
    reply_to: _Mailbox = ""
    """Where answers go, unless they go to where letters are from."""
    watch: StrictBool = False
    """Whether what comes to the mailbox is read: bounces, complaints, answers."""
    api_url: Annotated[str, BeforeValidator(_read_api)] = API
    """Where Gmail is spoken; another address only for a stand-in."""
    token_uri: Annotated[str, BeforeValidator(_read_token_uri)] = TOKEN_URI
    """Where tokens come from; likewise."""

    @model_validator(mode="after")
    def _has_one_key(self) -> GmailSettings:
        if bool(self.service_account) == bool(self.service_account_file):
            raise ValueError("a key is needed, once: give service_account_file or service_account")
        return self

    @property
    def is_local(self) -> bool:
        return is_local(self.api_url)

    def mailbox(self, account_address: str) -> str:
        """The mailbox that sends; ``ProviderRefused`` where that is no address."""
        return _checked(self.subject or account_address.strip(), "subject")

    def sender(self, mailbox: str) -> Sender:
        return Sender(self.from_address or mailbox, self.from_name, self.reply_to)

    def ours(self, account_address: str) -> set[str]:
        """The addresses that letters are from, and come to."""
        written = {self.subject, self.from_address, self.reply_to, account_address.strip()}
        return written - {""}

    def key(self, environment: Mapping[str, str] | None = None) -> Key:
        """The key itself, wherever it is kept; ``ProviderRefused`` where there is none."""
        if self.service_account_file:
            return _key_in_file(self.service_account_file)
        if not self.service_account.startswith(FROM_ENVIRONMENT):
            return read_key(self.service_account)
        name = self.service_account.removeprefix(FROM_ENVIRONMENT)
        found = (os.environ if environment is None else environment).get(name, "").strip()
        try:
            return read_key(found)
        except ValueError as error:
            why = f": it {error}" if found else ""
            raise ProviderRefused(f"the environment variable {name} {_NO_KEY}{why}") from None

    def to_mapping(self) -> dict[str, Any]:
        """Complete, and fit for JSON."""
        return self.model_dump(mode="json")


def read_settings(raw: Mapping[str, Any]) -> GmailSettings:
    """The settings, or an ``InputError`` that names the first bad key."""
    return read_options(GmailSettings, raw, "gmail", ())


def _key_in_file(path: str) -> Key:
    try:
        with Path(path).open("rb") as file:
            content = file.read(LARGEST_KEY + 1)
        return read_key(content.decode() if len(content) <= LARGEST_KEY else "")
    except OSError as error:
        raise ProviderRefused(
            f"service_account_file {path} cannot be read: {error.strerror}"
        ) from None
    except ValueError as error:
        # What cannot be decoded is told in words that quote it.
        why = "is no text" if isinstance(error, UnicodeDecodeError) else str(error)
        raise ProviderRefused(f"service_account_file {path} {why}") from None


def _checked(address: str, setting: str) -> str:
    try:
        wire = wire_address(address)
    except ValueError as error:
        raise ProviderRefused(f"{error}; set {setting}") from None
    if not wire.isascii():
        raise ProviderRefused(f"{address!r} has letters that Gmail's mailboxes do not have")
    return wire
