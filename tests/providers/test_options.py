"""What drivers' settings have in common."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, StrictBool, ValidationError

from paceline.core.errors import InputError
from paceline.providers.gmail.settings import GmailSettings
from paceline.providers.options import first_wrong, read_options
from paceline.providers.sandbox.settings import SandboxSettings
from paceline.providers.smtp.settings import SmtpSettings
from paceline.providers.unipile.settings import UnipileSettings
from paceline.providers.waha.settings import WahaSettings
from paceline.providers.wassenger.settings import WassengerSettings
from paceline.providers.wati.settings import WatiSettings
from paceline.providers.whatsapp.settings import WhatsAppSettings
from paceline.providers.whatsapp_cloud.settings import WhatsAppCloudSettings


class Sample(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    loud: StrictBool = False
    names: tuple[str, ...] = ()


def read(**raw: Any) -> Sample:
    return read_options(Sample, raw, "sample", ())


def test_settings_that_are_the_same_are_read_once() -> None:
    assert read(loud=True) is read(loud=True)
    assert read(loud=False) == read() and read(loud=False) is not read()
    assert read(names=["a"]) == read(names=["a"]), "what cannot be remembered is read again"


def test_what_is_equal_but_not_alike_is_told_apart() -> None:
    assert read(loud=True).loud
    for _ in range(2):
        with pytest.raises(InputError, match="is to be true or false"):
            read(loud=1)
    with pytest.raises(InputError, match="no such setting"):
        read(load=True)


ODD = ([], {}, "", "x", "587", -1, 10**9, 1.5, True, None, [None], [-1], {"a": 1}, float("nan"))
MODELS = (
    *(SmtpSettings, GmailSettings, UnipileSettings, WahaSettings, WassengerSettings),
    *(WatiSettings, WhatsAppSettings, WhatsAppCloudSettings, SandboxSettings),
)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_wrong_value_is_told_in_words_of_ours(model: type[BaseModel]) -> None:
    """The library's own begin with a capital, as no other complaint of ours does."""
    said: dict[tuple[str, object], str] = {}
    for name in model.model_fields:
        for value in ODD:
            try:
                model.model_validate({name: value})
            except ValidationError as error:
                said[name, repr(value)] = first_wrong(error).reason
    assert said
    for (name, value), reason in said.items():
        assert not reason.startswith(("Input", "Field", "Value", "Extra")), (name, value, reason)
        assert reason != "cannot be that", (name, value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"port": "x"}, "port: is to be a whole number"),
        ({"port": 587.5}, "port: is to be a whole number"),
        ({"port": 0}, "port: is to be at least 1"),
        ({"imap_port": 70_000}, "imap_port: is to be at most 65535"),
        ({"verp": 1}, "verp: is to be true or false"),
        ({"security": "ssl"}, "security: is to be starttls, tls or plain"),
        ({"host": 5}, "host: is to be a text, so write it in quotes"),
    ],
)
def test_what_is_wrong_with_a_setting(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as wrong:
        read_options(SmtpSettings, {"host": "smtp.example.com", **given}, "smtp", ())
    assert str(wrong.value) == said


def test_what_the_library_may_call_it_some_day_is_told_without_its_words() -> None:
    class Timed(BaseModel):
        at: datetime

    with pytest.raises(InputError, match=r"^at: cannot be that$"):
        read_options(Timed, {"at": "x"}, "sample", ())
