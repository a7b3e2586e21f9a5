"""A Gmail of our own, and whoever makes the tokens for it, that speak the documented wire format.

It believes nobody: what asks for a token has to be signed with the service account's key and say
exactly what Google wants to hear, and every other call has to have a token it gave out. A letter is
taken apart, kept, and found again by its Message-ID.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, urlsafe_b64decode
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from functools import cache
from typing import Any
from urllib.parse import parse_qs, unquote

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from paceline.core.instants import SECOND
from paceline.engine.clock import SystemClock
from tests.providers.gmail.post import Post
from tests.providers.loopback import JSON, Call, Fake, Scripted, said

MAILBOX = "anna@example.com"
ALIAS = "sales@example.com"
EMAIL = "paceline@example-project.iam.gserviceaccount.com"
KEY_ID = "0123456789abcdef0123456789abcdef01234567"
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
SEND_SCOPE = "https://www.googleapis.com/auth/gmail.send"
READ_SCOPE = "https://www.googleapis.com/auth/gmail.readonly"
USER = "/gmail/v1/users/me"
SENDS = (f"{USER}/messages/send", f"/upload{USER}/messages/send")

CLAIMS = {"iss", "sub", "scope", "aud", "iat", "exp"}
NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


def error(status: int, reason: str, message: str, **more: Any) -> Scripted:
    """An error as Gmail words it."""
    takes, headers = more.pop("takes", False), more.pop("headers", {})
    domain = more.pop("domain", "global")
    name = more.pop("name", NAMES.get(status))
    listed = [{"message": message, "domain": domain, "reason": reason, **more}]
    body: dict[str, Any] = {"code": status, "message": message, "errors": listed}
    if name is not None:
        body["status"] = name
    return said(status, {"error": body}, takes=takes, headers=headers)


def no_token(status: int, name: str, description: str = "") -> Scripted:
    """A refusal as whoever makes the tokens words it."""
    words = {"error_description": description} if description else {}
    return said(status, {"error": name, **words})


STALE = error(
    401,
    "authError",
    "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie "
    "or other valid authentication credential.",
    location="Authorization",
    locationType="header",
)


@cache
def made_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


def pem_of(key: Any) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


@cache
def key_text() -> str:
    """A key's file as Google makes them."""
    return json.dumps(
        {
            "type": "service_account",
            "project_id": "example-project",
            "private_key_id": KEY_ID,
            "private_key": pem_of(made_key()),
            "client_email": EMAIL,
            "client_id": "100000000000000000001",
            "auth_uri": "https://accounts.google.com/o/oauth2/auth",
            "token_uri": "https://oauth2.googleapis.com/token",
            "universe_domain": "googleapis.com",
        },
        indent=2,
    )


@dataclass
class Taken:
    """A letter that went out."""

    id: str
    raw: bytes
    how: str
    """The path it came by."""

    @property
    def letter(self) -> EmailMessage:
        read = message_from_bytes(self.raw, policy=policy.default)
        assert isinstance(read, EmailMessage)
        return read

    @property
    def to(self) -> str:
        return str(self.letter["To"])

    @property
    def text(self) -> str:
        body = self.letter.get_body(("plain",))
        return "" if body is None else str(body.get_content()).replace("\r\n", "\n").rstrip("\n")

    @property
    def own_id(self) -> str:
        return str(self.letter["Message-ID"])

    @property
    def files(self) -> list[bytes]:
        return [part.get_content() for part in self.letter.iter_attachments()]


class Refused(Exception):
    def __init__(self, answer: Scripted) -> None:
        super().__init__(answer.status)
        self.answer = answer


class FakeGmail(Fake):
    """What the server knows."""

    def __init__(self) -> None:
        super().__init__()
        self.delegated = {SEND_SCOPE, READ_SCOPE}
        """The scopes that the domain's administrator has delegated to the service account."""
        self.mailboxes = {MAILBOX}
        self.aliases = {ALIAS: "accepted"}
        self.sent: list[Taken] = []
        self.lags = False
        """Whether a search does not show yet what went out."""
        self.box = Post()
        """What came to the mailbox."""
        self.soon: dict[str, list[Scripted]] = {}
        """Answers to the next calls that ask for something, by path."""
        self.tokens: dict[str, set[str]] = {}
        """The tokens that are good, with their scopes."""
        self.issued: list[str] = []
        self.token_answers: list[Scripted] = []
        """How the next requests for a token are answered."""
        self.later_token_answers: list[Scripted] = []
        """How those after the first token are."""
        self.expires_in: Any = 3_599
        self.claims: list[dict[str, Any]] = []
        """What was asked for, with a good signature."""

    def settings(self, **more: Any) -> dict[str, Any]:
        base = {"service_account": key_text(), "subject": MAILBOX, "api_url": self.url}
        return base | {"token_uri": f"{self.url}/token"} | more

    def sends(self) -> list[Call]:
        return [call for call in self.calls if call.path in SENDS]

    def asked_for_tokens(self) -> list[Call]:
        return [call for call in self.calls if call.path == "/token"]

    def searches(self) -> list[Call]:
        return [call for call in self.calls if call.path == f"{USER}/messages"]

    def revoke(self) -> None:
        """Whatever tokens there are, they are not good any more."""
        self.tokens.clear()

    def answer(self, call: Call) -> Scripted:
        try:
            if call.path == "/token":
                return self._make_token(call)
            if call.path in SENDS and call.method == "POST":
                return self._take(call)
            scopes = self._let_in(call)
            if self.soon.get(call.path):
                return self.soon[call.path].pop(0)
            if call.path in self.answers:
                return self.answers[call.path]
            if READ_SCOPE not in scopes:
                words = "Request had insufficient authentication scopes."
                raise Refused(error(403, "insufficientPermissions", words))
            return self._tell(call)
        except Refused as refused:
            return refused.answer

    # ---------------------------------------------------------------------- tokens

    def _make_token(self, call: Call) -> Scripted:
        if call.method != "POST" or "authorization" in call.headers:
            self.failures.append("a token was asked for in a strange way")
        answers = self.later_token_answers if self.issued else self.token_answers
        if answers:
            return answers.pop(0)
        if call.headers.get("content-type") != "application/x-www-form-urlencoded":
            raise Refused(no_token(400, "invalid_request", "Bad Request"))
        form = parse_qs(call.body.decode(), strict_parsing=True)
        if set(form) != {"grant_type", "assertion"} or form["grant_type"] != [GRANT]:
            raise Refused(no_token(400, "unsupported_grant_type", f"Invalid grant_type: {form}"))
        claims = _verified(form["assertion"][0])
        self._allowed(claims)
        self.claims.append(claims)
        token = f"ya29.c.fake-{len(self.issued)}-Zx8_-secret"
        self.issued.append(token)
        self.tokens[token] = set(claims["scope"].split())
        made = {"access_token": token, "expires_in": self.expires_in, "token_type": "Bearer"}
        return Scripted(200, json.dumps(made).encode(), JSON)

    def _allowed(self, claims: dict[str, Any]) -> None:
        if claims["sub"] not in self.mailboxes:
            raise Refused(no_token(400, "invalid_grant", "Invalid email or User ID"))
        if not set(claims["scope"].split()) <= self.delegated:
            words = (
                "Client is unauthorized to retrieve access tokens using this method, or client not "
                "authorized for any of the scopes requested."
            )
            raise Refused(no_token(401, "unauthorized_client", words))

    def _let_in(self, call: Call) -> set[str]:
        kind, _, token = call.headers.get("authorization", "").partition(" ")
        if kind != "Bearer" or token not in self.tokens:
            raise Refused(STALE)
        return self.tokens[token]

    # ---------------------------------------------------------------------- letters

    def _take(self, call: Call) -> Scripted:
        # What is told to this call in advance is told whoever makes it, as a proxy would.
        scripted = self.script.popleft() if self.script else None
        if scripted is None and SEND_SCOPE not in self._let_in(call):
            raise Refused(error(403, "insufficientPermissions", "Insufficient Permission"))
        if scripted is None or scripted.takes:
            raw = self._read(call)
            self._mind(raw)
            self.sent.append(Taken(f"18c{len(self.sent):013x}", raw, call.path))
        if scripted is not None:
            return scripted
        name = self.sent[-1].id
        return said(200, {"id": name, "threadId": name, "labelIds": ["SENT"]})

    def _read(self, call: Call) -> bytes:
        kind = call.headers.get("content-type", "")
        if call.path.startswith("/upload/"):
            if kind != "message/rfc822" or call.query != {"uploadType": "media"}:
                raise Refused(error(400, "badRequest", "Media type is not supported."))
            return call.body
        body = call.json()
        if kind != "application/json" or set(body) != {"raw"} or call.query:
            words = "'raw' RFC822 payload message string required"
            raise Refused(error(400, "invalidArgument", words))
        if not re.fullmatch(r"[A-Za-z0-9_-]*={0,2}", body["raw"]):
            raise Refused(error(400, "invalidArgument", "Invalid value for ByteString"))
        return urlsafe_b64decode(body["raw"])

    def _mind(self, raw: bytes) -> None:
        """A letter has to be one."""
        if not raw.isascii() or re.search(rb"(?<!\r)\n|\r(?!\n)", raw):
            self.failures.append("a letter with bare line ends, or of eight bits")
        if len(raw) > 36_700_160:
            raise Refused(error(413, "uploadTooLarge", "Request Entity Too Large"))
        read = message_from_bytes(raw, policy=policy.default)
        if not re.search(r"\S@\S+\.\S", str(read["To"] or "")):
            raise Refused(error(400, "invalidArgument", "Invalid To header"))
        if read.defects or not read["Message-ID"] or not read["Date"] or not read["From"]:
            self.failures.append(f"a letter with defects: {read.defects}")

    # ---------------------------------------------------------------------- telling

    def _tell(self, call: Call) -> Scripted:
        if call.method != "GET":
            raise Refused(error(404, "notFound", "Requested entity was not found."))
        if call.path == f"{USER}/profile":
            counts = {"messagesTotal": len(self.sent), "threadsTotal": 1}
            return said(200, {"emailAddress": MAILBOX, "historyId": self.box.history_id, **counts})
        alias = unquote(call.path).removeprefix(f"{USER}/settings/sendAs/")
        if alias in self.aliases:
            status = self.aliases[alias]
            return said(200, {"sendAsEmail": alias, "verificationStatus": status})
        if call.path == f"{USER}/messages" and "labelIds" not in call.query:
            return self._search(call)
        told = self.box.tell(call.path.removeprefix(f"{USER}/"), call.query)
        if told is not None:
            return said(200, told)
        raise Refused(error(404, "notFound", "Requested entity was not found."))

    def _search(self, call: Call) -> Scripted:
        name, _, wanted = call.query["q"].partition(":")
        known = set(call.query) <= {"q", "includeSpamTrash", "maxResults"}
        if name != "rfc822msgid" or not known or re.search(r"[<>\s]", wanted):
            self.failures.append(f"a strange search: {call.query}")
        shown = [] if self.lags else self.sent
        found = [one for one in shown if one.own_id == f"<{wanted}>"]
        listed = (
            {"messages": [{"id": one.id, "threadId": one.id} for one in found]} if found else {}
        )
        return said(200, {**listed, "resultSizeEstimate": len(found)})


def _verified(assertion: str) -> dict[str, Any]:
    """What an assertion claims, if it is signed with the key and says all that it has to."""
    head, body, signature = assertion.split(".")
    try:
        made_key().public_key().verify(
            _bytes(signature), f"{head}.{body}".encode(), padding.PKCS1v15(), hashes.SHA256()
        )
    except InvalidSignature:
        raise Refused(no_token(400, "invalid_grant", "Invalid JWT Signature.")) from None
    if json.loads(_bytes(head)) != {"alg": "RS256", "typ": "JWT", "kid": KEY_ID}:
        raise Refused(no_token(400, "invalid_grant", "Invalid JWT: bad header."))
    claims: dict[str, Any] = json.loads(_bytes(body))
    now_s = SystemClock().now() // SECOND
    timely = abs(claims["iat"] - now_s) < 60 and 0 < claims["exp"] - claims["iat"] <= 3_600
    if not timely:
        words = "Invalid JWT: Token must be a short-lived token and in a reasonable timeframe."
        raise Refused(no_token(400, "invalid_grant", words))
    right = set(claims) == CLAIMS and claims["iss"] == EMAIL
    if not right or claims["aud"] != "https://oauth2.googleapis.com/token":
        raise Refused(no_token(400, "invalid_grant", "Invalid JWT: claims."))
    return claims


def _bytes(text: str) -> bytes:
    assert "=" not in text
    return b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
