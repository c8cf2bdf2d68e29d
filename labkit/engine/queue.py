"""The scheduling queue: active, back-off, error back-off, unschedulable, gated (spec 02)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from labkit.engine.backoff import Backoff
from labkit.engine.calls import call_status
from labkit.engine.framework import Framework
from labkit.engine.hints import FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT, HintMap, Strategy
from labkit.engine.in_flight import InFlight
from labkit.engine.nominator import Nominator
from labkit.engine.queue_heaps import Heap, sort_key
from labkit.engine.queue_view import QueueEntry, QueueView
from labkit.framework.clock import Clock
from labkit.framework.events import ClusterEvent
from labkit.framework.node_info import QueuedPodInfo
from labkit.framework.plugin import plugin_name
from labkit.objects.pod import Pod

__all__ = ["QueueEntry", "QueueView", "SchedulingQueue"]

_FLUSH_PERIOD = 30.0
_MAX_IN_POOL = 300.0
ADDED = "UnschedulablePodAdd"
UPDATED = "UnschedulablePodUpdate"


class SchedulingQueue:
    """Pods that wait, each in exactly one place. Not thread-safe: the scheduler's own thread calls it.

    `initial_backoff` and `max_backoff` in seconds; `metrics`: `labkit.engine.metrics.Metrics` or None.
    """

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
        self._metrics = metrics
        self._backoff = Backoff(clock, initial_backoff, max_backoff)
        self.hints = HintMap(frameworks, metrics)
        self.active = Heap(self._sort_key)
        self.backoff = Heap(lambda i: (self._backoff.expiry(i), self._sort_key(i)))
        self.error_backoff = Heap(self._backoff.expiry)
        self.pool: dict[str, QueuedPodInfo] = {}
        self.in_flight = InFlight()
        self.cycle = 0
        #: Told of every event that a rejected pod was asked about: (pod, event, what came of it).
        self.watchers: list[Callable[[QueuedPodInfo, ClusterEvent, Strategy], Any]] = []
        self._started = clock.now()
        self._flushed_pool = clock.now()
        self.plugins_changed()

    def plugins_changed(self) -> None:
        """Plugins were swapped: read the order of the queue and the event registrations anew."""
        first = next(iter(self._frameworks.values()))
        self._key = sort_key(next(iter(first.plugins("queue_sort")), None))
        self.hints.rebuild()
        for heap in (self.active, self.backoff):
            heap.sort_again()

    def _sort_key(self, info: QueuedPodInfo) -> Any:
        return self._key(info)

    # --- coming in ----------------------------------------------------------------------------------------

    def add(self, pod: Pod) -> None:
        """A pod that is new to this scheduler."""
        self._move_to_active(QueuedPodInfo(pod, self._clock.now()), ADDED)

    def update(self, old: Pod, new: Pod, events: Iterable[ClusterEvent]) -> None:
        """A waiting pod changed; `events` say how (`labkit.engine.event_diff.pod_events`)."""
        if new.uid in self.in_flight:
            for event in events:
                self.in_flight.record(event, old, new)
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
        pooled = self.pool.pop(pod.key, None)
        if pooled is not None:
            self._count_rejectors(pooled, -1)

    def add_unschedulable(self, info: QueuedPodInfo) -> str:
        """A pod comes back from a failed attempt; events that arrived meanwhile are taken into account.

        Returns "", or the reason why it was not taken: it is here already.
        """
        pod = info.pod
        where = self._where(pod.key)
        if where:
            self.done(pod.uid)
            return f"Pod {pod.key} is already present in {where}"
        rejected = bool(info.unschedulable_plugins or info.pending_plugins)
        if rejected:
            info.unschedulable_count += 1
            info.consecutive_errors_count = 0
        else:
            info.consecutive_errors_count += 1
        info.timestamp = self._clock.now()
        info.backoff_expiration = None
        info.was_flushed = False
        self._count_rejectors(info, 1)
        strategy = self._after_events(info) if rejected else Strategy.AFTER_BACKOFF
        self._requeue(info, strategy, "ScheduleAttemptFailure")
        self.done(pod.uid)
        return ""

    def _where(self, key: str) -> str:
        if key in self.pool:
            return "unschedulable queue"
        if self.active.get(key) is not None:
            return "the active queue"
        waiting = self.backoff.get(key) or self.error_backoff.get(key)
        return "the backoff queue" if waiting is not None else ""

    def _after_events(self, info: QueuedPodInfo) -> Strategy:
        found = Strategy.SKIP
        for seen in self.in_flight.events_for(info.pod.uid):
            worth = self.hints.worth(info, seen.event, seen.old, seen.new)
            if worth == Strategy.IMMEDIATELY:
                return worth
            if worth == Strategy.AFTER_BACKOFF:
                found = worth
                if not info.pending_plugins:
                    break
        return found

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
            self._count_rejectors(info, -1)
            return info

    def take(self, key: str) -> QueuedPodInfo | None:
        """Pop one pod out of turn, wherever it waits; None when it is gated, in flight or not here."""
        info = self.active.remove(key) or self.backoff.remove(key) or self.error_backoff.remove(key)
        if info is None:
            info = self.pool.get(key)
            if info is None or info.gated:
                return None
            del self.pool[key]
        if not self.in_flight.start(info.pod.uid):
            return None
        info.attempts += 1
        self.cycle += 1
        self._count_rejectors(info, -1)
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
        started = time.perf_counter()
        self._move([i for i in self.pool.values() if check is None or check(i.pod)], event, old, new)
        if self._metrics is not None:
            self._metrics.event(event.label, time.perf_counter() - started)

    def _move(self, infos: Iterable[QueuedPodInfo], event: ClusterEvent, old: Any, new: Any) -> None:
        for info in infos:
            if not _may_look(info, event):
                continue
            strategy = self.hints.worth(info, event, old, new)
            for watcher in self.watchers:
                watcher(info, event, strategy)
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
            self._put_in_pool(info, label)
            return False
        if strategy == Strategy.AFTER_BACKOFF and self._backoff.is_waiting(info):
            return self._move_to_backoff(info, label)
        return self._move_to_active(info, label)

    def _move_to_active(self, info: QueuedPodInfo, label: str, *, from_backoff: bool = False) -> bool:
        if not from_backoff:
            self._run_pre_enqueue(info)
        key = info.pod.key
        if info.gated:
            if self.active.get(key) is None and self.backoff.get(key) is None:
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
        # The plugin that held it back last time is asked first.
        plugins.sort(key=lambda p: plugin_name(p) != info.gating_plugin)
        for plugin in plugins:
            status = call_status(plugin, "pre_enqueue", info.pod)
            if status is None or status.is_success:
                continue
            name = plugin_name(plugin)
            if name not in info.unschedulable_plugins and self._metrics is not None:
                self._metrics.rejected(name, info.pod.spec.scheduler_name, 1)
            info.unschedulable_plugins.add(name)
            info.gating_plugin, info.gating_message = name, status.message
            info.gating_events = self.hints.events_of(framework.profile_name, name)
            return
        info.gating_plugin, info.gating_message = "", ""
        info.gating_events = []

    # --- time ---------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Move pods whose back-off is over, and those that waited five minutes; called at every whole second."""
        for heap in (self.backoff, self.error_backoff):
            while (info := heap.peek()) is not None and not self._backoff.is_waiting(info):
                heap.pop()
                self._move_to_active(info, "BackoffComplete", from_backoff=True)
        now = self._clock.now()
        if now - self._flushed_pool < _FLUSH_PERIOD:
            return
        periods = math.floor((now - self._started) / _FLUSH_PERIOD)
        self._flushed_pool = self._started + periods * _FLUSH_PERIOD
        old = [i for i in self.pool.values() if now - i.timestamp > _MAX_IN_POOL and not i.gated]
        for info in old:
            info.was_flushed = True
        if old:
            self._move(old, UNSCHEDULABLE_TIMEOUT, None, None)

    def next_flush(self) -> float | None:
        """When `flush` will next have something to do, or None."""
        times = [
            self._backoff.expiry(info) + 1.0
            for heap in (self.backoff, self.error_backoff)
            if (info := heap.peek()) is not None
        ]
        # The pool is in the order in which pods came back; gated ones are there for as long as they like.
        oldest = next((i for i in self.pool.values() if not i.gated), None)
        if oldest is not None:
            ready = oldest.timestamp + _MAX_IN_POOL
            periods = math.floor((ready - self._started) / _FLUSH_PERIOD) + 1
            times.append(max(self._started + periods * _FLUSH_PERIOD, self._flushed_pool + _FLUSH_PERIOD))
        return min(times, default=None)

    # --- what is there ------------------------------------------------------------------------------------

    def counts(self) -> dict[str, int]:
        """Pods by queue, as `scheduler_pending_pods` counts them."""
        pooled = list(self.pool.values())
        gated = sum(i.gated for i in pooled)
        return {
            "active": len(self.active),
            "backoff": len(self.backoff) + len(self.error_backoff),
            "unschedulable": len(pooled) - gated,
            "gated": gated,
        }

    def view(self) -> QueueView:
        """A picture of the queue."""
        pooled = sorted(self.pool.values(), key=lambda i: (i.timestamp, i.pod.key))
        waiting = (*self.active, *self.backoff, *self.error_backoff, *self.pool.values())
        nominated = {i.pod.key: self.nominator.node_of(i.pod) for i in waiting}
        return QueueView(
            active=[_entry(i) for i in self.active.ordered()],
            backoff=[_entry(i, self._backoff.expiry(i) + 1.0) for i in self.backoff.ordered()],
            error_backoff=[_entry(i, self._backoff.expiry(i) + 1.0) for i in self.error_backoff.ordered()],
            unschedulable=[_entry(i) for i in pooled if not i.gated],
            gated=[_entry(i) for i in pooled if i.gated],
            in_flight=[],
            nominated={pod: node for pod, node in nominated.items() if node},
            now=self._clock.now(),
        )

    def _count(self, queue: str, event: str) -> None:
        if self._metrics is not None:
            self._metrics.queue_incoming(queue, event)

    def _count_rejectors(self, info: QueuedPodInfo, step: int) -> None:
        if self._metrics is not None:
            for name in info.unschedulable_plugins | info.pending_plugins:
                self._metrics.rejected(name, info.pod.spec.scheduler_name, step)


def _may_look(info: QueuedPodInfo, event: ClusterEvent) -> bool:
    """A gated pod only hears of the events that its gating plugin registered."""
    return not info.gated or any(e.matches(event) for e in info.gating_events)


def _entry(info: QueuedPodInfo, until: float | None = None) -> QueueEntry:
    return QueueEntry(
        info.pod.key,
        info.attempts,
        info.timestamp,
        until,
        sorted(info.unschedulable_plugins | info.pending_plugins),
        info.gating_plugin,
        info.gating_message,
    )
