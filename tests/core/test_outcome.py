"""Outcomes: what each answer does to a slot and to the error rate."""

import pytest

from paceline.core.outcome import (
    COUNTS_AS_FAILED,
    COUNTS_AS_SENT,
    REFUSALS,
    Outcome,
    OutcomeKind,
    accepted,
    transient,
    unknown,
    withdrawn,
)

K = OutcomeKind


@pytest.mark.parametrize("kind", OutcomeKind)
def test_only_what_may_be_with_the_provider_keeps_its_slot(kind: OutcomeKind) -> None:
    keeps = kind in {K.ACCEPTED, K.UNKNOWN}
    assert Outcome(kind).refused is not keeps
    assert Outcome(kind).slots == (0 if keeps else -1)
    assert (kind in REFUSALS) is not keeps


def test_the_error_rate_counts_answers_about_messages_and_not_about_the_account() -> None:
    assert {K.ACCEPTED} == COUNTS_AS_SENT
    assert {K.REJECTED, K.BOUNCED, K.TRANSIENT} == COUNTS_AS_FAILED


def test_the_short_forms() -> None:
    assert accepted("id-1") == Outcome(K.ACCEPTED, provider_id="id-1")
    assert withdrawn("closed") == Outcome(K.WITHDRAWN, "closed")
    assert unknown("no answer") == Outcome(K.UNKNOWN, "no answer")
    assert transient("odd", "599") == Outcome(K.TRANSIENT, "odd", "599")


def test_every_kind_of_the_glossary_exists() -> None:
    words = "accepted rejected bounced throttled unavailable unauthorised unknown"
    assert set(words.split()) <= {str(kind) for kind in OutcomeKind}
