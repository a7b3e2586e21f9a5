"""What drivers' settings have in common: addresses, keys, and how a bad one is told.

Which settings a provider has is written in its own folder. A secret may be given as ``env:NAME``,
the environment variable that holds it, and then it is never stored.
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, TypeVar, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, BeforeValidator, ValidationError

from paceline.core.errors import InputError, ProviderRefused
from paceline.core.nearest import did_you_mean

FROM_ENVIRONMENT = "env:"

_WORD = re.compile(r"[\x21-\x7e]{1,4096}")
"""What fits into a header and a form alike; some tokens hold all that is known of their owner."""
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
_HOST = re.compile(r"[a-z0-9._-]{1,253}|[0-9a-f:.]{2,45}")

M = TypeVar("M", bound=BaseModel)


def read_text(raw: Any) -> str:
    if not isinstance(raw, str):
        # A number was read as one on the way here, and may have lost a zero or a sign.
        raise ValueError("is to be a text, so write it in quotes")
    return raw.strip()


def read_word(raw: Any) -> str:
    text = read_text(raw)
    if not _WORD.fullmatch(text):
        # Without the text itself: it may be a secret.
        raise ValueError("is empty, too long, or has characters in it that no such value has")
    return text


def _read_optional_word(raw: Any) -> str | None:
    return None if raw is None else read_word(raw)


def _read_header(raw: Any) -> str:
    text = read_text(raw)
    if not _HEADER.fullmatch(text):
        raise ValueError(f"{text!r} is not the name of a header")
    return text


Word = Annotated[str, BeforeValidator(read_word)]
"""One word of plain characters: a key, an id."""
OptionalWord = Annotated[str | None, BeforeValidator(_read_optional_word)]
HeaderName = Annotated[str, BeforeValidator(_read_header)]


def read_address(raw: Any, like: str) -> tuple[str, str]:
    """Where a provider lives: its address without a path, and the path, if any.

    ``https://`` unless it is this very machine, because a key travels with every call.
    """
    text = read_text(raw)
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"{text!r} is no address: {error}") from error
    bare = not (parts.query or parts.fragment or parts.username or parts.password)
    if not host or not _HOST.fullmatch(host) or not bare:
        raise ValueError(f"{text!r} is no address, write it like {like}")
    if parts.scheme == "http" and not is_loopback(host):
        raise ValueError("the API key would travel unencrypted over http://, write https://")
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"{parts.scheme}:// cannot be spoken here, write https://")
    shown = f"[{host}]" if ":" in host else host
    origin = f"{parts.scheme}://{shown}" + (f":{port}" if port is not None else "")
    return origin, parts.path.rstrip("/")


def is_local(url: str) -> bool:
    """Whether an address is on this very machine."""
    return is_loopback(urlsplit(url).hostname or "")


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def secret_in(
    value: str, what: str = "API key", environment: Mapping[str, str] | None = None
) -> str:
    """The secret itself, wherever it is kept."""
    if not value.startswith(FROM_ENVIRONMENT):
        return value
    name = value.removeprefix(FROM_ENVIRONMENT)
    found = (os.environ if environment is None else environment).get(name, "").strip()
    if not _WORD.fullmatch(found):
        raise ProviderRefused(f"the environment variable {name} holds no {what}")
    return found


def read_options(model: type[M], raw: Mapping[str, Any], whose: str, needed: Sequence[str]) -> M:
    """The settings, or an ``InputError`` that names the first bad key."""
    # Asked for with every report about an account, and always the same. What is equal need not be
    # alike: 1 is True.
    given = tuple((key, type(value), value) for key, value in raw.items())
    try:
        hash(given)
    except TypeError:
        return _read(model, given, whose, tuple(needed))
    # The model is what is asked for, whatever the cache is said to hold.
    return cast("M", _remembered(model, given, whose, tuple(needed)))


def _read(
    model: type[M], given: tuple[tuple[str, type, Any], ...], whose: str, needed: tuple[str, ...]
) -> M:
    raw = {key: value for key, _, value in given}
    for key in raw:
        if key not in model.model_fields:
            meant = did_you_mean(key, model.model_fields)
            raise InputError(f"{whose} has no such setting{meant}", key=key)
    for key in needed:
        if key not in raw:
            raise InputError(
                f"{whose} needs this setting", key=key, hint=f"Give it with --option {key}=…"
            )
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise first_wrong(error) from None


def first_wrong(error: ValidationError) -> InputError:
    """The first bad setting and what is wrong with it, in words of ours."""
    # Without what was written there: it may be a secret.
    first = error.errors(include_url=False, include_input=False)[0]
    about, key = first.get("ctx", {}), str(first["loc"][0]) if first["loc"] else None
    if first["type"] == "value_error":
        return InputError(first["msg"].removeprefix("Value error, "), key=key)
    if first["type"] == "literal_error":
        return InputError(f"is to be {about['expected'].replace(chr(39), '')}", key=key)
    # A type that does not fit is told in several ways: int_type, int_parsing, int_from_float, …
    kind = first["type"].partition("_")[0]
    words = _WORDS.get(first["type"]) or _WORDS.get(kind, "cannot be that")
    return InputError(words.format(**about), key=key)


_WORDS: Mapping[str, str] = {
    "missing": "is missing",
    "bool": "is to be true or false",
    "int": "is to be a whole number",
    "float": "is to be a number",
    "finite": "is to be a number",
    "string": "is to be a text, so write it in quotes",
    "list": "is to be a list",
    "tuple": "is to be a list",
    "greater_than": "is to be more than {gt}",
    "greater_than_equal": "is to be at least {ge}",
    "less_than": "is to be less than {lt}",
    "less_than_equal": "is to be at most {le}",
}
"""What is wrong with a value by what the library calls it; what is not in here is told without the
reason rather than in somebody else's words."""

_remembered = lru_cache(maxsize=256)(_read)
