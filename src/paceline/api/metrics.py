"""What Prometheus is told: an observer that counts, in a registry of its own.

Accounts are a label of counters only. A histogram has a dozen series, which times a thousand
accounts would be more than anybody can read.
"""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from paceline import __version__
from paceline.core.instants import SECOND, Instant
from paceline.core.outcome import Outcome
from paceline.core.states import DeliveryState

CONTENT_TYPE = CONTENT_TYPE_LATEST
_LATENCY = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_COMMIT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5)
_GROUP = (1, 2, 5, 10, 20, 50, 100, 200, 500)


class PrometheusObserver:
    """Told of every step of the message path; answers with a page of numbers."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._children: dict[tuple[object, ...], Counter] = {}
        ProcessCollector(registry=self.registry)
        build = Gauge(
            "paceline_build", "The version that runs.", ["version"], registry=self.registry
        )
        build.labels(__version__).set(1)
        self._intents = self._counter("intents", "Messages about to be sent.", "account")
        self._attempts = self._counter(
            "attempts", "Attempts settled, by what the provider said.", "account", "outcome"
        )
        self._moves = self._counter(
            "deliveries", "What deliveries became when an attempt was settled.", "state"
        )
        self._crashes = self._counter("lane_crashes", "Lanes that crashed.", "account")
        self._lanes = Gauge(
            "paceline_lanes_running", "Lanes this process runs.", registry=self.registry
        )
        self._latency = self._histogram("provider_latency_seconds", _LATENCY, "A provider's answer")
        self._commits = self._histogram("commit_seconds", _COMMIT, "One transaction of a group")
        self._groups = self._histogram("commit_units", _GROUP, "Units of work in one transaction")

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"paceline_{name}", about, labels, registry=self.registry)

    def _histogram(self, name: str, buckets: tuple[float, ...], about: str) -> Histogram:
        return Histogram(f"paceline_{name}", f"{about}.", registry=self.registry, buckets=buckets)

    def page(self) -> bytes:
        return generate_latest(self.registry)

    def intended(self, account: str, delivery_id: int, at: Instant) -> None:
        self._child(self._intents, account).inc()

    def _child(self, counter: Counter, *labels: str) -> Counter:
        """The counter with these labels. The library checks them anew every time, and every
        message passes through here."""
        place = (counter, *labels)
        child = self._children.get(place)
        if child is None:
            child = self._children[place] = counter.labels(*labels)
        return child

    def settled(
        self, account: str, outcome: Outcome, state: DeliveryState, latency_us: int | None
    ) -> None:
        self._child(self._attempts, account, outcome.kind.value).inc()
        self._child(self._moves, state.value).inc()
        if latency_us is not None:
            self._latency.observe(latency_us / SECOND)

    def lanes_running(self, count: int) -> None:
        self._lanes.set(count)

    def lane_crashed(self, account: str) -> None:
        self._crashes.labels(account).inc()

    def committed(self, units: int, took_us: int) -> None:
        self._commits.observe(took_us / SECOND)
        self._groups.observe(units)
