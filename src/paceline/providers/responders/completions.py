"""What a server that speaks as OpenAI does has answered: a text, or why there is none. Pure.

Servers differ in how they say no. What is decided here is whether the same may be asked again, and
if not, whether that is about this question or about all of them. Nothing that somebody writes to us
may keep everybody else from being answered, so only what no question can bring about (the key, the
credit, the model, our own settings) is about all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from paceline.core.instants import Instant
from paceline.engine.ports import answering
from paceline.engine.ports.answering import ResponderFailed, ResponderRefused
from paceline.providers.answers import Answer, Said
from paceline.providers.responders.calls import asked_wait_us, unreadable
from paceline.providers.responders.replies import fit, without_thoughts

NO_CREDIT = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "billing_hard_limit_reached",
        "billing_not_active",
    }
)
NO_KEY = frozenset({"invalid_api_key", "account_deactivated"})
NO_MODEL = frozenset({"model_not_found", "invalid_model", "DeploymentNotFound"})
NOT_THIS = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "moderation_blocked",
        "invalid_prompt",
        "context_length_exceeded",
        "string_above_max_length",
    }
)
"""Codes that are about what was asked, whatever status they come with."""
AGAIN = frozenset(
    {"rate_limit_exceeded", "server_error", "slow_down", "server_is_overloaded", "timeout"}
)
LATER = frozenset({408, 409, 425, 429})
NOT_OURS = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter"})
"""What a server does not know of what it is always sent, whatever the question is."""
OUR_SETTINGS = frozenset({"model", "temperature"})
"""Not ``max_tokens``: next to a long question any of them may be too many."""

Quoted = Callable[[str], str]
"""Makes somebody else's words fit to be shown."""


class Fault(NamedTuple):
    """An error, however it was written down."""

    code: str = ""
    kind: str = ""
    words: str = ""
    about: str = ""
    """Which of our parameters it is about."""
    flagged: bool = False
    """Whether what was asked is why."""


class Server(NamedTuple):
    """Who has answered, and when: what is needed to tell what it said."""

    whom: str
    model: str
    now: Instant
    quoted: Quoted


def read_chat(answer: Answer, server: Server) -> answering.Answer:
    """A chat completion."""
    said = _said(answer, server)
    choice = _first(said.get("choices"))
    if isinstance(choice.get("error"), Mapping):
        raise _refusal(answer, choice, server)
    message = _object(choice.get("message"))
    ended = choice.get("finish_reason")
    if ended == "content_filter":
        raise ResponderRefused(f"{server.whom} withheld the answer: its content was filtered")
    _refuse_declined(message.get("refusal"), server)
    text = _joined(message.get("content"), "text")
    return _reply(text, said, server, broken_off=ended == "length")


def read_response(answer: Answer, server: Server) -> answering.Answer:
    """An object of the responses API."""
    said = _said(answer, server)
    why = _object(said.get("incomplete_details")).get("reason")
    if why == "content_filter":
        raise ResponderRefused(f"{server.whom} withheld the answer: its content was filtered")
    pieces = [
        _object(piece)
        for output in _list(said.get("output"))
        if _object(output).get("type") == "message"
        for piece in _list(_object(output).get("content"))
    ]
    for piece in pieces:
        _refuse_declined(piece.get("refusal"), server)
    text = _joined(pieces, "output_text")
    return _reply(text, said, server, broken_off=said.get("status") == "incomplete")


def _said(answer: Answer, server: Server) -> Said:
    """The body of an answer that is a success."""
    said = answer.said()
    failed = said is not None and said.get("error")
    if answer.succeeded and said is not None and not failed:
        return said
    if said is None and answer.status != 401:
        # A page, or half of something: whoever said it, it was not the server we asked.
        raise unreadable(server.whom, answer, server.now)
    raise _refusal(answer, said or {}, server)


def _reply(text: str, said: Said, server: Server, *, broken_off: bool) -> answering.Answer:
    reply = fit(without_thoughts(text), broken_off=broken_off)
    if not reply:
        why = ": max_tokens were used up before anything was said" if broken_off else ""
        raise ResponderFailed(f"{server.whom} answered with no text{why}")
    cut = ", broke off at max_tokens" if broken_off else ""
    return answering.Answer(reply, f"{server.model}{_used(said.get('usage'))}{cut}")


def _refuse_declined(refusal: object, server: Server) -> None:
    if isinstance(refusal, str) and refusal.strip():
        raise ResponderRefused(f"the model declines to answer: {server.quoted(refusal)}")


def _refusal(answer: Answer, said: Said, server: Server) -> ResponderFailed | ResponderRefused:
    """What it means that there is no answer."""
    fault, status = _fault(said), answer.status
    if answer.succeeded:
        # Some have begun to answer well before they fail; the status is then in the body.
        status = int(fault.code) if fault.code.isdecimal() and len(fault.code) == 3 else 500
    words = f": {server.quoted(fault.words)}" if fault.words else f" ({status})"
    names = {fault.code, fault.kind}
    if names & NO_CREDIT or status == 402:
        return ResponderRefused(f"no credit left at {server.whom}{words}", everybody=True)
    if names & NO_MODEL:
        return ResponderRefused(f"{server.whom} has no such model{words}", everybody=True)
    if names & NOT_THIS or fault.flagged:
        return ResponderRefused(f"{server.whom} does not take the question{words}")
    if status == 401 or names & NO_KEY:
        # Not in their words: they repeat pieces of the key.
        return ResponderRefused(f"{server.whom} does not take the API key", everybody=True)
    if status in LATER or status >= 500 or status < 400 or names & AGAIN:
        reason = f"{server.whom} answered {status}{words if fault.words else ''}"
        return ResponderFailed(reason, asked_wait_us(answer, server.now))
    if status == 403:
        # A wall in front of a server says so as well, of one word in one question.
        theirs = "error" in said
        return ResponderRefused(f"{server.whom} refuses access{words}", everybody=theirs)
    if status in (404, 405):
        return ResponderRefused(
            f"{server.whom} has no such model or address{words}", everybody=True
        )
    ours = bool(names & NOT_OURS) or fault.about in OUR_SETTINGS
    about = f"the setting {fault.about}".rstrip() if ours else "the question"
    return ResponderRefused(f"{server.whom} does not take {about}{words}", everybody=ours)


def _fault(said: Said) -> Fault:
    error = said.get("error")
    if isinstance(error, str):
        return Fault(words=error)
    found = error if isinstance(error, Mapping) else said
    words = found.get("message") or found.get("detail")
    metadata = _object(found.get("metadata"))
    return Fault(
        _name(found.get("code")),
        _name(found.get("type")),
        words if isinstance(words, str) else "",
        _name(found.get("param")),
        flagged="flagged_input" in metadata or "reasons" in metadata,
    )


def _name(raw: object) -> str:
    return str(raw)[:64] if isinstance(raw, str | int) and not isinstance(raw, bool) else ""


def _used(usage: object) -> str:
    """What it has cost, in tokens in and out, where the server says so."""
    counts = _object(usage)
    asked = counts.get("prompt_tokens", counts.get("input_tokens"))
    told = counts.get("completion_tokens", counts.get("output_tokens"))
    if not isinstance(asked, int) or not isinstance(told, int):
        return ""
    return f", {asked} + {told} tokens"


def _joined(content: object, kind: str) -> str:
    """A text, or the texts among several pieces."""
    if isinstance(content, str):
        return content
    pieces = [_object(piece) for piece in _list(content)]
    texts = [piece.get("text") for piece in pieces if piece.get("type") == kind]
    return "".join(text for text in texts if isinstance(text, str))


def _first(value: object) -> Mapping[str, Any]:
    listed = _list(value)
    return _object(listed[0]) if listed else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
