"""Coscheduling: gangs described by an object of their own, after the out-of-tree plugin of that name (spec 15 §2).

    apiVersion: scheduling.x-k8s.io/v1alpha1
    kind: PodGroup
    metadata: {name: training, namespace: default}
    spec: {minMember: 4, minResources: {cpu: "8"}, scheduleTimeoutSeconds: 60}

A pod joins by the label `scheduling.x-k8s.io/pod-group: training`. Compared with GangPermit it also

* sorts the queue, so that the members of a group come one after the other (QueueSort),
* refuses groups that cannot succeed before they take any room: too few members, too few resources (PreFilter),
* gives a group up at once when a member does not fit and too many are missing (PostFilter).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from labkit.framework.handle import Handle, WaitingPod
from labkit.framework.node_info import NodeInfo, QueuedPodInfo
from labkit.framework.plugin import Plugin
from labkit.framework.resource import Resource
from labkit.framework.results import NodeToStatus, PostFilterResult
from labkit.framework.status import Status
from labkit.objects.cluster import PodGroup
from labkit.objects.pod import Pod

LABEL = "scheduling.x-k8s.io/pod-group"
#: kube-scheduler has a PodGroup of its own (alpha); this one is the CRD.
KIND = "PodGroup.scheduling.x-k8s.io"


class Coscheduling(Plugin):
    """Args: `permitWaitingTimeSeconds` (60), `podGroupBackoffSeconds` (0: off), `podGroupRejectPercentage` (10).

    As it serves QueueSort, it takes the place of PrioritySort.
    """

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        args = args or {}
        self._timeout = float(args.get("permitWaitingTimeSeconds", 60))
        self._backoff = float(args.get("podGroupBackoffSeconds", 0))
        self._reject_percentage = int(args.get("podGroupRejectPercentage", 10))
        #: By group: until when it rests, until when its resources need no new look, and when it failed last.
        self._rests: dict[str, float] = {}
        self._permitted: dict[str, float] = {}
        self._failed: dict[str, float] = {}

    # --- QueueSort --------------------------------------------------------------------------------------------

    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        """Priority, then the age of the group, then the name: members of a group stand together."""
        return self._sort_key(a) < self._sort_key(b)

    def _sort_key(self, info: QueuedPodInfo) -> tuple[int, float, str]:
        group = self._group(info.pod)
        first_try = info.initial_attempt_timestamp
        since = info.timestamp if first_try is None else first_try
        if group is not None:
            since = max(_seconds(group.metadata.creation_timestamp), self._failed.get(group.key, 0.0))
        return -info.pod.priority, since, info.pod.key

    # --- PreFilter --------------------------------------------------------------------------------------------

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Unresolvable where the group has no chance, so that nobody is preempted for it."""
        assert self.handle is not None
        group = self._group(pod)
        if group is None:
            return None
        now = self.handle.clock.now()
        if now < self._rests.get(group.key, 0.0):
            return Status.unresolvable(f"podGroup {group.key} failed recently")
        siblings = self._members(group)
        wanted = group.spec.min_member
        if len(siblings) < wanted:
            return Status.unresolvable(
                f"pre-filter pod {pod.name} cannot find enough sibling pods, "
                f"current pods number: {len(siblings)}, minMember of group: {wanted}"
            )
        if sum(bool(p.spec.scheduling_gates) for p in siblings) > len(siblings) - wanted:
            return Status.unresolvable(
                f"pre-filter pod {pod.name} cannot proceed due to gated pods in the same PodGroup"
            )
        if group.spec.min_resources and now >= self._permitted.get(group.key, 0.0):
            gap = self._resource_gap(group, nodes)
            if gap:
                return Status.unresolvable(f"resource gap: {gap}")
            self._permitted[group.key] = now + self._timeout
        return None

    def _resource_gap(self, group: PodGroup, nodes: Iterable[NodeInfo]) -> str:
        wanted = Resource.of_quantities({**group.spec.min_resources, "pods": group.spec.min_member})
        names = ("cpu", "memory", "ephemeral-storage", *sorted(wanted.scalars))
        missing = {name: wanted.get(name) for name in names}
        pods = wanted.allowed_pod_number
        for node in nodes:
            others = [info for info in node.pods if not self._belongs(info.pod, group)]
            pods -= max(node.allocatable.allowed_pod_number - len(others), 0)
            for name in names:
                used = sum(info.requested.get(name) for info in others)
                missing[name] -= max(node.allocatable.get(name) - used, 0)
        missing["pods"] = pods
        return ", ".join(f"{name} {amount}" for name, amount in missing.items() if amount > 0)

    # --- PostFilter -------------------------------------------------------------------------------------------

    def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """A member fits nowhere: give the group up, unless only few are missing."""
        assert self.handle is not None
        group = self._group(pod)
        if group is None:
            return None, Status.unschedulable("can not find pod group")
        missing = group.spec.min_member - len(self._assigned(group))
        if missing <= 0 or missing * 100 <= self._reject_percentage * group.spec.min_member:
            return None, Status.unschedulable()
        for held in self._held(group):
            held.reject(self.name, "optimistic rejection in PostFilter")
        now = self.handle.clock.now()
        if self._backoff and len(self._members(group)) >= group.spec.min_member:
            self._rests[group.key] = now + self._backoff
        self._permitted.pop(group.key, None)
        self._failed[group.key] = now
        text = (
            f"PodGroup {group.key} gets rejected due to Pod {pod.name} is unschedulable even after PostFilter"
        )
        return PostFilterResult(override=False), Status.unschedulable(text)

    # --- Permit, Reserve --------------------------------------------------------------------------------------

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        """Wait for the others; the first one calls its siblings, the last one lets all go."""
        if LABEL not in pod.labels:
            return None, 0.0
        group = self._group(pod)
        if group is None:
            return Status.unschedulable("PodGroup not found"), 0.0
        assigned = self._assigned(group)
        if len(assigned | {pod.uid}) >= group.spec.min_member:
            for held in self._held(group):
                held.allow(self.name)
            return None, 0.0
        if not assigned - {pod.uid}:
            siblings = {p.key: p for p in self._members(group) if p.uid != pod.uid and not p.spec.node_name}
            state.pods_to_activate.update(siblings)
        return Status.wait(), float(group.spec.schedule_timeout_seconds or self._timeout or 60)

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Nothing. Here for the sake of Unreserve."""
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """One member failed: the whole gang fails, and none of it keeps its room."""
        group = self._group(pod)
        for held in self._held(group) if group is not None else ():
            held.reject(self.name, "rejection in Unreserve")

    # --- who belongs to a group -------------------------------------------------------------------------------

    def _group(self, pod: Pod) -> PodGroup | None:
        assert self.handle is not None
        name = pod.labels.get(LABEL)
        group: PodGroup | None = None
        if name:
            group = self.handle.objects.get(KIND, pod.namespace, name)
        return group

    @staticmethod
    def _belongs(pod: Pod, group: PodGroup) -> bool:
        return pod.namespace == group.namespace and pod.labels.get(LABEL) == group.name

    def _members(self, group: PodGroup) -> list[Pod]:
        assert self.handle is not None
        return [p for p in self.handle.objects.list("Pod", group.namespace) if self._belongs(p, group)]

    def _held(self, group: PodGroup) -> list[WaitingPod]:
        assert self.handle is not None
        return [w for w in self.handle.waiting_pods() if self._belongs(w.pod, group)]

    def _assigned(self, group: PodGroup) -> set[str]:
        """UIDs of the members that have a node: those that run, and those that Permit holds."""
        assert self.handle is not None
        running = {
            info.pod.uid
            for node in self.handle.snapshot.nodes
            for info in node.pods
            if self._belongs(info.pod, group)
        }
        return running | {w.pod.uid for w in self._held(group)}

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """A sibling or the group came; room that others, not the group itself, gave back; nodes."""
        groups = ActionType.ADD | ActionType.UPDATE
        nodes = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
        return [
            ClusterEventWithHint(ClusterEvent("Pod", ActionType.ADD), self._after_sibling),
            ClusterEventWithHint(ClusterEvent("Pod", ActionType.DELETE), self._after_pod_left),
            ClusterEventWithHint(
                ClusterEvent("podgroups.v1alpha1.scheduling.x-k8s.io", groups), self._after_group
            ),
            ClusterEventWithHint(ClusterEvent("Node", nodes)),
        ]

    @staticmethod
    def _after_sibling(pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        return _queue_if(new is not None and _same_group(new, pod))

    @staticmethod
    def _after_pod_left(pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        return _queue_if(old is not None and not _same_group(old, pod))

    def _after_group(self, pod: Pod, old: PodGroup | None, new: PodGroup | None) -> QueueingHint:
        return _queue_if(new is not None and self._belongs(pod, new))


def _same_group(a: Pod, b: Pod) -> bool:
    return a.namespace == b.namespace and a.labels.get(LABEL, "") == b.labels.get(LABEL)


def _queue_if(helps: bool) -> QueueingHint:
    return QueueingHint.QUEUE if helps else QueueingHint.SKIP


def _seconds(time: str | None) -> float:
    try:
        return datetime.fromisoformat((time or "").replace("Z", "+00:00")).timestamp()
    except ValueError:
        return -math.inf
