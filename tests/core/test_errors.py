"""The errors: the tree in the docstring is the tree in the code, and the texts say where."""

import inspect
import re

import pytest

from paceline.core import errors
from paceline.core.errors import ConflictError, InputError, NotFoundError, PacelineError

CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, Exception)
}


def test_the_docstring_draws_exactly_the_tree_of_the_code() -> None:
    drawn: dict[str, str | None] = {}
    parents: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^(    [\s│├└─]*)([A-Z][A-Za-z]+)(?:\s{2,}|$)", line)
        if found is None:
            continue
        depth, name = len(found[1]), found[2]
        parents = [parent for parent in parents if parent[0] < depth]
        drawn[name] = parents[-1][1] if parents else None
        parents.append((depth, name))
    coded = {name: value.__bases__[0].__name__ for name, value in CLASSES.items()}
    assert drawn == {**coded, "PacelineError": None}


@pytest.mark.parametrize("name", CLASSES)
def test_everything_raised_on_purpose_has_one_root_and_says_what_it_is(name: str) -> None:
    assert issubclass(CLASSES[name], PacelineError)
    assert CLASSES[name].__doc__


def test_an_input_error_is_one_line_that_says_where_and_what_to_do() -> None:
    assert str(InputError("is empty")) == "is empty"
    assert str(InputError("is empty", key="rate")) == "rate: is empty"
    assert (
        str(InputError("is empty", where="a.toml", hint="Fill it")) == "a.toml: is empty. Fill it"
    )
    wrong = InputError("is empty", key="rate", where="policy.x", hint="Fill it")
    assert str(wrong) == "policy.x: rate: is empty. Fill it"
    assert "\n" not in str(wrong)


@pytest.mark.parametrize("kind", [InputError, NotFoundError, ConflictError])
def test_an_input_error_seen_from_further_out_stays_what_it_is(kind: type[InputError]) -> None:
    inner = kind("is wrong", key="rate", hint="Mend it")
    outer = inner.within("policy.x").within("paceline.toml")
    assert type(outer) is kind
    assert str(outer) == "paceline.toml: policy.x: rate: is wrong. Mend it"
    assert (outer.reason, outer.key, outer.hint) == (inner.reason, inner.key, inner.hint)
    assert inner.where is None
