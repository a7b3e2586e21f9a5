"""A Unipile of our own on loopback: a real HTTP server that speaks the captured wire format.

It takes no field it does not know, keeps what was sent, lists it, and can be told how to answer
the next call: with any body, late, never, or by hanging up before or after it has read.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from paceline.core.instants import iso
from tests.providers.unipile.forms import Field, NotAForm, read_form

KEY = "sEcReT+key/for=tests"
LINKEDIN = "li-account_1"
MAILBOX = "mail-account_1"

CHAT_FIELDS = {
    "account_id",
    "attendees_ids",
    "text",
    "subject",
    "linkedin[api]",
    "linkedin[inmail]",
}
MAIL_FIELDS = {
    "account_id", "to", "subject", "body", "custom_headers", "tracking_options", "reply_to",
    "attachments",
}  # fmt: skip


@dataclass
class Scripted:
    """How one call is answered instead of as usual."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    takes: bool = False
    """Whether the message goes out all the same."""
    hangs: bool = False
    """Whether no answer comes before the server ends."""
    drops: str = ""
    """When to hang up: ``unread`` at the first byte of the request, ``read`` after the last one,
    ``midway`` in the middle of the answer."""


def error(status: int, type_: str, **more: Any) -> Scripted:
    """An error as Unipile words it."""
    takes, headers = more.pop("takes", False), more.pop("headers", {})
    said = {
        "status": status,
        "type": f"errors/{type_}",
        "title": type_.replace("_", " ").capitalize(),
        "detail": f"Told in detail: {type_}.",
        **more,
    }
    return Scripted(status, json.dumps(said).encode(), {**JSON, **headers}, takes)


JSON = {"Content-Type": "application/json; charset=utf-8"}
HTML = {"Content-Type": "text/html"}


@dataclass
class Call:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    fields: tuple[Field, ...] = ()

    def field(self, name: str) -> str:
        (found,) = [one.text for one in self.fields if one.name == name]
        return found

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.fields]


class Refused(Exception):
    def __init__(self, status: int, type_: str, detail: str) -> None:
        super().__init__(detail)
        self.answer = error(status, type_, detail=detail)


class FakeUnipile:
    """What the server knows, and what it has seen."""

    def __init__(self) -> None:
        self.accounts: dict[str, dict[str, Any]] = {
            LINKEDIN: {"type": "LINKEDIN", "status": "OK"},
            MAILBOX: {"type": "GOOGLE_OAUTH", "status": "OK"},
        }
        self.calls: list[Call] = []
        self.script: deque[Scripted] = deque()
        """Answers to the next calls that send something."""
        self.answers: dict[str, Scripted] = {}
        """Answers to calls that ask for something, by path."""
        self.sent: list[dict[str, Any]] = []
        """Everything that went out, in order."""
        self.lags = False
        """Whether lists do not show yet what went out."""
        self.now: Callable[[], int] = lambda: 0
        self.nullifies = False
        """Whether ids are null, as they may be."""
        self.arrived = threading.Condition()
        self.over = threading.Event()
        self.failures: list[str] = []
        self.url = ""

    # ------------------------------------------------------------------ what tests look at

    def posts(self) -> list[Call]:
        return [call for call in self.calls if call.method == "POST"]

    def settings(self, kind: str = "linkedin", **more: Any) -> dict[str, Any]:
        account = LINKEDIN if kind == "linkedin" else MAILBOX
        base = {"dsn": self.url, "api_key": KEY, "account_id": account, "kind": kind}
        return base | more

    def await_calls(self, count: int) -> bool:
        """Wait until so many calls were read; False if they never came."""
        with self.arrived:
            return self.arrived.wait_for(lambda: len(self.calls) >= count, timeout=30)

    # ------------------------------------------------------------------ answering

    def note(self, call: Call) -> None:
        with self.arrived:
            self.calls.append(call)
            self.arrived.notify_all()

    def answer(self, call: Call) -> Scripted:
        try:
            if call.headers.get("x-api-key") != KEY:
                raise Refused(401, "missing_credentials", "The key is not one of ours.")
            if call.method == "POST":
                return self._take(call)
            return self.answers.get(call.path) or self._tell(call)
        except Refused as refused:
            return refused.answer

    def _take(self, call: Call) -> Scripted:
        effect, said = self._read(call)
        scripted = self.script.popleft() if self.script else None
        if scripted is None or scripted.takes:
            self.sent.append(effect)
        return scripted or Scripted(201, json.dumps(said).encode(), JSON)

    def _read(self, call: Call) -> tuple[dict[str, Any], dict[str, Any]]:
        number = len(self.sent) + 1
        effect = {"id": f"id-{number}", "at": self.now(), "path": call.path}
        name = None if self.nullifies else effect["id"]
        if call.path == "/users/invite":
            body = self._object(call, {"account_id", "provider_id", "message"})
            if len(body.get("message", "")) > 300:
                raise Refused(400, "too_many_characters", "At most 300.")
            said = {"object": "UserInvitationSent", "invitation_id": name}
            return effect | {"kind": "invitation", "target": body["provider_id"], **body}, said
        form = self._form(call)
        if call.path == "/chats":
            read = self._fields(form, CHAT_FIELDS, {"account_id", "attendees_ids", "text"})
            said = {"object": "ChatStarted", "chat_id": name, "message_id": name}
            target = read["attendees_ids"]
            return effect | {"kind": "chat", "target": target, "chat": f"of-{target}", **read}, said
        if call.path == "/emails":
            read = self._fields(form, MAIL_FIELDS, {"account_id", "to", "body"})
            said = {"object": "EmailSent", "tracking_id": name}
            return effect | {"kind": "email", **read, **self._mail(read)}, said
        if call.path.startswith("/chats/") and call.path.endswith("/messages"):
            chat = unquote(call.path.split("/")[2])
            read = self._fields(form, {"text"}, {"text"})
            said = {"object": "MessageSent", "message_id": name}
            return effect | {"kind": "chat", "target": chat, "chat": chat, **read}, said
        raise Refused(404, "resource_not_found", call.path)

    def _mail(self, read: dict[str, Any]) -> dict[str, Any]:
        """The fields that hold JSON, which must be of the right shape."""
        to = json.loads(read["to"])
        headers = json.loads(read.get("custom_headers", "[]"))
        tracking = json.loads(read.get("tracking_options", "{}"))
        right = isinstance(to, list) and to and all("identifier" in one for one in to)
        right = right and all(set(one) == {"name", "value"} for one in headers)
        if not right or not set(tracking) <= {"opens", "links", "label"}:
            raise Refused(400, "invalid_parameters", "Not the shape of an e-mail.")
        return {"target": to[0]["identifier"], "headers": headers, "tracking": tracking}

    def _form(self, call: Call) -> list[Field]:
        try:
            form = read_form(call.headers.get("content-type", ""), call.body)
        except (NotAForm, UnicodeDecodeError) as problem:
            raise Refused(415, "unsupported_media_type", str(problem)) from None
        call.fields = tuple(form)
        return form

    def _fields(self, form: list[Field], known: set[str], needed: set[str]) -> dict[str, Any]:
        names = {one.name for one in form}
        if not needed <= names <= known:
            raise Refused(400, "invalid_parameters", f"{sorted(names)} of {sorted(known)}")
        files = [one for one in form if one.name == "attachments"]
        read: dict[str, Any] = {one.name: one.text for one in form if one not in files}
        if any(one.filename is None for one in files) or any(
            one.filename is not None for one in form if one not in files
        ):
            raise Refused(400, "invalid_parameters", "a file is no file, or a field is one")
        if files:
            read["files"] = [(one.filename, one.mime, one.value) for one in files]
        self._known(read.get("account_id", LINKEDIN))
        return read

    def _object(self, call: Call, known: set[str]) -> dict[str, Any]:
        if call.headers.get("content-type") != "application/json":
            raise Refused(415, "unsupported_media_type", "Not an object.")
        body: dict[str, Any] = json.loads(call.body)
        if not {"account_id", "provider_id"} <= set(body) <= known:
            raise Refused(400, "invalid_parameters", f"{sorted(body)}")
        self._known(body["account_id"])
        return body

    def _known(self, account: str) -> None:
        if account not in self.accounts:
            raise Refused(404, "resource_not_found", "Account not found.")

    # ------------------------------------------------------------------ telling

    def _tell(self, call: Call) -> Scripted:
        parts = [unquote(part) for part in call.path.strip("/").split("/")]
        match parts:
            case ["accounts", account]:
                self._known(account)
                known = self.accounts[account]
                sources = [{"id": f"{account}_X", "status": known["status"]}]
                return self._ok(
                    {"object": "Account", "id": account, "type": known["type"], "sources": sources}
                )
            case ["users", "invite", "sent"]:
                return self._page(call, "InvitationList", self._invitations())
            case ["chats", chat, "messages"]:
                return self._page(call, "MessageList", self._messages(chat, call.query))
            case ["chat_attendees", person, "chats"]:
                chats = {one["chat"] for one in self._shown("chat") if one["target"] == person}
                return self._page(call, "ChatList", [{"id": chat} for chat in sorted(chats)])
            case ["emails"]:
                return self._page(call, "EmailList", self._emails(call.query))
        raise Refused(404, "resource_not_found", call.path)

    def _shown(self, kind: str) -> list[dict[str, Any]]:
        return [] if self.lags else [one for one in self.sent if one["kind"] == kind]

    def _invitations(self) -> list[dict[str, Any]]:
        return [
            {"object": "InvitationSent", "id": one["id"], "invited_user_id": one["target"]}
            | {"invitation_text": one.get("message"), "invited_user_public_id": None}
            for one in self._shown("invitation")
        ]

    def _messages(self, chat: str, query: dict[str, str]) -> list[dict[str, Any]]:
        return [
            {"object": "Message", "id": one["id"], "text": one["text"], "is_sender": 1}
            | {"timestamp": iso(one["at"])} | one.get("shown", {})
            for one in self._shown("chat")
            if one["chat"] == chat and iso(one["at"]) >= query.get("after", "")
        ]  # fmt: skip

    def _emails(self, query: dict[str, str]) -> list[dict[str, Any]]:
        found = [one for one in self._shown("email") if one["target"] == query.get("to")]
        if query.get("role") != "sent" or query.get("include_headers") != "true":
            return [{"object": "Email", "id": one["id"]} for one in found]
        return [
            {"object": "Email", "id": f"mail-{one['id']}", "tracking_id": one["id"]}
            | {"headers": [{"name": "Subject", "value": "x"}, *one["headers"]]}
            for one in found
        ]

    def _page(self, call: Call, name: str, entries: list[dict[str, Any]]) -> Scripted:
        first, limit = int(call.query.get("cursor", "0")), int(call.query["limit"])
        if not 1 <= limit <= 250:
            raise Refused(400, "invalid_parameters", "limit")
        end = first + limit
        cursor = str(end) if end < len(entries) else None
        return self._ok({"object": name, "items": entries[first:end], "cursor": cursor})

    def _ok(self, said: dict[str, Any]) -> Scripted:
        return Scripted(200, json.dumps(said).encode(), JSON)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def handle_one_request(self) -> None:
        fake = self.server.fake
        if fake.script and fake.script[0].drops == "unread":
            fake.script.popleft()
            self.close_connection = True
            # Not before something has come: until then there would be nothing to be in doubt of.
            self.connection.recv(1, socket.MSG_PEEK)
            _hang_up(self.connection)
            return
        super().handle_one_request()

    def do_GET(self) -> None:
        self._serve()

    do_POST = do_GET

    def _serve(self) -> None:
        fake = self.server.fake
        parts = urlsplit(self.path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        path = parts.path
        if not path.startswith("/api/v1/"):
            fake.failures.append(f"asked for {path}")
        call = Call(self.command, path.removeprefix("/api/v1"), query, headers, body)
        fake.note(call)
        self._answer(fake.answer(call))

    def _answer(self, scripted: Scripted) -> None:
        if scripted.hangs:
            self.server.fake.over.wait()
        if scripted.hangs or scripted.drops == "read":
            self.close_connection = True
            return
        self.send_response_only(scripted.status)
        for name, value in scripted.headers.items():
            self.send_header(name, value)
        length = len(scripted.body) + (10 if scripted.drops == "midway" else 0)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(scripted.body)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """What was called is kept by the fake."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, fake: FakeUnipile) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.fake = fake

    def handle_error(self, request: Any, client_address: Any) -> None:
        failure = sys.exception()
        if not isinstance(failure, ConnectionError):
            self.fake.failures.append(repr(failure))


def _hang_up(connection: socket.socket) -> None:
    """At once and for good, with what was sent left unread: the other side sees a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@contextmanager
def running() -> Iterator[FakeUnipile]:
    """A server on a free port; afterwards nothing of it is left, and nothing went wrong in it."""
    fake = FakeUnipile()
    server = _Server(fake)
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), name="fake-unipile")
    thread.start()
    try:
        yield fake
    finally:
        fake.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
    assert not fake.failures, fake.failures
