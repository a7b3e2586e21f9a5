"""Ways to answer in ``paceline.toml`` and in a variable, and that the documentation has them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from paceline.config import load
from paceline.core.answering import COMMON, KEYS, Model, ways_of
from paceline.core.errors import InputError
from paceline.core.instants import SECOND

PAGE = Path(__file__).parent.parent / "docs" / "answering.md"
WRITTEN = """
[answering.support]
responder = "openai"
model = "small"
prompt_file = "prompts/support.md"
api_key = "env:KEY"

[answering.by-hand]
responder = "none"
quiet = "3s"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "paceline.toml"
    path.write_text(WRITTEN)
    return path


def test_the_file_names_ways_to_answer_and_a_prompt_lies_beside_it(file: Path) -> None:
    ways = load(file, environ={}).answering
    assert list(ways) == ["support", "by-hand"]
    assert ways["by-hand"].quiet_us == 3 * SECOND
    how = ways["support"].how
    assert isinstance(how, Model)
    assert how.prompt_file == str(file.parent / "prompts" / "support.md")


def test_a_variable_wins_over_the_file(file: Path) -> None:
    said = {"PACELINE_ANSWERING": '{ faq = { responder = "none" } }'}
    assert list(load(file, environ=said).answering) == ["faq"]
    assert load(file.parent / "paceline.toml", environ={}).answering.keys() == {
        "support",
        "by-hand",
    }


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("answering = 3", "answering: must be a table of tables"),
        ("[answering]\nsupport = 3", "answering: support: must be a table; write it as [answeri"),
        ('[answering.a]\nresponder = "none"\nretry = 3', "answering: a: unknown key 'retry', did"),
        ('[answering.a]\nresponder = "openai"\nprompt_file = 3', "answering: a: model: is missing"),
        ('[answring.a]\nresponder = "none"', "unknown key 'answring', did you mean 'answering'?"),
    ],
)
def test_what_is_wrong_names_the_file_and_the_table(
    tmp_path: Path, text: str, complaint: str
) -> None:
    path = tmp_path / "paceline.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load(path, environ={})
    assert str(caught.value).startswith(f"{path}: {complaint}")


def test_every_key_is_explained_and_every_example_is_valid(tmp_path: Path) -> None:
    text = PAGE.read_text()
    told = set(re.findall(r"^\| `(\w+)` \|", text, re.M))
    wanted = {key for keys in (COMMON, *KEYS.values()) for key in keys}
    assert wanted <= told
    found, confirmed = set(), False
    for number, block in enumerate(re.findall(r"```toml\n(.*?)```", text, re.S)):
        example = tmp_path / f"{number}.toml"
        example.write_text(block)
        settings = load(example, environ={})
        found |= {way.responder for way in settings.answering.values()}
        confirmed |= settings.opt_out.confirmation is not None
    assert found == set(KEYS) and confirmed


@pytest.mark.parametrize("key", ["quiet", "max_wait", "retries", "timeout", "history"])
def test_the_defaults_are_those_of_the_documentation(key: str) -> None:
    (default,) = re.findall(rf"^\| `{key}` \| `(\w+)` \|", PAGE.read_text(), re.M)
    value = int(default) if default.isdecimal() else default
    plain, said = ways_of({"a": {"responder": "none"}}), {"responder": "none", key: value}
    assert ways_of({"a": said}) == plain


@pytest.mark.parametrize("key", ["max_tokens", "budget", "api", "base_url"])
def test_a_models_defaults_are_those_of_the_documentation(key: str) -> None:
    (default,) = re.findall(rf"^\| `{key}` \| `([^`]+)` \|", PAGE.read_text(), re.M)
    value = int(default) if default.isdecimal() else default
    model = {"responder": "openai", "model": "x", "prompt": "x", "api_key": "env:X"}
    assert ways_of({"a": {**model, key: value}}) == ways_of({"a": model})


def test_how_many_are_answered_at_once(file: Path) -> None:
    assert load(file, environ={}).answering_at_once == 20
    file.write_text(f"[answering]\nat_once = 50\n{WRITTEN}")
    found = load(file, environ={})
    assert (found.answering_at_once, list(found.answering)) == (50, ["support", "by-hand"])
    said = {"PACELINE_ANSWERING_AT_ONCE": "7"}
    assert load(file, environ=said).answering_at_once == 7
    file.write_text("[answering]\nat_once = 0\n")
    with pytest.raises(InputError, match=r"answering\.at_once: must be a whole number from 1"):
        load(file, environ={})


def test_words_to_opt_out_are_settings(file: Path) -> None:
    file.write_text('[opt_out]\nstop = ["genug"]\nconfirmation = "Done."\n')
    found = load(file, environ={}).opt_out
    assert found.words.wish_in("Genug!") == "stop"
    assert found.confirmation is not None and found.confirmation.text == "Done."
    said = {"PACELINE_OPT_OUT": '{ stop = ["basta ya"] }'}
    assert load(file, environ=said).opt_out.confirmation is None
    file.write_text('[opt_out]\nstop = "genug"\n')
    with pytest.raises(InputError, match=r"opt_out: must be a list such as") as caught:
        load(file, environ={})
    assert "paceline.toml" in str(caught.value)
