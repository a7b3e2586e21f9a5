"""A Graph API of our own that speaks the Cloud API's wire format as far as it is known.

It takes no field it does not know, has templates and refuses those it has not, minds the 24 hours
where it is told to, keeps files, and can report what became of what it took.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from tests.providers.forms import NotAForm, read_form
from tests.providers.loopback import Call, Fake, Scripted, said

KEY = "EAAsEcReT0token+for/tests"
NUMBER = "106540352242922"
BUSINESS = "102290129340398"
PHONE = "+4915112345678"
APP_SECRET = "aPp+secret/of=tests"

ENVELOPE = {"messaging_product", "recipient_type", "to", "type", "biz_opaque_callback_data"}
FILES = {
    "image": {"id", "caption"},
    "video": {"id", "caption"},
    "audio": {"id"},
    "document": {"id", "caption", "filename"},
}
MIMES = ("image/", "video/", "audio/", "application/", "text/")


@dataclass(frozen=True)
class Approved:
    """A template as Meta has it."""

    languages: tuple[str, ...] = ("en_US",)
    blanks: int = 0
    names: tuple[str, ...] = ()
    header: str = ""
    """The kind of file that it shows above its text."""


def error(
    code: int | None, status: int = 400, *, subcode: int | None = None, **more: Any
) -> Scripted:
    """An error as Meta words it."""
    kept = {key: more.pop(key) for key in ("takes", "headers") if key in more}
    words: dict[str, Any] = {
        "message": f"(#{code}) Told in words",
        "type": "OAuthException",
        "error_data": {"messaging_product": "whatsapp", "details": f"The details of {code}."},
        "fbtrace_id": "AxQz",
    }
    if code is not None:
        words["code"] = code
    if subcode is not None:
        words["error_subcode"] = subcode
    return said(status, {"error": words | more}, **kept)


def no_such(name: str, verb: str = "get") -> Scripted:
    """What Meta says of an id that is nobody's."""
    words = (
        f"Unsupported {verb} request. Object with ID '{name}' does not exist, cannot be loaded due "
        "to missing permissions, or does not support this operation."
    )
    return error(100, subcode=33, message=words, type="GraphMethodException", error_data=None)


class Refused(Exception):
    def __init__(self, answer: Scripted) -> None:
        super().__init__(answer.status)
        self.answer = answer


class FakeMeta(Fake):
    """What the server knows."""

    prefix = "/v25.0"

    def __init__(self) -> None:
        super().__init__()
        self.number: dict[str, Any] | None = {
            "id": NUMBER,
            "display_phone_number": "+49 30 1234567",
            "status": "CONNECTED",
            "quality_rating": "GREEN",
            "platform_type": "CLOUD_API",
        }
        self.templates: dict[str, Approved] = {}
        self.talking: set[str] | None = None
        """Who has written in the last 24 hours; None where everybody has."""
        self.files: dict[str, dict[str, Any]] = {}
        self.uploads: deque[Scripted] = deque()
        """Answers to the next uploads."""
        self.messages: list[dict[str, Any]] = []
        """Everything that went out, in order."""

    def settings(self, **more: Any) -> dict[str, Any]:
        return {"base_url": self.url, "access_token": KEY, "phone_number_id": NUMBER} | more

    def sends(self) -> list[Call]:
        wanted = ("POST", f"/{NUMBER}/messages")
        return [call for call in self.calls if (call.method, call.path) == wanted]

    def uploaded(self) -> list[Call]:
        wanted = ("POST", f"/{NUMBER}/media")
        return [call for call in self.calls if (call.method, call.path) == wanted]

    # ------------------------------------------------------------------ answering

    def answer(self, call: Call) -> Scripted:
        try:
            if call.headers.get("authorization") != f"Bearer {KEY}":
                words = "Error validating access token: Session has expired."
                raise Refused(error(190, 401, subcode=463, message=words, error_data=None))
            match [call.method, *(unquote(part) for part in call.path.strip("/").split("/"))]:
                case ["POST", number, "messages"]:
                    self._known(number, "post")
                    return self._take(call)
                case ["POST", number, "media"]:
                    self._known(number, "post")
                    return self._keep(call)
                case ["GET", name]:
                    return self.answers.get(call.path) or self._tell(name, call)
            raise Refused(error(2500, message=f"Unknown path components: {call.path}"))
        except Refused as refused:
            return refused.answer

    def _take(self, call: Call) -> Scripted:
        body = self._body(call)
        scripted = self.script.popleft() if self.script else None
        if scripted is not None and not scripted.takes:
            return scripted
        kind = body["type"]
        file = self._file_of(kind, body[kind])
        if kind == "template":
            self._fits(body["template"])
        elif self.talking is not None and _whom(body) not in self.talking:
            raise Refused(error(131047, message="(#131047) Re-engagement message"))
        name = f"wamid.HBgLTESTS{len(self.messages) + 1:08}"
        shown = body[kind]
        entry = {
            "id": name,
            "to": _whom(body),
            "type": kind,
            "text": shown.get("body") or shown.get("caption") or "",
            "key": body["biz_opaque_callback_data"],
            "content": None if file is None else file["content"],
            "body": body,
        }
        self.messages.append(entry)
        return scripted or said(
            200,
            {
                "messaging_product": "whatsapp",
                "contacts": [_contact(body)],
                "messages": [{"id": name, "message_status": "accepted"}],
            },
        )

    def _body(self, call: Call) -> dict[str, Any]:
        body: dict[str, Any] = call.json()
        kind = body.get("type", "")
        problems = [
            call.headers.get("content-type") != "application/json",
            set(body) - {"recipient"} | {"to"} != ENVELOPE | {kind},
            ("to" in body) == ("recipient" in body),
            body.get("messaging_product") != "whatsapp",
            body.get("recipient_type") != "individual",
            not re.fullmatch(r"\+[1-9]\d{7,14}|[A-Z]{2}\.\w{4,128}", _whom(body)),
            "to" in body and not body["to"].startswith("+"),
            not 0 < len(body.get("biz_opaque_callback_data", "")) <= 512,
            not _well_formed(kind, body.get(kind)),
        ]
        if any(problems):
            self.failures.append(f"a message that Meta would not understand: {body}")
            raise Refused(error(100, message="(#100) Invalid parameter"))
        return body

    def _file_of(self, kind: str, shown: dict[str, Any]) -> dict[str, Any] | None:
        if kind == "template":
            parts = [part for part in shown.get("components", []) if part["type"] == "header"]
            kind = parts[0]["parameters"][0]["type"] if parts else "text"
            shown = parts[0]["parameters"][0][kind] if parts else {}
        if kind == "text":
            return None
        if shown["id"] not in self.files:
            words = f"(#100) Param {kind}['id'] is not a valid whatsapp business account media"
            raise Refused(error(100, message=f"{words} attachment ID"))
        return self.files[shown["id"]]

    def _fits(self, template: dict[str, Any]) -> None:
        known = self.templates.get(template["name"])
        if known is None or template["language"]["code"] not in known.languages:
            raise Refused(error(132001, 404, message="(#132001) Template name does not exist"))
        parts = {part["type"]: part["parameters"] for part in template.get("components", [])}
        body, header = parts.get("body", []), parts.get("header", [])
        if len(body) != (known.blanks or len(known.names)):
            raise Refused(error(132000, message="(#132000) Number of parameters does not match"))
        if tuple(one.get("parameter_name", "") for one in body if known.names) != known.names:
            raise Refused(error(100, message="(#100) Parameter name is missing or empty"))
        if "".join(one["type"] for one in header) != known.header:
            raise Refused(error(132012, message="(#132012) Parameter format does not match"))

    def _keep(self, call: Call) -> Scripted:
        try:
            fields = {one.name: one for one in read_form(call.headers["content-type"], call.body)}
        except (NotAForm, ValueError) as problem:
            self.failures.append(f"not a form: {problem}")
            raise Refused(error(100, message=str(problem))) from None
        if set(fields) != {"messaging_product", "type", "file"}:
            self.failures.append(f"an upload that Meta would not understand: {sorted(fields)}")
        file, mime = fields["file"], fields["type"].text
        if file.mime != mime or file.filename is None or not mime.startswith(MIMES):
            raise Refused(error(100, message="(#100) Param file must be a file of a known type"))
        if self.uploads:
            return self.uploads.popleft()
        name = f"{1_000_000_000_000_000 + len(self.uploaded())}"
        self.files[name] = {"name": file.filename, "mime": mime, "content": file.value}
        return said(200, {"id": name})

    # ------------------------------------------------------------------ telling

    def _tell(self, name: str, call: Call) -> Scripted:
        if name in self.files:
            if call.query.get("phone_number_id", NUMBER) != NUMBER:
                raise Refused(error(100, message="(#100) Param phone_number_id is not valid"))
            return said(
                200, {"id": name, "mime_type": self.files[name]["mime"], "url": "https://x"}
            )
        self._known(name, "get")
        assert self.number is not None
        asked = ("id", *call.query.get("fields", "").split(","))
        return said(200, {key: self.number[key] for key in asked if key in self.number})

    def _known(self, number: str, verb: str) -> None:
        if self.number is None or number != NUMBER:
            raise Refused(no_such(number, verb))


def _whom(body: dict[str, Any]) -> str:
    """By number, or by what Meta calls somebody who hides theirs."""
    return str(body.get("to") or body.get("recipient") or "")


def _contact(body: dict[str, Any]) -> dict[str, Any]:
    if "recipient" in body:
        return {"input": body["recipient"], "user_id": body["recipient"]}
    return {"input": body["to"], "wa_id": body["to"].removeprefix("+")}


def _well_formed(kind: str, shown: Any) -> bool:
    if not isinstance(shown, dict):
        return False
    if kind == "text":
        return set(shown) == {"body"} and 0 < len(shown["body"]) <= 4096
    if kind in FILES:
        fits = {"id"} <= set(shown) <= FILES[kind] and all(shown.values())
        return fits and len(shown.get("caption", "")) <= 1024
    if kind != "template" or not {"name", "language"} <= set(shown) <= _TEMPLATE:
        return False
    return all(_is_component(part) for part in shown.get("components", []))


_TEMPLATE = {"name", "language", "components"}


def _is_component(part: dict[str, Any]) -> bool:
    if set(part) != {"type", "parameters"} or not part["parameters"]:
        return False
    if part["type"] == "header":
        (shown,) = part["parameters"]
        return set(shown) == {"type", shown["type"]} and shown["type"] in FILES
    return part["type"] == "body" and all(
        {"type", "text"} <= set(one) <= {"type", "text", "parameter_name"}
        and one["type"] == "text"
        and one["text"]
        and not re.search(r"[\n\t]| {5}", one["text"])
        for one in part["parameters"]
    )


# ---------------------------------------------------------------------- reporting


def report(*values: dict[str, Any], field: str = "messages", business: str = BUSINESS) -> Any:
    """What Meta posts, with one change for each value."""
    changes = [{"value": value, "field": field} for value in values]
    return {
        "object": "whatsapp_business_account",
        "entry": [{"id": business, "changes": changes}],
    }


def value(number: str = NUMBER, **more: Any) -> dict[str, Any]:
    metadata = {"display_phone_number": "49301234567", "phone_number_id": number}
    return {"messaging_product": "whatsapp", "metadata": metadata, **more}


def status(name: str, state: str, seconds: int, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "status": state,
        "timestamp": str(seconds),
        "recipient_id": PHONE.removeprefix("+"),
        **more,
    }


def reported(entry: dict[str, Any], states: Iterable[str], seconds: int, **more: Any) -> bytes:
    """The bytes of a report about a message that the fake has taken."""
    told = [
        status(entry["id"], state, seconds, biz_opaque_callback_data=entry["key"], **more)
        for state in states
    ]
    return json.dumps(report(value(statuses=told))).encode()


def signed(body: bytes, secret: str = APP_SECRET) -> dict[str, str]:
    made = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return {"X-Hub-Signature-256": f"sha256={made}"}
