"""A Unipile of our own that speaks the captured wire format.

It takes no field it does not know, keeps what was sent, and lists it.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import unquote

from paceline.core.instants import iso
from tests.providers.forms import Field, NotAForm, read_form
from tests.providers.loopback import JSON, Call, Fake, Scripted

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
PERSON = re.compile(r"A(?:Co|Do|Cw|E[A-Za-z])AA[A-Za-z0-9_-]*")
"""How Unipile names people, one name for each of LinkedIn's products."""

PRODUCTS = {"recruiter": "AEM", "sales_navigator": "ACw"}

MAIL_FIELDS = {
    "account_id", "to", "subject", "body", "custom_headers", "tracking_options", "reply_to",
    "attachments",
}  # fmt: skip


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


class Refused(Exception):
    def __init__(self, status: int, type_: str, detail: str) -> None:
        super().__init__(detail)
        self.answer = error(status, type_, detail=detail)


class FakeUnipile(Fake):
    """What the server knows."""

    prefix = "/api/v1"

    def __init__(self) -> None:
        super().__init__()
        self.accounts: dict[str, dict[str, Any]] = {
            LINKEDIN: {"type": "LINKEDIN", "status": "OK"},
            MAILBOX: {"type": "GOOGLE_OAUTH", "status": "OK"},
        }
        self.profiles: dict[str, str] = {}
        """People by their public names: the number in their ids."""
        self.sent: list[dict[str, Any]] = []
        """Everything that went out, in order."""
        self.lags = False
        """Whether lists do not show yet what went out."""
        self.nullifies = False
        """Whether ids are null, as they may be."""

    def settings(self, kind: str = "linkedin", **more: Any) -> dict[str, Any]:
        account = LINKEDIN if kind == "linkedin" else MAILBOX
        base = {"dsn": self.url, "api_key": KEY, "account_id": account, "kind": kind}
        return base | more

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
            self._person(body["provider_id"], {"ACo", "ADo"})
            said = {"object": "UserInvitationSent", "invitation_id": name}
            return effect | {"kind": "invitation", "target": body["provider_id"], **body}, said
        form = self._form(call)
        if call.path == "/chats":
            read = self._fields(form, CHAT_FIELDS, {"account_id", "attendees_ids", "text"})
            said = {"object": "ChatStarted", "chat_id": name, "message_id": name}
            target = read["attendees_ids"]
            product = PRODUCTS.get(read.get("linkedin[api]", "classic"))
            self._person(target, {"ACo", "ADo"} if product is None else {"ACo", "ADo", product})
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

    def _person(self, target: str, products: set[str]) -> None:
        """Nothing is sent to a public name."""
        if not PERSON.fullmatch(target) or target[:3] not in products:
            raise Refused(422, "invalid_recipient", "The recipient is no user id.")

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
            case ["users", identifier]:
                return self._profile(identifier, call.query)
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

    def _profile(self, identifier: str, query: dict[str, str]) -> Scripted:
        """By public name, whose capitals do not matter, or by an id of any product."""
        if not {"account_id"} <= set(query) <= {"account_id", "linkedin_api"}:
            raise Refused(400, "invalid_parameters", f"{sorted(query)}")
        self._known(query["account_id"])
        product = query.get("linkedin_api")
        if product is not None and product not in PRODUCTS:
            raise Refused(400, "invalid_parameters", f"linkedin_api {product}")
        for public, number in self.profiles.items():
            if identifier.lower() == public or identifier[3:] == number:
                prefix = "ACo" if product is None else PRODUCTS[product]
                return self._ok(
                    {"object": "UserProfile", "provider": "LINKEDIN"}
                    | {"provider_id": f"{prefix}{number}", "public_identifier": public}
                    | {"first_name": public.title(), "last_name": None, "is_self": False}
                )
        raise Refused(404, "resource_not_found", "User not found")

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
