"""What the suite for all drivers does not ask of WAHA's reports."""

import hashlib
import hmac
import json
from typing import Any

import pytest

from paceline.core.errors import InputError
from paceline.engine.ports import Inbound, News, Receipt
from paceline.providers.waha.settings import read_settings
from paceline.providers.waha.webhooks import parse, verify
from paceline.providers.waha.wire import own_id
from tests.providers.conformance.waha import (
    ACCOUNT,
    AT,
    JID,
    LID,
    SECRET,
    ack,
    report,
    said_by,
    sign,
)
from tests.providers.waha.fake import CHAT, GROUP, OWN, PHONE, SESSION

SETTINGS = read_settings(ACCOUNT)
SIGNED = read_settings({**ACCOUNT, "webhook_secret": SECRET})


def read(event: Any, payload: Any, **more: Any) -> list[News]:
    return parse(SETTINGS, json.dumps(report(event, payload, **more)).encode())


def inbound(**changed: Any) -> Inbound:
    (news,) = read("message", said_by(CHAT, **changed))
    assert isinstance(news, Inbound)
    return news


# ---------------------------------------------------------------------- proofs


def test_the_signature_as_waha_documents_it() -> None:
    """Its own example, which ``openssl dgst -sha512 -hmac my-secret-key`` makes, too."""
    body = b'{"event":"message","session":"default","engine":"WEBJS"}'
    settings = read_settings({**ACCOUNT, "webhook_secret": "my-secret-key"})
    documented = (
        "208f8a55dde9e05519e898b10b89bf0d0b3b0fdf11fdbf09b6b90476301b98d8"
        "097c462b2b17a6ce93b6b47a136cf2e78a33a63f6752c2c1631777076153fa89"
    )
    headers = {"x-webhook-hmac": documented, "x-webhook-hmac-algorithm": "sha512"}
    assert verify(settings, headers, body)
    assert verify(settings, {**headers, "x-webhook-hmac": documented.upper()}, body)
    assert not verify(settings, headers, body.replace(b"default", b"defaulu"))


@pytest.mark.parametrize("algorithm", [None, "", "sha256", "sha1", "none", "sha512,sha1"])
def test_another_algorithm_is_no_proof(algorithm: str | None) -> None:
    """Also none at all: WAHA always says which it was."""
    headers = sign(b"{}")
    del headers["X-Webhook-Hmac-Algorithm"]
    if algorithm is not None:
        headers["X-Webhook-Hmac-Algorithm"] = algorithm
    assert not verify(SIGNED, headers, b"{}")
    weak = hmac.new(SECRET.encode(), b"{}", hashlib.sha256).hexdigest()
    assert not verify(SIGNED, {**headers, "X-Webhook-Hmac": weak}, b"{}")


def test_the_time_and_the_number_of_a_report_are_not_signed_and_prove_nothing() -> None:
    """Reports come late, and again: what is said twice has the same id."""
    body = json.dumps(report("message", said_by(CHAT))).encode()
    for stamp in ("", "0", str(AT // 1_000), "9" * 20, "soon"):
        headers = sign(body) | {"X-Webhook-Timestamp": stamp, "X-Webhook-Request-Id": "x"}
        assert verify(SIGNED, headers, body)
    assert parse(SIGNED, body) == parse(SIGNED, body)


def test_the_secret_may_live_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read_settings({**ACCOUNT, "webhook_secret": "env:WAHA_HOOK"})
    monkeypatch.delenv("WAHA_HOOK", raising=False)
    assert not verify(settings, sign(b"{}", ""), b"{}")
    assert not verify(settings, sign(b"{}", "env:WAHA_HOOK"), b"{}")
    monkeypatch.setenv("WAHA_HOOK", SECRET)
    assert verify(settings, sign(b"{}"), b"{}")


# ---------------------------------------------------------------------- messages


def test_our_own_is_known_again_by_its_id() -> None:
    """What was accepted, found and reported has one name, with whatever chat around it."""
    ours = own_id("home-7-0")
    for name in (f"true_{CHAT}_{ours}", f"true_{LID}_{ours}", f"true_{GROUP}_{ours}_{OWN}"):
        (news,) = read("message.ack", ack("DEVICE", 2, id=name))
        assert news == Receipt(ours, "delivered", AT)


@pytest.mark.parametrize(
    ("data", "chat"),
    [
        ({"Info": {"SenderAlt": JID}}, PHONE),
        ({"Info": {"SenderAlt": "4915112345678:31@s.whatsapp.net"}}, PHONE),
        ({"Info": {"SenderAlt": LID}}, LID),
        ({"Info": {"SenderAlt": ""}}, LID),
        ({"Info": {"RecipientAlt": JID}}, LID),
        ({"Info": "odd"}, LID),
        ({"key": {"remoteJidAlt": JID}}, PHONE),
        ({"key": {"participantAlt": JID}}, LID),
        ([], LID),
        (None, LID),
    ],
    ids=str,
)
def test_somebody_who_hides_is_called_by_number_where_it_is_known(data: Any, chat: str) -> None:
    payload = said_by(LID, _data=data)
    (news,) = read("message", payload)
    assert isinstance(news, Inbound) and (news.chat, news.sender) == (chat, chat)
    assert news.also == (() if chat == LID else (LID,)), "both names are theirs"


def test_what_we_wrote_to_somebody_who_hides() -> None:
    payload = said_by(
        LID, id=f"true_{LID}_3EB0AA", fromMe=True, _data={"Info": {"RecipientAlt": JID}}
    )
    (news,) = read("message.any", payload)
    assert isinstance(news, Inbound) and (news.chat, news.from_us) == (PHONE, True)
    (news,) = read("message.any", payload, me=None)
    assert isinstance(news, Inbound) and news.sender == ""


def test_where_it_was_said_whatever_the_engine_writes() -> None:
    assert inbound(id={"id": "3A00AA", "_serialized": "x"}).chat == PHONE
    assert inbound(fromMe=True, to=None).chat == PHONE, "GOWS and NOWEB"
    assert inbound(fromMe=True, **{"from": OWN}, to=CHAT).chat == PHONE, "WEBJS"
    news = inbound(**{"from": GROUP}, to=CHAT, participant=CHAT)
    assert (news.chat, news.sender, news.group) == (GROUP, PHONE, True)
    for ours in ({"from": OWN, "to": GROUP}, {"from": GROUP, "to": OWN, "participant": OWN}):
        news = inbound(**ours, fromMe=True)
        assert (news.chat, news.group) == (GROUP, True)


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({}, "text"),
        ({"hasMedia": "yes"}, "text"),
        ({"hasMedia": True, "media": {"mimetype": "image/jpeg"}}, "image"),
        ({"hasMedia": True, "media": {"mimetype": "audio/ogg; codecs=opus"}}, "audio"),
        ({"hasMedia": True, "media": {"mimetype": "VIDEO/mp4"}}, "video"),
        ({"hasMedia": True, "media": {"mimetype": "application/pdf"}}, "document"),
        ({"hasMedia": True, "media": None, "_data": {"Info": {"MediaType": "ptt"}}}, "ptt"),
        ({"hasMedia": True, "media": None}, "media"),
    ],
    ids=str,
)
def test_what_kind_of_message_it_is(changed: dict[str, Any], kind: str) -> None:
    assert inbound(**changed).kind == kind


@pytest.mark.parametrize(
    ("written", "at"),
    [
        (AT // 1_000_000, AT),
        (AT // 1_000, AT),
        (str(AT // 1_000_000), AT),
        (-5, 0),
        (0, 0),
        (True, 0),
        (1.5, 0),
        (10**30, 0),
        ("9" * 40, 0),
        ("soon", 0),
    ],
    ids=str,
)
def test_time_is_read_in_every_spelling(written: Any, at: int) -> None:
    (news,) = read("message", said_by(CHAT, timestamp=written), timestamp=None)
    assert news.at == at


def test_the_report_s_own_time_is_next_best() -> None:
    (news,) = read("message.ack", ack("READ", 3))
    assert news.at == AT, "a receipt has no time of its own"
    (news,) = read("message.ack", ack("READ", 3), timestamp=None)
    assert news.at == 0


# ---------------------------------------------------------------------- receipts


@pytest.mark.parametrize(
    ("changed", "states"),
    [
        ({"ackName": None, "ack": 3}, ["read"]),
        ({"ackName": "READ", "ack": None}, ["read"]),
        ({"ackName": "BRAND_NEW", "ack": 2}, ["delivered"]),
        ({"ackName": None, "ack": True}, []),
        ({"ackName": [], "ack": {}}, []),
        ({"ackName": None, "ack": 2**80}, []),
        ({"fromMe": None}, ["delivered"]),
        ({"fromMe": False}, []),
    ],
    ids=str,
)
def test_how_far_it_got_by_name_or_number(changed: dict[str, Any], states: list[str]) -> None:
    news = read("message.ack", ack("DEVICE", 2) | changed)
    assert [one.state for one in news if isinstance(one, Receipt)] == states


# ---------------------------------------------------------------------- no reports


@pytest.mark.parametrize("session", [None, SESSION])
def test_a_report_without_another_session_is_ours(session: Any) -> None:
    assert len(read("message", said_by(CHAT), session=session)) == 1
    for other in ("default", SESSION.upper(), 5, [SESSION]):
        assert read("message", said_by(CHAT), session=other) == []


@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("message", None),
        ("message", [1]),
        ("message", {"body": "x", "from": CHAT}),
        ("message", {"id": "3A00AA", "body": "x"}),
        ("message", {"id": "3A00AA", "from": "somebody"}),
        ("message.ack", None),
        ("message.ack", {"ack": 3}),
        ("session.status", None),
        (None, {}),
        (5, {}),
    ],
)
def test_what_is_no_report_is_refused(event: Any, payload: Any) -> None:
    with pytest.raises(InputError):
        read(event, payload)
