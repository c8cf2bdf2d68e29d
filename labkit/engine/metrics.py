"""`scheduler_*` metrics by their upstream names, in a registry of their own (spec 01 §13)."""

from __future__ import annotations

from typing import Any

from labkit.engine.cycle import CycleResult
from labkit.framework.node_info import QueuedPodInfo


def _exponential(start: float, factor: float, count: int) -> list[float]:
    return [start * factor**i for i in range(count)]


class Metrics:
    """What the scheduler and its queue count. `render()` gives the text exposition format."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = CollectorRegistry()
        made: dict[str, Any] = {"registry": self.registry}
        self._attempts = Counter(
            "scheduler_schedule_attempts", "Attempts by result.", ["result", "profile"], **made
        )
        self._pod_attempts = Histogram(
            "scheduler_pod_scheduling_attempts",
            "Attempts that a scheduled pod took.",
            buckets=_exponential(1, 2, 5),
            **made,
        )
        self._sli = Histogram(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "Time from a pod's first entry into the active queue to its binding.",
            ["attempts"],
            buckets=_exponential(0.01, 2, 20),
            **made,
        )
        self._incoming = Counter(
            "scheduler_queue_incoming_pods", "Pods that entered a queue.", ["queue", "event"], **made
        )
        self._pending = Gauge("scheduler_pending_pods", "Pods by queue.", ["queue"], **made)
        self._preemptions = Counter("scheduler_preemption_attempts", "Preemption attempts.", **made)
        self._victims = Histogram(
            "scheduler_preemption_victims", "Victims of a preemption.", buckets=_exponential(1, 2, 7), **made
        )

    def attempt(self, profile: str, result: CycleResult, info: QueuedPodInfo) -> None:
        """An attempt that found no node; successes are counted when the pod is bound."""
        if result.node is not None:
            return
        rejected = result.status is not None and result.status.is_rejected
        self._attempts.labels("unschedulable" if rejected else "error", profile).inc()
        if result.fit_error is not None:
            self._preemptions.inc()
        if result.post_filter is not None and result.post_filter.victims:
            self._victims.observe(len(result.post_filter.victims))

    def scheduled(self, profile: str, info: QueuedPodInfo, now: float) -> None:
        """A pod was bound at `now` (Clock seconds)."""
        self._attempts.labels("scheduled", profile).inc()
        self._pod_attempts.observe(info.attempts)
        since = info.initial_attempt_timestamp
        label = str(info.attempts) if info.attempts < 15 else "15+"
        self._sli.labels(label).observe(max(0.0, now - since) if since is not None else 0.0)

    def queue_incoming(self, queue: str, event: str) -> None:
        """A pod entered a queue because of `event`."""
        self._incoming.labels(queue, event).inc()

    def pending(self, counts: dict[str, int]) -> None:
        """Pods by queue, as they stand."""
        for queue, count in counts.items():
            self._pending.labels(queue).set(count)

    def render(self) -> bytes:
        """The text exposition format."""
        from prometheus_client import generate_latest

        return generate_latest(self.registry)
