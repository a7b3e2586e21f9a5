"""A WAHA of our own that speaks its wire format as far as it is known.

It takes no field it does not know, keeps what was sent, and gives it out by its id. Like the phones
behind the real one it shows a message that comes again under the same id once. Each of the three
engines writes its answers in a way of its own.
"""

from __future__ import annotations

import base64
import re
from typing import Any
from urllib.parse import unquote

from tests.providers.loopback import Call, Fake, Scripted, said

KEY = "sEcReT+key/for=tests"
SESSION = "shop-1"
PHONE = "+4915112345678"
CHAT = "4915112345678@c.us"
OWN = "447362053576@c.us"
OWN_LID = "99887766554433@lid"
GROUP = "120363041234567890@g.us"

SENDS = {"/sendText", "/sendImage", "/sendVideo", "/sendFile"}
ID = re.compile(r"3EB0[0-9A-F]{18}")

STATES = (
    "STARTING",
    "STOPPED",
    "SCAN_QR_CODE",
    "FAILED",
    "PASSKEY_REQUIRED",
    "PASSKEY_CONFIRMATION_REQUIRED",
)

ENGINE_SAYS = {
    "not-connected": "failed to send message node: websocket not connected",
    "no-session": "No sessions",
    "rate-overlimit": "info query returned status 429: rate-overlimit",
    "not-on-whatsapp": "no LID found for 4915112345678@s.whatsapp.net from server",
    "no-such-group": "failed to get group members: that group does not exist",
    "not-in-group": "failed to get group members: you're not participating in that group",
}


def failure(words: str, **more: Any) -> Scripted:
    """A 500 as WAHA words it: what its engine threw, and the request once more."""
    exception = {
        "message": f"2 UNKNOWN: {words}",
        "code": 2,
        "details": words,
        "metadata": {},
        "name": "Error",
        "stack": f"Error: 2 UNKNOWN: {words}\n    at callErrorFromStatus (/app/call.js:32:19)",
    }
    request = {"path": "/api/sendText", "method": "POST", "body": {"text": "Hello"}, "query": {}}
    body = {
        "statusCode": 500,
        "timestamp": "2026-11-15T09:00:00.000Z",
        "exception": exception,
        "request": request,
        "version": {"version": "2026.7.1", "engine": "GOWS", "tier": "PLUS", "browser": None},
    }
    return said(500, body, **more)


def not_working(state: str, **more: Any) -> Scripted:
    """What WAHA says to whoever asks something of a session that does not work."""
    words = "Session status is not as expected. Try again later or restart the session"
    body = {"error": words, "session": SESSION, "status": state, "expected": ["WORKING"]}
    return said(422, body, **more)


def error(status: int, message: Any = None, **more: Any) -> Scripted:
    """Any other refusal."""
    words = f"Told in words: {status}." if message is None else message
    return said(status, {"statusCode": status, "message": words, "error": "Some Status"}, **more)


def answer_of(row: str) -> Scripted:
    """The answer that a row of the driver's table is about."""
    if row.isdecimal():
        return failure(f"server returned error {row}")
    if row in ENGINE_SAYS:
        return failure(ENGINE_SAYS[row])
    if row == "plus-only":
        return error(
            422, "The feature is available only in Plus version. Check this out: https://…"
        )
    if row.startswith("session-"):
        state = row.removeprefix("session-").replace("-", "_").upper()
        return not_working(state if state in STATES else "BRAND_NEW")
    return error(int(row.removeprefix("http-")))


class Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.answer = error(status, message)


class FakeWaha(Fake):
    """What the server knows."""

    prefix = "/api"

    def __init__(self) -> None:
        super().__init__()
        self.engine = "GOWS"
        self.state: str | None = "WORKING"
        """How the session stands; None where there is no such session."""
        self.me: dict[str, Any] = {"id": OWN, "lid": OWN_LID, "pushName": "Shop"}
        self.groups: list[dict[str, Any]] = []
        self.knows_pages = True
        self.messages: list[dict[str, Any]] = []
        """Everything that people got, in order."""
        self.unlisted = False
        """Whether nothing that went out can be asked for yet."""
        self.chats: dict[str, str | None] = {}
        """Numbers whose chat has another one, or who are not on WhatsApp."""

    def settings(self, **more: Any) -> dict[str, Any]:
        return {"base_url": self.url, "api_key": KEY, "session": SESSION} | more

    def sends(self) -> list[Call]:
        return [call for call in self.calls if call.method == "POST" and call.path in SENDS]

    def asked(self, piece: str) -> list[Call]:
        return [call for call in self.calls if call.method == "GET" and piece in call.path]

    # ------------------------------------------------------------------ answering

    def answer(self, call: Call) -> Scripted:
        try:
            if call.headers.get("x-api-key") != KEY:
                raise Refused(401, "Unauthorized")
            if call.method == "POST" and call.path in SENDS:
                return self._take(call)
            if call.method == "GET":
                return self.answers.get(call.path) or self._tell(call)
            raise Refused(404, f"Cannot {call.method} /api{call.path}")
        except Refused as refused:
            return refused.answer

    def _working(self, session: str) -> None:
        if self.state in (None, "STOPPED") or session != SESSION:
            start = f"Please start it first by using POST /api/sessions/{session}/start request"
            raise Refused(404, f"We didn't find a session with name '{session}'.\n{start}")

    def _take(self, call: Call) -> Scripted:
        body = self._body(call)
        scripted = self.script.popleft() if self.script else None
        if scripted is not None and not scripted.takes:
            return scripted
        self._working(body["session"])
        if self.state != "WORKING":
            return not_working(self.state or "")
        known = [one for one in self.messages if one["id"] == body.get("id")]
        if not known:
            known = [self._deliver(call.path, body)]
        return scripted or said(201, self._written(known[0]))

    def _deliver(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        takes_ids = self.engine in ("GOWS", "NOWEB")
        made = f"3EB0{len(self.messages) + 1:018X}"
        file = body.get("file")
        entry = {
            "id": body.get("id", made) if takes_ids else made,
            "chat": body["chatId"],
            "text": body.get("text", body.get("caption", "")),
            "path": path,
            "file": None if file is None else base64.b64decode(file["data"], validate=True),
            "ack": 1,
            "at": self.now() // 1_000_000,
        }
        self.messages.append(entry)
        return entry

    def _body(self, call: Call) -> dict[str, Any]:
        body: dict[str, Any] = call.json()
        text = call.path == "/sendText"
        needed = {"session", "chatId"} | ({"text"} if text else {"file", "caption"})
        problems = [
            call.headers.get("content-type") != "application/json",
            not needed <= set(body) <= needed | {"id"},
            text and not body.get("text"),
            not re.fullmatch(r"\d{7,15}@c\.us|[\d-]{5,40}@g\.us|\d+@lid", body.get("chatId", "")),
            "id" in body and not ID.fullmatch(body["id"]),
            not text and set(body.get("file", {})) != {"mimetype", "filename", "data"},
        ]
        if any(problems):
            self.failures.append(f"a message that WAHA would not understand: {body}")
            raise Refused(400, "Bad Request")
        return body

    def _written(self, entry: dict[str, Any]) -> dict[str, Any]:
        """The answer to a send, in the words of the engine."""
        serialised = f"true_{entry['chat']}_{entry['id']}"
        if entry["chat"].endswith("@g.us"):
            serialised += f"_{OWN}"
        remote = entry["chat"].replace("@c.us", "@s.whatsapp.net")
        match self.engine:
            case "NOWEB":
                key = {"remoteJid": remote, "fromMe": True, "id": entry["id"]}
                return {"key": key, "message": {}, "messageTimestamp": "1", "status": "PENDING"}
            case "WEBJS":
                inner = {"fromMe": True, "remote": entry["chat"], "id": entry["id"]}
                return {"id": {**inner, "_serialized": serialised}, "ack": 0, "_data": {}}
        return {"id": serialised, "_data": {"Info": {"ID": entry["id"], "Chat": remote}}}

    # ------------------------------------------------------------------ telling

    def _tell(self, call: Call) -> Scripted:
        match [unquote(part) for part in call.path.strip("/").split("/")]:
            case ["sessions", session]:
                return self._session(session)
            case ["contacts", "check-exists"]:
                return self._exists(call)
            case [session, "groups"]:
                self._working(session)
                return said(200, self._listed(call))
            case [session, "chats", chat, "messages", name]:
                self._working(session)
                return self._message(call, chat, name)
        raise Refused(404, f"Cannot GET /api{call.path}")

    def _session(self, session: str) -> Scripted:
        if self.state is None or session != SESSION:
            raise Refused(404, "Session not found")
        running = self.state != "STOPPED"
        shown = {"name": session, "status": self.state, "config": {}, "presence": None}
        engine = {"engine": self.engine} if running else {}
        return said(200, shown | {"me": self.me, "engine": engine})

    def _exists(self, call: Call) -> Scripted:
        self._working(call.query["session"])
        chat = self.chats.get(call.query["phone"], f"{call.query['phone']}@c.us")
        found = {} if chat is None else {"chatId": chat}
        return said(200, {"numberExists": chat is not None, **found})

    def _listed(self, call: Call) -> Any:
        first, size = int(call.query["offset"]), int(call.query["limit"])
        page = self.groups[first : first + size] if self.knows_pages else self.groups
        return {one["id"]: one for one in page} if self.engine == "NOWEB" else page

    def _message(self, call: Call, chat: str, name: str) -> Scripted:
        if call.query != {"downloadMedia": "false"} or name.count("_") != 2:
            self.failures.append(f"asked for {name} with {call.query}")
        _, where, wanted = name.split("_")
        for one in () if self.unlisted else self.messages:
            if (one["id"], one["chat"], where) == (wanted, chat, chat):
                return said(200, self._stored(one))
        raise Refused(404, "Message not found")

    def _stored(self, entry: dict[str, Any]) -> dict[str, Any]:
        names = {-1: "ERROR", 0: "PENDING", 1: "SERVER", 2: "DEVICE", 3: "READ", 4: "PLAYED"}
        return {
            "id": f"true_{entry['chat']}_{entry['id']}",
            "timestamp": entry["at"],
            "from": entry["chat"],
            "fromMe": True,
            "source": "api",
            "to": None,
            "body": entry["text"],
            "hasMedia": entry["file"] is not None,
            "media": None,
            "ack": entry["ack"],
            "ackName": names[entry["ack"]],
        }
