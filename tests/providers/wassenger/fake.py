"""A Wassenger of our own that speaks its wire format as far as it is known.

It takes no field it does not know, insists that its own queue and retries are switched off, keeps
what was sent, and lists it.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Any
from urllib.parse import unquote

from paceline.core.instants import DAY, iso
from tests.providers.forms import NotAForm, read_form
from tests.providers.loopback import Call, Fake, Scripted, said

KEY = "sEcReT+key/for=tests"
DEVICE = "5f4dcc3b5aa765d61d8327de"
PHONE = "+4915112345678"
OWN = "+447362053576"
GROUP = "120363041234567890@g.us"

FIELDS = {"phone", "group", "message", "device", "media", "reference", "enqueue", "retries"}


def error(status: int, code: str = "", **more: Any) -> Scripted:
    """An error as Wassenger words it."""
    kept = {key: more.pop(key) for key in ("takes", "headers") if key in more}
    words = {"status": status, "message": f"Told in words: {code or status}."}
    return said(status, words | ({"errorCode": code} if code else {}) | more, **kept)


class Refused(Exception):
    def __init__(self, status: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.answer = said(status, {"status": status, "message": message, **more})


class FakeWassenger(Fake):
    """What the server knows."""

    prefix = "/v1"

    def __init__(self) -> None:
        super().__init__()
        self.device: dict[str, Any] | None = {
            "id": DEVICE,
            "phone": OWN,
            "alias": "Shop",
            "status": "operative",
            "session": {"status": "online"},
        }
        self.groups: list[dict[str, Any]] = []
        self.most_listed = 100
        """How many groups a page holds, however many are asked for."""
        self.files: dict[str, dict[str, Any]] = {}
        self.uploads: deque[Scripted] = deque()
        """Answers to the next uploads."""
        self.messages: list[dict[str, Any]] = []
        """Everything that went out, in order, as it is listed."""
        self.unlisted = False
        """Whether lists do not show yet what went out."""
        self.wraps = False
        """Whether an answer is a list of one where an object would do."""
        self.strangers: set[str] = set()
        """Numbers that are not on WhatsApp."""

    def settings(self, **more: Any) -> dict[str, Any]:
        return {"base_url": f"{self.url}/v1", "api_key": KEY, "device": DEVICE} | more

    def sends(self) -> list[Call]:
        return [call for call in self.calls if (call.method, call.path) == ("POST", "/messages")]

    def uploaded(self) -> list[Call]:
        return [call for call in self.calls if (call.method, call.path) == ("POST", "/files")]

    # ------------------------------------------------------------------ answering

    def answer(self, call: Call) -> Scripted:
        try:
            if call.headers.get("token") != KEY:
                raise Refused(401, "Unauthorized: the token is not one of ours")
            match call.method, call.path:
                case "POST", "/messages":
                    return self._take(call)
                case "POST", "/files":
                    return self._keep(call)
                case "POST", "/numbers/exists":
                    return self.answers.get(call.path) or self._exists(call)
                case "GET", _:
                    return self.answers.get(call.path) or self._tell(call)
            raise Refused(405, f"{call.method} {call.path}")
        except Refused as refused:
            return refused.answer

    def _take(self, call: Call) -> Scripted:
        body = self._body(call)
        scripted = self.script.popleft() if self.script else None
        if scripted is not None and not scripted.takes:
            return scripted
        target = body.get("group") or body["phone"]
        file = self._file(body["media"]["file"]) if "media" in body else None
        if target in self.strangers:
            raise Refused(404, "The recipient cannot be reached")
        number = len(self.messages) + 1
        entry = {
            "id": f"{number:024x}",
            "waId": f"3EB0{number:016X}",
            "wid": target.removeprefix("+"),
            "phone": body.get("phone"),
            "group": body.get("group"),
            "message": body.get("message", ""),
            "reference": body["reference"],
            "status": "sent",
            "deliveryStatus": "sent",
            "createdAt": iso(self.now()),
            "deliverAt": iso(self.now()),
            "retry": {"count": 0},
            "device": DEVICE,
            "content": None if file is None else file["content"],
        }
        self.messages.append(entry)
        shown = _shown(entry)
        return scripted or said(201, [shown] if self.wraps else shown)

    def _body(self, call: Call) -> dict[str, Any]:
        body: dict[str, Any] = call.json()
        problems = [
            call.headers.get("content-type") != "application/json",
            not {"device", "reference", "enqueue", "retries"} <= set(body) <= FIELDS,
            ("phone" in body) == ("group" in body),
            not ("media" in body or body.get("message")),
            (body.get("enqueue"), body.get("retries")) != ("never", 0),
            not re.fullmatch(r"\+[1-9]\d{7,14}", body.get("phone", PHONE)),
            not re.fullmatch(r"[\d-]{5,40}@g\.us", body.get("group", GROUP)),
            set(body.get("media", {"file": ""})) != {"file"},
        ]
        if any(problems):
            self.failures.append(f"a message that Wassenger would not understand: {body}")
            raise Refused(400, "Invalid request", errors=[{"path": "body", "message": "shape"}])
        self._known(body["device"])
        return body

    def _keep(self, call: Call) -> Scripted:
        try:
            (file,) = read_form(call.headers.get("content-type", ""), call.body)
        except (NotAForm, ValueError) as problem:
            raise Refused(415, str(problem)) from None
        if file.name != "file" or file.filename is None or "reference" not in call.query:
            raise Refused(400, f"{file.name} {call.query}")
        if self.uploads:
            return self.uploads.popleft()
        for name, known in self.files.items():
            if known["content"] == file.value:
                raise Refused(409, "The file exists already", meta={"file": name})
        days = int(call.query["expiration"].removesuffix("d"))
        name = f"{len(self.files) + 1:022x}ff"
        kept = {"id": name, "filename": file.filename, "mime": file.mime, "content": file.value}
        self.files[name] = kept | {"expiresAt": iso(self.now() + days * DAY)}
        shown = _shown(self.files[name])
        return said(201, shown if self.wraps else [shown])

    def _exists(self, call: Call) -> Scripted:
        exists = call.json()["phone"] not in self.strangers
        return said(200 if exists else 404, {"exists": exists})

    # ------------------------------------------------------------------ telling

    def _tell(self, call: Call) -> Scripted:
        match [unquote(part) for part in call.path.strip("/").split("/")]:
            case ["devices", device]:
                self._known(device)
                return said(200, self.device)
            case ["devices", device, "groups"]:
                self._known(device)
                first = int(call.query["page"])
                size = min(int(call.query["size"]), self.most_listed)
                return said(200, self.groups[first * size : (first + 1) * size])
            case ["files", name]:
                return said(200, _shown(self._file(name)))
            case ["messages"]:
                wanted = call.query["reference"]
                listed = [] if self.unlisted else self.messages
                return said(200, [_shown(one) for one in listed if one["reference"] == wanted])
        raise Refused(404, f"Nothing at {call.path}")

    def _known(self, device: str) -> None:
        if self.device is None or device != DEVICE:
            raise Refused(404, "Device not found")

    def _file(self, name: str) -> dict[str, Any]:
        if name not in self.files:
            raise Refused(404, "File not found")
        return self.files[name]


def _shown(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != "content"}
