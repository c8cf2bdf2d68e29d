"""The scheduler: takes notifications, decides pod by pod, binds (spec 01 §3, §8, §9).

One thread calls it. Notifications may come from any thread: `notify` only puts them in an inbox. Nothing
blocks: a pod held by Permit resumes its binding when it is allowed, rejected or timed out on the Clock.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from labkit.config import FeatureGates, SchedulerConfig, load_config
from labkit.engine.build import build_frameworks
from labkit.engine.cache import Cache
from labkit.engine.cycle import CycleResult, Settings, schedule_pod
from labkit.engine.feasible import Rotation
from labkit.engine.framework import Framework
from labkit.engine.handlers import Handlers
from labkit.engine.informer import ALL_KINDS, Informer
from labkit.engine.nominator import Nominator
from labkit.engine.notes import event_note
from labkit.engine.queue import QueueView, SchedulingQueue
from labkit.engine.recorder import Recorder, timestamp
from labkit.engine.services import Services
from labkit.engine.trace import Trace
from labkit.engine.waiting import Waiting, WaitingPods
from labkit.framework.clock import Clock, Timer, VirtualClock
from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent
from labkit.framework.node_info import QueuedPodInfo
from labkit.framework.results import Diagnosis, FitError, NodeToStatus
from labkit.framework.status import Code, Status
from labkit.objects.meta import RawObject
from labkit.objects.pod import Pod
from labkit.plugins._preemption_executor import ApiPreemption

_POD_DELETED = ClusterEvent("AssignedPod", ActionType.DELETE)


class _Attempt:
    """One pod on its way from the chosen node to the bound pod."""

    __slots__ = ("framework", "info", "node", "pod", "state", "trace", "waiting")

    def __init__(
        self,
        framework: Framework,
        info: QueuedPodInfo,
        pod: Pod,
        node: str,
        state: CycleState,
        trace: Trace | None,
    ) -> None:
        self.framework = framework
        self.info = info
        self.pod = pod
        self.node = node
        self.state = state
        self.trace = trace
        self.waiting: Waiting | None = None


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
        self.services.activate = self.queue.activate
        self.handlers = Handlers(self.cache, self.queue, self.informer, self.waiting, self.frameworks)
        self.settings = Settings(
            rotation=Rotation(),
            percentage_of_nodes_to_score=self.config.percentage_of_nodes_to_score,
            rng=random.Random(seed),
        )
        self.trace_mode = trace
        self.traces: deque[Trace] = deque(maxlen=keep_traces)
        self._inbox: deque[tuple[RawObject | None, RawObject | None]] = deque()
        self._ready: deque[_Attempt] = deque()
        self._background: deque[Callable[[], None]] = deque()
        self._attempts: dict[str, _Attempt] = {}
        self._flush_timer: tuple[float, Timer] | None = None
        self._executor = ApiPreemption(self._background.append, self._victim_gone)
        self._install_executor()

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
        while self._inbox or self._ready or self._background:
            if self._inbox:
                self.handlers.handle(*self._inbox.popleft())
            elif self._ready:
                self._finish_binding(self._ready.popleft())
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
        self.queue.hints.rebuild()

    def _install_executor(self) -> None:
        for framework in self.frameworks.values():
            for plugin in framework.plugins("post_filter"):
                if hasattr(plugin, "executor"):
                    plugin.executor = self._executor

    def _arm_flush(self) -> None:
        when = self.queue.next_flush()
        if self._flush_timer is not None:
            if self._flush_timer[0] == when:
                return
            self._flush_timer[1].cancel()
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
        trace = Trace(
            pod.key,
            profile=framework.profile_name,
            attempt=info.attempts,
            time=self.clock.now(),
            all_filters=self.trace_mode == "full",
        )
        recorded = trace if self.trace_mode != "off" else None
        if recorded is not None:
            self.traces.append(recorded)
        self.cache.update_snapshot(self.services.snapshot)
        state = CycleState()
        result = schedule_pod(framework, state, pod, self.settings, recorded)
        if result.node is None:
            self._failed(
                framework, info, result.status or Status.success(), result.fit_error, result.nominated
            )
        else:
            self._place(framework, info, result, state, recorded)
        if recorded is not None and recorded.full_message is not None:
            recorded.full_message = event_note(recorded.full_message)
        if self.metrics is not None:
            self.metrics.attempt(framework.profile_name, result, info)
        return trace

    def _place(
        self,
        framework: Framework,
        info: QueuedPodInfo,
        result: CycleResult,
        state: CycleState,
        trace: Trace | None,
    ) -> None:
        assert result.node is not None
        node = result.node
        assumed = _on_node(info.pod, node)
        try:
            self.cache.assume(assumed)
        except ValueError as e:
            self._failed(framework, info, Status.as_error_of(e), None, "")
            return
        self.nominator.delete(info.pod)
        attempt = _Attempt(framework, info, assumed, node, state, trace)
        status = framework.run_reserve(state, assumed, node)
        if status is None:
            status, waits = framework.run_permit(state, assumed, node)
            if status is None or status.code == Code.WAIT:
                if waits:
                    self._wait(attempt, waits)
                self._activate(state)
                if not waits:
                    self._finish_binding(attempt)
                return
        self._undo(attempt)
        fit = _rejection(status, node) if status.is_rejected else None
        self._failed(framework, info, _carrying(status, fit), fit, "", trace=trace)

    def _activate(self, state: CycleState) -> None:
        if state.pods_to_activate:
            self.queue.activate(list(state.pods_to_activate.values()))
            state.pods_to_activate.clear()

    def _wait(self, attempt: _Attempt, waits: dict[str, float]) -> None:
        if attempt.trace is not None:
            attempt.trace.steps.append(("Permit", f"waits for {', '.join(sorted(waits))}"))
        self._attempts[attempt.pod.uid] = attempt
        attempt.waiting = Waiting(attempt.pod, waits, self.clock, self._resume)
        self.waiting.add(attempt.waiting)
        self._nominate_expected(attempt)

    def _resume(self, waiting: Waiting) -> None:
        attempt = self._attempts.pop(waiting.pod.uid, None)
        if attempt is not None:
            self._ready.append(attempt)

    def _undo(self, attempt: _Attempt) -> None:
        for problem in attempt.framework.run_unreserve(attempt.state, attempt.pod, attempt.node):
            if attempt.trace is not None:
                attempt.trace.notes.append(problem.message)
        self.cache.forget(attempt.pod)

    # --- binding --------------------------------------------------------------------------------------------

    def _finish_binding(self, attempt: _Attempt) -> None:
        framework, state, pod, node = attempt.framework, attempt.state, attempt.pod, attempt.node
        waiting = attempt.waiting
        if waiting is not None:
            self.waiting.remove(pod.uid)
            verdict = waiting.verdict
            if verdict is not None and not verdict.is_success:
                if verdict.is_rejected:
                    fit = _rejection(verdict, node)
                    self._binding_failed(attempt, _carrying(verdict, fit), fit)
                else:
                    text = f"waiting on permit for pod: {verdict.message}"
                    self._binding_failed(attempt, Status.as_error_of(text), None)
                return
        status = framework.run_pre_bind_pre_flights(state, pod, node)
        if status is None:
            if waiting is None:
                self._nominate_expected(attempt)
        elif not status.is_skip:
            self._binding_failed(attempt, status, None)
            return
        self.queue.done(pod.uid)
        if status is None:
            status = framework.run_pre_bind(state, pod, node)
            if status is not None:
                self._binding_failed(attempt, status, None)
                return
        status = self._bind(attempt)
        if status is not None:
            self._binding_failed(attempt, status, None)
            return
        note = f"Successfully assigned {pod.key} to {node}"
        self.recorder.record(attempt.info.pod, "Normal", "Scheduled", "Binding", note)
        if self.metrics is not None:
            self.metrics.scheduled(framework.profile_name, attempt.info, self.clock.now())
        for problem in framework.run_post_bind(state, pod, node):
            if attempt.trace is not None:
                attempt.trace.notes.append(problem.message)
        if attempt.trace is not None:
            attempt.trace.steps.append(("Bind", note))
        self._activate(state)

    def _bind(self, attempt: _Attempt) -> Status | None:
        pod, node = attempt.pod, attempt.node
        for extender in attempt.framework.extenders:
            if not extender.is_binder or not extender.is_interested(pod):
                continue
            try:
                extender.bind(pod, node)
            except Exception as e:
                if extender.ignorable:
                    continue
                return Status.as_error_of(e)
            return None
        status = attempt.framework.run_bind(attempt.state, pod, node)
        if status is not None and status.is_skip:
            return Status.as_error_of("bind failed: all Bind plugins skipped")
        return status

    def _nominate_expected(self, attempt: _Attempt) -> None:
        pod = attempt.info.pod
        if pod.status.nominated_node_name != attempt.node:
            try:
                patch = {"status": {"nominatedNodeName": attempt.node}}
                self.client.patch_status("Pod", pod.name, pod.namespace, patch)
            except Exception as e:
                if attempt.trace is not None:
                    attempt.trace.notes.append(f"nominatedNodeName was not written: {e}")

    def _binding_failed(self, attempt: _Attempt, status: Status, fit: FitError | None) -> None:
        self._undo(attempt)
        rejected = status.is_rejected
        if not rejected:
            self.queue.move_all(_POD_DELETED, attempt.pod, None)
        self._failed(attempt.framework, attempt.info, status, fit, "", trace=attempt.trace)
        if rejected:
            uid = attempt.pod.uid
            self.queue.move_all(_POD_DELETED, attempt.pod, None, lambda p: p.uid != uid)

    # --- failure --------------------------------------------------------------------------------------------

    def _failed(
        self,
        framework: Framework,
        info: QueuedPodInfo,
        status: Status,
        fit: FitError | None,
        nominated: str | None,
        *,
        trace: Trace | None = None,
    ) -> None:
        """Requeue, nominate, event, condition: in this order."""
        message = status.message
        if trace is not None:
            trace.node, trace.error = None, status
            trace.message = trace.full_message = message
        info.unschedulable_plugins = set(fit.diagnosis.unschedulable_plugins) if fit is not None else set()
        info.pending_plugins = set(fit.diagnosis.pending_plugins) if fit is not None else set()
        pod = info.pod
        current = self.handlers.current(pod)
        if current is not None and current.uid != pod.uid:
            self.queue.done(pod.uid)
            return
        if current is None or current.spec.node_name:
            self.queue.done(pod.uid)
        else:
            info.pod = pod = current
            self.queue.add_unschedulable(info)
        if current is not None:
            self.nominator.add(pod, nominated)
        self.recorder.record(pod, "Warning", "FailedScheduling", "Scheduling", message)
        reason = "Unschedulable" if status.is_rejected else "SchedulerError"
        self._patch_condition(pod, reason, message, nominated)

    def _patch_condition(self, pod: Pod, reason: str, message: str, nominated: str | None) -> None:
        known = next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)
        same = known is not None and (known.status, known.reason, known.message) == ("False", reason, message)
        renominate = nominated is not None and nominated != pod.status.nominated_node_name
        if same and not renominate:
            return
        status: dict[str, Any] = {}
        if not same:
            changed = known is None or known.status != "False"
            when = timestamp(self.clock.now())[:19] + "Z"
            condition: dict[str, Any] = {
                "type": "PodScheduled",
                "status": "False",
                "reason": reason,
                "message": message,
                "lastProbeTime": None,
                "lastTransitionTime": when if changed or known is None else known.last_transition_time,
            }
            if pod.metadata.generation:
                condition["observedGeneration"] = pod.metadata.generation
            status["conditions"] = [condition]
        if renominate:
            status["nominatedNodeName"] = nominated or None
        try:
            self.client.patch_status("Pod", pod.name, pod.namespace, {"status": status})
        except Exception as e:
            self.handlers.problems.append(f"Pod {pod.key}: condition was not written: {e}")

    # --- for preemption -------------------------------------------------------------------------------------

    def _is_waiting(self, pod: Pod) -> bool:
        current = self.handlers.current(pod)
        return current is not None and not current.spec.node_name

    def _victim_gone(self, key: str) -> bool:
        namespace, _, name = key.partition("/")
        return not any(
            p.namespace == namespace and p.name == name and not p.terminating
            for p in self.handlers.all_pods()
        )

    def _cancel_in_memory(self, pod: Pod, plugin: str) -> bool:
        waiting = self.waiting.get(pod.uid)
        if waiting is None:
            return False
        waiting.preempt(plugin, "preempted")
        return True


def _on_node(pod: Pod, node: str) -> Pod:
    copy = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
    # Facts derived from the pod do not depend on its node: keep them.
    copy.__dict__.update({k: v for k, v in pod.__dict__.items() if k not in ("_pod_info", "raw")})
    return copy


def _rejection(status: Status, node: str) -> FitError:
    diagnosis = Diagnosis(node_to_status=NodeToStatus())
    diagnosis.node_to_status.set(node, status)
    diagnosis.add_plugin_status(status)
    return FitError(1, diagnosis)


def _carrying(status: Status, fit: FitError | None) -> Status:
    return status if fit is None else Status(status.code, plugin=status.plugin, error=fit)
