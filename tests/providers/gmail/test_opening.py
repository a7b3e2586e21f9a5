"""Settings, and what opening an account finds out."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from paceline.core.errors import InputError, ProviderError, ProviderRefused
from paceline.engine.clock import SystemClock
from paceline.providers.gmail import GmailProvider, read_settings
from paceline.providers.gmail.settings import ABLE, LARGEST_KEY
from paceline.providers.registry import Registry
from paceline.vault import KeyVault, new_key
from tests.providers.gmail.bodies import BODIES
from tests.providers.gmail.fake import (
    ALIAS,
    EMAIL,
    MAILBOX,
    STALE,
    USER,
    FakeGmail,
    error,
    key_text,
    no_token,
    pem_of,
)
from tests.providers.gmail.stage import nothing, play
from tests.providers.loopback import HTML, Scripted, running
from tests.providers.remote import account, patience


def changed(**fields: Any) -> str:
    """The key's file with something else in it; what is None is left out."""
    read = {**json.loads(key_text()), **fields}
    return json.dumps({name: value for name, value in read.items() if value is not None})


def test_the_defaults_are_google_s_own() -> None:
    settings = read_settings({"service_account": key_text()})
    assert settings.api_url == "https://gmail.googleapis.com"
    assert settings.token_uri == "https://oauth2.googleapis.com/token"
    assert settings.mailbox(" anna@example.com ") == MAILBOX
    assert settings.sender(MAILBOX).address == MAILBOX
    assert settings.key().email == EMAIL
    complete = settings.to_mapping()
    assert read_settings(complete) == settings
    assert "PRIVATE" not in repr(settings) + repr(settings.key())


def test_the_object_is_as_good_as_its_text() -> None:
    settings = read_settings({"service_account": json.loads(key_text())})
    assert settings.key().email == EMAIL
    assert isinstance(settings.to_mapping()["service_account"], str), "so that it can be sealed"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"service_account": ""}, "a key is needed, once"),
        ({"service_account_file": "/keys/gmail.json"}, "a key is needed, once"),
        ({"service_account": "env:"}, "service_account: is no name of a variable"),
        ({"service_account": "env:A B"}, "service_account: is no name of a variable"),
        ({"service_account": "{"}, "service_account: is not the JSON text"),
        ({"service_account": "[" * 9_000}, "service_account: is not the JSON text"),
        ({"service_account": "[]"}, 'its "type" is another'),
        ({"service_account": changed(type="authorized_user")}, 'its "type" is another'),
        ({"service_account": changed(client_email=None)}, "it has no client_email"),
        ({"service_account": changed(private_key="-----BEGIN")}, "it has no private_key"),
        ({"service_account": " " + "x" * LARGEST_KEY * 2}, "is too long"),
        ({"service_account": 5}, "is to be a text"),
        ({"service_account_file": "gmail.json"}, "service_account_file: is to be the whole path"),
        ({"service_account_file": "/keys/\ngmail.json"}, "service_account_file: is no path"),
        ({"subject": "anna"}, "subject: 'anna' is no e-mail address"),
        ({"subject": "änna@example.com"}, "letters before the @"),
        ({"from_name": "Anna\nBcc: eve@example.com"}, "from_name: is to be one line"),
        ({"reply_to": "a b"}, "reply_to: 'a b' is no e-mail address"),
        ({"api_url": "http://gmail.example.com"}, "api_url: .* unencrypted"),
        ({"api_url": "https://gmail.example.com/v2"}, "api_url: is to be an address without"),
        ({"token_uri": "http://tokens.example.com/token"}, "token_uri: .* unencrypted"),
        ({"token_uri": "https://anna:pw@tokens.example.com/"}, "token_uri: .* is no address"),
        ({"subjcet": "x"}, "gmail has no such setting, did you mean 'subject'"),
    ],
)
def test_what_is_wrong_is_told_by_its_key(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as told:
        read_settings({"service_account": key_text(), **bad})
    assert "PRIVATE" not in str(told.value)


def test_a_sealed_key_does_not_hide_what_the_account_can_do() -> None:
    """Where settings are stored nobody can read the key in them."""
    vault = KeyVault(None, {"PACELINE_KEY": new_key()})
    registry = Registry([GmailProvider(SystemClock())], vault=vault)
    checked = registry.get("gmail").check({"service_account": key_text()})
    sealed = registry.sealed("gmail", "shop", checked)
    assert sealed["service_account"].startswith("sealed:")
    assert registry.get("gmail").capabilities_of(sealed) == ABLE


def test_the_key_may_live_in_a_file(fake: FakeGmail, tmp_path: Path) -> None:
    path = tmp_path / "gmail key.json"
    path.write_text(key_text())
    settings = fake.settings(service_account="", service_account_file=str(path))
    play(settings, nothing)
    assert fake.issued
    for content, why in (
        (b"{}", "is no key of a service account"),
        (b"\xff\xfe", "is no text"),
        (b" " * (LARGEST_KEY + 1), "is not the JSON text"),
    ):
        path.write_bytes(content)
        with pytest.raises(ProviderRefused, match=f"gmail key.json {why}"):
            play(settings, nothing)
    path.unlink()
    with pytest.raises(ProviderRefused, match=r"cannot be read: No such file"):
        play(settings, nothing)


def test_the_key_may_live_in_the_environment(
    fake: FakeGmail, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = fake.settings(service_account="env:GMAIL_TEST_KEY")
    monkeypatch.setenv("GMAIL_TEST_KEY", key_text())
    play(settings, nothing)
    monkeypatch.setenv("GMAIL_TEST_KEY", changed(type="x"))
    with pytest.raises(
        ProviderRefused, match=r'GMAIL_TEST_KEY holds no .*: it is no key .* "type"'
    ):
        play(settings, nothing)
    monkeypatch.delenv("GMAIL_TEST_KEY")
    with pytest.raises(ProviderRefused, match=r"holds no API key of a service account$"):
        play(settings, nothing)


BROKEN = "-----BEGIN PRIVATE KEY-----\nMIIEvQ\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize("private", [BROKEN, pem_of(ec.generate_private_key(ec.SECP256R1()))])
def test_a_key_that_is_no_rsa_key_is_told_as_such(fake: FakeGmail, private: str) -> None:
    with pytest.raises(ProviderRefused, match="private_key is no RSA key") as told:
        play(fake.settings(service_account=changed(private_key=private)), nothing)
    assert told.value.__cause__ is None
    assert not fake.calls


def test_the_account_s_own_address_is_the_mailbox(fake: FakeGmail) -> None:
    """The test's account has the address shop@example.com."""
    fake.mailboxes.add("shop@example.com")
    play(fake.settings(subject=""), nothing)
    assert [claims["sub"] for claims in fake.claims] == ["shop@example.com"]


def test_without_any_mailbox_it_is_refused(fake: FakeGmail) -> None:
    with pytest.raises(ProviderRefused, match=r"'shop' is no e-mail address.*; set subject"):
        read_settings(fake.settings(subject="")).mailbox("shop")


# ------------------------------------------------------------------------------ opening


def opening(fake: FakeGmail, **settings: Any) -> ProviderError:
    with pytest.raises(ProviderError) as told:
        play(fake.settings(**settings), nothing, patience(fake))
    assert str(told.value).startswith("shop: ")
    return told.value


@pytest.mark.parametrize(
    ("scripted", "refused", "reason"),
    [
        (no_token(400, "invalid_grant", "Invalid email or User ID"), True, "Invalid email or User"),
        (no_token(400, "invalid_grant", "Invalid JWT Signature."), True, "Invalid JWT Signature."),
        (no_token(401, "unauthorized_client", "Client is unauthorized"), True, "is unauthorized"),
        (no_token(403, "access_denied", "Requested client not authorized."), True, "access_denied"),
        (no_token(500, "internal_failure"), False, "internal_failure"),
        (Scripted(503, b"<html>", HTML), False, "answered 503"),
        (Scripted(401, b"<html>", HTML), False, "answered 401"),
        (Scripted(200, b"<html>", HTML), False, "answered 200"),
        (Scripted(drops="read"), False, "no token from Google: "),
        (Scripted(hangs=True), False, "no token from Google: ReadTimeout"),
    ],
)
def test_what_keeps_an_account_shut_that_gets_no_token(
    fake: FakeGmail, scripted: Scripted, refused: bool, reason: str
) -> None:
    fake.token_answers.append(scripted)
    told = opening(fake)
    assert reason in str(told)
    assert isinstance(told, ProviderRefused) == refused


@pytest.mark.parametrize(
    ("scripted", "refused", "reason"),
    [
        (BODIES["no mailbox"].answer, True, "Mail service not enabled"),
        (BODIES["not enabled"].answer, True, "Gmail API has not been used in project"),
        (BODIES["domain"].answer, True, "disabled Gmail apps"),
        (STALE, True, "invalid authentication credentials"),
        (BODIES["429"].answer, False, "Resource has been exhausted"),
        (BODIES["unavailable"].answer, False, "currently unavailable"),
        (error(404, "notFound", "Requested entity was not found."), False, "was not found"),
        (Scripted(404, b"<html>", HTML), False, "answered 404"),
        (Scripted(200, b"<html>", HTML), False, "answered 200"),
        (Scripted(200, b"{}"), False, "answered without the mailbox's address"),
        (Scripted(drops="read"), False, "no answer from Gmail"),
        (Scripted(hangs=True), False, "no answer from Gmail: ReadTimeout"),
    ],
)
def test_what_keeps_an_account_shut_whose_mailbox_is_asked_for(
    fake: FakeGmail, scripted: Scripted, refused: bool, reason: str
) -> None:
    fake.answers[f"{USER}/profile"] = scripted
    told = opening(fake)
    assert reason in str(told)
    assert isinstance(told, ProviderRefused) == refused


def test_scopes_that_were_not_delegated_are_told(fake: FakeGmail) -> None:
    fake.delegated = {"https://mail.google.com/"}
    told = opening(fake)
    assert isinstance(told, ProviderRefused)
    assert "not authorized for any of the scopes requested" in str(told)


def test_a_mailbox_that_there_is_not_is_told(fake: FakeGmail) -> None:
    told = opening(fake, subject="nobody@example.com")
    assert isinstance(told, ProviderRefused) and "Invalid email or User ID" in str(told)


def test_an_alias_has_to_be_one(fake: FakeGmail) -> None:
    play(fake.settings(from_address=ALIAS), nothing)
    play(fake.settings(from_address=MAILBOX.upper()), nothing)
    told = opening(fake, from_address="other@example.com")
    assert isinstance(told, ProviderRefused)
    assert f"{MAILBOX} may not send as other@example.com: " in str(told)
    fake.aliases[ALIAS] = "pending"
    told = opening(fake, from_address=ALIAS)
    assert isinstance(told, ProviderRefused) and "is not verified" in str(told)
    path = f"{USER}/settings/sendAs/sales%40example%2Ecom"
    fake.answers[path] = Scripted(404, b"<html>", HTML)
    told = opening(fake, from_address=ALIAS)
    assert not isinstance(told, ProviderRefused), "somebody in between has not said so for Gmail"


def test_an_account_that_stays_shut_leaves_no_client_behind(
    fake: FakeGmail, clients: list[httpx.AsyncClient]
) -> None:
    fake.token_answers.append(no_token(400, "invalid_grant"))
    opening(fake)
    assert [client.is_closed for client in clients] == [True, True]


def test_nobody_there_is_away() -> None:
    with running(FakeGmail()) as fake:
        settings = fake.settings()
    with pytest.raises(ProviderError, match="no token from Google: ConnectError") as told:
        play(settings, nothing)
    assert not isinstance(told.value, ProviderRefused)


def test_a_request_that_is_repeated_is_not_given_away(fake: FakeGmail) -> None:
    """What was signed is as good as a token for an hour."""
    seen: list[str] = []

    def repeat(call: Any) -> Scripted:
        seen.append(call.body.decode().partition("assertion=")[2])
        return no_token(400, "invalid_grant", f"Invalid JWT: {seen[-1]} {key_text()}")

    fake._make_token = repeat  # type: ignore[method-assign]
    told = opening(fake)
    assert seen and seen[0][:20] not in str(told) and "MII" not in str(told)
    assert str(told) == "shop: no token from Google: invalid_grant: Invalid JWT: (secret) (secret)"


def test_the_account_s_representation_hides_the_key(fake: FakeGmail) -> None:
    assert "PRIVATE" not in repr(account(fake.settings()))
