"""What is written about a webhook, and how what it is sent is signed."""

import base64
import hashlib
import json
from typing import Any

import pytest

from paceline.core.errors import InputError
from paceline.core.instants import SECOND, parse_instant
from paceline.core.webhooks import Webhook, body_of, headers_of, signature, webhooks_of

SECRET = "a-secret-of-some-length"
TOKEN = "t0ken-in-the-path"
URL = f"https://user:pa55word@crm.example.com:8443/hook/{TOKEN}?key=query-t0ken"


def written(**more: Any) -> dict[str, Any]:
    return {"url": URL, "secret": SECRET, **more}


def test_one_needs_an_address_and_a_secret() -> None:
    (webhook,) = webhooks_of([written()])
    assert (webhook.name, webhook.url, webhook.secret) == ("crm.example.com", URL, SECRET)
    assert "run.finished" in webhook.wanted
    assert webhook.shown == "https://crm.example.com:8443/…"


def test_nothing_of_it_is_shown_that_may_be_a_secret() -> None:
    (webhook,) = webhooks_of([written(name="crm")])
    for text in (repr(webhook), webhook.shown, repr([webhook])):
        assert not [part for part in (SECRET, TOKEN, "pa55word", "query-t0ken") if part in text]


def test_a_variable_holds_a_list_in_one_line() -> None:
    found = webhooks_of(f'[{{ url = "{URL}", secret = "env:CRM", events = ["run.*"] }}]')
    assert [str(webhook.wanted) for webhook in found] == ["run.*"]
    with pytest.raises(InputError, match="is not a list of tables"):
        webhooks_of(URL)


def test_a_secret_may_be_in_a_variable() -> None:
    webhook = Webhook("crm", URL, "env:CRM_SECRET")
    assert webhook.signed_with({"CRM_SECRET": f" {SECRET}\n"}) == SECRET
    assert Webhook("crm", URL, SECRET).signed_with({}) == SECRET
    with pytest.raises(InputError, match="webhooks: crm: secret: the variable CRM_SECRET is short"):
        webhook.signed_with({"CRM_SECRET": "pa55"})
    with pytest.raises(InputError, match="the variable CRM_SECRET is shorter"):
        webhook.signed_with({})


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        (3, "must be a list of tables"),
        ([3], "number 1 must be a table"),
        ([{"secret": SECRET}], "number 1: url: is missing"),
        ([{"url": URL}], "number 1: secret: is missing"),
        ([written(), written(sercet="x")], "number 2 unknown key 'sercet', did you mean 'secret'"),
        ([written(url="ftp://x/pa55word")], "number 1: url: is not an http or https address"),
        ([written(url="pa55word")], "url: is not an http or https address"),
        ([written(url="https://[pa55word")], "url: is not an http or https address"),
        ([written(url="https://x:99999/")], "url: is not an http or https address"),
        ([written(url="https://x/#pa55word")], "url: has something in it that is never sent"),
        ([written(url="https://x/a b")], "url: has something in it"),
        ([written(url=12345678)], "url: must be a text in quotes"),
        ([written(secret="pa55word")], "secret: is shorter than 16 characters"),
        ([written(secret="pa55word with some spaces")], "or has others than plain ones"),
        ([written(secret=12345678901234567)], "secret: must be a text in quotes"),
        ([written(secret="env:")], "secret: names no variable"),
        ([written(events="run.*")], "events: must be a list such as"),
        ([written(events=[])], "events: names no events"),
        ([written(events=["run.finish"])], "events: unknown event 'run.finish', did you mean"),
        ([written(name="a b")], "name: 'a b' cannot be a webhook's name"),
        ([written(url="http://[::1]/")], "name: '::1' cannot be a webhook's name"),
        ([written(), written()], "number 2: name: there are two named 'crm.example.com'"),
    ],
)
def test_what_is_wrong_is_told_without_what_may_be_secret(raw: object, complaint: str) -> None:
    with pytest.raises(InputError) as refused:
        webhooks_of(raw)
    told = str(refused.value)
    assert complaint in told
    assert not [part for part in ("pa55word", "12345678", SECRET, TOKEN) if part in told]


def test_the_same_event_is_the_same_bytes() -> None:
    at = parse_instant("2026-03-02T09:00:00.5Z")
    body = body_of(7, "run.missed", at, "standup: Grüße\n", {"run": 3, "reminder": None})
    assert json.loads(body) == {
        "id": 7,
        "kind": "run.missed",
        "at": "2026-03-02T09:00:00.500000Z",
        "text": "standup: Grüße\n",
        "data": {"run": 3, "reminder": None},
    }
    assert body == body_of(7, "run.missed", at, "standup: Grüße\n", {"run": 3, "reminder": None})


def by_hand(secret: bytes, message: bytes) -> str:
    """HMAC as RFC 2104 writes it down, with nothing but a hash."""
    key = (hashlib.sha256(secret).digest() if len(secret) > 64 else secret).ljust(64, b"\0")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in key) + message).digest()
    return hashlib.sha256(bytes(byte ^ 0x5C for byte in key) + inner).hexdigest()


@pytest.mark.parametrize("secret", [SECRET, "x" * 64, "y" * 200])
def test_the_signature_is_what_the_documentation_says(secret: str) -> None:
    body = b'{"id":7}'
    headers = headers_of(secret, "1f-7", body, 1_772_442_000 * SECOND + 999_999)
    assert headers["Paceline-Event-Id"] == "1f-7"
    assert headers["Paceline-Timestamp"] == "1772442000"
    assert headers["Paceline-Signature"] == f"v1={by_hand(secret.encode(), b'1772442000.' + body)}"


def test_a_signature_is_good_for_one_body_one_instant_and_one_secret() -> None:
    good = signature(SECRET, "1", b"body")
    others = [
        signature(SECRET, "2", b"body"),
        signature(SECRET, "1", b"bodx"),
        signature(SECRET + "x", "1", b"body"),
        signature(SECRET, "1.body", b""),
    ]
    assert good not in others
    assert len(base64.b16decode(good.removeprefix("v1=").upper())) == 32
