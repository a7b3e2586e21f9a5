"""Amounts of memory: as they are written, and as they are told."""

import pytest

from paceline.core.errors import InputError
from paceline.core.readers import size
from paceline.core.sizes import GB, KB, MB, parse_size, print_size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("512 MB", 512 * MB),
        ("512mb", 512 * MB),
        (" 2GB ", 2 * GB),
        ("2 GiB", 2 * GB),
        ("1.5 GB", GB + GB // 2),
        ("300M", 300 * MB),
        ("64 kB", 64 * KB),
        ("1048576", MB),
        ("0", 0),
    ],
)
def test_what_people_write(text: str, expected: int) -> None:
    assert parse_size(text) == expected


@pytest.mark.parametrize("text", ["", "much", "-1 MB", "1 TB", "1,5 GB", "MB", "1 MBit", "0x10"])
def test_what_is_no_amount(text: str) -> None:
    with pytest.raises(InputError, match=r"is not an amount of memory\. Write it like 512 MB"):
        parse_size(text)


def test_what_people_are_told() -> None:
    assert [print_size(n) for n in (0, MB // 2, 700 * MB - 1, 3 * GB)] == [
        "0 MB", "1 MB", "700 MB", "3072 MB",
    ]  # fmt: skip


def test_a_limit_is_an_amount_or_nothing() -> None:
    assert size(0) == size("0") == size("0 MB") == 0
    assert size("64 MB") == 64 * MB
    for value, complaint in (
        ("63 MB", "'63 MB' is too little: a process needs 64 MB"),
        (512, "expected a text in quotes, not 512"),
        (False, "expected a text in quotes, not False"),
        ("", "must not be empty"),
    ):
        with pytest.raises(InputError, match=complaint):
            size(value)
