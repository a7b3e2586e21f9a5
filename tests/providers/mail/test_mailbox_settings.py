"""The settings of mailboxes, as they stand beside those of whoever sends."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from pydantic import Field

from paceline.core.errors import InputError, ProviderRefused
from paceline.providers.mail.imap_client import Reader
from paceline.providers.mail.settings import SECRETS, MailboxSettings
from paceline.providers.options import read_options


class Sends(MailboxSettings):
    """Somebody who sends, and may have a mailbox."""

    host: str = "smtp.example.com"
    password: str = Field(default="", repr=False)


def read(**raw: Any) -> Sends:
    return read_options(Sends, raw, "smtp", ())


def test_nothing_is_watched_unless_it_is_said_where() -> None:
    assert not read().has_mailbox
    assert read(imap_host="imap.example.com").has_mailbox


def test_what_is_stored_is_read_again_as_it_was() -> None:
    settings = read(
        imap_host="IMAP.example.com", imap_port=994, imap_username="anna", imap_password="secret ",
        imap_folders="INBOX ,Junk",
    )  # fmt: skip
    stored = settings.model_dump(mode="json")
    assert stored["imap_host"] == "imap.example.com" and stored["imap_folders"] == "INBOX, Junk"
    assert read(**stored) == settings
    assert "secret" not in repr(settings) and frozenset({"imap_password"}) == SECRETS


def test_how_to_get_in() -> None:
    own = read(imap_host="imap.example.com", imap_username="box", imap_password="theirs",
               imap_folders="INBOX, Junk").access("anna", "hers")  # fmt: skip
    assert (own.username, own.password, own.port) == ("box", "theirs", 993)
    assert own.folders == ("INBOX", "Junk")
    assert "theirs" not in repr(own)
    same = read(imap_host="imap.example.com", imap_security="starttls").access("anna", "hers")
    assert (same.username, same.password, same.port) == ("anna", "hers", 143)
    assert read(imap_host="x.example", imap_port=7).access("a", "b").port == 7


def test_who_could_not_get_in() -> None:
    with pytest.raises(ProviderRefused, match="imap_username and imap_password"):
        read(imap_host="imap.example.com").access("", "")


def test_a_password_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read(imap_host="imap.example.com", imap_password="env:BOX_PASSWORD")
    monkeypatch.setenv("BOX_PASSWORD", "of the environment")
    assert settings.access("anna", "hers").password == "of the environment"
    monkeypatch.delenv("BOX_PASSWORD")
    with pytest.raises(ProviderRefused, match="BOX_PASSWORD"):
        settings.access("anna", "hers")


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"imap_host": "imap example"}, "is no server"),
        ({"imap_host": "imap..example.com"}, "is no server"),
        ({"imap_host": "a" * 64 + ".example.com"}, "is no server"),
        ({"imap_host": 7}, "write it in quotes"),
        ({"imap_host": "imap.example.com", "imap_port": 0}, "is to be at least 1"),
        ({"imap_host": "imap.example.com", "imap_security": "plain"}, "unencrypted"),
        ({"imap_host": "imap.example.com", "imap_security": "ssl"}, "tls"),
        ({"imap_username": "anna"}, "imap_host is missing"),
        ({"imap_host": "imap.example.com", "imap_password": "a\nb"}, "characters"),
        ({"imap_host": "imap.example.com", "imap_folders": ""}, "folders"),
        ({"imap_host": "imap.example.com", "imap_folders": "A, A"}, "different"),
        ({"imap_host": "imap.example.com", "imap_folders": "A\r\nB"}, "one line"),
        ({"imap_hosts": "imap.example.com"}, "imap_host"),
    ],
)
def test_what_is_refused(raw: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read(**raw)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_unencrypted_on_this_very_machine(host: str) -> None:
    assert read(imap_host=host, imap_security="plain").access("a", "b").security == "plain"


def test_what_was_said_before_encryption_is_forgotten() -> None:
    """Else somebody in between could put words into the mouth of the server."""
    reader = Reader()
    before, theirs = socket.socketpair()
    after, server = socket.socketpair()
    with before, theirs, after, server:
        theirs.sendall(b"a1 OK begin\r\n* OK injected\r\n")
        reader.sock = before
        assert reader.readline() == b"a1 OK begin\r\n"
        server.sendall(b"* OK real\r\npart")
        reader.sock = after
        assert reader.readline() == b"* OK real\r\n"
        # What is no whole line stays until it is one.
        assert reader.lines_now() == []
        server.sendall(b" of it\r\n* 1 EXISTS\r\n")
        assert reader.lines_now() == [b"part of it", b"* 1 EXISTS"]
        server.sendall(b"12345678")
        assert reader.read(5) == b"12345" and reader.read(3) == b"678"
