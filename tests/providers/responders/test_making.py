"""A responder for a way to answer: what it takes to make one, and how what is missing is told."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paceline.core.errors import InputError
from paceline.providers.responders import responder_of
from paceline.providers.responders.openai import name_of_most
from tests.providers.responders.fake import (
    CLOCK,
    ENVIRON,
    KEY,
    SECRET,
    FakeModel,
    ask,
    burst,
    certificates,
    model_way,
    way,
)

MODEL = {
    "responder": "openai",
    "model": "small",
    "prompt": "You answer.",
    "api_key": "env:THE_KEY",
}
SERVICE = {"responder": "http", "url": "https://x.example/y", "secret": "env:THE_SECRET"}


def test_where_only_people_answer_there_is_nobody_to_ask() -> None:
    assert responder_of(way(responder="none"), {}, CLOCK) is None


def test_a_prompt_may_be_in_a_file(model: FakeModel, tmp_path: Path) -> None:
    path = tmp_path / "prompt.md"
    path.write_bytes("\ufeff\nYou answer für uns.\n".encode())
    written = model_way(model).to_mapping() | {"prompt_file": str(path)}
    del written["prompt"]
    ask(way(**written), burst("hi"))
    assert model.calls[0].json()["messages"][0]["content"] == "You answer für uns."


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "cannot be read: No such file"),
        (b" \n", "is empty"),
        (b"\xff\xfe", "is not a text in UTF-8"),
        (b"all of it " * 5_000, "budget: the prompt alone takes about 16671 tokens of 8000"),
    ],
)
def test_a_file_without_a_prompt(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    path = tmp_path / "prompt.md"
    if content is not None:
        path.write_bytes(content)
    written = {**MODEL, "prompt_file": str(path)}
    del written["prompt"]
    with pytest.raises(InputError, match=complaint) as caught:
        responder_of(way(**written), ENVIRON, CLOCK)
    assert str(caught.value).startswith("answering: support: ")


@pytest.mark.parametrize(
    ("written", "environ", "complaint"),
    [
        (MODEL, {}, "answering: support: api_key: the environment variable THE_KEY holds no API"),
        (MODEL, {"THE_KEY": " "}, "support: api_key: the environment variable THE_KEY holds no"),
        (MODEL, {"THE_KEY": f"{KEY} {KEY}"}, "the environment variable THE_KEY holds no API key"),
        (
            {**MODEL, "base_url": "http://llm.example/v1"},
            ENVIRON,
            "answering: support: base_url: the API key would travel unencrypted",
        ),
        (SERVICE, {}, "answering: support: secret: the variable THE_SECRET is shorter than 16"),
        (SERVICE, {"THE_SECRET": "pa55word"}, "secret: the variable THE_SECRET is shorter"),
    ],
)
def test_what_is_missing_is_told_by_its_table_and_without_secrets(
    written: dict[str, Any], environ: dict[str, str], complaint: str
) -> None:
    with pytest.raises(InputError) as caught:
        responder_of(way(**written), environ, CLOCK)
    assert complaint in str(caught.value)
    assert not [hidden for hidden in (KEY, SECRET, "pa55word") if hidden in str(caught.value)]


@pytest.mark.parametrize("base_url", ["http://llm.internal:11434/v1", "http://localhost:11434/v1"])
def test_a_server_of_ones_own_may_do_without_a_key(base_url: str) -> None:
    written = {**MODEL, "base_url": base_url}
    del written["api_key"]
    made = responder_of(way(**written), {}, CLOCK, certificates())
    assert made is not None
    asyncio.run(made.close())


@pytest.mark.parametrize(
    ("base_url", "name"),
    [
        ("https://api.openai.com/v1", "max_completion_tokens"),
        ("https://eu.api.openai.com/v1", "max_completion_tokens"),
        ("https://we.openai.azure.com/openai/v1", "max_completion_tokens"),
        ("https://notapi.openai.com.example/v1", "max_tokens"),
        ("https://myapi.openai.com/v1", "max_tokens"),
        ("https://openrouter.ai/api/v1", "max_tokens"),
    ],
)
def test_the_longest_answer_is_named_as_the_server_knows_it(base_url: str, name: str) -> None:
    assert name_of_most(base_url) == name


def test_no_secret_is_shown_by_one_that_is_looked_at() -> None:
    for written in (MODEL, SERVICE):
        made = responder_of(way(**written), ENVIRON, CLOCK, certificates())
        assert made is not None
        assert not [text for text in (repr(made), str(made)) if KEY in text or SECRET in text]
        asyncio.run(made.close())


def test_whoever_has_only_rules_does_not_load_what_speaks_http() -> None:
    program = (
        "import sys\n"
        "from paceline.core.answering import Way\n"
        "from paceline.engine.clock import SystemClock\n"
        "from paceline.providers.responders import responder_of\n"
        "written = {'responder': 'rules', 'rules': [{'words': ['hi'], 'reply': 'Hello.'}]}\n"
        "assert responder_of(Way.from_mapping('a', written), {}, SystemClock())\n"
        "print('httpx' in sys.modules)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout == "False\n"
