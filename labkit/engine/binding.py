"""From the chosen node to the bound pod: assume, Reserve, Permit, PreBind, Bind (spec 01 §9).

A binding cycle is a small state machine. Nothing blocks: a pod held by Permit leaves it, and comes back through
`ready` when it is allowed, rejected or timed out on the Clock.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import msgspec

from labkit.engine.cache import Cache
from labkit.engine.derived import copy_facts
from labkit.engine.failures import Failures
from labkit.engine.framework import Framework
from labkit.engine.queue import SchedulingQueue
from labkit.engine.recorder import Recorder
from labkit.engine.trace import Trace
from labkit.engine.waiting import Waiting, WaitingPods
from labkit.framework.clock import Clock
from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent
from labkit.framework.node_info import QueuedPodInfo
from labkit.framework.results import Diagnosis, FitError, NodeToStatus
from labkit.framework.status import Code, Status
from labkit.objects.pod import Pod

_POD_DELETED = ClusterEvent("AssignedPod", ActionType.DELETE)


class Placement:
    """One pod on its way to `node`; `pod` is the assumed one. `started`: perf_counter seconds."""

    __slots__ = ("framework", "info", "node", "pod", "pre_bind", "started", "state", "trace", "waiting")

    def __init__(
        self,
        framework: Framework,
        info: QueuedPodInfo,
        node: str,
        state: CycleState,
        trace: Trace | None,
        started: float,
    ) -> None:
        self.framework = framework
        self.info = info
        self.pod = on_node(info.pod, node)
        self.node = node
        self.state = state
        self.trace = trace
        self.started = started
        self.pre_bind = False
        self.waiting: Waiting | None = None

    def step(self, point: str, text: str) -> None:
        """Tell the trace."""
        if self.trace is not None:
            self.trace.steps.append((point, text))

    def note(self, problems: list[Status]) -> None:
        """Tell the trace what plugins raised where nobody listens."""
        if self.trace is not None:
            self.trace.notes += [p.traceback or p.message for p in problems]


class Binding:
    """Binding cycles of all profiles. `ready`: held pods whose verdict is there; pass them to `finish`."""

    def __init__(
        self,
        client: Any,
        clock: Clock,
        cache: Cache,
        queue: SchedulingQueue,
        waiting: WaitingPods,
        recorder: Recorder,
        failures: Failures,
        metrics: Any = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._cache = cache
        self._queue = queue
        self._waiting = waiting
        self._recorder = recorder
        self._failures = failures
        self._metrics = metrics
        self._held: dict[str, Placement] = {}
        self.ready: deque[Placement] = deque()

    # --- in the scheduling cycle ----------------------------------------------------------------------------

    def place(
        self,
        framework: Framework,
        info: QueuedPodInfo,
        node: str,
        state: CycleState,
        trace: Trace | None,
        started: float,
    ) -> None:
        """Book the node; then bind, or wait for Permit, or undo everything and report the failure."""
        placement = Placement(framework, info, node, state, trace, started)
        try:
            self._cache.assume(placement.pod)
        except ValueError as e:
            status = Status.as_error_of(e)
            self._failures.handle(framework, info, status, None, "", started=started, trace=trace)
            return
        self._queue.nominator.delete(info.pod)
        waits: dict[str, float] = {}
        refused = framework.run_reserve(state, placement.pod, node)
        if refused is None:
            refused, waits = framework.run_permit(state, placement.pod, node)
        if refused is not None and not waits:
            self._undo(placement)
            fit = rejection(refused, node) if refused.is_rejected else None
            self._report(placement, _carrying(refused, fit), fit)
            return
        if waits:
            self._hold(placement, waits)
        self._activate(state)
        self._begin(placement)

    def _hold(self, placement: Placement, waits: dict[str, float]) -> None:
        placement.step("Permit", f"waits for {', '.join(sorted(waits))}")
        self._held[placement.pod.uid] = placement
        placement.waiting = Waiting(placement.pod, waits, self._clock, self._resume)
        self._waiting.add(placement.waiting)

    def _resume(self, waiting: Waiting) -> None:
        # Called by whoever decides, on whatever thread: the scheduler's own takes it from here.
        placement = self._held.pop(waiting.pod.uid, None)
        if placement is not None:
            self.ready.append(placement)

    def _activate(self, state: CycleState) -> None:
        if state.pods_to_activate:
            self._queue.activate(list(state.pods_to_activate.values()))
            state.pods_to_activate.clear()

    # --- the binding cycle ----------------------------------------------------------------------------------

    def _begin(self, placement: Placement) -> None:
        status = placement.framework.run_pre_bind_pre_flights(placement.state, placement.pod, placement.node)
        if status is not None and not status.is_skip:
            self._fail(placement, status, None)
            return
        placement.pre_bind = status is None
        if placement.pre_bind or placement.waiting is not None:
            self._nominate_expected(placement)
        if placement.waiting is None:
            self._bind(placement)

    def finish(self, placement: Placement) -> None:
        """A held pod's verdict is there: go on, or undo."""
        waiting = placement.waiting
        assert waiting is not None
        verdict = waiting.verdict
        assert verdict is not None
        self._waiting.remove(placement.pod.uid)
        if self._metrics is not None:
            self._metrics.permit_wait(verdict.code.label, self._clock.now() - waiting.started)
        if verdict.is_success:
            self._bind(placement)
        elif verdict.is_rejected:
            fit = rejection(verdict, placement.node)
            self._fail(placement, _carrying(verdict, fit), fit)
        else:
            text = f"waiting on permit for pod: {verdict.message}"
            self._fail(placement, Status.as_error_of(text), None)

    def _bind(self, placement: Placement) -> None:
        framework, state, pod, node = placement.framework, placement.state, placement.pod, placement.node
        self._queue.done(pod.uid)
        status = framework.run_pre_bind(state, pod, node) if placement.pre_bind else None
        if status is None:
            status = self._run_bind(placement)
        if status is not None:
            self._fail(placement, status, None)
            return
        note = f"Successfully assigned {pod.key} to {node}"
        placement.step("Bind", note)
        self._recorder.record(placement.info.pod, "Normal", "Scheduled", "Binding", note)
        if self._metrics is not None:
            profile, now = framework.profile_name, self._clock.now()
            self._metrics.scheduled(profile, placement.info, now, time.perf_counter() - placement.started)
        placement.note(framework.run_post_bind(state, pod, node))
        self._activate(state)

    def _run_bind(self, placement: Placement) -> Status | None:
        framework, pod, node = placement.framework, placement.pod, placement.node
        for extender in framework.extenders:
            if not extender.is_binder or not extender.is_interested(pod):
                continue
            try:
                extender.bind(pod, node)
            except Exception as e:
                if extender.ignorable:
                    placement.step("Bind", f"extender {extender.name} was passed over: {e}")
                    continue
                return Status.as_error_of(e)
            return None
        status = framework.run_bind(placement.state, pod, node)
        if status is not None and status.is_skip:
            return Status.as_error_of("bind failed: all Bind plugins skipped")
        return status

    def _nominate_expected(self, placement: Placement) -> None:
        pod = placement.info.pod
        if pod.status.nominated_node_name != placement.node:
            patch = {"status": {"nominatedNodeName": placement.node}}
            try:
                self._client.patch_status("Pod", pod.name, pod.namespace, patch)
            except Exception as e:
                placement.step("Permit", f"nominatedNodeName was not written: {e}")

    # --- failure --------------------------------------------------------------------------------------------

    def _fail(self, placement: Placement, status: Status, fit: FitError | None) -> None:
        if placement.waiting is not None:
            placement.waiting.cancel()
            self._waiting.remove(placement.pod.uid)
            self._held.pop(placement.pod.uid, None)
        self._undo(placement)
        # The room that is free again may help others; a rejected pod must not be woken by its own failure.
        if not status.is_rejected:
            self._queue.move_all(_POD_DELETED, placement.pod, None)
        self._report(placement, status, fit)
        if status.is_rejected:
            uid = placement.pod.uid
            self._queue.move_all(_POD_DELETED, placement.pod, None, lambda p: p.uid != uid)

    def _undo(self, placement: Placement) -> None:
        placement.note(placement.framework.run_unreserve(placement.state, placement.pod, placement.node))
        self._cache.forget(placement.pod)

    def _report(self, placement: Placement, status: Status, fit: FitError | None) -> None:
        self._failures.handle(
            placement.framework,
            placement.info,
            status,
            fit,
            "",
            started=placement.started,
            trace=placement.trace,
        )


def on_node(pod: Pod, node: str) -> Pod:
    """The pod as it is once it has that node."""
    copy = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
    copy_facts(pod, copy)
    return copy


def rejection(status: Status, node: str) -> FitError:
    """The fit error of a pod whose chosen node was refused after filtering: one node of one."""
    diagnosis = Diagnosis(node_to_status=NodeToStatus())
    diagnosis.node_to_status.set(node, status)
    diagnosis.add_plugin_status(status)
    return FitError(1, diagnosis)


def _carrying(status: Status, fit: FitError | None) -> Status:
    return status if fit is None else Status(Code(status.code), plugin=status.plugin, error=fit)
