"""What Prometheus is told: an observer that counts, and answers when it is asked.

Every message passes through here several times, in the event loop's own thread; so counting is a
plain addition, and what the library would do with locks and labels each time is done once for every
page. Accounts are a label of counters only. A histogram has a dozen series, which times a thousand
accounts would be more than anybody can read.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
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
from paceline.core.instants import SECOND, Instant
from paceline.core.outcome import Outcome, OutcomeKind
from paceline.core.states import DeliveryState

CONTENT_TYPE = CONTENT_TYPE_LATEST
_LATENCY = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_COMMIT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
_GROUP = (1, 2, 5, 10, 20, 50, 100, 200, 500)


class PrometheusObserver(Collector):
    """Told of every step of the message path; answers with a page of numbers."""

    def __init__(self) -> None:
        self._intents: Counter[str] = Counter()
        self._attempts: Counter[tuple[str, OutcomeKind]] = Counter()
        self._moves: Counter[DeliveryState] = Counter()
        self._crashes: Counter[str] = Counter()
        self._lanes = 0
        self._latency = _Histogram(_LATENCY)
        self._commits = _Histogram(_COMMIT)
        self._groups = _Histogram(_GROUP)
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(self)

    def page(self) -> bytes:
        return generate_latest(self._registry)

    # ------------------------------------------------------------------ counting

    def intended(self, account: str, delivery_id: int, at: Instant) -> None:
        self._intents[account] += 1

    def settled(
        self, account: str, outcome: Outcome, state: DeliveryState, latency_us: int | None
    ) -> None:
        self._attempts[account, outcome.kind] += 1
        self._moves[state] += 1
        if latency_us is not None:
            self._latency.observe(latency_us / SECOND)

    def lanes_running(self, count: int) -> None:
        self._lanes = count

    def lane_crashed(self, account: str) -> None:
        self._crashes[account] += 1

    def committed(self, units: int, took_us: int) -> None:
        self._commits.observe(took_us / SECOND)
        self._groups.observe(units)

    # ------------------------------------------------------------------ telling

    def collect(self) -> Iterator[Metric]:
        build = GaugeMetricFamily("paceline_build", "The version that runs.", labels=["version"])
        build.add_metric([__version__], 1)
        yield build
        intents = [((account,), count) for account, count in self._intents.items()]
        yield _counter("intents", "Messages about to be sent.", ["account"], intents)
        attempts = [((name, kind.value), count) for (name, kind), count in self._attempts.items()]
        about = "Attempts settled, by what the provider said."
        yield _counter("attempts", about, ["account", "outcome"], attempts)
        moves = [((state.value,), count) for state, count in self._moves.items()]
        about = "What deliveries became when an attempt was settled."
        yield _counter("deliveries", about, ["state"], moves)
        crashes = [((account,), count) for account, count in self._crashes.items()]
        yield _counter("lane_crashes", "Lanes that crashed.", ["account"], crashes)
        yield GaugeMetricFamily("paceline_lanes_running", "Lanes this process runs.", self._lanes)
        yield self._latency.told("provider_latency_seconds", "A provider's answer.")
        yield self._commits.told("commit_seconds", "One transaction of a group.")
        yield self._groups.told("commit_units", "Units of work in one transaction.")


class _Histogram:
    """How often a value was at most so large."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def told(self, name: str, about: str) -> Metric:
        buckets, total = [], 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            total += count
            buckets.append((floatToGoString(bound), float(total)))
        return HistogramMetricFamily(f"paceline_{name}", about, buckets, self._sum)


def _counter(
    name: str, about: str, labels: Sequence[str], counts: Iterable[tuple[Sequence[str], int]]
) -> Metric:
    family = CounterMetricFamily(f"paceline_{name}", about, labels=labels)
    for values, count in counts:
        family.add_metric(values, count)
    return family
