"""Carrying a preemption out: conditions, deletions, events, dropped nominations (spec 13 §8)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from labkit.framework.status import Status
from labkit.objects.pod import Pod

if TYPE_CHECKING:
    from labkit.framework.handle import Handle
    from labkit.plugins._preemption import Candidate


class PreemptionExecutor(Protocol):
    """What DefaultPreemption hands its decision to."""

    def execute(self, pod: Pod, candidate: Candidate, handle: Handle) -> Status | None:
        """Start preempting; Success also when the work goes on in the background."""

    def holds_back(self, pod: Pod) -> bool:
        """True while `pod`'s victims are still being dealt with."""


class ApiPreemption:
    """Through the cluster client. `defer(work)` runs the background task: at once, on a thread, or on the clock.

    The preemptor is held back until its last victim's deletion has been issued.
    """

    def __init__(self, defer: Any = None, is_gone: Any = None) -> None:
        self._defer = defer or (lambda work: work())
        self._is_gone = is_gone
        self._preempting: dict[str, str] = {}

    def holds_back(self, pod: Pod) -> bool:
        """True while deletions are being issued, except when the last victim is gone already."""
        last = self._preempting.get(pod.uid)
        if last is None:
            return False
        return not (last and self._is_gone is not None and self._is_gone(last))

    def execute(self, pod: Pod, candidate: Candidate, handle: Handle) -> Status | None:
        """Asynchronous preemption: the status is Success at once."""
        victims = [v for v in candidate.victims if not v.terminating]
        if not victims:
            return None
        self._preempting[pod.uid] = ""
        self._defer(lambda: self._run(pod, candidate.node, victims, handle))
        return None

    def _run(self, pod: Pod, node: str, victims: list[Pod], handle: Handle) -> None:
        failed = self._clear_lower_nominations(pod, node, handle)
        *others, last = victims
        # The last one stays when another could not be removed: its end would bring the preemptor back too early.
        done = [_preempted(victim, pod, node, handle) for victim in others]
        if all(done):
            self._preempting[pod.uid] = last.key
            failed |= not _preempted(last, pod, node, handle)
        else:
            failed = True
        self._preempting.pop(pod.uid, None)
        if failed:
            handle.activate([pod])

    @staticmethod
    def _clear_lower_nominations(pod: Pod, node: str, handle: Handle) -> bool:
        failed = False
        for other in handle.nominated_pods(node):
            if other.priority < pod.priority and other.status.nominated_node_name:
                try:
                    handle.client.patch_status(
                        "Pod", other.name, other.namespace, {"status": {"nominatedNodeName": None}}
                    )
                except Exception:
                    failed = True
        return failed


def _preempted(victim: Pod, preemptor: Pod, node: str, handle: Handle) -> bool:
    try:
        preempt_pod(victim, preemptor, node, handle)
    except Exception:
        return False
    return True


def preempt_pod(victim: Pod, preemptor: Pod, node: str, handle: Handle) -> None:
    """Reject, cancel or delete one victim and write its event. Raises what the API raises, except 404."""
    note = f"Preempted by pod {preemptor.uid} on node {node}"
    if handle.preempt_in_memory(victim, "DefaultPreemption"):
        handle.record_event(
            victim, "Normal", "Preempted", "Preempting", note + " (in kube-scheduler memory)."
        )
        return
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": f"{preemptor.spec.scheduler_name}: preempting to accommodate a higher priority pod",
        "observedGeneration": victim.metadata.generation,
        "lastProbeTime": None,
        "lastTransitionTime": datetime.fromtimestamp(handle.clock.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    wanted = (condition["type"], "True", condition["reason"], condition["message"])
    same = any((c.type, c.status, c.reason, c.message) == wanted for c in victim.status.conditions)
    try:
        if not same:
            handle.client.patch_status(
                "Pod", victim.name, victim.namespace, {"status": {"conditions": [condition]}}
            )
        handle.client.delete("Pod", victim.name, victim.namespace)
    except Exception as e:
        if getattr(e, "code", None) == 404:
            return
        raise
    handle.record_event(victim, "Normal", "Preempted", "Preempting", note)
