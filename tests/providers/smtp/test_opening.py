"""Opening an account: whom it trusts, what is refused for good, and what only for now."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from paceline.core.errors import InputError, ProviderError, ProviderRefused
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.providers.smtp.driver import SmtpDriver
from paceline.providers.smtp.settings import SmtpSettings, read_settings
from tests.providers.smtp import certificates
from tests.providers.smtp.certificates import Certificates
from tests.providers.smtp.fake import PASSWORD, USER, FakeServer, Step, running
from tests.providers.smtp.stage import HASTY, letter, play, send

LIKE = {"host": "smtp.example.com", "username": "anna", "password": "x"}


@pytest.fixture(params=["starttls", "tls"])
def secure(request: pytest.FixtureRequest, trusted: Certificates) -> Iterator[FakeServer]:
    with running(FakeServer(), request.param, trusted.server) as fake:
        yield fake


async def nothing(driver: SmtpDriver) -> None:
    """Open, and close again."""


def test_letters_travel_encrypted(secure: FakeServer, trusted: Certificates) -> None:
    outcome = send(secure, ca_file=str(trusted.ca_file))
    assert outcome.kind is OutcomeKind.ACCEPTED
    assert [letter.encrypted for letter in secure.letters] == [True]


def test_nobody_is_trusted_whom_nobody_vouches_for(secure: FakeServer) -> None:
    """Not refused for good: certificates are renewed, and then all is well again."""
    with pytest.raises(ProviderError, match="certificate verify failed") as refused:
        send(secure)
    assert not isinstance(refused.value, ProviderRefused)
    assert "login" not in secure.commands(), "no password is told to a stranger"


def test_a_certificate_is_for_one_server(tmp_path: Path) -> None:
    other = certificates.make(tmp_path, name="mx.other.example")
    with running(FakeServer(), "tls", other.server) as fake:
        with pytest.raises(ProviderError, match="certificate verify failed"):
            send(fake, ca_file=str(other.ca_file))
        assert "login" not in fake.commands()


def test_a_file_that_vouches_for_nobody(fake: FakeServer, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("")
    for path in (empty, tmp_path / "missing.pem"):
        with pytest.raises(ProviderRefused, match="ca_file"):
            send(fake, security="tls", ca_file=str(path))
    assert fake.connections == 0


def test_a_server_without_starttls_is_told_nothing(fake: FakeServer) -> None:
    with pytest.raises(ProviderRefused, match="does not offer STARTTLS"):
        send(fake, security="starttls")
    assert "login" not in fake.commands()


def test_tls_is_not_spoken_to_everybody(fake: FakeServer) -> None:
    with pytest.raises(ProviderError, match="no connection"):
        play(fake.settings(security="tls"), nothing, HASTY._replace(open_s=2))


@pytest.mark.parametrize(
    ("answer", "refused"),
    [
        ("535 5.7.8 Username and Password not accepted", True),
        ("535 5.7.139 Authentication unsuccessful, basic authentication is disabled.", True),
        ("534 5.7.14 Please log in through your web browser and then try again.", True),
        ("550 5.7.1 account suspended due to abuse", True),
        ("454 4.7.0 Cannot authenticate due to a temporary system problem.", False),
        ("454 4.7.0 Too many login attempts, please try again later.", False),
        ("421 4.3.0 Temporary System Problem. Try again later.", False),
    ],
)
def test_a_login_that_fails(fake: FakeServer, answer: str, refused: bool) -> None:
    fake.script.extend([Step("login", answer)] * 2)
    with pytest.raises(ProviderError) as error:
        play(fake.settings(), nothing)
    assert isinstance(error.value, ProviderRefused) == refused
    assert str(error.value) == f"shop: {answer}"


def test_a_wrong_password(fake: FakeServer) -> None:
    """It is tried once: whoever tries too often is locked out."""
    with pytest.raises(ProviderRefused, match=r"^shop: 535 5\.7\.8") as error:
        send(fake, password="not the right one")
    assert "not the right one" not in repr(error.value)
    assert fake.commands().count("login") == 1


def test_another_way_to_log_in(fake: FakeServer) -> None:
    fake.script.append(Step("login", "504 5.5.4 Unrecognized authentication type"))
    play(fake.settings(), nothing)
    assert fake.commands().count("login") == 2


def test_a_server_that_repeats_the_password(fake: FakeServer) -> None:
    fake.script.extend([Step("login", f"535 5.7.8 {PASSWORD} is wrong")] * 2)
    with pytest.raises(ProviderRefused, match=r"\(secret\) is wrong") as error:
        play(fake.settings(), nothing)
    assert PASSWORD not in repr(error.value)


@pytest.mark.parametrize(
    "step",
    [
        Step("connect", "554 5.7.1 No SMTP service here"),
        Step("connect", "421 4.7.0 too many connections"),
        Step("connect", drops=True),
        Step("connect", "hello"),
        Step("login", drops=True),
    ],
)
def test_a_server_that_does_not_let_us_in_now(fake: FakeServer, step: Step) -> None:
    fake.script.append(step)
    with pytest.raises(ProviderError) as error:
        play(fake.settings(), nothing)
    assert not isinstance(error.value, ProviderRefused)


@pytest.mark.parametrize("at", ["connect", "login"])
@pytest.mark.parametrize("said", ["<html>busy</html>", "299 who knows"])
def test_nonsense_instead_of_a_server_costs_no_letter_a_retry(
    fake: FakeServer, at: str, said: str
) -> None:
    async def scene(driver: SmtpDriver) -> Outcome:
        fake.script.extend([Step("mail", drops=True), Step(at, said)])
        return await driver.send(letter())

    outcome = play(fake.settings(), scene)
    assert outcome.kind is OutcomeKind.UNAVAILABLE
    assert outcome.reason.startswith("no connection: the server said")
    assert not fake.letters


@pytest.mark.parametrize("at", ["connect", "login"])
def test_a_server_that_keeps_silent(fake: FakeServer, at: str) -> None:
    fake.script.append(Step(at, hangs=True))
    with pytest.raises(ProviderError, match="no answer in time"):
        play(fake.settings(), nothing, HASTY._replace(open_s=0.3))


def test_nobody_there(fake: FakeServer) -> None:
    fake.leave()
    with pytest.raises(ProviderError, match="no connection") as error:
        play(fake.settings(), nothing)
    assert not isinstance(error.value, ProviderRefused)


def test_a_server_that_wants_no_login(fake: FakeServer) -> None:
    assert send(fake, username="", password="").kind is OutcomeKind.ACCEPTED
    assert "login" not in fake.commands()


def test_the_password_may_live_in_the_environment(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MAIL_PASSWORD", raising=False)
    with pytest.raises(ProviderRefused, match="MAIL_PASSWORD holds no password"):
        send(fake, password="env:MAIL_PASSWORD")
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    assert send(fake, password="env:MAIL_PASSWORD").kind is OutcomeKind.ACCEPTED


def test_an_account_needs_an_address(fake: FakeServer) -> None:
    settings = SmtpSettings(host="127.0.0.1", security="plain")
    for address in ("", "shop", "jürgen@example.com"):
        with pytest.raises(ProviderRefused):
            settings.sender(address)
    assert settings.sender(USER).address == USER


# ---------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    ("settings", "key", "reason"),
    [
        ({}, "host", "needs this setting"),
        ({"host": "smtp example"}, "host", "no server"),
        ({"host": "https://x.example"}, "host", "no server"),
        ({"host": ""}, "host", "no server"),
        ({"host": "smtp..example.com"}, "host", "no server"),
        ({"host": ".example.com"}, "host", "no server"),
        ({"host": "-x.example.com"}, "host", "no server"),
        ({"host": "a" * 64 + ".example.com"}, "host", "no server"),
        ({"host": "1.2.3.400"}, "host", "no server"),
        ({"host": "ab:cd"}, "host", "no server"),
        ({**LIKE, "helo": "two words"}, "helo", "no name"),
        ({**LIKE, "helo": "my..host"}, "helo", "no name"),
        ({**LIKE, "helo": "[192.0.2]"}, "helo", "no name"),
        ({**LIKE, "port": 0}, "port", "is to be at least 1"),
        ({**LIKE, "port": "587"}, "port", "is to be a whole number"),
        ({**LIKE, "security": "ssl"}, "security", "starttls, tls or plain"),
        ({**LIKE, "security": "plain"}, None, "would travel unencrypted"),
        ({**LIKE, "password": ""}, None, "go together"),
        ({**LIKE, "username": ""}, None, "go together"),
        ({**LIKE, "password": "a\r\nb"}, "password", "no such value"),
        ({**LIKE, "from_address": "nobody"}, "from_address", "no e-mail address"),
        ({**LIKE, "from_address": "jürgen@x.example"}, "from_address", "not every server"),
        ({**LIKE, "from_name": "a\r\nBcc: b"}, "from_name", "one line"),
        ({**LIKE, "reply_to": "x y@example.com"}, "reply_to", "no e-mail address"),
        ({**LIKE, "largest_mib": 0}, "largest_mib", "is to be at least 1"),
        ({**LIKE, "hosst": "x"}, "hosst", "did you mean 'host'"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, object], key: str | None, reason: str) -> None:
    with pytest.raises(InputError) as refused:
        read_settings(settings)
    assert refused.value.key == key and reason in str(refused.value)


def test_what_is_left_out_is_filled_in() -> None:
    for security, port in (("starttls", 587), ("tls", 465)):
        assert read_settings({**LIKE, "security": security}).at_port == port
    settings = read_settings({**LIKE, "port": 2525, "password": "env:X"})
    assert settings.at_port == 2525 and read_settings(settings.to_mapping()) == settings
    assert settings.greeting(settings.sender("anna@bücher.example")) == "xn--bcher-kva.example"
    assert "env:X" not in repr(settings)


def test_the_libraries_are_the_ones_that_check(trusted: Certificates) -> None:
    """A context that checks nothing would make every test above pass that should not."""
    from paceline.providers.smtp import SmtpProvider
    from tests.providers.smtp.stage import CLOCK

    settings = read_settings({**LIKE, "ca_file": str(trusted.ca_file)})
    context = SmtpProvider(CLOCK)._certificates(settings)
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Mail.Example.com", "mail.example.com"),
        ("müller.example", "xn--mller-kva.example"),
        ("192.0.2.1", "[192.0.2.1]"),
        ("2001:db8::1", "[IPv6:2001:db8::1]"),
        ("[192.0.2.1]", "[192.0.2.1]"),
        ("", "example.com"),
    ],
)
def test_our_own_name_is_one_that_a_server_takes(written: str, said: str) -> None:
    settings = read_settings({**LIKE, "helo": written})
    assert settings.greeting(settings.sender("anna@example.com")) == said


def test_a_server_is_called_by_its_name_in_ascii() -> None:
    settings = read_settings({**LIKE, "host": "Post.Müller.example", "imap_host": "bücher.eu"})
    assert (settings.host, settings.imap_host) == ("post.xn--mller-kva.example", "xn--bcher-kva.eu")


def test_a_name_that_cannot_be_looked_up_stops_the_account(
    fake: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was stored before such names were refused."""
    monkeypatch.setattr("paceline.providers.mail.settings.host_name", str)
    with pytest.raises(ProviderRefused, match="the settings are of no use"):
        play(fake.settings(host="smtp..example.com", security="starttls"), nothing)


def test_a_name_for_the_server(fake: FakeServer) -> None:
    play(fake.settings(helo="client.shop.example"), lambda driver: driver.send(letter()))
    assert len(fake.letters) == 1
