"""ApprovalPermit: a pod that is marked for approval gets its node, but is bound only after somebody said yes.

    labels: {approval: required}

    plugin.waiting()                          # who waits, and for which node
    plugin.approve("default/release-7")       # bound at the scheduler's next step
    plugin.deny("default/release-7", "freeze until Monday")

The pod is held by Permit with its room booked. Silence is a no: after the time-out it is rejected, its room is
free again, and it waits for a decision: `approve` also brings a pod back that is no longer held.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ClusterEventWithHint
from labkit.framework.handle import Handle
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.objects.pod import Pod

LABEL = "approval"


class ApprovalPermit(Plugin):
    """Args: `timeoutSeconds` (600; the framework allows 900 at most)."""

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        self._timeout = float((args or {}).get("timeoutSeconds", 600))
        #: Pod UID -> the reason of a refusal, or None for a yes.
        self._decisions: dict[str, str | None] = {}
        self._refused: dict[str, Pod] = {}

    # --- what people call -----------------------------------------------------------------------------------

    def waiting(self) -> dict[str, str]:
        """`namespace/name` of the pods that wait for a decision -> the node that is kept for them."""
        assert self.handle is not None
        return {
            w.pod.key: w.pod.spec.node_name
            for w in self.handle.waiting_pods()
            if self.name in w.pending_plugins()
        }

    def approve(self, pod: str) -> None:
        """Yes to `namespace/name`. KeyError when no such pod has asked."""
        assert self.handle is not None
        for held in self.handle.waiting_pods():
            if held.pod.key == pod and self.name in held.pending_plugins():
                held.allow(self.name)
                return
        for uid, known in self._refused.items():
            if known.key == pod:
                self._decisions[uid] = None
                self.handle.activate([known])
                return
        raise KeyError(f"pod {pod} has not asked for approval")

    def deny(self, pod: str, why: str = "not approved") -> None:
        """No to `namespace/name`. KeyError when it does not wait."""
        assert self.handle is not None
        for held in self.handle.waiting_pods():
            if held.pod.key == pod and self.name in held.pending_plugins():
                self._decisions[held.pod.uid] = why
                held.reject(self.name, why)
                return
        raise KeyError(f"pod {pod} does not wait for approval")

    # --- what the scheduler calls ---------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """A pod that was refused is not tried again until somebody approves it."""
        why = self._decisions.get(pod.uid)
        return Status.unresolvable(why) if why is not None else Status.skip()

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        """Holds a pod that needs approval and has none."""
        if pod.labels.get(LABEL) != "required" or self._decisions.get(pod.uid, "") is None:
            return None, 0.0
        return Status.wait(f"waiting for approval to run on {node_name}"), self._timeout

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Nothing to book. Here for the sake of Unreserve."""
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """The pod lost its room, whoever refused it: remember it, so that an approval can bring it back."""
        assert self.handle is not None
        if pod.labels.get(LABEL) != "required":
            return
        for uid, known in list(self._refused.items()):
            if self.handle.objects.get("Pod", known.namespace, known.name) is None:
                # Deleted meanwhile: nobody will decide about it any more.
                self._decisions.pop(uid, None)
                del self._refused[uid]
        self._decisions.setdefault(pod.uid, "nobody approved it in time")
        self._refused[pod.uid] = pod

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Bound: there is nothing left to decide."""
        self._decisions.pop(pod.uid, None)
        self._refused.pop(pod.uid, None)

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Nothing: only a decision helps, and that is no event of the cluster."""
        return []
