"""Counters of an extender server, through prometheus-client."""

from __future__ import annotations


class ExtenderMetrics:
    """`labkit_extender_requests_total{verb,code}` and `labkit_extender_request_duration_seconds{verb}`."""

    _BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Histogram

        self.registry = CollectorRegistry()
        self._requests = Counter(
            "labkit_extender_requests", "Requests answered.", ["verb", "code"], registry=self.registry
        )
        self._duration = Histogram(
            "labkit_extender_request_duration_seconds",
            "Time from the last header byte to the last byte of the answer.",
            ["verb"],
            buckets=self._BUCKETS,
            registry=self.registry,
        )

    def observe(self, verb: str, code: int, seconds: float) -> None:
        """Count one answered request."""
        self._requests.labels(verb, str(code)).inc()
        self._duration.labels(verb).observe(seconds)

    def render(self) -> bytes:
        """The text exposition format."""
        from prometheus_client import generate_latest

        return generate_latest(self.registry)
