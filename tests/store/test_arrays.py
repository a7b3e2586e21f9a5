"""Arrays as PostgreSQL is given them: what comes out is what went in, whichever way it was put."""

import psycopg
import pytest
from sqlalchemy import make_url

from paceline.store.base import array

HOSTILE = (
    "",
    "NULL",
    "null",
    '"',
    "\\",
    '\\"',
    "a,b",
    "{}",
    "\n\t\r\b\f\x1b",
    "\\n",
    "é 😀",
    " x ",
)

TEXTS: tuple[list[str | None], ...] = (
    [],
    ["plain"],
    ["same"] * 3,
    ["one", "two", "three"],
    *([text] for text in HOSTILE),
    *([text, text] for text in HOSTILE),
    *([text, "other", text] for text in HOSTILE),
    list(HOSTILE),
    [None, *HOSTILE],
    [*HOSTILE, None],
    [None],
    [None, None],
    ['{"checkpoint": [1, "two"]}', '{"checkpoint": "\\n"}'],
)
NUMBERS: tuple[list[int | None], ...] = (
    [],
    [0],
    [7, 7, 7],
    [1, -2, 9_223_372_036_854_775_807],
    [None, 1],
    [1, None, 2],
    [None, None],
)


@pytest.fixture
def connection(postgres_url: str) -> "psycopg.Connection[tuple[object]]":
    url = make_url(postgres_url).set(drivername="postgresql")
    return psycopg.connect(url.render_as_string(hide_password=False), autocommit=True)


def test_texts_come_out_as_they_went_in(connection: "psycopg.Connection[tuple[object]]") -> None:
    with connection:
        for texts in TEXTS:
            row = connection.execute("SELECT %s::text[]", (array(texts),)).fetchone()
            assert row == (texts,)


def test_numbers_come_out_as_they_went_in(connection: "psycopg.Connection[tuple[object]]") -> None:
    with connection:
        for numbers in NUMBERS:
            row = connection.execute("SELECT %s::bigint[]", (array(numbers),)).fetchone()
            assert row == (numbers,)


def test_what_cannot_be_stored_is_refused_and_parts_no_text(
    connection: "psycopg.Connection[tuple[object]]",
) -> None:
    with connection, pytest.raises(psycopg.DataError):
        connection.execute("SELECT %s::text[]", (array(["a\0b", "c"]),))
