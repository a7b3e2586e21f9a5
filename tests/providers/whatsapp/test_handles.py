"""Uploads that are written down: they come back as they were, for as long as they may be used."""

import json

import pytest

from paceline.core.instants import DAY, SECOND
from paceline.engine.ports import Media
from paceline.providers.whatsapp import handles
from paceline.providers.whatsapp.wire import Uploaded
from tests.providers.whatsapp.stage import PICTURE, START

FILE = Uploaded(
    "https://mmg.whatsapp.net/v/t62?ccb=11-4&mms3=true", "/v/t62?ccb=11-4", bytes(range(32)),
    b"s" * 32, b"e" * 32, 12_345, b"\xff\xd8\x00small", 640, 480,
)  # fmt: skip


def test_a_handle_comes_back_as_it_was() -> None:
    handle = handles.pack(PICTURE, FILE, START)
    draft = handles.unpack(handle, "See you", START + 6 * DAY)
    assert draft is not None
    assert draft.file == FILE
    assert (draft.text, draft.kind, draft.mime, draft.name) == (
        "See you", "image", "image/png", "poster.png",
    )  # fmt: skip
    assert draft.uploaded_at == START


def test_a_handle_is_used_for_a_week() -> None:
    handle = handles.pack(PICTURE, FILE, START)
    assert handles.expiry(FILE, START) == START + 7 * DAY
    assert handles.unpack(handle, "", START + 7 * DAY - 1) is not None
    assert handles.unpack(handle, "", START + 7 * DAY) is None


def test_an_address_that_ends_earlier_counts() -> None:
    ends_at = START + 3 * DAY
    ending = f"&oe={ends_at // SECOND:08X}"
    for file in (FILE._replace(url=FILE.url + ending), FILE._replace(path=FILE.path + ending)):
        assert handles.expiry(file, START) == ends_at - DAY


@pytest.mark.parametrize("ending", ["&oe=00000001", "&oe=FFFFFFFF", "&oe=zz", "&oe=123"])
def test_an_end_that_makes_no_sense_does_not(ending: str) -> None:
    assert handles.expiry(FILE._replace(url=FILE.url + ending), START) == START + 7 * DAY


@pytest.mark.parametrize(
    "handle",
    [
        "", "media-7", "[]", "null", "{}", '{"v":1}', '{"v":2,"until":9}',
        handles.pack(PICTURE, FILE, START).replace('"v":1', '"v":2'),
        handles.pack(PICTURE, FILE, START).replace('"length"', '"size"'),
        handles.pack(PICTURE, FILE, START).replace('"thumbnail":"', '"thumbnail":"%'),
    ],
)  # fmt: skip
def test_what_is_no_handle_of_ours(handle: str) -> None:
    assert handles.unpack(handle, "", START) is None


@pytest.mark.parametrize(
    ("mime", "kind"),
    [
        ("image/jpeg", "image"), ("IMAGE/PNG", "image"), ("image/jpeg; q=1", "image"),
        ("image/gif", "document"), ("image/webp", "document"), ("video/mp4", "video"),
        ("video/3gpp", "video"), ("video/quicktime", "document"), ("audio/ogg", "document"),
        ("application/pdf", "document"), ("", "document"),
    ],
)  # fmt: skip
def test_how_a_file_is_shown(mime: str, kind: str) -> None:
    assert handles.kind_of(mime) == kind
    media = Media("a" * 64, "file", mime, 1)
    assert json.loads(handles.pack(media, FILE, START))["kind"] == kind
