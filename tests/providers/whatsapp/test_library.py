"""The real library, as far as that goes without WhatsApp: what is built for it, what is asked."""

import asyncio
import importlib
import io
import stat
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from paceline.core.errors import ProviderError
from paceline.engine.clock import SystemClock
from paceline.providers.whatsapp.process import ProcessWire
from paceline.providers.whatsapp.provider import WhatsAppProvider, installed
from paceline.providers.whatsapp.wire import Standing, WireEvent, WireLost
from tests.providers.whatsapp.real import AT, Account, b64, draft, jid
from tests.providers.whatsapp.stage import account

NOWHERE = "http://127.0.0.1:9"
"""A proxy that is not there: so nobody is reached, whatever network there is."""

# ---------------------------------------------------------------------- what is built


def test_a_text_is_a_plain_message(library: ModuleType) -> None:
    built = library.message_for(draft(None))
    assert [field.name for field, _ in built.ListFields()] == ["conversation"]
    assert built.conversation == "See you"


@pytest.mark.parametrize("kind", ["image", "video", "document"])
def test_a_file_is_pointed_at(library: ModuleType, kind: str) -> None:
    built = library.message_for(draft(kind))
    assert [field.name for field, _ in built.ListFields()] == [f"{kind}Message"]
    shown = getattr(built, f"{kind}Message")
    assert (shown.URL, shown.directPath) == ("https://mmg.whatsapp.net/x", "/x")
    assert (shown.mediaKey, shown.fileSHA256) == (b"k" * 32, b"s" * 32)
    assert (shown.fileEncSHA256, shown.fileLength) == (b"e" * 32, 12_345)
    assert (shown.caption, shown.mimetype) == ("See you", "image/png")
    assert shown.mediaKeyTimestamp == AT
    # It must survive the way into the other library.
    assert type(built).FromString(built.SerializeToString()) == built


def test_what_only_some_files_have(library: ModuleType) -> None:
    image = library.message_for(draft("image")).imageMessage
    assert (image.width, image.height, image.JPEGThumbnail) == (640, 480, b"\xff\xd8")
    document = library.message_for(draft("document", name="menu.pdf")).documentMessage
    assert (document.fileName, document.title) == ("menu.pdf", "menu.pdf")
    bare = library.message_for(draft("video", text="")).videoMessage
    assert not bare.HasField("caption")


def test_a_picture_gets_a_preview(library: ModuleType) -> None:
    images = importlib.import_module("PIL.Image")
    drawn = io.BytesIO()
    images.new("RGBA", (640, 480), "red").save(drawn, "PNG")
    preview, width, height = library.preview_of(drawn.getvalue())
    assert (width, height) == (640, 480)
    with images.open(io.BytesIO(preview)) as small:
        assert (small.format, small.size) == ("JPEG", (100, 75))
    assert len(preview) < 4_000


@pytest.mark.parametrize("broken", [b"", b"\x89PNG not really", b"GIF89a"])
def test_a_picture_that_cannot_be_read_has_none(library: ModuleType, broken: bytes) -> None:
    assert library.preview_of(broken) == (b"", 0, 0)


def test_ids_are_written_out(library: ModuleType) -> None:
    written = library.to_jid("4915112345678@s.whatsapp.net")
    assert (written.User, written.Server, written.Device) == ("4915112345678", "s.whatsapp.net", 0)


# ---------------------------------------------------------------------- calls


def test_nothing_is_asked_before_the_library_has_spoken(phone: Account) -> None:
    """For a client that it does not have yet it would end the process."""
    with pytest.raises(Exception, match="failed to ask: websocket not connected"):
        phone.made.call("send", {"jid": "1@s.whatsapp.net", "draft": draft(None)}, b"")
    phone.made.stop()


@pytest.mark.parametrize(
    ("call", "words", "method", "error"),
    [
        ("send", {"jid": "1@s.whatsapp.net", "draft": draft(None)}, "send_message",
         "SendMessageError"),
        ("upload", {"kind": "image"}, "upload", "UploadError"),
        ("group", {"jid": "1@g.us"}, "get_group_info", "GetGroupInfoError"),
        ("groups", {}, "get_joined_groups", "GetJoinedGroupsError"),
        ("look_up", {"phone": "+491"}, "is_on_whatsapp", "IsOnWhatsAppError"),
        ("pair", {"phone": "+491"}, "PairPhone", "PairPhoneError"),
    ],
)  # fmt: skip
def test_every_error_is_passed_on_in_its_words(
    phone: Account, call: str, words: dict[str, Any], method: str, error: str
) -> None:
    kind = getattr(importlib.import_module("neonize.exc"), error)

    def fails(*_: object, **__: object) -> None:
        raise kind("info query returned status 429: rate-overlimit")

    phone.made._spoken = True
    assert callable(getattr(phone.client, method)), "the library still has it"
    setattr(phone.client, method, fails)
    with pytest.raises(kind, match=r"^info query returned status 429: rate-overlimit$"):
        phone.made.call(call, words, b"")


def test_what_is_handed_to_the_library(phone: Account, proto: Any) -> None:
    asked: list[Any] = []

    def take(answer: Any) -> Any:
        return lambda *given, **named: asked.append(given) or answer

    client, made = phone.client, phone.made
    made._spoken = True
    client.send_message = take(proto.SendResponse(ID="3EB0C"))
    client.upload = take(
        proto.UploadResponse(url="u", DirectPath="p", Handle="", MediaKey=b"k",
                             FileEncSHA256=b"e", FileSHA256=b"s", FileLength=3)
    )  # fmt: skip
    client.PairPhone = take("ABCD-EFGH")
    words = {"jid": "4915187654321@s.whatsapp.net", "draft": draft(None)}
    assert made.call("send", words, b"") == "3EB0C"
    assert asked[-1][0].User == "4915187654321" and asked[-1][1].conversation == "See you"
    answer = made.call("upload", {"kind": "document"}, b"pdf")
    assert (answer["url"], answer["key"], answer["length"]) == ("u", b64(b"k"), 3)
    assert asked[-1] == (b"pdf", importlib.import_module("neonize.utils.enum").MediaType(3))
    assert made.call("pair", {"phone": "+4915112345678"}, b"") == "ABCD-EFGH"
    assert asked[-1][0] == "4915112345678"


def test_numbers_that_are_looked_up(phone: Account, proto: Any) -> None:
    exc = importlib.import_module("neonize.exc")
    phone.made._spoken = True
    found = proto.IsOnWhatsAppResponse(
        Query="+491", JID=jid(proto, "4917"), IsIn=True, VerifiedName=None
    )
    absent = proto.IsOnWhatsAppResponse(Query="+491", JID=jid(proto, "491"), IsIn=False)
    for answers, expected in (
        ([found], "4917@s.whatsapp.net"), ([absent], None), ([], None), ("nothing", None),
    ):  # fmt: skip

        def answer(*_: str, said: Any = answers) -> Any:
            if said == "nothing":
                raise exc.IsOnWhatsAppError("Function returned nothing.")
            return said

        phone.client.is_on_whatsapp = answer
        assert phone.made.call("look_up", {"phone": "+491"}, b"") == expected


def test_who_we_are_is_shown_on_the_phone(phone: Account, library: ModuleType) -> None:
    assert phone.client.device_props is library.DEVICE
    assert library.DEVICE.os == "Paceline"


# ---------------------------------------------------------------------- the whole of it, offline


def test_without_a_network_it_says_so_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", NOWHERE)
    session = tmp_path / "whatsapp" / "team.session"

    async def scene() -> None:
        told: asyncio.Queue[WireEvent] = asyncio.Queue()
        wire = ProcessWire(session, told.put_nowait)
        try:
            await wire.connect()
            standing = await told.get()
            assert isinstance(standing, Standing) and standing.state == "ended"
            assert standing.reason.startswith("failed to dial whatsapp web websocket")
            with pytest.raises(Exception, match="failed to ask: websocket not connected"):
                await wire.groups()
        finally:
            await wire.close()
        with pytest.raises(WireLost):
            await wire.groups()

    asyncio.run(scene())
    assert stat.S_IMODE(session.stat().st_mode) == 0o600
    assert session.read_bytes().startswith(b"SQLite format 3\0")


def test_without_a_network_an_account_does_not_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", NOWHERE)
    (tmp_path / "team.session").touch()
    provider = WhatsAppProvider(SystemClock(), tmp_path)
    with pytest.raises(ProviderError, match=r"^team: offline: failed to dial whatsapp"):
        asyncio.run(provider.open(account()))


def test_the_extra_is_installed_where_tests_run() -> None:
    assert installed()
