"""A WATI of our own that speaks its wire format as far as it is known.

It takes no field it does not know, has templates and refuses those it has not, minds the 24 hours
where it is told to, says no with 200 where the real one does, keeps what was sent, and lists it.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from paceline.core.instants import iso
from tests.providers.forms import NotAForm, read_form
from tests.providers.loopback import Call, Fake, Scripted, said

KEY = "eyJsEcReT.token-for_tests.signed"
TENANT = "300123"
PHONE = "+4915112345678"
CHANNEL = "85264318722"
PERSON = PHONE.removeprefix("+")

TEXT, LONG = f"/{TENANT}/api/v1/sendSessionMessage/", "/api/ext/v3/conversations/messages/text"
FILE, TEMPLATE = "/api/ext/v3/conversations/messages/file", "/api/ext/v3/messageTemplates/send"
STANDING, LISTS = f"/{TENANT}/api/v1/getMessageTemplates", f"/{TENANT}/api/v1/getMessages/"
LISTED = LISTS + PERSON

SAYS: Mapping[str, tuple[int, Any]] = {
    "no-such-channel": (400, {"code": 400, "message": "Channel not found", "timestamp": "now"}),
    "no-credit": (400, {"result": False, "info": "Insufficient balance in your wallet."}),
    "usage-limit": (429, {"message": "API usage limit of your plan has been reached."}),
    "131047": (
        200,
        {"result": False, "message": "Ticket has been expired.", "ticketStatus": "CLOSED"},
    ),
    "invalid-number": (200, {"result": False, "info": "Not a valid WhatsApp number."}),
    "132001": (200, {"success": False, "error": "Template not found."}),
    "132000": (400, {"result": False, "message": "Template has blank text."}),
    "several-conversations": (409, {"code": 409, "message": "Multiple open conversations exist."}),
    "refused": (200, {"result": False, "message": "Message Sent Failed"}),
}
"""The refusals that have a code, each in WATI's words."""


def answer_of(row: str) -> Scripted:
    """An answer that is to be read as this row of the table."""
    if row in SAYS:
        status, body = SAYS[row]
        return said(status, body)
    return error(int(row.removeprefix("http-")))


def error(status: int, words: str = "", **more: Any) -> Scripted:
    """A refusal by its status alone, in words that nobody knows."""
    kept = {key: more.pop(key) for key in ("takes", "headers") if key in more}
    body = {"code": status, "message": words or f"Told in words: {status}.", "timestamp": "now"}
    return said(status, body | more, **kept)


class Refused(Exception):
    def __init__(self, answer: Scripted) -> None:
        super().__init__(answer.status)
        self.answer = answer


class FakeWati(Fake):
    """What the server knows."""

    def __init__(self) -> None:
        super().__init__()
        self.templates: dict[str, tuple[str, ...]] = {}
        """Those that are approved, with the names of their blanks."""
        self.talking: set[str] | None = None
        """Who has written in the last 24 hours; None where everybody has."""
        self.strangers: set[str] = set()
        """Numbers that WhatsApp does not know."""
        self.messages: list[dict[str, Any]] = []
        """Everything that went out, in order, as it is listed."""
        self.unlisted = False
        """Whether lists do not show yet what went out."""
        self.nameless = False
        """Whether lists do not show under which name it went out."""
        self.older = False
        """Whether templates are answered as the older calls answer them."""

    def settings(self, **more: Any) -> dict[str, Any]:
        return {"endpoint": f"{self.url}/{TENANT}", "access_token": KEY} | more

    # ------------------------------------------------------------------ answering

    def answer(self, call: Call) -> Scripted:
        try:
            if call.headers.get("authorization") != f"Bearer {KEY}":
                # Whoever is not let in is not told why.
                raise Refused(Scripted(401))
            path = unquote(call.path)
            if call.method == "POST":
                return self._take(call, path)
            if path == STANDING or path.startswith(LISTS):
                return self.answers.get(path) or self._tell(call, path)
            raise Refused(Scripted(404))
        except Refused as refused:
            return refused.answer

    def _take(self, call: Call, path: str) -> Scripted:
        if path.startswith(TEXT):
            entry = self._said(call, path.removeprefix(TEXT))
        elif path == LONG:
            entry = self._said_at_length(call)
        elif path == FILE:
            entry = self._shown(call)
        elif path == TEMPLATE:
            entry = self._filled(call)
        else:
            raise Refused(Scripted(404))
        scripted = self.script.popleft() if self.script else None
        if scripted is not None and not scripted.takes:
            return scripted
        self._mind(entry)
        self.messages.append(entry)
        return scripted or said(200, self._answer(entry))

    def _mind(self, entry: dict[str, Any]) -> None:
        """Refuse what WhatsApp would not take."""
        if entry["template"] is not None:
            known = self.templates.get(entry["template"])
            if known is None:
                raise Refused(answer_of("132001"))
            if [blank["name"] for blank in entry["blanks"]] != list(known):
                raise Refused(answer_of("132000"))
            if entry["to"] in self.strangers:
                raise Refused(said(200, self._answer(entry, errors=["Invalid WhatsApp number"])))
        elif self.talking is not None and entry["to"] not in self.talking:
            raise Refused(answer_of("131047"))

    def _answer(self, entry: dict[str, Any], errors: list[str] | None = None) -> Any:
        name = {"local_message_id": entry["localMessageId"]}
        if entry["template"] is None:
            if entry["v3"]:
                return {"message": {"id": entry["id"], "type": entry["type"], **name}}
            told = {key: entry[key] for key in ("id", "localMessageId", "text", "type", "created")}
            return {"ok": True, "result": "success", "message": told | {"whatsappMessageId": None}}
        if self.older:
            told = {"localMessageId": entry["localMessageId"], "waId": entry["to"]}
            told |= {"isValidWhatsAppNumber": not errors, "errors": errors or []}
            return {"result": True, "error": None, "receivers": [told], "parameters": []}
        told = {"phone_number": entry["to"], "status": None, "errors": errors or [], **name}
        return {"success": True, "broadcast_id": "66b2531d", "recipients": [told]}

    # ------------------------------------------------------------------ reading

    def _said(self, call: Call, to: str) -> dict[str, Any]:
        query = call.query
        self._is(
            call,
            {"messageText", "localMessageId"} <= set(query)
            and set(query) <= {"messageText", "localMessageId", "channelPhoneNumber"},
            0 < len(query.get("messageText", "")) <= 4096,
            not call.body,
            len(call.path) < 100,
        )
        name, text = query["localMessageId"], query["messageText"]
        return self._entry(call, to, query.get("channelPhoneNumber"), name, text=text)

    def _said_at_length(self, call: Call) -> dict[str, Any]:
        body = self._json(call)
        self._is(call, set(body) == {"target", "text"}, 0 < len(body.get("text", "")) <= 4096)
        channel, to = _apart(body["target"])
        return self._entry(call, to, channel, text=body["text"], v3=True)

    def _shown(self, call: Call) -> dict[str, Any]:
        try:
            fields = {one.name: one for one in read_form(call.headers["content-type"], call.body)}
        except (NotAForm, ValueError) as problem:
            self.failures.append(f"not a form: {problem}")
            raise Refused(error(400, str(problem))) from None
        self._is(
            call,
            {"target", "file"} <= set(fields) <= {"target", "file", "caption"},
            fields["file"].filename is not None,
            "caption" not in fields or 0 < len(fields["caption"].text) <= 1024,
        )
        channel, to = _apart(fields["target"].text)
        text = fields["caption"].text if "caption" in fields else ""
        more = {"text": text, "type": "document", "v3": True, "content": fields["file"].value}
        return self._entry(call, to, channel, **more)

    def _filled(self, call: Call) -> dict[str, Any]:
        body = self._json(call)
        (recipient,) = body.get("recipients") or [{}]
        blanks = recipient.get("custom_params", [])
        self._is(
            call,
            {"template_name", "broadcast_name", "recipients"} <= set(body)
            and set(body) <= {"template_name", "broadcast_name", "recipients", "channel"},
            set(recipient) == {"target", "local_message_id", "custom_params"},
            all(set(one) == {"name", "value"} and one["value"].strip() for one in blanks),
            not any(re.search(r"[\n\t]| {5}", one["value"]) for one in blanks),
            0 < len(body.get("broadcast_name", "")) <= 120,
        )
        template, name = body["template_name"], recipient["local_message_id"]
        more = {"template": template, "blanks": blanks, "type": "template", "v3": True}
        to = recipient["target"]
        return self._entry(call, to, body.get("channel"), name, **more)

    def _json(self, call: Call) -> dict[str, Any]:
        self._is(call, call.headers.get("content-type") == "application/json", not call.query)
        read: dict[str, Any] = json.loads(call.body)
        return read

    def _is(self, call: Call, *right: bool) -> None:
        if not all(right):
            self.failures.append(f"nothing WATI would understand: {call.path} {call.body!r}")
            raise Refused(error(400, "Invalid request"))

    def _entry(
        self, call: Call, to: str, channel: str | None, name: str | None = None, **more: Any
    ) -> dict[str, Any]:
        self._is(call, bool(re.fullmatch(r"[1-9]\d{7,14}|[A-Z]{2}\.\w+", to)))
        number = len(self.messages) + 1
        now = self.now()
        return {
            "id": f"{number:024x}",
            "created": f"{iso(now - now % 1_000_000).removesuffix('Z')}.6268572Z",
            "localMessageId": name or str(uuid.UUID(int=number)),
            "to": to,
            "channel": channel,
            "text": "",
            "type": "text",
            "template": None,
            "blanks": [],
            "content": None,
            "statusString": "SENT",
            "v3": False,
        } | more

    # ------------------------------------------------------------------ telling

    def _tell(self, call: Call, path: str) -> Scripted:
        if path == STANDING:
            return said(200, {"result": "success", "messageTemplates": [{"elementName": "a"}]})
        size, page = int(call.query["pageSize"]), int(call.query["pageNumber"])
        to = path.removeprefix(LISTS)
        listed = [] if self.unlisted else [one for one in self.messages if one["to"] == to]
        newest = [self._listed(one) for one in reversed(listed)]
        items = newest[(page - 1) * size : page * size]
        return said(200, {"result": "success", "messages": {"items": items}, "link": {}})

    def _listed(self, entry: dict[str, Any]) -> dict[str, Any]:
        template = entry["template"]
        shown = {key: entry[key] for key in ("id", "created", "type", "statusString")}
        shown |= {"text": entry["text"] or None, "owner": template is None, "eventType": "message"}
        if template is not None:
            words = f'Broadcast message with using "{template}"'
            shown |= {
                "eventType": "broadcastMessage",
                "eventDescription": words,
                "templateName": None,
            }
        return shown | ({} if self.nameless else {"localMessageId": entry["localMessageId"]})


def _apart(target: str) -> tuple[str | None, str]:
    """The number it is sent from, where one is named, and the person."""
    channel, colon, to = target.rpartition(":")
    return (channel if colon else None), to
