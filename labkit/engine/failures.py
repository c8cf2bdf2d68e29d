"""What happens after an attempt that failed: requeue, nominate, event, condition, in this order (spec 01 §8)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from labkit.engine.framework import Framework
from labkit.engine.handlers import Handlers
from labkit.engine.nominator import Nominator
from labkit.engine.notes import event_note
from labkit.engine.queue import SchedulingQueue
from labkit.engine.recorder import Recorder, timestamp
from labkit.engine.trace import Trace
from labkit.framework.clock import Clock
from labkit.framework.node_info import QueuedPodInfo
from labkit.framework.results import FitError
from labkit.framework.status import Status
from labkit.objects.pod import Pod


class Failures:
    """The failure handler. `now()`: Clock seconds, for `lastTransitionTime`."""

    def __init__(
        self,
        client: Any,
        clock: Clock,
        queue: SchedulingQueue,
        nominator: Nominator,
        handlers: Handlers,
        recorder: Recorder,
        metrics: Any = None,
    ) -> None:
        self._client = client
        self._now: Callable[[], float] = clock.now
        self._queue = queue
        self._nominator = nominator
        self._handlers = handlers
        self._recorder = recorder
        self._metrics = metrics

    def handle(
        self,
        framework: Framework,
        info: QueuedPodInfo,
        status: Status,
        fit: FitError | None,
        nominated: str | None,
        *,
        started: float,
        trace: Trace | None = None,
    ) -> None:
        """`nominated`: the node to write, "" clears, None leaves it alone. `started`: perf_counter seconds.

        `trace`: the record of an attempt that had found a node already.
        """
        message = status.message
        if trace is not None:
            trace.node, trace.error = None, status
            trace.message, trace.full_message = message, event_note(message)
            if status.traceback:
                trace.notes.append(status.traceback)
        if self._metrics is not None:
            result = "unschedulable" if status.is_rejected else "error"
            self._metrics.attempt(framework.profile_name, result, time.perf_counter() - started)
        info.unschedulable_plugins = set(fit.diagnosis.unschedulable_plugins) if fit is not None else set()
        info.pending_plugins = set(fit.diagnosis.pending_plugins) if fit is not None else set()
        pod = info.pod
        current = self._handlers.current(pod)
        if current is not None and current.uid != pod.uid:
            # Deleted and made anew under the same name: nobody must hear of the old one.
            self._queue.done(pod.uid)
            return
        if current is None or current.spec.node_name:
            self._queue.done(pod.uid)
        else:
            info.pod = pod = current
            self._queue.add_unschedulable(info)
        self._nominator.add(pod, nominated)
        self._recorder.record(pod, "Warning", "FailedScheduling", "Scheduling", message)
        self._patch(pod, "Unschedulable" if status.is_rejected else "SchedulerError", message, nominated)

    def _patch(self, pod: Pod, reason: str, message: str, nominated: str | None) -> None:
        known = next((c for c in pod.status.conditions if c.type == "PodScheduled"), None)
        same = known is not None and (known.status, known.reason, known.message) == ("False", reason, message)
        renominate = nominated is not None and nominated != pod.status.nominated_node_name
        if same and not renominate:
            return
        status: dict[str, Any] = {}
        if not same:
            condition: dict[str, Any] = {
                "type": "PodScheduled",
                "status": "False",
                "reason": reason,
                "message": message,
                "lastProbeTime": None,
                "lastTransitionTime": timestamp(self._now())[:19] + "Z",
            }
            if known is not None and known.status == "False":
                condition["lastTransitionTime"] = known.last_transition_time
            if pod.metadata.generation:
                condition["observedGeneration"] = pod.metadata.generation
            status["conditions"] = [condition]
        if renominate:
            status["nominatedNodeName"] = nominated or None
        try:
            self._client.patch_status("Pod", pod.name, pod.namespace, {"status": status})
        except Exception as e:
            self._handlers.complain(f"Pod {pod.key}: its condition was not written: {e}")
