"""A lab for tests of the engine: nodes and pods in one line each, plugins whose answers are fixed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labkit.engine.metrics import Metrics
from labkit.engine.trace import Trace
from labkit.framework.events import ClusterEventWithHint
from labkit.framework.plugin import Plugin
from labkit.lab import Lab

#: Priority classes that `pod(priority=...)` names.
PRIORITIES = {"low": -10, "high": 1000, "higher": 2000}


class World:
    """A Lab with shortcuts. Time starts at a whole second; seconds are counted from there."""

    def __init__(
        self, *, config: Any = None, plugins: Any = (), trace: str = "on", gates: Any = None
    ) -> None:
        self.lab = Lab(config=config, plugins=plugins, trace=trace, gates=gates)
        for name, value in PRIORITIES.items():
            self._apply("PriorityClass", name, apiVersion="scheduling.k8s.io/v1", value=value)

    # --- objects --------------------------------------------------------------------------------------------

    def _apply(self, kind: str, name: str, **fields: Any) -> None:
        self.lab.apply({"kind": kind, "metadata": {"name": name, **fields.pop("metadata", {})}, **fields})

    def node(self, name: str = "a", *, cpu: str = "2", labels: Any = None, spec: Any = None) -> None:
        """Create or change a node."""
        self._apply(
            "Node",
            name,
            metadata={"labels": labels or {}},
            spec=spec or {},
            status={"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110"}},
        )

    def pod(
        self, name: str = "p", *, cpu: str = "1", priority: str = "", labels: Any = None, **spec: Any
    ) -> None:
        """Create a pod; keywords are fields of its spec. It ends at once when it is deleted."""
        if priority:
            spec["priorityClassName"] = priority
        box = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        spec = {"terminationGracePeriodSeconds": 0, "containers": [box], **spec}
        self._apply("Pod", name, metadata={"labels": labels or {}}, spec=spec)

    def patch(self, kind: str, name: str, patch: Any, namespace: str | None = None) -> None:
        """Merge a patch into an object."""
        self.lab.client.patch(kind, name, namespace, patch, "merge")
        self.lab.scheduler.pump()

    def delete(self, name: str, kind: str = "Pod") -> None:
        """Delete a pod of the namespace default, or a node."""
        self.lab.delete(kind, name)

    # --- time and attempts ----------------------------------------------------------------------------------

    def at(self, seconds: float) -> None:
        """Let time pass until so many seconds after the beginning; nothing is scheduled meanwhile."""
        self.lab.clock.advance_to(self.lab.clock.start + seconds)
        self.lab.scheduler.pump()

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return round(self.lab.now, 6)

    def step(self) -> Trace | None:
        """One attempt."""
        return self.lab.scheduler.schedule_one()

    # --- what is there --------------------------------------------------------------------------------------

    def where(self, name: str = "p") -> str | None:
        """The queue in which a pod of the namespace default is, `node X` when it is bound, None when it is gone."""
        raw = self.raw(name)
        if raw is None:
            return None
        node = raw["spec"].get("nodeName")
        return f"node {node}" if node else self.lab.queue.find(f"default/{name}")

    def raw(self, name: str = "p") -> Any:
        """The pod as the API shows it, or None."""
        return next((p for p in self.lab.pods("default") if p["metadata"]["name"] == name), None)

    def condition(self, name: str = "p", type_: str = "PodScheduled") -> tuple[str, str, str] | None:
        """(status, reason, message) of a condition."""
        found = (self.raw(name) or {}).get("status", {}).get("conditions", [])
        return next(
            ((c["status"], c.get("reason", ""), c.get("message", "")) for c in found if c["type"] == type_),
            None,
        )

    def events(self, name: str = "p") -> list[tuple[str, str, str]]:
        """(type, reason, text) of a pod's events, in order."""
        return [
            (e.get("type", ""), e.get("reason", ""), e.get("note") or e.get("message") or "")
            for e in self.lab.events(name)
        ]

    def info(self, name: str = "p") -> Any:
        """The queue's own record of a waiting pod."""
        queue, key = self.lab.scheduler.queue, f"default/{name}"
        found = [h.get(key) for h in (queue.active, queue.backoff, queue.error_backoff)]
        return next(i for i in (*found, queue.pool.get(key)) if i is not None)

    @property
    def assumed(self) -> int:
        """Pods that the scheduler counts on a node although the API does not show them there yet."""
        return self.lab.scheduler.cache.assumed_count

    def measured(self) -> Metrics:
        """Count from now on."""
        metrics = Metrics()
        scheduler = self.lab.scheduler
        scheduler.queue._metrics = scheduler.queue.hints._metrics = metrics
        return metrics


class Scripted(Plugin):
    """A plugin whose answers are given: extension point -> answer, exception to raise, or function of the call.

    `calls` lists (plugin, point, pod name) in order. Only the points that are named are served, and no event of
    the cluster brings back what it rejected.
    """

    def __new__(cls, name: str, calls: list[tuple[str, str, str]] | None = None, **answers: Any) -> Any:
        body = {point: _method(point, answer) for point, answer in answers.items()}
        return object.__new__(type(name, (cls,), body))

    def __init__(self, name: str, calls: list[tuple[str, str, str]] | None = None, **answers: Any) -> None:
        super().__init__(None, None)
        self.name = name
        self.calls: list[tuple[str, str, str]] = [] if calls is None else calls

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Nothing helps."""
        return []


def _method(point: str, answer: Any) -> Callable[..., Any]:
    def call(self: Scripted, *args: Any) -> Any:
        pod = next((a.name for a in args if hasattr(a, "spec") and hasattr(a, "key")), "")
        self.calls.append((self.name, point, pod))
        if isinstance(answer, BaseException):
            raise answer
        return answer(*args) if callable(answer) else answer

    return call
