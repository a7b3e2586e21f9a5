"""HTML read aloud."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.providers.mail.plain import MOST_INSET, plain_text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("", ""),
        ("Hello", "Hello"),
        ("<p>One</p><p>Two</p>", "One\n\nTwo"),
        ("<div>One</div><div>Two</div>", "One\nTwo"),
        ("One<br>Two<br/>Three", "One\nTwo\nThree"),
        ("a\n   b <b>c</b>d", "a b cd"),
        ('<a href="https://x.example/a?b=1&amp;c=2">here</a>.', "here (https://x.example/a?b=1&c=2)."),
        ('<a href="https://x.example">https://x.example</a>', "https://x.example"),
        ('<a href="mailto:bob@x.example">bob@x.example</a>', "bob@x.example"),
        ('<a href="#top">up</a>', "up"),
        ('<a href="https://x.example"><img src="l.png" alt="Logo"></a>', "Logo (https://x.example)"),
        ('<a href="https://x.example"><img src="l.png"></a>', "https://x.example"),
        ("<ul><li>one<li>two</ul>after", "- one\n- two\n\nafter"),
        ("<ol><li>one</li><li>two<ul><li>in</li></ul></li></ol>", "1. one\n2. two\n  - in"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\nc"),
        ("<h1>Big</h1>small", "Big\n\nsmall"),
        ("<pre>a\n  b</pre>", "a\n  b"),
        ("a<hr>b", "a\n\n---\n\nb"),
        ("&lt;b&gt; &amp; &euro; &#228;", "<b> & € ä"),
        ("<head><title>T</title><style>p{}</style></head><body>x</body>", "x"),
        ("<head><title>T</title><body>x", "x"),
        ("a<script>alert('<p>')</script>b<!-- c --><style>x</style>", "ab"),
        ("<p>unclosed <b>bold", "unclosed bold"),
    ],
)  # fmt: skip
def test_what_is_read(html: str, text: str) -> None:
    assert plain_text(html) == text


@given(st.text(alphabet="<>/=\"'&;#ab \n!-[]?pulioscrt", max_size=200))
def test_anything_can_be_read(html: str) -> None:
    assert "\n\n\n" not in plain_text(html)


def test_lists_are_set_in_to_a_depth_only() -> None:
    """Or the text would be as long as the square of the page."""
    pieces = plain_text("<ul><li>" * 1_000).split("\n")
    assert len(pieces) == 1_000
    assert max(piece.index("-") for piece in pieces) == 2 * (MOST_INSET - 1)
    ended = plain_text("<ul><li>" * 20 + "in" + "</ul>" * 19 + "<li>out").split("\n")
    assert ended[-1] == "- out"


def test_no_more_is_read_than_is_wanted() -> None:
    page = "<p>one</p><p>two</p>"
    assert plain_text(page, 6) == "one\n\nt"
    assert plain_text(page, 100) == plain_text(page) == "one\n\ntwo"
    # What would come behind it is not even looked at.
    assert plain_text("<p>one</p><![what[", 3) == "one"
    with pytest.raises(AssertionError):
        plain_text("<p>one</p><![what[")
