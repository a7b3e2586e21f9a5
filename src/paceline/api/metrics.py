"""What Prometheus is told: an observer that counts, and answers when it is asked.

What the library would do with locks and labels each time is done once for every page. Accounts are
a label of counters only. A histogram has a dozen series, which times a thousand accounts would be
more than anybody can read. Where lanes run in processes of their own, these pass on what they have
counted, and all of it stands on the one page of the service.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from paceline import __version__
from paceline.api.talk_metrics import talk_metrics
from paceline.engine.talk_tally import TalkTally
from paceline.engine.tally import Histogram, Tally

CONTENT_TYPE = CONTENT_TYPE_LATEST


class PrometheusObserver(Tally, Collector):
    """Told of every step of the message path; answers with a page of numbers."""

    def __init__(self) -> None:
        super().__init__()
        self._workers = 0
        self._waiting = 0
        self.talk = TalkTally()
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(self)

    def page(self) -> bytes:
        return generate_latest(self._registry)

    def workers_running(self, count: int) -> None:
        self._workers = count

    def accounts_waiting(self, count: int) -> None:
        self._waiting = count

    def collect(self) -> Iterator[Metric]:
        build = GaugeMetricFamily("paceline_build", "The version that runs.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build
        intents = [((account,), count) for account, count in self.intents.items()]
        yield _counter("intents", "Messages about to be sent.", ["account"], intents)
        attempts = [((name, kind.value), count) for (name, kind), count in self.attempts.items()]
        about = "Attempts settled, by what the provider said."
        yield _counter("attempts", about, ["account", "outcome"], attempts)
        moves = [((state.value,), count) for state, count in self.moves.items()]
        about = "What deliveries became when an attempt was settled."
        yield _counter("deliveries", about, ["state"], moves)
        crashes = [((account,), count) for account, count in self.crashes.items()]
        yield _counter("lane_crashes", "Lanes that crashed.", ["account"], crashes)
        about = "Lanes this service runs, its workers' included."
        yield GaugeMetricFamily("paceline_lanes_running", about, self.lanes)
        about = "Processes that run lanes for this service."
        yield GaugeMetricFamily("paceline_workers_running", about, self._workers)
        about = "Accounts that wait for a worker, because there are as many as there may be."
        yield GaugeMetricFamily("paceline_accounts_waiting", about, self._waiting)
        yield from talk_metrics(self.talk)
        yield _told(self.latency, "provider_latency_seconds", "A provider's answer.")
        yield _told(self.commits, "commit_seconds", "One transaction of a group.")
        yield _told(self.groups, "commit_units", "Units of work in one transaction.")


def _told(histogram: Histogram, name: str, about: str) -> Metric:
    buckets, total = [], 0
    for bound, count in zip((*histogram.bounds, float("inf")), histogram.counts, strict=True):
        total += count
        buckets.append((floatToGoString(bound), float(total)))
    return HistogramMetricFamily(f"paceline_{name}", about, buckets, histogram.total)


def _counter(
    name: str, about: str, labels: Sequence[str], counts: Iterable[tuple[Sequence[str], int]]
) -> Metric:
    family = CounterMetricFamily(f"paceline_{name}", about, labels=labels)
    for values, count in counts:
        family.add_metric(values, count)
    return family
