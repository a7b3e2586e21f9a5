"""The language of templates: Jinja2 in its sandbox, strict about what is missing.

Most templates are plain text with the names of fields in it. Those are filled in without Jinja's
runtime, which takes several times as long; whatever is wrong, Jinja still says it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, meta, nodes
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from paceline.core.errors import InputError

LONGEST_TEXT = 100_000
"""Characters one rendered field may have: a loop in a template must not fill the memory."""

LONGEST_RANGE = 1_000
DEEPEST_LOOP = 2

MOST_BLANKS = 20
"""A form with more of them is filled in piece by piece: named often enough, a long field would
fill the memory before anybody could find the whole too long."""

_NO_CHANCE_NO_MEMORY = ("cycler", "joiner", "lipsum", "namespace")
_NO_FILTERS = ("batch", "center", "format", "indent", "random", "slice")
_NO_METHODS = frozenset(
    {"center", "expandtabs", "format", "format_map", "ljust", "rjust", "to_bytes", "zfill"}
)


class _Sandbox(ImmutableSandboxedEnvironment):
    """The sandbox without chance, and without what makes much out of little in one step."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def __init__(self, *, autoescape: bool) -> None:
        super().__init__(
            undefined=StrictUndefined, autoescape=autoescape, keep_trailing_newline=True
        )
        for name in _NO_CHANCE_NO_MEMORY:
            del self.globals[name]
        for name in _NO_FILTERS:
            del self.filters[name]
        self.globals["range"] = _short_range

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return attr not in _NO_METHODS and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> None:
        """Not wrapped: formatting by methods is not safe here at all (its widths are free)."""

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if not _small(operator, left, right):
            raise SecurityError(f"'{operator}' is for small numbers only")
        return super().call_binop(context, operator, left, right)


def _small(operator: str, left: Any, right: Any) -> bool:
    """Whether the result is of a size that a message can have any use for."""
    if operator == "*" and isinstance(left, str) and isinstance(right, int):
        return len(left) * right <= LONGEST_TEXT
    if not (isinstance(left, int | float) and isinstance(right, int | float)):
        return False
    return operator != "**" or (abs(left) <= 10**9 and abs(right) <= 100)


def _short_range(*args: int) -> range:
    numbers = range(*args)
    if len(numbers) > LONGEST_RANGE:
        raise SecurityError(f"a range has at most {LONGEST_RANGE} numbers")
    return numbers


_TEXT = _Sandbox(autoescape=False)
_HTML = _Sandbox(autoescape=True)
_escaped = _HTML.filters["escape"]


class _Form(NamedTuple):
    """Text with blanks, which is all that most templates are: no need for Jinja to fill them in."""

    pattern: str
    """As the ``%`` of strings takes it, with every blank by its name."""
    blanks: frozenset[str]

    def filled_in(self, fields: Mapping[str, str], html: bool) -> str | None:
        """The text, or None where Jinja has to say what is wrong with it."""
        if not self.blanks <= fields.keys():
            return None
        known = {name: _escaped(fields[name]) for name in self.blanks} if html else fields
        text = self.pattern % known
        return text if len(text) <= LONGEST_TEXT else None


class _Compiled(NamedTuple):
    template: Template
    form: _Form | None
    """The short cut, for a template that is no more than a form."""


@lru_cache(maxsize=512)
def _compiled(source: str, html: bool) -> _Compiled:
    try:
        tree = _TEXT.parse(source)
        _check_loops(tree)
        return _Compiled((_HTML if html else _TEXT).from_string(source), _form(tree))
    except Exception as error:
        raise _wrong(error) from None


def _form(tree: nodes.Template) -> _Form | None:
    """The template as a form, if plain text and the names of fields are all there is to it."""
    if not all(isinstance(statement, nodes.Output) for statement in tree.body):
        return None
    pattern, blanks = [], []
    for node in (node for output in tree.body for node in output.iter_child_nodes()):
        if isinstance(node, nodes.TemplateData):
            pattern.append(node.data.replace("%", "%%"))
        elif isinstance(node, nodes.Name) and _is_blank(node.name):
            pattern.append(f"%({node.name})s")
            blanks.append(node.name)
        else:
            return None
    return _Form("".join(pattern), frozenset(blanks)) if len(blanks) <= MOST_BLANKS else None


def _is_blank(name: str) -> bool:
    """Whether a field of this name, where there is one, is what Jinja would fill in.

    ``self`` is Jinja's own, and beyond ASCII it may take two spellings for one name.
    """
    return name.isascii() and name != "self"


@lru_cache(maxsize=512)
def variables(source: str) -> frozenset[str]:
    """The names a template needs from outside; one that has a default is not needed."""
    try:
        tree = _TEXT.parse(source)
        _check_loops(tree)
        # Only compiling finds a filter that does not exist.
        _compiled(source, False)
        return frozenset(meta.find_undeclared_variables(tree)) - _TEXT.globals.keys() - _spare(tree)
    except Exception as error:
        raise _wrong(error) from None


def _spare(tree: nodes.Template) -> set[str]:
    """Names whose absence the template itself looks after."""
    looks = {"default", "d", "defined", "undefined"}
    return {
        node.node.name
        for node in tree.find_all((nodes.Filter, nodes.Test))
        if node.name in looks and isinstance(node.node, nodes.Name)
    }


def _check_loops(tree: nodes.Node, depth: int = 0) -> None:
    """Refuses what could run for ever: macros call themselves, and loops multiply."""
    for node in tree.iter_child_nodes():
        if isinstance(node, nodes.Macro | nodes.CallBlock):
            raise SecurityError("a message has no use for macros")
        looping = isinstance(node, nodes.For)
        if isinstance(node, nodes.For) and (node.recursive or depth == DEEPEST_LOOP):
            raise SecurityError(f"loops may be {DEEPEST_LOOP} deep, and not recursive")
        _check_loops(node, depth + looping)


def _wrong(error: Exception) -> InputError:
    if isinstance(error, InputError):
        return error
    line = f" (line {error.lineno})" if isinstance(error, TemplateSyntaxError) else ""
    text = getattr(error, "message", None) or str(error) or type(error).__name__
    return InputError(f"template: {text}{line}")


def render(source: str, fields: Mapping[str, str], *, html: bool = False) -> str:
    """The text for one target; a missing field is an error that names it."""
    try:
        template, form = _compiled(source, html)
        text = None if form is None else form.filled_in(fields, html)
        return _rendered(template, fields) if text is None else text
    except Exception as error:
        raise _wrong(error) from None


def _rendered(template: Template, fields: Mapping[str, str]) -> str:
    """As Jinja does it, and no further than a text may be long."""
    pieces, length = [], 0
    for piece in _pieces(template, fields):
        pieces.append(piece)
        length += len(piece)
        if length > LONGEST_TEXT:
            raise InputError(f"template: renders to more than {LONGEST_TEXT} characters")
    return "".join(pieces)


def _pieces(template: Template, fields: Mapping[str, str]) -> Iterator[str]:
    """As ``Template.generate`` does it, without copying the names that all templates know."""
    context = template.new_context({**template.globals, **fields}, shared=True)
    return template.root_render_func(context)
