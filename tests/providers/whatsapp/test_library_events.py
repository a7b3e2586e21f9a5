"""What the real library tells, in our words: every event that is subscribed to."""

import ctypes
import importlib
import json
import logging
from typing import Any

import pytest

from paceline.core.enclosures import Enclosed
from paceline.core.instants import MILLISECOND, SECOND
from paceline.providers.whatsapp import tidings
from paceline.providers.whatsapp.process import read_event
from paceline.providers.whatsapp.wire import (
    Acknowledged,
    Came,
    Composing,
    GroupChanged,
    PairingOver,
    QrCode,
    Standing,
)
from tests.providers.whatsapp.real import AT, FAMILY, Account, group_info, jid

# ---------------------------------------------------------------------- what is told


def test_no_event_is_subscribed_to_that_may_be_empty(phone: Account, proto: Any) -> None:
    """The library cannot pass those on: it ends the process instead."""
    kinds = importlib.import_module("neonize.events").INT_TO_EVENT
    subscribed = {kinds[number].DESCRIPTOR.name for number in phone.client.event.list_func}
    empty = {"StreamReplaced", "ClientOutdated", "KeepAliveRestored"}
    assert all(getattr(proto, name)().SerializeToString() == b"" for name in empty)
    assert not subscribed & empty
    assert subscribed == {
        "Connected", "Disconnected", "ConnectFailure", "StreamError", "LoggedOut", "TemporaryBan",
        "PairStatus", "Message", "Receipt", "ChatPresence", "JoinedGroup", "GroupInfoEvent",
    }  # fmt: skip


def test_how_the_account_stands(phone: Account, proto: Any) -> None:
    assert phone.happens(proto.Connected(status=True)) == [Standing("ready", own="+4915112345678")]
    assert phone.happens(proto.Disconnected(status=True)) == [Standing("offline")]
    assert phone.happens(proto.StreamError(Code="516")) == [
        Standing("offline", "WhatsApp ended the connection (516)")
    ]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("LOGGED_OUT", "the device was removed on the phone"),
        ("MAIN_DEVICE_GONE", "the phone itself was logged out"),
        ("UNKNOWN_LOGOUT", "WhatsApp has logged the account out, which often means that it is "
         "banned"),
    ],
)  # fmt: skip
def test_logged_out(phone: Account, proto: Any, name: str, reason: str) -> None:
    event = proto.LoggedOut(OnConnect=True, Reason=proto.ConnectFailureReason.Value(name))
    assert phone.happens(event) == [Standing("logged_out", reason, "logged-out")]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("SEND_TO_TOO_MANY_PEOPLE", "sent to too many people who do not know the number"),
        ("BLOCKED_BY_USERS", "blocked by too many people"),
        ("CREATED_TOO_MANY_GROUPS", "made too many groups"),
        ("SENT_TOO_MANY_SAME_MESSAGE", "sent the same message too often"),
        ("BROADCAST_LIST", "sent to broadcast lists too often"),
    ],
)
def test_banned(phone: Account, proto: Any, name: str, reason: str) -> None:
    event = proto.TemporaryBan(Expire=3_600, Code=proto.TemporaryBan.TempBanReason.Value(name))
    assert phone.happens(event) == [Standing("banned", reason, "temporary-ban", 3_600 * SECOND)]
    event.Expire = 0
    assert phone.happens(event)[0].lasts_us is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("GENERIC", "ended"), ("BAD_USER_AGENT", "ended"), ("EXPERIMENTAL", "ended"),
        ("INTERNAL_SERVER_ERROR", "offline"), ("SERVICE_UNAVAILABLE", "offline"),
        ("CLIENT_OUTDATED", "outdated"),
    ],
)  # fmt: skip
def test_a_connection_that_fails(phone: Account, proto: Any, name: str, state: str) -> None:
    event = proto.ConnectFailure(Reason=proto.ConnectFailureReason.Value(name), Message="")
    told = phone.happens(event)
    assert [standing.state for standing in told if isinstance(standing, Standing)] == [state]


def test_a_number_that_the_library_does_not_know_ends_the_connection() -> None:
    """It cannot pass such an event on, and says so; whoever is banned must not knock again."""
    for name, standing in (
        ("TemporaryBan.Code", Standing("banned", "for reasons it does not tell", "temporary-ban")),
        ("LoggedOut.Reason", Standing("logged_out", "", "logged-out")),
        (
            "ConnectFailure.Reason",
            Standing("ended", "required field neonize.ConnectFailure.Reason"),
        ),
    ):
        told = tidings.ended(f"required field neonize.{name}")
        assert read_event(told) == standing


def test_what_only_the_log_tells(phone: Account) -> None:
    client_log = logging.getLogger("whatsmeow.Client")
    client_log.info("Got replaced stream error, sending StreamReplaced event")
    client_log.error("Client outdated (405) connect failure (client version: 2.3000)")
    client_log.info("Successfully authenticated")
    assert phone.heard() == [Standing("replaced"), Standing("outdated")]


def test_the_log_is_asked_for(phone: Account) -> None:
    """It is told at the level that the library is given when it connects."""
    enum = importlib.import_module("neonize.utils.enum")
    level = logging.getLogger("neonize.utils.log").level
    assert enum.LogLevel.from_logging(level).level == b"INFO"


def test_pairing_is_told(phone: Account, proto: Any) -> None:
    success = proto.PairStatus(ID=jid(proto, "4915112345678"), Status=proto.PairStatus.SUCCESS)
    assert phone.happens(success) == [PairingOver("success")]
    failed = proto.PairStatus(Status=proto.PairStatus.ERROR, Error="invalid HMAC")
    assert phone.happens(failed) == [PairingOver("error", "invalid HMAC")]
    phone.told.clear()
    phone.client.event._qr(phone.client, b"2@abc")
    assert phone.heard() == [QrCode("2@abc")]


def test_how_a_login_went_is_told_and_not_printed(
    phone: Account, capsys: pytest.CaptureFixture[str]
) -> None:
    word = ctypes.create_string_buffer(b"timeout")
    phone.client._NewClient__onLoginStatus(0, ctypes.addressof(word))
    assert phone.heard() == [PairingOver("timeout")]
    assert capsys.readouterr().out == ""
    # The name is the library's own affair; should it change, nobody would be told.
    client = importlib.import_module("neonize.client").NewClient
    assert "_NewClient__onLoginStatus" in client.connect_with_proxy.__code__.co_names


def test_groups_that_change_are_told(phone: Account, proto: Any) -> None:
    group = jid(proto, FAMILY, "g.us")
    changed = proto.GroupInfoEvent(JID=group, Timestamp=AT)
    assert phone.happens(changed) == [GroupChanged(f"{FAMILY}@g.us")]
    joined = proto.JoinedGroup(GroupInfo=group_info(proto))
    assert phone.happens(joined) == [GroupChanged(f"{FAMILY}@g.us")]


@pytest.mark.parametrize(
    ("announce", "admin", "may_send"),
    [(False, False, True), (True, False, False), (True, True, True)],
)
def test_who_may_write_to_a_group(
    phone: Account, proto: Any, announce: bool, admin: bool, may_send: bool
) -> None:
    info = group_info(proto, announce=announce, admin=admin)
    phone.made._spoken = True
    phone.client.get_group_info = lambda asked: info
    found = phone.made.call("group", {"jid": f"{FAMILY}@g.us"}, b"")
    assert found == [f"{FAMILY}@g.us", "Family", 2, may_send]


def test_a_community_is_no_group(phone: Account, proto: Any) -> None:
    community, group = group_info(proto), group_info(proto)
    community.GroupParent.IsParent = True
    phone.made._spoken = True
    phone.client.get_joined_groups = lambda: [community, group]
    assert phone.made.call("groups", {}, b"") == [[f"{FAMILY}@g.us", "Family", 2, True]]


# ---------------------------------------------------------------------- messages and receipts


def source(proto: Any, **more: Any) -> Any:
    anna = jid(proto, "4915187654321", device=3)
    usual = {"Chat": jid(proto, "4915187654321"), "Sender": anna}
    return proto.MessageSource(**(usual | more))


def came(proto: Any, said: Any, *, edit: bool = False, **more: Any) -> Any:
    at = AT * 1_000 + 7
    info = proto.MessageInfo(MessageSource=source(proto, **more), ID="3EB0A", Timestamp=at)
    return proto.Message(Info=info, Message=said, IsEdit=edit)


ANNA = "+4915187654321"
WHEN = AT * SECOND + 7 * MILLISECOND


def test_a_text_from_a_person(phone: Account, proto: Any, content: Any) -> None:
    told = phone.happens(came(proto, content.Message(conversation="Hello")))
    assert told == [Came("3EB0A", ANNA, ANNA, "Hello", "text", WHEN)]


def test_kinds_and_captions(phone: Account, proto: Any, content: Any) -> None:
    said = [
        (content.Message(extendedTextMessage=content.ExtendedTextMessage(text="x")), "text", "x"),
        (content.Message(imageMessage=content.ImageMessage(caption="x")), "image", "x"),
        (content.Message(videoMessage=content.VideoMessage(caption="x")), "video", "x"),
        (content.Message(documentMessage=content.DocumentMessage(caption="x")), "document", "x"),
        (content.Message(audioMessage=content.AudioMessage(seconds=3)), "audio", ""),
        (content.Message(stickerMessage=content.StickerMessage(width=3)), "sticker", ""),
        (content.Message(audioMessage=content.AudioMessage(seconds=3, PTT=True)), "voice", ""),
        (content.Message(locationMessage=content.LocationMessage(name="x")), "location", "x"),
        (content.Message(contactMessage=content.ContactMessage(vcard="x")), "contact", ""),
    ]
    for message, kind, text in said:
        event = phone.happens(came(proto, message))[0]
        assert isinstance(event, Came)
        assert (event.kind, event.text) == (kind, text)
    edited = phone.happens(came(proto, content.Message(conversation="x"), edit=True))[0]
    assert isinstance(edited, Came) and edited.kind == "edit"


def test_a_file_is_told_with_all_that_is_needed_to_fetch_it(
    phone: Account, proto: Any, content: Any
) -> None:
    voice = content.AudioMessage(
        seconds=12, PTT=True, mimetype="audio/ogg; codecs=opus", fileLength=30_000,
        directPath="/v/1", mediaKey=b"k", fileSHA256=b"s", fileEncSHA256=b"e",
    )  # fmt: skip
    offer = content.DocumentMessage(title="offer", fileName="offer.pdf", mimetype="application/pdf")
    (spoken,) = phone.happens(came(proto, content.Message(audioMessage=voice)))
    (sent,) = phone.happens(came(proto, content.Message(documentMessage=offer)))
    assert isinstance(spoken, Came) and isinstance(sent, Came)
    (file,) = spoken.files
    assert (file.mime, file.size, file.seconds) == ("audio/ogg", 30_000, 12)
    assert json.loads(file.handle) == {
        "path": "/v/1", "key": "aw==", "sha256": "cw==", "encrypted_sha256": "ZQ==",
    }  # fmt: skip
    assert (sent.text, sent.files) == ("", (Enclosed("offer.pdf", "application/pdf"),))


@pytest.mark.parametrize(
    ("told", "state", "more"),
    [
        (True, "COMPOSING", {}),
        (False, "PAUSED", {}),
        (False, "COMPOSING", {"IsGroup": True}),
        (False, "COMPOSING", {"IsFromMe": True}),
    ],
)
def test_who_is_typing(
    phone: Account, proto: Any, told: bool, state: str, more: dict[str, bool]
) -> None:
    event = proto.ChatPresence(
        MessageSource=source(proto, **more),
        State=proto.ChatPresence.ChatPresence.Value(state),
        Media=proto.ChatPresence.TEXT,
    )
    assert phone.happens(event) == ([Composing(ANNA)] if told else [])


def test_a_message_in_a_group(phone: Account, proto: Any, content: Any) -> None:
    said = content.Message(
        conversation="Hello",
        senderKeyDistributionMessage=content.SenderKeyDistributionMessage(groupID="x"),
    )
    event = came(
        proto, said, Chat=jid(proto, FAMILY, "g.us"), IsGroup=True,
        Sender=jid(proto, "99", "lid"), SenderAlt=jid(proto, "4915187654321"),
    )  # fmt: skip
    assert phone.happens(event) == [
        Came("3EB0A", f"{FAMILY}@g.us", ANNA, "Hello", "text", WHEN, group=True)
    ]


def test_somebody_who_hides_their_number(phone: Account, proto: Any, content: Any) -> None:
    hidden = jid(proto, "99887766554433", "lid")
    said = content.Message(conversation="Hello")
    known = came(proto, said, Chat=hidden, Sender=hidden, SenderAlt=jid(proto, "4915187654321"))
    name = "99887766554433@lid"
    assert phone.happens(known) == [Came("3EB0A", ANNA, ANNA, "Hello", "text", WHEN, also=(name,))]
    shown = jid(proto, "4915187654321")
    told = came(proto, said, Chat=shown, Sender=shown, SenderAlt=hidden)
    assert phone.happens(told) == [Came("3EB0A", ANNA, ANNA, "Hello", "text", WHEN, also=(name,))]
    unknown = came(proto, said, Chat=hidden, Sender=hidden)
    assert phone.happens(unknown) == [Came("3EB0A", name, name, "Hello", "text", WHEN)]


def test_what_we_sent_from_the_phone(phone: Account, proto: Any, content: Any) -> None:
    hidden = jid(proto, "99887766554433", "lid")
    event = came(
        proto, content.Message(conversation="Hello"), Chat=hidden, IsFromMe=True,
        Sender=jid(proto, "4915112345678"), RecipientAlt=jid(proto, "4915187654321"),
    )  # fmt: skip
    assert phone.happens(event) == [
        Came("3EB0A", ANNA, "+4915112345678", "Hello", "text", WHEN, from_us=True)
    ]


def test_what_is_no_message_is_not_told(phone: Account, proto: Any, content: Any) -> None:
    keys = content.Message(
        senderKeyDistributionMessage=content.SenderKeyDistributionMessage(groupID="x")
    )
    thumb = content.Message(reactionMessage=content.ReactionMessage(text="👍"))
    said = content.Message(conversation="Hello")
    assert phone.happens(came(proto, keys)) == []
    assert phone.happens(came(proto, thumb)) == []
    assert phone.happens(came(proto, said, Chat=jid(proto, "status", "broadcast"))) == []
    assert phone.happens(came(proto, said, Chat=jid(proto, "1203", "newsletter"))) == []


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("DELIVERED", "delivered"), ("READ", "read"), ("PLAYED", "read"),
        ("SERVER_ERROR", "failed"), ("SENDER", None), ("RETRY", None), ("READ_SELF", None),
        ("PLAYED_SELF", None), ("INACTIVE", None), ("PEER_MSG", None), ("HISTORY_SYNC", None),
    ],
)  # fmt: skip
def test_receipts(phone: Account, proto: Any, name: str, state: str | None) -> None:
    event = proto.Receipt(
        MessageSource=source(proto), MessageIDs=["a", "b"], Timestamp=AT,
        Type=proto.Receipt.ReceiptType.Value(name),
    )  # fmt: skip
    told = [] if state is None else [Acknowledged(("a", "b"), state, AT * SECOND)]  # type: ignore[arg-type]
    assert phone.happens(event) == told
    event.MessageSource.IsFromMe = True
    assert phone.happens(event) == [], "one's own devices tell each other, too"


def test_every_receipt_is_tried(proto: Any) -> None:
    assert len(proto.Receipt.ReceiptType.keys()) == 11


def test_an_event_that_cannot_be_read_is_logged_and_no_more(
    phone: Account, proto: Any, content: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(*_: object) -> str:
        raise ValueError("not like this")

    monkeypatch.setattr("paceline.providers.whatsapp.tidings.text_of", breaks)
    assert phone.happens(came(proto, content.Message(conversation="Hello"))) == []
