"""GangScheduling (alpha, gate of the same name): a gang is bound together or not at all (spec 15 §1.1)."""

from __future__ import annotations

from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.objects.cluster import PodGroup
from labkit.objects.pod import Pod

_TIMEOUT = 300.0
NO_GROUP = "waiting for pods's pod group {name} to appear in scheduling queue"
TOO_FEW = "waiting for minCount pods from a gang to appear in scheduling queue"
WAITING = "waiting for minCount pods from a gang to be scheduled"


def group_of(pod: Pod) -> str:
    """The name of the pod's group; "" for a pod on its own."""
    return pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group is not None else ""


def in_group(pod: Pod, namespace: str, name: str) -> bool:
    """Whether the pod belongs to that group."""
    return pod.namespace == namespace and group_of(pod) == name


class GangScheduling(Plugin):
    """PreEnqueue: are there enough pods? Permit: do enough of them have a node?"""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Held back, without event or condition, until the group and enough of its pods are there."""
        assert self.handle is not None
        name = group_of(pod)
        if not name:
            return None
        group = self._group(pod)
        if group is None:
            return Status.unresolvable(NO_GROUP.format(name=f'"{name}"'))
        minimum = group.min_count
        if minimum is None:
            return None
        ours = self.handle.profile_names
        known = sum(
            in_group(p, pod.namespace, name) and bool(p.spec.node_name or p.spec.scheduler_name in ours)
            for p in self.handle.objects.list("Pod", pod.namespace)
        )
        return Status.unresolvable(TOO_FEW) if known < minimum else None

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        """Wait for the others; whoever completes the gang lets all go."""
        assert self.handle is not None
        name = group_of(pod)
        if not name:
            return None, 0.0
        group = self._group(pod)
        if group is None:
            missing = f'podgroup.scheduling.k8s.io "{name}" not found'
            return Status.as_error_of(f"failed to get podGroup {pod.namespace}/{name}: {missing}"), 0.0
        minimum = group.min_count
        if minimum is None:
            return None, 0.0
        scheduled = {
            info.pod.uid
            for node in self.handle.snapshot.nodes
            for info in node.pods
            if in_group(info.pod, pod.namespace, name)
        }
        if len(scheduled | {pod.uid}) < minimum:
            self._activate_others(pod, name, scheduled)
            return Status.wait(WAITING), _TIMEOUT
        for held in self.handle.waiting_pods():
            if in_group(held.pod, pod.namespace, name):
                held.allow(self.name)
        return None, 0.0

    def _activate_others(self, pod: Pod, name: str, scheduled: set[str]) -> None:
        assert self.handle is not None
        others = [
            p
            for p in self.handle.objects.list("Pod", pod.namespace)
            if in_group(p, pod.namespace, name)
            and not p.spec.node_name
            and p.uid != pod.uid
            and p.uid not in scheduled
        ]
        self.handle.activate(others)

    def _group(self, pod: Pod) -> PodGroup | None:
        assert self.handle is not None
        found: PodGroup | None = self.handle.objects.get("PodGroup", pod.namespace, group_of(pod))
        return found

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Another pod of the group, or the group itself."""
        return [
            ClusterEventWithHint(ClusterEvent("Pod", ActionType.ADD), _same_group),
            ClusterEventWithHint(ClusterEvent("scheduling.k8s.io/PodGroup", ActionType.ADD), _its_group),
        ]


def _same_group(pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
    same = new is not None and in_group(new, pod.namespace, group_of(pod))
    return QueueingHint.QUEUE if same else QueueingHint.SKIP


def _its_group(pod: Pod, old: PodGroup | None, new: PodGroup | None) -> QueueingHint:
    its = new is not None and (new.namespace, new.name) == (pod.namespace, group_of(pod))
    return QueueingHint.QUEUE if its else QueueingHint.SKIP
