"""The part of the page of numbers that is about conversations."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.utils import floatToGoString

from paceline.engine.talk_tally import TalkTally

ANSWERED_BY = {"auto": "responder", "human": "person", "muted": "nobody"}


def talk_metrics(tally: TalkTally) -> Iterator[Metric]:
    about = "Turns that are in the making or on their way, in all processes."
    turns = GaugeMetricFamily("paceline_turns_active", about, labels=["state"])
    for state, count in tally.turns.items():
        turns.add_metric([state], count)
    yield turns
    about = "Conversations where something waits, by who is to answer."
    waiting = GaugeMetricFamily("paceline_conversations_waiting", about, labels=["for"])
    about = "How long the oldest message waits, by who is to answer."
    oldest = GaugeMetricFamily("paceline_oldest_waiting_seconds", about, labels=["for"])
    for mode, who in ANSWERED_BY.items():
        waiting.add_metric([who], tally.waiting.get(mode, 0))
        oldest.add_metric([who], tally.oldest_s.get(mode, 0))
    yield from (waiting, oldest)
    about = "Turns by the way to answer, and what came of them."
    answers = CounterMetricFamily("paceline_answers", about, labels=["way", "outcome"])
    for (way, outcome), count in tally.answers.items():
        answers.add_metric([way, outcome], count)
    yield answers
    buckets, total = [], 0
    bounds = (*tally.took.bounds, float("inf"))
    for bound, count in zip(bounds, tally.took.counts, strict=True):
        total += count
        buckets.append((floatToGoString(bound), float(total)))
    about = "From the first message of a turn to its answer."
    yield HistogramMetricFamily("paceline_answer_seconds", about, buckets, tally.took.total)
    about = "Turns that this process began."
    yield CounterMetricFamily("paceline_turns_acquired", about, value=tally.acquired)
    about = "Turns that another process began first."
    yield CounterMetricFamily("paceline_turns_already_held", about, value=tally.already_held)
    about = "Turns that were gone on with because their process had left them."
    yield CounterMetricFamily("paceline_turns_stale_cleaned", about, value=tally.stale_cleaned)
