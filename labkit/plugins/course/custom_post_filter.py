"""CustomPostFilter: makes room for an important pod by deleting less important ones.

What such a plugin must get right, and sketches of it often do not:

* only pods of *lower* priority go, and only as many as needed: all are taken away on a copy of the node, then put
  back one by one, most important first, as long as the pod still fits;
* fitting means passing all filters, not only having enough CPU;
* nodes that are wrong for another reason (a taint, a selector) are left alone: their status is "unresolvable";
* the pod is not bound. It is *nominated*: it comes back when its victims are gone, and is tried there first;
* while victims are still leaving, nobody else is deleted for the same pod.
"""

from __future__ import annotations

from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from labkit.framework.node_info import NodeInfo, PodInfo
from labkit.framework.plugin import Plugin
from labkit.framework.results import NodeToStatus, PostFilterResult
from labkit.framework.status import Status, is_success
from labkit.objects.pod import Pod


class CustomPostFilter(Plugin):
    """Takes the node whose most important victim is the least important; then the fewest victims; then the name.

    Budgets (PodDisruptionBudget) are not looked at: see DefaultPreemption for those.
    """

    def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """Success with the nominated node, or why deleting pods would not help."""
        assert self.handle is not None
        if pod.spec.preemption_policy == "Never":
            return None, Status.unschedulable("the pod does not preempt others")
        if self._victims_are_leaving(pod):
            return None, Status.unschedulable(f"pods are leaving {pod.status.nominated_node_name}")
        plans: dict[str, list[Pod]] = {}
        for node in self.handle.dry_run_status_nodes(statuses):
            victims = self._victims(state.clone(), pod, node.clone())
            if victims:
                plans[node.name] = victims
        if not plans:
            # An empty name clears a nomination that no longer makes sense.
            return PostFilterResult(""), Status.unschedulable(
                "deleting pods of lower priority would not help"
            )
        chosen = min(plans, key=lambda name: (max(v.priority for v in plans[name]), len(plans[name]), name))
        for victim in plans[chosen]:
            problem = self._delete(victim, pod, chosen)
            if problem is not None:
                return None, problem
        return PostFilterResult(chosen, victims=[v.key for v in plans[chosen]]), Status.success()

    def _victims_are_leaving(self, pod: Pod) -> bool:
        assert self.handle is not None
        node = self.handle.snapshot.by_name.get(pod.status.nominated_node_name)
        return node is not None and any(
            i.pod.terminating and i.pod.priority < pod.priority for i in node.pods
        )

    def _victims(self, state: CycleState, pod: Pod, node: NodeInfo) -> list[Pod] | None:
        """The pods that must leave `node` (a copy), or None when that would not help."""
        lower = [info for info in node.pods if info.pod.priority < pod.priority]
        for info in lower:
            if not self._take_out(state, pod, node, info):
                return None
        if not self._fits(state, pod, node):
            return None
        victims: list[Pod] = []
        for info in sorted(lower, key=_importance):
            if not self._put_back(state, pod, node, info):
                return None
            if self._fits(state, pod, node):
                continue
            if not self._take_out(state, pod, node, info):
                return None
            victims.append(info.pod)
        return victims

    # Plugins that keep counts over the whole cluster (affinity, spread) must hear of each hypothetical change.

    def _take_out(self, state: CycleState, pod: Pod, node: NodeInfo, info: PodInfo) -> bool:
        assert self.handle is not None
        node.remove_pod(info.pod)
        return is_success(self.handle.run_pre_filter_remove_pod(state, pod, info, node))

    def _put_back(self, state: CycleState, pod: Pod, node: NodeInfo, info: PodInfo) -> bool:
        assert self.handle is not None
        node.add_pod(info)
        return is_success(self.handle.run_pre_filter_add_pod(state, pod, info, node))

    def _fits(self, state: CycleState, pod: Pod, node: NodeInfo) -> bool:
        assert self.handle is not None
        return is_success(self.handle.run_filter_with_nominated_pods(state, pod, node))

    def _delete(self, victim: Pod, pod: Pod, node: str) -> Status | None:
        assert self.handle is not None
        # Without a client this is a what-if: nothing is deleted.
        if victim.terminating or self.handle.client is None:
            return None
        # Held by Permit: it has no node yet as far as the API knows, and just loses its turn.
        if not self.handle.preempt_in_memory(victim, self.name):
            try:
                self.handle.client.delete("Pod", victim.name, victim.namespace)
            except Exception as e:
                gone = getattr(e, "code", None) == 404
                return None if gone else Status.as_error_of(e)
        note = f"Preempted by pod {pod.uid} on node {node}"
        self.handle.record_event(victim, "Normal", "Preempted", "Preempting", note)
        return None

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """The plugins that rejected the pod decide when it is worth another try."""
        never = ClusterEventWithHint(ClusterEvent("Pod", ActionType.DELETE), lambda *_: QueueingHint.SKIP)
        return [never]


def _importance(info: PodInfo) -> tuple[int, bool, str]:
    """Most important first: higher priority, then longer running."""
    start = info.pod.status.start_time
    return (-info.pod.priority, not start, start or "")
