"""Templates: what is filled in, what is missing, and what does not get out of the sandbox."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paceline.core import jinja
from paceline.core.errors import InputError
from paceline.core.jinja import LONGEST_TEXT, MOST_BLANKS
from paceline.core.model import Content, Part
from paceline.core.template import content_variables, render, render_part, variables

FIELDS = {"name": "Ada <b>", "city": "Wien"}


def test_fields_are_filled_in_and_other_text_arrives_as_it_was_written() -> None:
    assert render("Dear {{ name }} of {{ city|upper }}", FIELDS) == "Dear Ada <b> of WIEN"
    assert render("plain } text & <b>", {}) == "plain } text & <b>"
    assert render("ends with a break\n", {}) == "ends with a break\n"
    assert render("{{ city }}\n\n", FIELDS) == "Wien\n\n"
    assert render("{# said to nobody #}x", {}) == "x"
    assert render("{{ '-' * 20 }}", {}) == "-" * 20
    assert render("{% if city == 'Wien' %}Servus{% else %}Hello{% endif %}", FIELDS) == "Servus"
    assert render("{{ name|default('you') }}", {}) == "you"


def test_what_a_field_says_is_never_read_as_a_template() -> None:
    hostile = {"name": "{{ city }} {% for x in range(9) %}", "city": "Wien"}
    assert render("{{ name }}", hostile) == hostile["name"]


def test_html_is_escaped_in_html_only() -> None:
    assert render("<p>{{ name }}</p>", FIELDS, html=True) == "<p>Ada &lt;b&gt;</p>"
    part = Part("text", text="{{ name }}", subject="{{ name }}", html="<i>{{ name }}</i>")
    done = render_part(part, "ada@example.org", FIELDS)
    assert (done.text, done.subject) == ("Ada <b>", "Ada <b>")
    assert done.html == "<i>Ada &lt;b&gt;</i>"


def test_a_missing_field_is_named() -> None:
    for source in ("{{ nam }}", "{% if nam %}x{% endif %}", "{{ nam|upper }}", "{{ nam.x }}"):
        with pytest.raises(InputError, match="'nam' is undefined"):
            render(source, FIELDS)


def test_the_target_itself_is_known_and_cannot_be_passed_off_as_another() -> None:
    part = Part("text", text="to {{ target }}")
    assert render_part(part, "ada@example.org", {"target": "eve"}).text == "to ada@example.org"


def test_a_subject_stays_one_line_whatever_a_field_holds() -> None:
    part = Part("text", text="x", subject="Hi {{ name }}")
    done = render_part(part, "a", {"name": "Ada\r\nBcc: eve@example.org\u2028x"})
    assert done.subject == "Hi Ada Bcc: eve@example.org x"


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__ }}",
        "{{ name.__class__.__mro__ }}",
        "{{ name['__class__'] }}",
        "{{ name|attr('__class__') }}",
        "{{ ''|attr('__class__')|attr('__mro__') }}",
        "{{ self.__init__.__globals__ }}",
        "{{ range.__globals__ }}",
        "{{ (1).__class__.__base__.__subclasses__() }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ '{0.__class__}'|format(1) }}",
        "{{ ''.format_map({}) }}",
        "{{ {}.update({'a': 1}) }}",
        "{{ [1].append(2) }}",
        "{{ dict.fromkeys.__self__.__subclasses__() }}",
        "{% include 'x' %}",
        "{% import 'x' as x %}",
        "{% extends 'x' %}",
        "{{ lipsum() }}",
        "{{ [1, 2]|random }}",
        "{{ cycler('a').__init__.__globals__ }}",
        "{{ joiner.__init__.__globals__ }}",
        "{{ namespace(x=1) }}",
    ],
)
def test_nothing_gets_out_of_the_sandbox(source: str) -> None:
    with pytest.raises(InputError, match=r"^template: "):
        render(source, FIELDS)


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'a' * 1000000000 }}",
        "{{ [1] * 1000000000 }}",
        "{{ 1000000000 * 'a' }}",
        "{{ 9 ** (9 ** 9) }}",
        "{{ 10 ** 1000000000 }}",
        "{{ '%1000000000d' % 1 }}",
        "{{ '%1000000000d'|format(1) }}",
        "{{ '{:1000000000}'.format(1) }}",
        "{{ 'a'|center(1000000000) }}",
        "{{ 'a'.ljust(1000000000) }}",
        "{{ '1'.zfill(1000000000) }}",
        "{{ 'a\\nb'|indent(1000000000) }}",
        "{{ [1]|batch(1000000000, 'x')|list }}",
        "{{ (1).to_bytes(1000000000) }}",
        "{% for a in range(1000000000) %}x{% endfor %}",
        "{% for a in range(1000) %}{% for b in range(1000) %}aaaa{% endfor %}{% endfor %}",
        "{% for a in range(9) %}{% for b in range(9) %}{% for c in range(9) %}"
        "x{% endfor %}{% endfor %}{% endfor %}",
        "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
        "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ name * 3 ** 20 }}",
    ],
)
def test_a_huge_output_is_refused_before_it_exists(source: str) -> None:
    with pytest.raises(InputError, match=r"^template: "):
        render(source, FIELDS)


def test_the_longest_text_is_still_allowed() -> None:
    source = "{% for a in range(1000) %}{{ name }}{% endfor %}"
    assert len(render(source, {"name": "x" * 100})) == LONGEST_TEXT
    with pytest.raises(InputError, match="more than 100000 characters"):
        render(source, {"name": "x" * 101})


@pytest.mark.parametrize(
    "source",
    [
        "{{ name",
        "{% if name %}",
        "{% endif %}",
        "{{ name|nosuchfilter }}",
        "{{ name is nosuchtest }}",
        "{% nosuchtag %}",
        "{{ 1 + }}",
        "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
        "{{ " + "9" * 5000 + " }}",
        "{# never ends",
    ],
    ids=range(10),
)
def test_whatever_does_not_compile_is_an_input_error(source: str) -> None:
    with pytest.raises(InputError, match=r"^template: "):
        render(source, FIELDS)
    with pytest.raises(InputError, match=r"^template: "):
        variables(source)


def test_a_syntax_error_says_on_which_line() -> None:
    with pytest.raises(InputError, match=r"\(line 3\)"):
        variables("one\ntwo\n{% if %}")


@pytest.mark.parametrize(
    "source",
    ["{{ 1 / 0 }}", "{{ name|dictsort }}", "{{ name + 1 }}", "{{ name() }}", "{{ []|max }}"],
)
def test_whatever_fails_while_it_is_filled_in_is_an_input_error(source: str) -> None:
    with pytest.raises(InputError, match=r"^template: "):
        render(source, FIELDS)


def test_the_names_a_template_needs() -> None:
    assert variables("{{ name }} {{ city|upper }} {% if vip %}{{ vip.x }}{% endif %}") == {
        "name",
        "city",
        "vip",
    }
    assert variables("{% for n in range(3) %}{{ n }}{{ loop.index }}{% endfor %}") == set()
    assert variables("{% set a = name %}{{ a }}") == {"name"}
    assert variables("no fields") == set()


def test_a_field_with_a_default_is_not_needed() -> None:
    assert variables("Dear {{ name|default('you') }} of {{ city }}") == {"city"}
    assert variables("{{ name|d('you') }}") == set()
    assert variables("{% if vip is defined %}{{ vip }}{% endif %}") == set()


def test_the_fields_of_a_whole_message_without_the_target() -> None:
    content = Content(
        (
            Part("text", text="{{ a }} {{ target }}", subject="{{ b }}", html="{{ c }}"),
            Part("media", text="{{ d }}", media="m1"),
        )
    )
    assert content_variables(content) == {"a", "b", "c", "d"}


names = st.sampled_from(
    ["name", "city", "target", "range", "dict", "self", "loop", "none", "größe"]
)
sources = st.lists(
    st.one_of(
        st.text("ab %{}()s<&\n\r", max_size=6),
        names.map("{{{{ {} }}}}".format),
        names.map("{{{{-{}-}}}}".format),
        names.map("{{{{ {}|upper }}}}".format),
        st.sampled_from(["{# no #}", "{% raw %}{{ name }}{% endraw %}", "%(name)s", "{{ 'x' }}"]),
    ),
    max_size=8,
).map("".join)


def told(source: str, fields: dict[str, str], html: bool) -> str:
    """The text, or what the author is told instead."""
    try:
        return render(source, fields, html=html)
    except InputError as error:
        return f"InputError: {error}"


@given(sources, st.dictionaries(names, st.text("a<&'%{} ", max_size=4)), st.booleans())
@example("100 % of {{ name }}s", {"name": "%(city)s"}, True)
@example("{{ name }}" * (MOST_BLANKS + 1), {"name": "<"}, True)
@example("{{ self }}", {"self": "a field"}, False)
@example("{{ range }}", {"range": "a field"}, False)
@example("{{ range }}", {}, False)
@example("{{ name }}", {"name": "x" * LONGEST_TEXT}, False)
@example("{{ name }}", {"name": "x" * (LONGEST_TEXT + 1)}, False)
@example("{{ name }}{{ city }}", {"name": "x" * LONGEST_TEXT}, False)
@example("{{ name }}{{ city }}", {"name": "x" * (LONGEST_TEXT + 1)}, False)
@example("{{ \ufb01 }}{{ fi }}", {"\ufb01": "1", "fi": "2"}, False)
def test_a_form_is_filled_in_as_jinja_would(
    source: str, fields: dict[str, str], html: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        short = told(source, fields, html)
        patch.setattr(jinja._Form, "filled_in", lambda *_: None)
        assert told(source, fields, html) == short


def test_a_form_is_filled_in_without_jinja(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(jinja, "_rendered")
    assert render("Dear {{ name }} of\n{{- city }}", FIELDS) == "Dear Ada <b> ofWien"
    assert render("<p>{{ name }}</p>", FIELDS, html=True) == "<p>Ada &lt;b&gt;</p>"


def test_a_field_named_too_often_is_refused_before_the_text_exists() -> None:
    most, more = ("{{ name }}" * count for count in (MOST_BLANKS, MOST_BLANKS + 1))
    assert jinja._compiled(most, html=False).form is not None
    assert jinja._compiled(more, html=False).form is None
    with pytest.raises(InputError, match="more than 100000 characters"):
        render(more, {"name": "x" * 10_000})


def test_a_part_with_nothing_to_fill_in_stays_as_it_is() -> None:
    part = Part("media", text="a caption }}", media="m1")
    assert render_part(part, "ada@example.org", FIELDS) is part
    part = Part("text", text="x", subject="two\nlines")
    assert render_part(part, "ada@example.org", FIELDS).subject == "two lines"
