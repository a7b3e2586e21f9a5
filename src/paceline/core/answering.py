"""Ways to answer people: what an operator writes about one, in a table ``[answering.NAME]``.

Who answers (a model, a service, a table of words, or nobody but people), how long is waited for
more to be said, and what each responder needs to know. Pure: they are asked in
``providers/responders``. A secret is only ever named here, as the variable that holds it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlsplit

from paceline.core import readers
from paceline.core.durations import print_duration
from paceline.core.errors import InputError
from paceline.core.folding import folded
from paceline.core.instants import HOUR, MINUTE, SECOND
from paceline.core.tables import (
    Reader,
    read_key,
    read_table,
    refuse_unknown,
    table_of,
    text_of,
    toml_key,
    toml_value,
)
from paceline.core.template import variables
from paceline.core.webhooks import FROM_ENVIRONMENT, Webhook

OPENAI_URL = "https://api.openai.com/v1"
QUIET_US = 8 * SECOND
MAX_WAIT_US = 65 * SECOND
TIMEOUT_US = 60 * SECOND
GIVE_UP_US = 4 * MINUTE
"""Below the five minutes after which operators are told that a conversation is held for long."""
LONGEST_TURN_US = 9 * MINUTE
"""Below the ten minutes after which a turn counts as left, whatever its lease says."""
MOST_RULES = 500

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_VARIABLE = re.compile(re.escape(FROM_ENVIRONMENT) + r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Model:
    """A model behind the API of OpenAI, or of any server that speaks as it does."""

    responder: ClassVar[str] = "openai"

    model: str
    prompt: str = field(default="", repr=False)
    prompt_file: str = ""
    """Where the prompt is written instead."""
    base_url: str = OPENAI_URL
    api_key: str = ""
    """``env:NAME``; empty for a server that asks for none."""
    api: str = "chat"
    max_tokens: int = 500
    """Of an answer."""
    budget: int = 8_000
    """Tokens of all that the model is told: prompt, history, and what is to be answered."""
    temperature: float | None = None

    def __post_init__(self) -> None:
        if bool(self.prompt) == bool(self.prompt_file):
            problem = "and prompt_file are both given" if self.prompt else "is missing"
            hint = "Write what the model is to do in prompt, or name a file with it in prompt_file"
            raise InputError(problem, key="prompt", hint=hint)
        if self.base_url == OPENAI_URL and not self.api_key:
            raise InputError("is missing", key="api_key", hint="Write it like env:OPENAI_API_KEY")

    @classmethod
    def from_mapping(cls, name: str, raw: Mapping[str, object]) -> Model:
        _need(raw, "model")
        return cls(**read_table(raw, KEYS[cls.responder]))

    def to_mapping(self) -> dict[str, Any]:
        return _unlike_defaults(self, {key: key for key in KEYS[self.responder]})


@dataclass(frozen=True, slots=True)
class Service:
    """Somebody's own service, which is told over HTTP what was said, and says the answer."""

    responder: ClassVar[str] = "http"

    hook: Webhook
    """Where it is, and what that is signed with."""

    @classmethod
    def from_mapping(cls, name: str, raw: Mapping[str, object]) -> Service:
        _need(raw, "url", "secret")
        read = read_table(raw, KEYS[cls.responder])
        return cls(Webhook.from_mapping({**read, "name": name}))

    def to_mapping(self) -> dict[str, Any]:
        return {"url": self.hook.url, "secret": self.hook.secret}


class Rule(NamedTuple):
    """Whoever says one of the words is given the reply."""

    words: tuple[str, ...]
    reply: str


@dataclass(frozen=True, slots=True)
class Rules:
    """A table of words; the first rule that has one of what was said wins."""

    responder: ClassVar[str] = "rules"

    rules: tuple[Rule, ...]
    otherwise: str | None = None
    """What is said where no rule fits: a person's affair if it is not given, and nothing if it is
    empty."""

    @classmethod
    def from_mapping(cls, name: str, raw: Mapping[str, object]) -> Rules:
        _need(raw, "rules")
        return cls(**read_table(raw, KEYS[cls.responder]))

    def to_mapping(self) -> dict[str, Any]:
        rules = [{"words": list(rule.words), "reply": rule.reply} for rule in self.rules]
        return {
            "rules": rules,
            **({} if self.otherwise is None else {"otherwise": self.otherwise}),
        }


@dataclass(frozen=True, slots=True)
class Nobody:
    """Only people answer."""

    responder: ClassVar[str] = "none"

    @classmethod
    def from_mapping(cls, name: str, raw: Mapping[str, object]) -> Nobody:
        return cls()

    def to_mapping(self) -> dict[str, Any]:
        return {}


How = Model | Service | Rules | Nobody

HOWS: Mapping[str, type[How]] = {how.responder: how for how in (Model, Service, Rules, Nobody)}
"""Every responder by the name it is written with."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to answer, checked."""

    name: str
    how: How = Nobody()
    quiet_us: int = QUIET_US
    """How long nothing more must have been said before an answer is made."""
    max_wait_us: int = MAX_WAIT_US
    """How long after the first of several messages that is at the latest."""
    on_newer: str = "wait"
    """What becomes of an answer when more is said while it is made: ``wait`` sends it and leaves
    the rest to the next one, ``redo`` makes another one to all of it."""
    retries: int = 2
    timeout_us: int = TIMEOUT_US
    """How long each try may take."""
    history: int = 20
    """How many messages from before the responder is told."""
    give_up_us: int = GIVE_UP_US
    """How long all tries of a turn may take together, with the pauses between them."""

    def __post_init__(self) -> None:
        if self.timeout_us > self.give_up_us:
            longest = print_duration(self.timeout_us)
            given = print_duration(self.give_up_us)
            reason = f"{given} is shorter than timeout, which is {longest}"
            raise InputError(reason, key="give_up_after")
        if self.quiet_us > self.max_wait_us:
            longest = print_duration(self.max_wait_us)
            reason = f"{print_duration(self.quiet_us)} is longer than max_wait, which is {longest}"
            raise InputError(reason, key="quiet")

    @property
    def responder(self) -> str:
        return self.how.responder

    @classmethod
    def from_mapping(cls, name: str, raw: object) -> Way:
        """What is wrong is told by its key; in which table that is, is for the caller to say."""
        if not isinstance(raw, Mapping):
            raise InputError(f"must be a table; write it as [answering.{name}] with keys below")
        _need(raw, "responder", hint=f"It is one of {', '.join(HOWS)}")
        responder = read_key("responder", readers.one_of(*HOWS), raw["responder"])
        _refuse_others(raw, responder)
        common = read_table({key: raw[key] for key in COMMON if key in raw}, COMMON)
        values = {_FIELDS[key]: value for key, value in common.items() if key in _FIELDS}
        # Whoever writes one of the two means it, and not that it should not fit the other.
        values.setdefault("quiet_us", min(QUIET_US, values.get("max_wait_us", QUIET_US)))
        values.setdefault("max_wait_us", max(MAX_WAIT_US, values["quiet_us"]))
        values.setdefault("give_up_us", max(GIVE_UP_US, values.get("timeout_us", TIMEOUT_US)))
        own = {key: raw[key] for key in KEYS[responder] if key in raw}
        return cls(name, HOWS[responder].from_mapping(name, own), **values)

    def to_mapping(self) -> dict[str, Any]:
        """As it is written. It names no secret but what the address of a service may have in it."""
        written = _unlike_defaults(self, _FIELDS)
        if "quiet" in written or "max_wait" in written:
            written |= {"quiet": self.quiet_us, "max_wait": self.max_wait_us}
        for key in ("quiet", "max_wait", "timeout", "give_up_after"):
            if key in written:
                written[key] = print_duration(written[key])
        return {"responder": self.responder, **written, **self.how.to_mapping()}

    def to_toml(self) -> str:
        """The text of the section ``[answering.NAME]``."""
        lines = [f"[answering.{toml_key(self.name)}]"]
        lines += [f"{key} = {toml_value(value)}" for key, value in self.to_mapping().items()]
        return "\n".join(lines) + "\n"


def ways_of(raw: object) -> dict[str, Way]:
    """All that are written, by their names; what is wrong names the table it is in."""
    if isinstance(raw, str):
        raw = _tables_in(raw)
    if not isinstance(raw, Mapping):
        raise InputError("must be a table of tables; write each as [answering.NAME]")
    found: dict[str, Way] = {}
    for name, entry in raw.items():
        try:
            if not _NAME.fullmatch(name):
                hint = "Use letters, digits and . _ - (64 at most, not starting with a sign)"
                raise InputError("cannot be the name of a way to answer", hint=hint)
            found[name] = Way.from_mapping(name, entry)
        except InputError as error:
            place = f"{name}: {error.key}: " if error.key else f"{name}: "
            raise InputError(f"{place}{error.reason}", hint=error.hint) from None
    return found


def _tables_in(text: str) -> object:
    """In a variable they are written in one line."""
    try:
        return table_of(text)
    except InputError:
        # Without the text itself: the address of a service may have a token in it.
        raise InputError("is not a table", hint='Write { NAME = { responder = "none" } }') from None


def _need(raw: Mapping[str, object], *keys: str, hint: str | None = None) -> None:
    for key in keys:
        if key not in raw:
            raise InputError("is missing", key=key, hint=hint)


def _refuse_others(raw: Mapping[str, object], responder: str) -> None:
    """A key that nobody knows, or that only another responder has any use for."""
    known = {**COMMON, **KEYS[responder]}
    for key in raw:
        others = [other for other, keys in KEYS.items() if key in keys]
        if key not in known and others:
            reason = f"is for responder = {toml_value(others[0])}, and this is {responder!r}"
            raise InputError(reason, key=key)
    refuse_unknown(raw, known)


def _unlike_defaults(value: Any, keys: Mapping[str, str]) -> dict[str, Any]:
    """What differs from the defaults, under the keys of these fields."""
    defaults = {entry.name: entry.default for entry in fields(value)}
    found = {key: getattr(value, name) for key, name in keys.items()}
    return {key: own for key, own in found.items() if own != defaults[keys[key]]}


def _base_url(raw: object) -> str:
    written = readers.text(raw)
    try:
        netloc = urlsplit(written).netloc
    except ValueError:
        netloc = ""
    if "@" in netloc:
        # Without the address itself: there is a password in it.
        raise InputError("has a user in it", hint="Name what the server wants in api_key")
    return readers.url(written)


def _named_secret(raw: object) -> str:
    written = raw.strip() if isinstance(raw, str) else ""
    if not _VARIABLE.fullmatch(written):
        # Without the text itself: it may be the secret.
        hint = "Write env:NAME, the variable that holds it, and not the secret itself"
        raise InputError("names no variable", hint=hint)
    return written


def _temperature(raw: object) -> float:
    given = float(raw) if isinstance(raw, int | float) and not isinstance(raw, bool) else math.nan
    if not 0 <= given <= 2:
        raise InputError("must be a number from 0 to 2")
    return given


def _template(raw: object) -> str:
    text = text_of(raw).strip()
    if "{" in text:
        variables(text)
    return text


def _reply(raw: object) -> str:
    text = _template(raw)
    if not text:
        raise InputError("must not be empty")
    return text


def _words(raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list) or not raw:
        raise InputError('must be a list such as ["price", "cost"]')
    words = tuple(text_of(word).strip() for word in raw)
    for word in words:
        if not folded(word).strip():
            raise InputError(f"{word!r} is no word")
    return words


def _rules(raw: object) -> tuple[Rule, ...]:
    if not isinstance(raw, list) or not raw:
        raise InputError('must be a list such as [{ words = ["price"], reply = "10 euros" }]')
    if len(raw) > MOST_RULES:
        raise InputError(f"are more than {MOST_RULES}")
    rules = []
    for number, entry in enumerate(raw, start=1):
        try:
            read = read_table(entry, _OF_A_RULE)
            _need(read, *_OF_A_RULE)
        except InputError as error:
            place = f"number {number}: {error.key}: " if error.key else f"number {number}: "
            raise InputError(f"{place}{error.reason}", hint=error.hint) from None
        rules.append(Rule(read["words"], read["reply"]))
    return tuple(rules)


_OF_A_RULE: Mapping[str, Reader[Any]] = {"words": _words, "reply": _reply}

COMMON: Mapping[str, Reader[Any]] = {
    "responder": text_of,
    "quiet": readers.duration(0, HOUR),
    "max_wait": readers.duration(0, HOUR),
    "on_newer": readers.one_of("wait", "redo"),
    "retries": readers.whole(0, 10),
    "timeout": readers.duration(SECOND, 5 * MINUTE),
    "give_up_after": readers.duration(SECOND, LONGEST_TURN_US),
    "history": readers.whole(0, 200),
}
"""The keys of every way to answer."""

_FIELDS = {
    "quiet": "quiet_us",
    "max_wait": "max_wait_us",
    "on_newer": "on_newer",
    "retries": "retries",
    "timeout": "timeout_us",
    "give_up_after": "give_up_us",
    "history": "history",
}

KEYS: Mapping[str, Mapping[str, Reader[Any]]] = {
    "openai": {
        "model": readers.text,
        "prompt": readers.text,
        "prompt_file": readers.text,
        "base_url": _base_url,
        "api_key": _named_secret,
        "api": readers.one_of("chat", "responses"),
        "max_tokens": readers.whole(1, 100_000),
        "budget": readers.whole(100, 1_000_000),
        "temperature": _temperature,
    },
    # What is wrong with the address is told by the webhook, which does not repeat it.
    "http": {"url": lambda raw: raw, "secret": _named_secret},
    "rules": {"rules": _rules, "otherwise": _template},
    "none": {},
}
"""What each responder has besides."""
