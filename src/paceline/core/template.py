"""Message templates: what of a message is filled in for each target.

A template sees the target's fields and ``target`` itself, nothing else. Autoescaping is on for
HTML bodies only: a plain text must arrive as it was written. Whatever goes wrong in a template is
its author's to mend, so every failure here is an ``InputError``.

The language is in ``jinja``, loaded when a template is first met: few commands meet any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from paceline.core.model import Content, Part

TARGET = "target"
UNSUBSCRIBE = "unsubscribe_url"
OURS = frozenset({TARGET, UNSUBSCRIBE})
"""What every template may say without a column of that name."""


@cache
def _language() -> tuple[Callable[..., str], Callable[[str], frozenset[str]]]:
    """How a template is rendered, and what it needs."""
    from paceline.core import jinja

    return jinja.render, jinja.variables


def render(source: str, fields: Mapping[str, str], *, html: bool = False) -> str:
    """The text for one target; a missing field is an error that names it."""
    if "{" not in source:
        return source
    return _language()[0](source, fields, html=html)


def literal(text: str) -> str:
    """A template that says exactly this, whatever braces are in it: what people and programs write
    is not a template, and must not be taken for one."""
    return text.replace("{", "{{ '{' }}")


def variables(source: str) -> frozenset[str]:
    """The names a template needs from outside; one that has a default is not needed."""
    return _language()[1](source)


def render_part(part: Part, address: str, fields: Mapping[str, str], unsubscribe: str = "") -> Part:
    """A part with its templates filled in for one target."""
    if "{" not in part.text and not part.subject and not part.html and not part.values:
        return part
    known = {**fields, TARGET: address, UNSUBSCRIBE: unsubscribe}
    return Part(
        part.kind,
        render(part.text, known),
        _one_line(render(part.subject, known)) if part.subject else "",
        render(part.html, known, html=True) if part.html else "",
        part.media,
        part.template,
        part.language,
        tuple([(name, render(text, known)) for name, text in part.values]) if part.values else (),
        part.attachments,
        part.answers,
    )


def _one_line(text: str) -> str:
    """A subject is one line: a field with a line break in it must not begin a new header."""
    return " ".join(text.splitlines())


def content_variables(content: Content) -> frozenset[str]:
    """Every field the content's templates need from a target."""
    return _all_variables(content) - OURS


def links_to_unsubscribe(content: Content) -> bool:
    """Whether the content itself says where one can unsubscribe."""
    return UNSUBSCRIBE in _all_variables(content)


def _all_variables(content: Content) -> frozenset[str]:
    return frozenset[str]().union(*(variables(source) for source in _sources(content)))


def _sources(content: Content) -> Iterator[str]:
    for part in content.parts:
        yield from (text for text in (part.text, part.subject, part.html) if text)
        yield from (text for _, text in part.values)
