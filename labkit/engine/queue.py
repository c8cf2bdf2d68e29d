"""The scheduling queue: active, back-off, error back-off, unschedulable, gated (spec 02)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from labkit.engine.framework import Framework
from labkit.engine.hints import FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT, HintMap, Strategy
from labkit.engine.in_flight import InFlight
from labkit.engine.nominator import Nominator
from labkit.engine.queue_heaps import Heap, sort_key
from labkit.framework.clock import Clock
from labkit.framework.events import ClusterEvent
from labkit.framework.node_info import QueuedPodInfo
from labkit.framework.plugin import plugin_name
from labkit.objects.pod import Pod

_FLUSH_PERIOD = 30.0
_MAX_IN_POOL = 300.0
ADDED = "UnschedulablePodAdd"
UPDATED = "UnschedulablePodUpdate"


@dataclass
class QueueEntry:
    """One pod as the queue view shows it; times in Clock seconds."""

    pod: str
    attempts: int
    since: float
    until: float | None = None
    plugins: list[str] = field(default_factory=list)
    reason: str = ""


@dataclass
class QueueView:
    """Everything that is visible of the queue, each list in the order in which pods would leave it."""

    active: list[QueueEntry]
    backoff: list[QueueEntry]
    error_backoff: list[QueueEntry]
    unschedulable: list[QueueEntry]
    gated: list[QueueEntry]
    in_flight: list[str]
    nominated: dict[str, str]
    now: float


class SchedulingQueue:
    """Pods that wait, each in exactly one place. Not thread-safe: the scheduler's own thread calls it."""

    def __init__(
        self,
        frameworks: Mapping[str, Framework],
        clock: Clock,
        nominator: Nominator,
        *,
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
        metrics: Any = None,
    ) -> None:
        self._frameworks = frameworks
        self._clock = clock
        self.nominator = nominator
        self._initial = initial_backoff
        self._max = max_backoff
        self._metrics = metrics
        first = next(iter(frameworks.values()))
        by_sort = sort_key(next(iter(first.plugins("queue_sort")), None))
        self.active = Heap(by_sort)
        self.backoff = Heap(lambda i: (self._expiry(i), by_sort(i)))
        self.error_backoff = Heap(lambda i: self._expiry(i))
        self.pool: dict[str, QueuedPodInfo] = {}
        self.in_flight = InFlight()
        self.hints = HintMap(frameworks)
        self.cycle = 0
        self._started = clock.now()
        self._flushed_second = math.floor(clock.now())
        self._flushed_pool = clock.now()

    # --- coming in ----------------------------------------------------------------------------------------

    def add(self, pod: Pod) -> None:
        """A pod that is new to this scheduler."""
        info = QueuedPodInfo(pod, self._clock.now())
        self._move_to_active(info, ADDED)

    def update(self, old: Pod, new: Pod, events: Iterable[ClusterEvent]) -> None:
        """A waiting pod changed."""
        if new.uid in self.in_flight:
            for event in events:
                self.in_flight.record(event, old, new, new.uid)
            return
        for heap in (self.active, self.backoff, self.error_backoff):
            info = heap.get(new.key)
            if info is not None:
                info.pod = new
                heap.push(info)
                self.nominator.update(old, new)
                return
        info = self.pool.get(new.key)
        if info is None:
            self._move_to_active(QueuedPodInfo(new, self._clock.now()), UPDATED)
            return
        info.pod = new
        self.nominator.update(old, new)
        for event in events:
            if self._requeue(info, self.hints.worth(info, event, old, new), event.label):
                return

    def delete(self, pod: Pod) -> None:
        """The pod is gone, or has a node."""
        self.nominator.delete(pod)
        for heap in (self.active, self.backoff, self.error_backoff):
            heap.remove(pod.key)
        self.pool.pop(pod.key, None)

    def add_unschedulable(self, info: QueuedPodInfo) -> None:
        """A pod comes back from a failed attempt; events that arrived meanwhile are taken into account."""
        pod = info.pod
        present = pod.key in self.pool or any(
            h.get(pod.key) for h in (self.active, self.backoff, self.error_backoff)
        )
        if present:
            self.done(pod.uid)
            return
        rejected = bool(info.unschedulable_plugins or info.pending_plugins)
        if rejected:
            info.unschedulable_count += 1
            info.consecutive_errors_count = 0
        else:
            info.consecutive_errors_count += 1
        info.timestamp = self._clock.now()
        info.backoff_expiration = None
        info.was_flushed = False
        strategy = Strategy.SKIP
        if not rejected:
            strategy = Strategy.AFTER_BACKOFF
        else:
            for seen in self.in_flight.events_for(pod.uid):
                worth = self.hints.worth(info, seen.event, seen.old, seen.new)
                if worth == Strategy.IMMEDIATELY:
                    strategy = worth
                    break
                if worth == Strategy.AFTER_BACKOFF:
                    strategy = worth
                    if not info.pending_plugins:
                        break
        self._requeue(info, strategy, "ScheduleAttemptFailure")
        self.done(pod.uid)

    # --- going out ----------------------------------------------------------------------------------------

    def pop(self) -> QueuedPodInfo | None:
        """The next pod: the active queue's first, else the back-off queue's first before its time; None when idle."""
        while True:
            info = self.active.pop()
            if info is None:
                info = self.backoff.pop()
                if info is None:
                    return None
                self._count("active", "PopFromBackoffQ")
            info.attempts += 1
            if not self.in_flight.start(info.pod.uid):
                continue
            self.cycle += 1
            return info

    def done(self, uid: str) -> None:
        """The pod's cycle is over as far as events are concerned."""
        self.in_flight.done(uid)

    # --- moving -------------------------------------------------------------------------------------------

    def move_all(
        self, event: ClusterEvent, old: Any, new: Any, check: Callable[[Pod], bool] | None = None
    ) -> None:
        """Something happened in the cluster: requeue the rejected pods that it may help."""
        if not self.hints.anyone_interested(event):
            return
        self._move([i for i in self.pool.values() if check is None or check(i.pod)], event, old, new)

    def _move(self, infos: Iterable[QueuedPodInfo], event: ClusterEvent, old: Any, new: Any) -> None:
        for info in list(infos):
            if info.gated and not event.is_wildcard and not any(e.matches(event) for e in info.gating_events):
                continue
            if info.gated and event.is_wildcard:
                continue
            strategy = self.hints.worth(info, event, old, new)
            if strategy != Strategy.SKIP:
                self.pool.pop(info.pod.key, None)
                self._requeue(info, strategy, event.label)
        self.in_flight.record(event, old, new)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move pods to the active queue whatever their back-off."""
        for pod in pods:
            pooled = self.pool.get(pod.key)
            waiting = pooled or self.backoff.get(pod.key) or self.error_backoff.get(pod.key)
            if waiting is not None:
                self._move_to_active(waiting, "ForceActivate", from_backoff=pooled is None)
            elif pod.uid in self.in_flight:
                self.in_flight.record(FORCE_ACTIVATE, None, pod)

    def _requeue(self, info: QueuedPodInfo, strategy: Strategy, label: str) -> bool:
        """True when the pod is now in the active or back-off queue."""
        if strategy == Strategy.SKIP:
            if info.pod.key not in self.pool:
                self._count("unschedulable", label)
            self.pool[info.pod.key] = info
            return False
        if strategy == Strategy.AFTER_BACKOFF and self._backing_off(info):
            return self._move_to_backoff(info, label)
        return self._move_to_active(info, label)

    def _move_to_active(self, info: QueuedPodInfo, label: str, *, from_backoff: bool = False) -> bool:
        if not from_backoff:
            self._run_pre_enqueue(info)
        key = info.pod.key
        if info.gated:
            if not (self.active.get(key) or self.backoff.get(key)):
                self._put_in_pool(info, label)
            return False
        if info.initial_attempt_timestamp is None:
            info.initial_attempt_timestamp = self._clock.now()
        self.pool.pop(key, None)
        self.backoff.remove(key)
        self.error_backoff.remove(key)
        self.active.push(info)
        self._count("active", label)
        if label in (ADDED, UPDATED):
            self.nominator.add(info.pod)
        return True

    def _move_to_backoff(self, info: QueuedPodInfo, label: str) -> bool:
        self._run_pre_enqueue(info)
        if info.gated:
            self._put_in_pool(info, label)
            return False
        self.pool.pop(info.pod.key, None)
        rejected = info.unschedulable_plugins or info.pending_plugins
        (self.backoff if rejected else self.error_backoff).push(info)
        self._count("backoff", label)
        return True

    def _put_in_pool(self, info: QueuedPodInfo, label: str) -> None:
        if info.pod.key not in self.pool:
            self._count("unschedulable", label)
        self.pool[info.pod.key] = info

    def _run_pre_enqueue(self, info: QueuedPodInfo) -> None:
        framework = self._frameworks.get(info.pod.spec.scheduler_name)
        if framework is None:
            return
        plugins = framework.plugins("pre_enqueue")
        plugins.sort(key=lambda p: plugin_name(p) != info.gating_plugin)
        for plugin in plugins:
            try:
                status = plugin.pre_enqueue(info.pod)
                refused = status is not None and not status.is_success
            except Exception:
                refused = True
            if refused:
                name = plugin_name(plugin)
                info.unschedulable_plugins.add(name)
                info.gating_plugin = name
                info.gating_events = self.hints.events_of(framework.profile_name, name)
                return
        info.gating_plugin = ""
        info.gating_events = []

    # --- back-off -----------------------------------------------------------------------------------------

    def _expiry(self, info: QueuedPodInfo) -> float:
        if self._max == 0:
            return 0.0
        count = info.consecutive_errors_count or info.unschedulable_count
        if count == 0:
            return 0.0
        if info.backoff_expiration is None:
            doubled = self._initial * 2.0 ** min(count - 1, 64)
            info.backoff_expiration = math.floor(info.timestamp + min(doubled, self._max))
        return info.backoff_expiration

    def _backing_off(self, info: QueuedPodInfo) -> bool:
        return self._expiry(info) >= math.floor(self._clock.now())

    def flush(self) -> None:
        """Move pods whose back-off is over, and those that waited five minutes; called at every whole second."""
        for heap in (self.backoff, self.error_backoff):
            while (info := heap.peek()) is not None and not self._backing_off(info):
                heap.pop()
                self._move_to_active(info, "BackoffComplete", from_backoff=True)
        now = self._clock.now()
        if now - self._flushed_pool >= _FLUSH_PERIOD:
            self._flushed_pool = (
                self._started + math.floor((now - self._started) / _FLUSH_PERIOD) * _FLUSH_PERIOD
            )
            old = [i for i in self.pool.values() if now - i.timestamp > _MAX_IN_POOL and not i.gated]
            for info in old:
                info.was_flushed = True
            if old:
                self._move(old, UNSCHEDULABLE_TIMEOUT, None, None)

    def next_flush(self) -> float | None:
        """When `flush` will next have something to do, or None."""
        times = [
            self._expiry(info) + 1.0
            for heap in (self.backoff, self.error_backoff)
            if (info := heap.peek()) is not None
        ]
        waiting = [i.timestamp for i in self.pool.values() if not i.gated]
        if waiting:
            ready = min(waiting) + _MAX_IN_POOL
            periods = math.floor((ready - self._started) / _FLUSH_PERIOD) + 1
            times.append(max(self._started + periods * _FLUSH_PERIOD, self._flushed_pool + _FLUSH_PERIOD))
        return min(times, default=None)

    # --- what is there ------------------------------------------------------------------------------------

    def counts(self) -> dict[str, int]:
        """Pods by queue, as `scheduler_pending_pods` counts them."""
        gated = sum(i.gated for i in self.pool.values())
        return {
            "active": len(self.active),
            "backoff": len(self.backoff) + len(self.error_backoff),
            "unschedulable": len(self.pool) - gated,
            "gated": gated,
        }

    def view(self) -> QueueView:
        """A picture of the queue."""
        pooled = sorted(self.pool.values(), key=lambda i: (i.timestamp, i.pod.key))
        return QueueView(
            active=[self._entry(i) for i in self.active.ordered()],
            backoff=[self._entry(i, self._expiry(i) + 1.0) for i in self.backoff.ordered()],
            error_backoff=[self._entry(i, self._expiry(i) + 1.0) for i in self.error_backoff.ordered()],
            unschedulable=[self._entry(i) for i in pooled if not i.gated],
            gated=[self._entry(i) for i in pooled if i.gated],
            in_flight=[],
            nominated={
                p.key: node
                for i in (*self.active, *self.backoff, *self.error_backoff, *self.pool.values())
                if (node := self.nominator.node_of(p := i.pod))
            },
            now=self._clock.now(),
        )

    @staticmethod
    def _entry(info: QueuedPodInfo, until: float | None = None) -> QueueEntry:
        return QueueEntry(
            info.pod.key,
            info.attempts,
            info.timestamp,
            until,
            sorted(info.unschedulable_plugins | info.pending_plugins),
            info.gating_plugin,
        )

    def _count(self, queue: str, event: str) -> None:
        if self._metrics is not None:
            self._metrics.queue_incoming(queue, event)
