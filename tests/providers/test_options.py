"""What drivers' settings have in common."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, StrictBool

from paceline.core.errors import InputError
from paceline.providers.options import read_options


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
        with pytest.raises(InputError, match="valid boolean"):
            read(loud=1)
    with pytest.raises(InputError, match="no such setting"):
        read(load=True)
