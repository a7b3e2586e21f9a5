"""Reports: only the provider's own are believed, and nothing anybody sends breaks anything."""

from __future__ import annotations

import hmac
import json
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.core.errors import InputError
from paceline.engine.ports import Accepted, AccountNews, Inbound, Receipt, Typing, Webhooks
from tests.providers.conformance.case import Case, Proof, Reports, Sample
from tests.providers.conformance.cases import CASES

TOLD = [case for case in CASES if case.reports is not None]


def _reports(case: Case) -> Reports:
    assert case.reports is not None
    return case.reports


WAYS = [(case, way) for case in TOLD for way in _reports(case).settings]
SIGNED = [case for case in TOLD if "signature" in _reports(case).settings]
SAMPLES = [(case, sample) for case in TOLD for sample in _reports(case).samples]
NOTHING = [(case, body) for case in TOLD for body in _reports(case).nothing]


def names(value: object) -> str:
    return str(getattr(value, "name", value))[:40]


def as_bytes(body: Any) -> bytes:
    return json.dumps(body).encode()


def sent(reports: Reports, way: str, body: Any) -> bytes:
    """A report as the provider sends it to an account that is proved to in this way."""
    return as_bytes(reports.enclose(way, reports.settings[way], body))


def any_settings(reports: Reports) -> Any:
    return next(iter(reports.settings.values()))


@pytest.mark.parametrize(("case", "way"), WAYS, ids=names)
def test_what_the_provider_sends_is_believed(case: Case, way: str) -> None:
    reports = _reports(case)
    webhooks, settings = reports.webhooks(), reports.settings[way]
    for sample in reports.samples:
        body = sent(reports, way, sample.body)
        headers, query = reports.prove(way, settings, body)
        assert webhooks.verify(settings, headers, body, query)
        louder = {name.upper(): value for name, value in headers.items()}
        assert webhooks.verify(settings, louder, body, query), "headers know no capitals"


@pytest.mark.parametrize(("case", "way"), WAYS, ids=names)
def test_what_somebody_else_sends_is_not(case: Case, way: str) -> None:
    reports = _reports(case)
    webhooks, settings = reports.webhooks(), reports.settings[way]
    body = as_bytes(reports.samples[0].body)
    headers, query = reports.prove(way, settings, body)
    assert not webhooks.verify(settings, {}, body, {})
    for odd in ("", "x", "sha256=", "ß" * 64, "\ud800", "0" * 64):
        wrong = Proof(dict.fromkeys(headers, odd), dict.fromkeys(query, odd))
        assert not webhooks.verify(settings, wrong.headers, body, wrong.query), odd
    cut = Proof(
        {name: value[:-1] for name, value in headers.items()},
        {name: value[:-1] for name, value in query.items()},
    )
    assert not webhooks.verify(settings, cut.headers, body, cut.query)


@pytest.mark.parametrize(("case", "way"), WAYS, ids=names)
def test_a_proof_is_compared_in_constant_time(
    case: Case, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All hangs on the comparison that takes as long for a wrong guess as for a better one."""
    reports = _reports(case)
    webhooks, settings = reports.webhooks(), reports.settings[way]
    body = sent(reports, way, reports.samples[0].body)
    headers, query = reports.prove(way, settings, body)
    assert webhooks.verify(settings, headers, body, query)
    monkeypatch.setattr(hmac, "compare_digest", lambda *_: False)
    assert not webhooks.verify(settings, headers, body, query)


@pytest.mark.parametrize(("case", "way"), WAYS, ids=names)
def test_a_proof_of_another_kind_is_none(case: Case, way: str) -> None:
    reports = _reports(case)
    webhooks, settings = reports.webhooks(), reports.settings[way]
    for other, theirs in reports.settings.items():
        body = sent(reports, other, reports.samples[0].body)
        headers, query = reports.prove(other, theirs, body)
        assert webhooks.verify(settings, headers, body, query) == (other == way)


@pytest.mark.parametrize(("case", "way"), WAYS, ids=names)
def test_without_a_secret_nobody_is_believed(case: Case, way: str) -> None:
    reports = _reports(case)
    body = sent(reports, way, reports.samples[0].body)
    headers, query = reports.prove(way, reports.settings[way], body)
    assert not reports.webhooks().verify(reports.unproved, headers, body, query)
    empty = dict.fromkeys(headers, "")
    assert not reports.webhooks().verify(reports.unproved, empty, body, dict.fromkeys(query, ""))
    assert reports.webhooks().proves(reports.settings[way])
    assert not reports.webhooks().proves(reports.unproved), "only the address is left to prove it"


@pytest.mark.parametrize("case", SIGNED, ids=str)
def test_a_signature_is_about_every_byte(case: Case) -> None:
    reports = _reports(case)
    webhooks, settings = reports.webhooks(), reports.settings["signature"]
    body = as_bytes(reports.samples[0].body)
    headers, query = reports.prove("signature", settings, body)
    for changed in (body + b" ", body[:-1], body.replace(b"Y", b"Z", 1), b""):
        assert not webhooks.verify(settings, headers, changed, query)


@pytest.mark.parametrize(("case", "sample"), SAMPLES, ids=names)
def test_a_report_is_read(case: Case, sample: Sample) -> None:
    reports = _reports(case)
    for way, settings in reports.settings.items():
        news = reports.webhooks().parse(settings, sent(reports, way, sample.body))
        assert news == sample.news


@pytest.mark.parametrize("case", TOLD, ids=str)
def test_every_kind_of_news_is_shown(case: Case) -> None:
    """Messages of people, in groups too, and our own; how far ours got; how the account stands."""
    reports = _reports(case)
    news = [one for sample in reports.samples for one in sample.news]
    inbound = [one for one in news if isinstance(one, Inbound)]
    assert {one.from_us for one in inbound} == {True, False}
    assert any(one.group for one in inbound) == reports.groups
    states = {one.state for one in news if isinstance(one, Receipt)}
    assert states == reports.states
    named = any(isinstance(one, Receipt) and one.key for one in news)
    assert named == reports.names_ours
    standings = {one.state for one in news if isinstance(one, AccountNews)}
    assert standings == ({"ready", "offline", "refused"} if reports.standings else set())


@pytest.mark.parametrize(("case", "body"), NOTHING, ids=lambda value: str(value)[:40])
def test_what_is_of_no_interest_says_nothing(case: Case, body: Any) -> None:
    reports = _reports(case)
    for settings in reports.settings.values():
        assert reports.webhooks().parse(settings, as_bytes(body)) == []


def parses(webhooks: Webhooks, settings: Any, body: bytes) -> None:
    try:
        news = webhooks.parse(settings, body)
    except InputError as error:
        assert str(error)
        return
    for one in news:
        assert isinstance(one, Inbound | Accepted | Receipt | AccountNews | Typing)
        assert isinstance(one.at, int) and one.at >= 0


@pytest.mark.parametrize("case", TOLD, ids=str)
@given(body=st.binary(max_size=200))
def test_garbage_is_an_input_error_and_nothing_else(case: Case, body: bytes) -> None:
    reports = _reports(case)
    parses(reports.webhooks(), any_settings(reports), body)


@pytest.mark.parametrize("case", TOLD, ids=str)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"7",
        b'"x"',
        b"{",
        b"\xff\xfe",
        b"\x00",
        b"[" * 100_000,
        b"9" * 5_000,
        b"<html>",
    ],
    ids=lambda body: repr(body[:6]),
)
def test_what_cannot_be_a_report_is_refused(case: Case, body: bytes) -> None:
    reports = _reports(case)
    with pytest.raises(InputError):
        reports.webhooks().parse(any_settings(reports), body)


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


def places(body: Any) -> list[tuple[Any, Any]]:
    """Wherever a report says something, however far down."""
    keys = sorted(body) if isinstance(body, dict) else range(len(body))
    inner = (body[key] for key in keys if isinstance(body[key], dict | list))
    return [*((body, key) for key in keys), *(place for one in inner for place in places(one))]


ODD = (None, True, 7, -1, 1.5, 10**30, "", "x", "7", [], [7], [{}], {}, {"a": 7})


@pytest.mark.parametrize(("case", "sample"), SAMPLES, ids=names)
def test_a_report_with_something_odd_anywhere_breaks_nothing(case: Case, sample: Sample) -> None:
    body, reports = json.loads(json.dumps(sample.body)), _reports(case)
    webhooks, settings = reports.webhooks(), any_settings(reports)
    for place, key in places(body):
        meant = place[key]
        for odd in ODD:
            place[key] = odd
            parses(webhooks, settings, as_bytes(body))
        place[key] = meant


@pytest.mark.parametrize(("case", "sample"), SAMPLES, ids=names)
@hypothesis.settings(max_examples=20)  # of each of a hundred reports
@given(choice=st.data())
def test_a_report_with_anything_in_it_breaks_nothing(
    case: Case, sample: Sample, choice: st.DataObject
) -> None:
    """Any value of a real report is replaced by anything, or left out."""
    body = json.loads(json.dumps(sample.body))
    place, key = choice.draw(st.sampled_from(places(body)), label="place")
    if choice.draw(st.booleans(), label="left out"):
        del place[key]
    else:
        place[key] = choice.draw(anything, label="anything")
    reports = _reports(case)
    parses(reports.webhooks(), any_settings(reports), as_bytes(body))


@pytest.mark.parametrize("case", TOLD, ids=str)
def test_handshakes(case: Case) -> None:
    reports = _reports(case)
    for query, answer in reports.challenges:
        for settings in reports.settings.values():
            assert reports.webhooks().challenge(settings, query) == answer
    assert reports.webhooks().challenge(reports.unproved, {}) is None
