"""Ways to answer: what may be written, what is made of it, and how it prints back."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from paceline.core.answering import COMMON, HOWS, KEYS, Model, Nobody, Rule, Rules, Way, ways_of
from paceline.core.errors import InputError
from paceline.core.instants import MINUTE, SECOND

MODEL = {"responder": "openai", "model": "small", "prompt": "You answer.", "api_key": "env:KEY"}
URL = "https://user:pa55word@crm.example.com/answer/t0ken-in-the-path"
SERVICE = {"responder": "http", "url": URL, "secret": "env:SECRET"}
RULES = {"responder": "rules", "rules": [{"words": ["price"], "reply": "Ten, {{ name }}."}]}
NOBODY = {"responder": "none"}


def read(**written: Any) -> Way:
    return ways_of({"support": written})["support"]


def test_the_defaults() -> None:
    assert read(**NOBODY) == Way(
        "support", Nobody(), 8 * SECOND, 65 * SECOND, "wait", 2, MINUTE, 20
    )
    found = read(**MODEL)
    assert found.responder == "openai"
    assert found.how == Model(
        "small", "You answer.", "", "https://api.openai.com/v1", "env:KEY", "chat", 500, 8_000, None
    )


def test_all_of_it_may_be_written() -> None:
    found = read(
        **MODEL,
        quiet="20s",
        max_wait="2m",
        on_newer="redo",
        retries=0,
        timeout="30s",
        history=0,
        base_url="http://localhost:11434/v1/",
        api="responses",
        max_tokens=200,
        budget=2_000,
        temperature=1,
    )
    assert (found.quiet_us, found.max_wait_us, found.on_newer) == (20 * SECOND, 2 * MINUTE, "redo")
    assert (found.retries, found.timeout_us, found.history) == (0, 30 * SECOND, 0)
    how = found.how
    assert isinstance(how, Model)
    assert (how.base_url, how.api) == ("http://localhost:11434/v1", "responses")
    assert (how.max_tokens, how.budget, how.temperature) == (200, 2_000, 1.0)


def test_rules_are_kept_in_their_order() -> None:
    more = [{"words": [" how much ", "cuánto"], "reply": "a"}, {"words": ["b"], "reply": "b"}]
    how = read(responder="rules", rules=more, otherwise=" Sorry. ").how
    assert how == Rules((Rule(("how much", "cuánto"), "a"), Rule(("b",), "b")), "Sorry.")
    assert read(responder="rules", rules=more).how.otherwise is None
    assert read(responder="rules", rules=more, otherwise="").how.otherwise == ""


@pytest.mark.parametrize(
    ("written", "quiet", "longest"),
    [
        ({}, 8, 65),
        ({"quiet": "65s"}, 65, 65),
        ({"quiet": "90s"}, 90, 90),
        ({"max_wait": "3s"}, 3, 3),
        ({"max_wait": "90s"}, 8, 90),
        ({"quiet": "0s", "max_wait": "0s"}, 0, 0),
        ({"quiet": "65s", "max_wait": "65s"}, 65, 65),
    ],
)
def test_one_of_the_two_waits_may_be_written_alone(
    written: dict[str, str], quiet: int, longest: int
) -> None:
    found = read(**NOBODY, **written)
    assert (found.quiet_us, found.max_wait_us) == (quiet * SECOND, longest * SECOND)


@pytest.mark.parametrize(
    "written",
    [
        NOBODY,
        {**NOBODY, "max_wait": "3s"},
        {**NOBODY, "quiet": "1m30s"},
        {**NOBODY, "quiet": "8s", "max_wait": "2m", "on_newer": "redo", "retries": 5},
        MODEL,
        {**MODEL, "prompt": 'Say "hi"\nin two lines.\x7f', "temperature": 0.25, "history": 3},
        {**MODEL, "base_url": "https://llm.example/v1", "api": "responses", "timeout": "1m30s"},
        {**MODEL, "timeout": "5m"},
        {**MODEL, "timeout": "20s", "give_up_after": "30s"},
        SERVICE,
        RULES,
        {**RULES, "otherwise": ""},
        {**RULES, "otherwise": "Sorry, {{ name | default('you') }}."},
    ],
)
def test_it_prints_back(written: dict[str, Any]) -> None:
    found = read(**written)
    printed = found.to_toml()
    assert ways_of(tomllib.loads(printed)["answering"]) == {"support": found}
    assert printed.startswith(f'[answering.support]\nresponder = "{written["responder"]}"\n')
    assert written.items() <= found.to_mapping().items()


def test_defaults_are_not_printed() -> None:
    assert read(**MODEL, retries=2, budget=8_000).to_mapping() == MODEL


def test_a_variable_holds_a_table_in_one_line() -> None:
    assert ways_of('{ a = { responder = "none", quiet = "1s" } }')["a"].quiet_us == SECOND
    with pytest.raises(InputError, match="is not a table") as caught:
        ways_of(f"a = {URL}")
    assert "pa55word" not in str(caught.value)


def test_nothing_of_it_is_shown_that_may_be_a_secret() -> None:
    shown = repr(ways_of({"a": SERVICE, "b": MODEL}))
    assert not [part for part in ("pa55word", "t0ken", "You answer") if part in shown]


@pytest.mark.parametrize(
    ("written", "given"),
    [
        ({}, 4 * MINUTE),
        ({"timeout": "3m"}, 4 * MINUTE),
        ({"timeout": "5m"}, 5 * MINUTE),
        ({"timeout": "5m", "give_up_after": "9m"}, 9 * MINUTE),
    ],
)
def test_a_turn_is_given_up_no_sooner_than_a_try(written: dict[str, str], given: int) -> None:
    assert ways_of({"support": {**NOBODY, **written}})["support"].give_up_us == given


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        (3, "support: must be a table; write it as [answering.support]"),
        ({}, "support: responder: is missing. It is one of openai, http, rules, none"),
        ({"responder": "gpt"}, "support: responder: 'gpt' is none of openai, http, rules, none"),
        ({**NOBODY, "quite": "3s"}, "support: unknown key 'quite', did you mean 'quiet'?"),
        ({**MODEL, "modle": "x"}, "support: unknown key 'modle', did you mean 'model'?"),
        ({**NOBODY, "model": "x"}, 'support: model: is for responder = "openai", and this is'),
        ({**MODEL, "otherwise": "x"}, 'otherwise: is for responder = "rules"'),
        (
            {**NOBODY, "quiet": "70s", "max_wait": "65s"},
            "support: quiet: 1m10s is longer than max_wait, which is 1m5s",
        ),
        ({**NOBODY, "quiet": "2h"}, "support: quiet: '2h' is too long"),
        ({**NOBODY, "quiet": 8}, "support: quiet: expected a text in quotes, not 8"),
        ({**NOBODY, "quiet": "soon"}, "support: quiet: 'soon' is not a duration"),
        ({**NOBODY, "timeout": "10ms"}, "support: timeout: '10ms' is too short"),
        ({**NOBODY, "timeout": "6m"}, "support: timeout: '6m' is too long"),
        ({**NOBODY, "give_up_after": "10m"}, "support: give_up_after: '10m' is too long"),
        (
            {**NOBODY, "give_up_after": "59s"},
            "support: give_up_after: 59s is shorter than timeout, which is 1m",
        ),
        ({**NOBODY, "retries": 11}, "retries: must be a whole number from 0 to 10"),
        ({**NOBODY, "retries": True}, "retries: must be a whole number"),
        ({**NOBODY, "history": -1}, "history: must be a whole number from 0 to 200"),
        ({**NOBODY, "on_newer": "drop"}, "on_newer: 'drop' is none of wait, redo"),
        ({**MODEL, "model": " "}, "model: must not be empty"),
        ({"responder": "openai", "prompt": "x"}, "support: model: is missing"),
        ({**MODEL, "prompt_file": "x"}, "prompt: and prompt_file are both given"),
        ({"responder": "openai", "model": "x"}, "prompt: is missing. Write what the model is"),
        (
            {"responder": "openai", "model": "x", "prompt": "x"},
            "api_key: is missing. Write it like env:OPENAI_API_KEY",
        ),
        ({**MODEL, "api_key": "sk-pa55word"}, "api_key: names no variable. Write env:NAME"),
        ({**MODEL, "api_key": "env:"}, "api_key: names no variable"),
        ({**MODEL, "api_key": "env:sk-pa55word"}, "api_key: names no variable"),
        ({**MODEL, "api_key": 12345678}, "api_key: names no variable"),
        ({**MODEL, "api": "completions"}, "api: 'completions' is none of chat, responses"),
        ({**MODEL, "base_url": "ftp://x/"}, "base_url: 'ftp://x/' is not an http or https"),
        ({**MODEL, "base_url": "https://[x"}, "base_url: 'https://[x' is not an http or https"),
        ({**MODEL, "base_url": "https://u:pa55word@x/v1"}, "base_url: has a user in it"),
        ({**MODEL, "max_tokens": 0}, "max_tokens: must be a whole number from 1"),
        ({**MODEL, "budget": 10}, "budget: must be a whole number from 100"),
        ({**MODEL, "temperature": 3}, "temperature: must be a number from 0 to 2"),
        ({**MODEL, "temperature": float("nan")}, "temperature: must be a number"),
        ({**MODEL, "temperature": "0"}, "temperature: must be a number"),
        ({**MODEL, "temperature": True}, "temperature: must be a number"),
        ({"responder": "http", "url": URL}, "support: secret: is missing"),
        ({"responder": "http", "secret": "env:X"}, "support: url: is missing"),
        ({**SERVICE, "url": "ftp://x/pa55word"}, "url: is not an http or https address"),
        ({**SERVICE, "url": 12345678}, "url: must be a text in quotes"),
        ({**SERVICE, "secret": "pa55word-of-some-length"}, "secret: names no variable"),
        ({"responder": "rules"}, "support: rules: is missing"),
        ({**RULES, "rules": []}, "rules: must be a list such as"),
        ({**RULES, "rules": {}}, "rules: must be a list such as"),
        ({**RULES, "rules": RULES["rules"] * 501}, "rules: are more than 500"),
        ({**RULES, "rules": ["x"]}, "rules: number 1: expected a table such as { words ="),
        ({**RULES, "rules": [{"words": ["x"]}]}, "rules: number 1: reply: is missing"),
        ({**RULES, "rules": [{"reply": "x"}]}, "rules: number 1: words: is missing"),
        (
            {**RULES, "rules": [*RULES["rules"], {"words": ["x"], "replies": "x"}]},
            "rules: number 2: unknown key 'replies', did you mean 'reply'?",
        ),
        ({**RULES, "rules": [{"words": "x", "reply": "x"}]}, "number 1: words: must be a list"),
        ({**RULES, "rules": [{"words": [3], "reply": "x"}]}, "words: expected a text in quotes"),
        ({**RULES, "rules": [{"words": ["\u200b"], "reply": "x"}]}, "is no word"),
        ({**RULES, "rules": [{"words": ["x"], "reply": " "}]}, "reply: must not be empty"),
        ({**RULES, "rules": [{"words": ["x"], "reply": "{{ a"}]}, "number 1: reply: template: "),
        ({**RULES, "otherwise": "{% if %}"}, "support: otherwise: template: "),
    ],
)
def test_what_is_wrong_names_its_table_and_its_key(written: object, complaint: str) -> None:
    with pytest.raises(InputError) as caught:
        ways_of({"good": NOBODY, "support": written})
    told = str(caught.value)
    assert complaint in told
    assert not [part for part in ("pa55word", "12345678", "t0ken") if part in told]


@pytest.mark.parametrize("raw", [3, [NOBODY]])
def test_it_is_a_table_of_tables(raw: object) -> None:
    with pytest.raises(InputError, match="must be a table of tables"):
        ways_of(raw)


@pytest.mark.parametrize("name", ["", "a b", "-a", "a" * 65])
def test_a_name_is_a_word(name: str) -> None:
    with pytest.raises(InputError, match="cannot be the name of a way to answer"):
        ways_of({name: NOBODY})


def test_every_responder_has_its_keys_and_no_two_meanings_share_one() -> None:
    assert set(KEYS) == set(HOWS)
    own = [key for keys in KEYS.values() for key in keys]
    assert len(own) == len(set(own))
    assert not set(own) & set(COMMON)
