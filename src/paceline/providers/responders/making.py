"""A responder for a way to answer. What it needs from outside (variables, the file with the prompt)
is read here, once; what is missing is told by the table it is written in.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from paceline.core.answering import Model, Rules, Service, Way
from paceline.core.errors import InputError, ProviderRefused
from paceline.engine.ports import Clock
from paceline.engine.ports.answering import Responder
from paceline.providers.options import is_local, secret_in
from paceline.providers.responders.window import PER_MESSAGE, reckoned

if TYPE_CHECKING:
    import ssl


def responder_of(
    way: Way,
    environ: Mapping[str, str],
    clock: Clock,
    trust: ssl.SSLContext | None = None,
) -> Responder | None:
    """Who answers; None where only people do. ``InputError`` where something it needs is missing.

    ``trust`` is for whoever makes several of them: reading all the certificates takes its time.
    """
    how = way.how
    if isinstance(how, Rules):
        # Without what speaks HTTP.
        from paceline.providers.responders.rules import RulesResponder

        return RulesResponder(how)
    if isinstance(how, Model | Service):
        return _asked_over_http(way, how, environ, clock, trust)
    return None


def _asked_over_http(
    way: Way,
    how: Model | Service,
    environ: Mapping[str, str],
    clock: Clock,
    trust: ssl.SSLContext | None,
) -> Responder:
    from paceline.providers.http import certificates
    from paceline.providers.responders.http import HttpResponder
    from paceline.providers.responders.openai import OpenAIResponder

    if isinstance(how, Service):
        secret = _signing_secret(way, how, environ)
        return HttpResponder(way, how, secret, clock, trust or certificates())
    key, prompt = _api_key(way, how, environ), _prompt(way, how)
    return OpenAIResponder(way, how, prompt, key, clock, trust or certificates())


def _signing_secret(way: Way, how: Service, environ: Mapping[str, str]) -> str:
    try:
        return how.hook.signed_with(environ)
    except InputError as error:
        raise InputError(error.reason, key=_key(way, "secret"), hint=error.hint) from None


def _api_key(way: Way, how: Model, environ: Mapping[str, str]) -> str:
    if not how.api_key:
        return ""
    if how.base_url.startswith("http://") and not is_local(how.base_url):
        reason = "the API key would travel unencrypted over http://, write https://"
        raise InputError(reason, key=_key(way, "base_url"))
    try:
        return secret_in(how.api_key, environment=environ)
    except ProviderRefused as error:
        raise InputError(str(error), key=_key(way, "api_key")) from None


def _prompt(way: Way, how: Model) -> str:
    prompt = how.prompt or _written_in(way, Path(how.prompt_file))
    takes = reckoned(prompt) + PER_MESSAGE
    if takes > how.budget:
        reason = f"the prompt alone takes about {takes} tokens of {how.budget}"
        raise InputError(reason, key=_key(way, "budget"))
    return prompt


def _written_in(way: Way, path: Path) -> str:
    key = _key(way, "prompt_file")
    try:
        prompt = path.read_bytes().decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise InputError(f"{str(path)!r} is not a text in UTF-8", key=key) from None
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror}", key=key) from None
    if not prompt:
        raise InputError(f"{str(path)!r} is empty", key=key)
    return prompt


def _key(way: Way, key: str) -> str:
    return f"answering: {way.name}: {key}"
