"""`scheduler_*` metrics by their upstream names, in a registry of their own (spec 01 §13).

Durations are real seconds; what waits on the Clock (back-off, Permit) is measured in the Clock's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from labkit.framework.node_info import QueuedPodInfo


def exponential(start: float, factor: float, count: int) -> list[float]:
    """Bucket bounds: start, start x factor, ... `count` of them."""
    return [start * factor**i for i in range(count)]


#: Histograms: name -> (labels, buckets, help)
_HISTOGRAMS: dict[str, tuple[list[str], list[float], str]] = {
    "scheduling_attempt_duration_seconds": (
        ["result", "profile"],
        exponential(0.001, 2, 15),
        "Time of an attempt, binding included.",
    ),
    "scheduling_algorithm_duration_seconds": ([], exponential(0.001, 2, 15), "Time to decide on a node."),
    "framework_extension_point_duration_seconds": (
        ["extension_point", "status", "profile"],
        exponential(0.0001, 2, 12),
        "Time for all plugins of an extension point.",
    ),
    "plugin_execution_duration_seconds": (
        ["plugin", "extension_point", "status"],
        exponential(0.00001, 1.5, 20),
        "Time of one plugin at one extension point; a sample of the cycles.",
    ),
    "pod_scheduling_attempts": ([], exponential(1, 2, 5), "Attempts that a scheduled pod took."),
    "pod_scheduling_sli_duration_seconds": (
        ["attempts"],
        exponential(0.01, 2, 20),
        "Time from a pod's first entry into the active queue to its binding.",
    ),
    "permit_wait_duration_seconds": (["result"], exponential(0.001, 2, 15), "Time a pod was held by Permit."),
    "preemption_victims": ([], exponential(1, 2, 7), "Victims of a preemption."),
    "preemption_goroutines_duration_seconds": (
        ["result"],
        exponential(0.01, 2, 20),
        "Time of the tasks that delete victims.",
    ),
    "queueing_hint_execution_duration_seconds": (
        ["plugin", "event", "hint"],
        exponential(0.00001, 1.5, 20),
        "Time of a queueing hint function.",
    ),
    "event_handling_duration_seconds": (
        ["event"],
        exponential(0.0001, 2, 12),
        "Time the queue took for a cluster event.",
    ),
}
#: Counters, without the `_total` that the client library adds: name -> (labels, help)
_COUNTERS: dict[str, tuple[list[str], str]] = {
    "schedule_attempts": (["result", "profile"], "Attempts by result."),
    "plugin_evaluation": (["plugin", "extension_point", "profile"], "Calls of a plugin."),
    "preemption_attempts": ([], "Preemption attempts."),
    "preemption_goroutines_execution": (["result"], "Tasks that delete victims."),
    "queue_incoming_pods": (["queue", "event"], "Pods that entered a queue, by what brought them there."),
    "pod_scheduled_after_flush": ([], "Pods scheduled after the flush of the unschedulable pods."),
}
_GAUGES: dict[str, tuple[list[str], str]] = {
    "pending_pods": (["queue"], "Pods by queue."),
    "unschedulable_pods": (["plugin", "profile"], "Waiting pods by the plugin that rejected them."),
    "inflight_events": (["event"], "Events kept for pods that are being scheduled."),
    "cache_size": (["type"], "Nodes, pods and assumed pods in the cache."),
    "goroutines": (["operation"], "Tasks under way."),
}


class Metrics:
    """What the scheduler, its queue and its plugins count. `render()` gives the text exposition format.

    `gauges`, set by the scheduler, gives the values of those gauges that show how things stand.
    """

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

        # kube-scheduler does not write them, and they would be times of the wall clock.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.gauges: Callable[[], Mapping[str, Mapping[str, int]]] = dict
        self._made: dict[str, Any] = {}
        self._children: dict[tuple[str, ...], Any] = {}
        for name, (labels, buckets, text) in _HISTOGRAMS.items():
            self._made[name] = Histogram(
                f"scheduler_{name}", text, labels, buckets=buckets, registry=self.registry
            )
        for name, (labels, text) in _COUNTERS.items():
            self._made[name] = Counter(f"scheduler_{name}", text, labels, registry=self.registry)
        for name, (labels, text) in _GAUGES.items():
            self._made[name] = Gauge(f"scheduler_{name}", text, labels, registry=self.registry)

    def _child(self, name: str, *labels: str) -> Any:
        found = self._children.get((name, *labels))
        if found is None:
            metric = self._made[name]
            found = self._children[name, *labels] = metric.labels(*labels) if labels else metric
        return found

    # --- attempts -------------------------------------------------------------------------------------------

    def attempt(self, profile: str, result: str, seconds: float) -> None:
        """An attempt ended: "scheduled", "unschedulable" or "error"."""
        self._child("schedule_attempts", result, profile).inc()
        self._child("scheduling_attempt_duration_seconds", result, profile).observe(seconds)

    def scheduled(self, profile: str, info: QueuedPodInfo, now: float, seconds: float) -> None:
        """A pod was bound at `now` (Clock seconds) by an attempt that took `seconds`."""
        self.attempt(profile, "scheduled", seconds)
        self._child("pod_scheduling_attempts").observe(info.attempts)
        since = now if info.initial_attempt_timestamp is None else info.initial_attempt_timestamp
        label = str(info.attempts) if info.attempts < 15 else "15+"
        self._child("pod_scheduling_sli_duration_seconds", label).observe(max(0.0, now - since))

    def algorithm(self, seconds: float) -> None:
        """A decision took so long."""
        self._child("scheduling_algorithm_duration_seconds").observe(seconds)

    def permit_wait(self, result: str, seconds: float) -> None:
        """A pod was held by Permit for so long (Clock seconds)."""
        self._child("permit_wait_duration_seconds", result).observe(seconds)

    # --- plugins --------------------------------------------------------------------------------------------

    def extension_point(self, point: str, status: str, profile: str, seconds: float) -> None:
        """All plugins of an extension point ran."""
        self._child("framework_extension_point_duration_seconds", point, status, profile).observe(seconds)

    def plugin(self, plugin: str, point: str, status: str, seconds: float) -> None:
        """One plugin ran, in a cycle that is sampled."""
        self._child("plugin_execution_duration_seconds", plugin, point, status).observe(seconds)

    def evaluated(self, plugin: str, point: str, profile: str, times: int = 1) -> None:
        """One plugin was called."""
        self._child("plugin_evaluation", plugin, point, profile).inc(times)

    def preemption_attempt(self) -> None:
        """DefaultPreemption's PostFilter was called."""
        self._child("preemption_attempts").inc()

    def preemption(self, victims: int) -> None:
        """A preemption chose so many victims."""
        self._child("preemption_victims").observe(victims)

    def preemption_task(self) -> None:
        """Victims are about to be deleted. Recorded at the start, as upstream does: it always "succeeds" at once."""
        self._child("preemption_goroutines_execution", "success").inc()
        self._child("preemption_goroutines_duration_seconds", "success").observe(0.0)

    # --- the queue ------------------------------------------------------------------------------------------

    def queue_incoming(self, queue: str, event: str) -> None:
        """A pod entered a queue because of `event`."""
        self._child("queue_incoming_pods", queue, event).inc()

    def rejected(self, plugin: str, profile: str, step: int) -> None:
        """One more (or fewer) waiting pod that `plugin` rejected."""
        self._child("unschedulable_pods", plugin, profile).inc(step)

    def hint(self, plugin: str, event: str, hint: str, seconds: float) -> None:
        """A queueing hint answered "Queue", "QueueSkip" or "Error"."""
        self._child("queueing_hint_execution_duration_seconds", plugin, event, hint).observe(seconds)

    def event(self, event: str, seconds: float) -> None:
        """The queue dealt with a cluster event."""
        self._child("event_handling_duration_seconds", event).observe(seconds)

    # --- reading --------------------------------------------------------------------------------------------

    def _refresh(self) -> None:
        events = self._made["inflight_events"]
        events.clear()
        for name, values in self.gauges().items():
            for label, value in values.items():
                self._made[name].labels(label).set(value)

    def render(self) -> bytes:
        """The text exposition format."""
        from prometheus_client import generate_latest

        self._refresh()
        return generate_latest(self.registry)

    def value(self, name: str, **labels: str) -> float:
        """One sample by its full name, such as `scheduler_schedule_attempts_total`; 0 when there is none."""
        self._refresh()
        found = self.registry.get_sample_value(name, labels)
        return 0.0 if found is None else float(found)

    def samples(self) -> dict[str, float]:
        """Every sample by its full name, labels as the text format writes them: `scheduler_x{queue="active"}`."""
        self._refresh()
        found: dict[str, float] = {}
        for metric in self.registry.collect():
            for s in metric.samples:
                labels = ",".join(f'{name}="{value}"' for name, value in s.labels.items())
                found[f"{s.name}{{{labels}}}" if labels else s.name] = float(s.value)
        return found

    def __str__(self) -> str:
        return self.render().decode()
