"""All that knows neonize: what we ask becomes its calls, what it tells becomes plain words.

Runs in an account's own process and nowhere else (decision 17). Four things about the library
shaped this, all read in its source at 0.5.2: some calls for a client it does not have bring the
process down, so nothing is asked before it has spoken; an event without content does, too, so
those are not subscribed to, and the log tells of them instead; an event it knows only half of ends
the connection, and only the error says which it was; and it prints.
"""

from __future__ import annotations

import ctypes
import logging
from base64 import b64decode, b64encode
from collections.abc import Callable
from io import BytesIO
from threading import Thread
from typing import Any

from neonize import events
from neonize.client import NewClient
from neonize.exc import IsOnWhatsAppError, NeonizeError
from neonize.proto.Neonize_pb2 import JID
from neonize.proto.waCompanionReg.WAWebProtobufsCompanionReg_pb2 import DeviceProps
from neonize.proto.waE2E.WAWebProtobufsE2E_pb2 import (
    DocumentMessage,
    ImageMessage,
    Message,
    VideoMessage,
)
from neonize.utils.enum import ClientName, ClientType, MediaType, Presence
from PIL import Image

from paceline.providers.whatsapp import tidings
from paceline.providers.whatsapp.host import Tell

log = logging.getLogger("paceline.whatsapp")

DEVICE = DeviceProps(os="Paceline", platformType=DeviceProps.DESKTOP)
"""What the phone shows among its linked devices."""

MEDIA = {
    "image": MediaType.MediaImage,
    "video": MediaType.MediaVideo,
    "document": MediaType.MediaDocument,
}
PREVIEW = (100, 100)
SECOND = 1_000_000

_LOGGERS = ("neonize", "whatsmeow", "Whatsmeow")
_SAID_IN_THE_LOG = {
    "Got replaced stream error": {"event": "standing", "state": "replaced"},
    "Client outdated (405)": {"event": "standing", "state": "outdated"},
}


class _Client(NewClient):
    """The library's client, which prints how a login went instead of telling anybody."""

    logged_in: Callable[[str], None]

    def _NewClient__onLoginStatus(self, uuid: int, status: int) -> None:
        self.logged_in(ctypes.string_at(status).decode())


class _LogWatch(logging.Handler):
    """Tells of what the library only writes into its log."""

    def __init__(self, tell: Tell) -> None:
        super().__init__(logging.INFO)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        for said, event in _SAID_IN_THE_LOG.items():
            if said in text:
                self._tell(dict(event))


class Library:
    """One account's client."""

    def __init__(self, database: str, tell: Tell) -> None:
        self._tell = tell
        # A name that begins with "postgres" would be taken for a server.
        self._client = _Client(f"./{database}", props=DEVICE)
        self._client.logged_in = lambda result: self._heard(tidings.login(result))
        self._client.qr(lambda _, code: self._heard({"event": "qr", "code": code.decode()}))
        self._spoken = False
        _keep_quiet(tell)
        for kind, read in self._readers().items():
            self._client.event(kind)(self._on(read))

    def _readers(self) -> dict[Any, Callable[[Any], dict[str, Any] | None]]:
        # Not among them: StreamReplaced, ClientOutdated and KeepAliveRestored, which are empty.
        return {
            events.ConnectedEv: lambda _: tidings.connected(self._client.me),
            events.DisconnectedEv: lambda _: {"event": "standing", "state": "offline"},
            events.ConnectFailureEv: tidings.connect_failure,
            events.StreamErrorEv: tidings.stream_error,
            events.LoggedOutEv: tidings.logged_out,
            events.TemporaryBanEv: tidings.banned,
            events.PairStatusEv: tidings.pair_status,
            events.MessageEv: tidings.came,
            events.ReceiptEv: tidings.receipt,
            events.ChatPresenceEv: tidings.typing,
            events.JoinedGroupEv: lambda event: tidings.group_changed(event.GroupInfo.JID),
            events.GroupInfoEv: lambda event: tidings.group_changed(event.JID),
        }

    def _on(self, read: Callable[[Any], dict[str, Any] | None]) -> Callable[[NewClient, Any], None]:
        """A handler the library calls from a thread of its own, where nothing may be raised."""

        def handle(_: NewClient, event: Any) -> None:
            try:
                told = read(event)
            except Exception:
                log.exception("an event could not be read")
                return
            if told is not None:
                self._heard(told)

        return handle

    def _heard(self, told: dict[str, Any]) -> None:
        self._spoken = True
        self._tell(told)

    # ------------------------------------------------------------------ calls

    def call(self, name: str, words: dict[str, Any], body: bytes) -> Any:
        match name:
            case "connect":
                return self._connect()
            case _ if not self._spoken:
                raise NeonizeError("failed to ask: websocket not connected")
            case "pair":
                return self._pair(words["phone"])
            case "groups":
                return self._groups()
            case "group":
                return self._group(words["jid"])
            case "look_up":
                return self._look_up(words["phone"])
            case "upload":
                return self._upload(words["kind"], body)
            case "send":
                return self._send(words["jid"], words["draft"])
            case "online":
                return self._client.send_presence(Presence.AVAILABLE)
            case _:
                raise ValueError(f"there is no call {name!r}")

    def stop(self) -> None:
        if self._spoken:
            self._client.stop()

    def _connect(self) -> None:
        Thread(target=self._run, name="whatsapp", daemon=True).start()

    def _run(self) -> None:
        """The library's own call, which lasts as long as the connection."""
        reason = "the connection has ended"
        try:
            self._client.connect()
        except Exception as error:
            reason = str(error)
        self._tell(tidings.ended(reason))

    def _pair(self, phone: str) -> str:
        # WhatsApp takes no other names here than those of a browser and a system.
        return self._client.PairPhone(
            phone.removeprefix("+"), True, ClientName.LINUX, ClientType.CHROME
        )

    def _groups(self) -> list[list[Any]]:
        own = tidings.own_names(self._client.me)
        listed = self._client.get_joined_groups()
        # A community itself is no place to write to; the groups in it are listed by themselves.
        return [tidings.group(info, own) for info in listed if not info.GroupParent.IsParent]

    def _group(self, jid: str) -> list[Any]:
        found = self._client.get_group_info(to_jid(jid))
        return tidings.group(found, tidings.own_names(self._client.me))

    def _look_up(self, phone: str) -> str | None:
        try:
            answers = self._client.is_on_whatsapp(phone)
        except IsOnWhatsAppError as error:
            if "returned nothing" in str(error):
                return None
            raise
        return next((tidings.jid_text(answer.JID) for answer in answers if answer.IsIn), None)

    def _upload(self, kind: str, content: bytes) -> dict[str, Any]:
        sent = self._client.upload(content, MEDIA[kind])
        preview, width, height = preview_of(content) if kind == "image" else (b"", 0, 0)
        return {
            "url": sent.url,
            "path": sent.DirectPath,
            "key": b64encode(sent.MediaKey).decode(),
            "sha256": b64encode(sent.FileSHA256).decode(),
            "encrypted_sha256": b64encode(sent.FileEncSHA256).decode(),
            "length": sent.FileLength,
            "thumbnail": b64encode(preview).decode(),
            "width": width,
            "height": height,
        }

    def _send(self, jid: str, draft: dict[str, Any]) -> str:
        return self._client.send_message(to_jid(jid), message_for(draft)).ID


def to_jid(jid: str) -> JID:
    user, _, server = jid.partition("@")
    return JID(User=user, Server=server, Device=0, RawAgent=0, Integrator=0, IsEmpty=False)


def message_for(draft: dict[str, Any]) -> Message:
    """The message as WhatsApp has it: a text, or a file that was uploaded."""
    kind, text = draft["kind"], draft["text"]
    if kind is None:
        return Message(conversation=text)
    file = draft["file"]
    shared = {
        "URL": file["url"],
        "directPath": file["path"],
        "mediaKey": b64decode(file["key"]),
        "fileSHA256": b64decode(file["sha256"]),
        "fileEncSHA256": b64decode(file["encrypted_sha256"]),
        "fileLength": file["length"],
        "mediaKeyTimestamp": draft["uploaded_at"] // SECOND,
        "mimetype": draft["mime"],
        "caption": text or None,
    }
    if kind == "video":
        return Message(videoMessage=VideoMessage(**shared))
    if kind == "image":
        seen = {
            "JPEGThumbnail": b64decode(file["thumbnail"]) or None,
            "width": file["width"] or None,
            "height": file["height"] or None,
        }
        return Message(imageMessage=ImageMessage(**shared, **seen))
    named = {"fileName": draft["name"], "title": draft["name"]}
    return Message(documentMessage=DocumentMessage(**shared, **named))


def preview_of(content: bytes) -> tuple[bytes, int, int]:
    """A small JPEG of a picture, and the picture's size; nothing where it cannot be read."""
    try:
        with Image.open(BytesIO(content)) as picture:
            width, height = picture.size
            picture.draft("RGB", PREVIEW)
            picture.thumbnail(PREVIEW)
            small = BytesIO()
            picture.convert("RGB").save(small, "JPEG", quality=60)
    except Exception as error:
        # WhatsApp takes it all the same, and shows it once it was fetched.
        log.warning("no preview: %s", error)
        return b"", 0, 0
    return small.getvalue(), width, height


def _keep_quiet(tell: Tell) -> None:
    """Loading the library has set up logging for everybody; and it logs a great deal."""
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    # Its own level is the one at which the library inside it begins to speak at all.
    logging.getLogger("neonize.utils.log").setLevel(logging.INFO)
    for name in _LOGGERS:
        logging.getLogger(name).addHandler(_LogWatch(tell))
        logging.getLogger(name).setLevel(logging.INFO)
        logging.getLogger(name).propagate = False
        logging.getLogger(name).addHandler(_warnings())


def _warnings() -> logging.Handler:
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    return handler
