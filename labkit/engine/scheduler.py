"""The scheduler: takes notifications, decides pod by pod, binds (spec 01 §3, §8, §9).

One thread calls it. Notifications, verdicts about held pods and activations may come from any thread: they are put
aside and handled by `pump`, which every method calls.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from labkit.config import FeatureGates, SchedulerConfig, load_config
from labkit.engine.binding import Binding
from labkit.engine.build import build_frameworks
from labkit.engine.cache import Cache
from labkit.engine.cycle import Settings, schedule_pod
from labkit.engine.failures import Failures
from labkit.engine.feasible import Rotation
from labkit.engine.framework import Framework
from labkit.engine.handlers import Handlers
from labkit.engine.informer import ALL_KINDS, Informer
from labkit.engine.nominator import Nominator
from labkit.engine.notes import event_note
from labkit.engine.pod_groups import PodGroups
from labkit.engine.queue import QueueView, SchedulingQueue
from labkit.engine.recorder import Recorder
from labkit.engine.services import Services
from labkit.engine.trace import Trace
from labkit.engine.waiting import WaitingPods
from labkit.framework.clock import Clock, Timer, VirtualClock
from labkit.framework.cycle_state import CycleState
from labkit.framework.node_info import QueuedPodInfo
from labkit.framework.plugin import plugin_name
from labkit.framework.status import Status
from labkit.objects.meta import RawObject
from labkit.objects.pod import Pod
from labkit.plugins._preemption_executor import ApiPreemption


class Scheduler:
    """kube-scheduler over a cluster client (`labkit.cluster.client.ClusterClient`).

    `config`: YAML, JSON, dict or SchedulerConfig; `plugins`: extra plugin classes or objects; `trace`: "full"
    (every filter alone as well), "on" or "off"; `extenders`: objects of `labkit.engine.extender_api.Extender`.
    ConfigError when the configuration is refused.
    """

    def __init__(
        self,
        client: Any,
        config: Any = None,
        *,
        clock: Clock | None = None,
        plugins: Iterable[Any] = (),
        gates: FeatureGates | None = None,
        seed: int = 0,
        trace: str = "on",
        extenders: Iterable[Any] = (),
        metrics: Any = None,
        keep_traces: int = 1000,
    ) -> None:
        self.client = client
        self.clock: Clock = clock if clock is not None else VirtualClock()
        self.config = config if isinstance(config, SchedulerConfig) else load_config(config, gates=gates)
        self.cache = Cache()
        self.informer = Informer()
        self.nominator = Nominator(self._is_waiting)
        self.waiting = WaitingPods()
        self.metrics = metrics
        self.recorder = Recorder(client, self.clock)
        self.services = Services(
            clock=self.clock,
            objects=self.informer,
            client=client,
            nominator=self.nominator,
            waiting=self.waiting,
            extenders=list(extenders),
            metrics=metrics,
            activate=self._activate,
            record_event=self.recorder.record,
            cancel_in_memory=self._cancel_in_memory,
        )
        self.frameworks: Mapping[str, Framework] = build_frameworks(
            self.config, self.services, gates, plugins
        )
        self.queue = SchedulingQueue(
            self.frameworks,
            self.clock,
            self.nominator,
            initial_backoff=float(self.config.pod_initial_backoff_seconds),
            max_backoff=float(self.config.pod_max_backoff_seconds),
            metrics=metrics,
        )
        self.handlers = Handlers(self.cache, self.queue, self.informer, self.waiting, self.frameworks)
        self.failures = Failures(
            client, self.clock, self.queue, self.nominator, self.handlers, self.recorder, metrics
        )
        self.binding = Binding(
            client,
            self.clock,
            self.cache,
            self.queue,
            self.waiting,
            self.recorder,
            self.failures,
            metrics,
        )
        self.settings = Settings(
            rotation=Rotation(),
            percentage_of_nodes_to_score=self.config.percentage_of_nodes_to_score,
            rng=random.Random(seed),
        )
        self.pod_groups = PodGroups(self) if gates is not None and gates.enabled("GenericWorkload") else None
        self.trace_mode = trace
        self.traces: deque[Trace] = deque(maxlen=keep_traces)
        self._inbox: deque[tuple[RawObject | None, RawObject | None]] = deque()
        self._background: deque[Callable[[], None]] = deque()
        self._flush_timer: tuple[float, Timer] | None = None
        self._executor = ApiPreemption(self._defer_preemption, self._victim_gone)
        self._install_executor()
        if metrics is not None:
            metrics.gauges = self.gauges

    # --- notifications --------------------------------------------------------------------------------------

    def notify(self, old: RawObject | None, new: RawObject | None) -> None:
        """An object was created (old None), changed, or deleted (new None). Thread-safe; handled by `pump`."""
        self._inbox.append((old, new))

    def load(self) -> None:
        """List everything once, for clients whose notifications begin after it."""
        for kind in ALL_KINDS:
            try:
                items, _ = self.client.list(kind)
            except Exception:
                continue
            for item in items:
                self.notify(None, item)
        self.pump()

    def pump(self) -> None:
        """Handle what has come in, resume bindings that were decided, run what was put off."""
        ready = self.binding.ready
        while self._inbox or ready or self._background:
            if self._inbox:
                self.handlers.handle(*self._inbox.popleft())
            elif ready:
                self.binding.finish(ready.popleft())
            else:
                self._background.popleft()()
        self._arm_flush()

    # --- the loop -------------------------------------------------------------------------------------------

    def schedule_one(self) -> Trace | None:
        """One attempt for the next pod; its trace, or None when no pod is ready. With traces off: an empty one."""
        self.pump()
        while (info := self.queue.pop()) is not None:
            trace = self._attempt(info)
            self.pump()
            if trace is not None:
                return trace
        return None

    def run_until_idle(self, limit: int = 1_000_000) -> int:
        """Attempts until no pod is ready; returns their number. `limit` bounds a plugin that never comes to rest."""
        done = 0
        while done < limit and self.schedule_one() is not None:
            done += 1
        return done

    def view(self) -> QueueView:
        """The visible state of the queue."""
        self.pump()
        view = self.queue.view()
        view.in_flight = [w.pod.key for w in self.waiting.list()]
        return view

    def replace(self, plugin: Any, profile: str | None = None, *, weight: int | None = None) -> None:
        """Run another plugin object from now on, in one profile or in all."""
        for name, framework in self.frameworks.items():
            if profile in (None, name):
                framework.replace(plugin, weight=weight)
        self.plugins_changed()

    def plugins_changed(self) -> None:
        """Plugins were swapped: read their event registrations again."""
        self._install_executor()
        self.queue.plugins_changed()

    def _install_executor(self) -> None:
        for framework in self.frameworks.values():
            for plugin in framework.all_plugins():
                if plugin_name(plugin) == "DefaultPreemption" and hasattr(plugin, "executor"):
                    plugin.executor = self._executor

    def _arm_flush(self) -> None:
        when = self.queue.next_flush()
        armed = self._flush_timer
        if armed is not None:
            if armed[0] == when:
                return
            armed[1].cancel()
            self._flush_timer = None
        if when is not None:
            self._flush_timer = (when, self.clock.call_at(when, self._flush))

    def _flush(self) -> None:
        self._flush_timer = None
        # Handled by the next `pump`: a real clock's timers run on threads of their own.
        self._background.append(self.queue.flush)

    # --- one attempt ----------------------------------------------------------------------------------------

    def _attempt(self, info: QueuedPodInfo) -> Trace | None:
        pod = info.pod
        framework = self.frameworks.get(pod.spec.scheduler_name)
        if framework is None:
            self.queue.done(pod.uid)
            return None
        if pod.terminating:
            note = f"skip schedule deleting pod: {pod.key}"
            self.recorder.record(pod, "Warning", "FailedScheduling", "Scheduling", note)
            self.queue.done(pod.uid)
            return None
        if self.cache.is_assumed(pod):
            self.queue.done(pod.uid)
            return None
        if self.pod_groups is not None and pod.spec.scheduling_group is not None:
            return self.pod_groups.attempt(info)
        trace = self.new_trace(info, framework)
        recorded = trace if self.trace_mode != "off" else None
        if recorded is not None:
            self.traces.append(recorded)
            recorded.follow(framework.extenders)
        started = time.perf_counter()
        self.cache.update_snapshot(self.services.snapshot)
        state = CycleState()
        result = schedule_pod(framework, state, pod, self.settings, recorded)
        if self.metrics is not None:
            self.metrics.algorithm(time.perf_counter() - started)
        if result.node is None:
            status = result.status or Status.success()
            self.failures.handle(framework, info, status, result.fit_error, result.nominated, started=started)
        else:
            self.binding.place(framework, info, result.node, state, recorded, started)
        if recorded is not None and recorded.full_message is not None and result.node is None:
            recorded.full_message = event_note(recorded.full_message)
        return trace

    def new_trace(self, info: QueuedPodInfo, framework: Framework) -> Trace:
        """An empty record of an attempt that begins now."""
        return Trace(
            info.pod.key,
            profile=framework.profile_name,
            attempt=info.attempts,
            time=self.clock.now(),
            all_filters=self.trace_mode == "full",
        )

    def _activate(self, pods: Iterable[Pod]) -> None:
        wanted = list(pods)
        self._background.append(lambda: self.queue.activate(wanted))

    # --- for preemption -------------------------------------------------------------------------------------

    def _is_waiting(self, pod: Pod) -> bool:
        current = self.handlers.current(pod)
        return current is not None and not current.spec.node_name

    def _defer_preemption(self, work: Callable[[], None]) -> None:
        if self.metrics is not None:
            self.metrics.preemption_task()
        self._background.append(work)

    def _victim_gone(self, key: str) -> bool:
        namespace, _, name = key.partition("/")
        pod = self.informer.get("Pod", namespace, name)
        return pod is None or pod.terminating

    def _cancel_in_memory(self, pod: Pod, plugin: str) -> bool:
        waiting = self.waiting.get(pod.uid)
        if waiting is None:
            return False
        waiting.preempt(plugin, "preempted")
        return True

    # --- for metrics ----------------------------------------------------------------------------------------

    def gauges(self) -> dict[str, dict[str, int]]:
        """What `Metrics` shows as it stands: metric -> label -> value. May be called from any thread."""
        nodes = list(self.cache.nodes.values())
        return {
            "pending_pods": self.queue.counts(),
            "cache_size": {
                "nodes": len(nodes),
                "pods": self.cache.pod_count,
                "assumed_pods": self.cache.assumed_count,
            },
            "inflight_events": dict(self.queue.in_flight.labels()),
            "goroutines": {"binding": len(self.waiting.list())},
        }
