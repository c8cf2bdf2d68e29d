"""TaintToleration (spec 10 §10.3)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import Plugin
from labkit.framework.results import NodeScore
from labkit.framework.status import Status
from labkit.objects.node import Node
from labkit.objects.pod import Pod, Toleration
from labkit.objects.selectors import find_untolerated_taint, tolerates
from labkit.plugins._normalize import default_normalize_batch, default_normalize_score
from labkit.plugins._signs import tolerations

_KEY = "PreScoreTaintToleration"
_REJECTED = Status.unresolvable("node(s) had untolerated taint(s)", plugin="TaintToleration")


class TaintToleration(Plugin):
    """Filter: no untolerated NoSchedule or NoExecute taint. Score: the fewer untolerated PreferNoSchedule, the better."""

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """UnschedulableAndUnresolvable at the first untolerated hard taint."""
        taints = node.node.spec.taints
        if (
            not taints
            or find_untolerated_taint(taints, pod.spec.tolerations, comparison_operators=self._compare())
            is None
        ):
            return None
        return _REJECTED

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Keep the tolerations that can matter to PreferNoSchedule. Never skips."""
        kept = [t for t in pod.spec.tolerations if t.effect in ("", "PreferNoSchedule")]
        state.write(_KEY, kept)
        return None

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """The number of PreferNoSchedule taints that nothing tolerates."""
        kept: list[Toleration] = state.read(_KEY, "failed to read")
        taints = node.node.spec.taints
        if not taints:
            return 0
        compare = self._compare()
        return sum(
            taint.effect == "PreferNoSchedule" and not any(tolerates(t, taint, compare) for t in kept)
            for taint in taints
        )

    def normalize_score(self, state: CycleState, pod: Pod, scores: list[NodeScore]) -> Status | None:
        """Fewest untolerated taints: 100."""
        default_normalize_score(scores, reverse=True)
        return None

    def sign_pod(self, pod: Pod) -> Hashable:
        """Tolerations."""
        return tolerations(pod)

    def normalize_batch(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], scores: Any) -> Any:
        """`normalize_score` on an array."""
        return default_normalize_batch(scores, reverse=True)

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """A node whose taints are tolerated now, or the pod's own toleration update."""
        node_events = ActionType.ADD | ActionType.UPDATE_NODE_TAINT
        return [
            ClusterEventWithHint(ClusterEvent("Node", node_events), self._tolerated_now),
            ClusterEventWithHint(ClusterEvent("Pod", ActionType.UPDATE_POD_TOLERATION), _own_update),
        ]

    def _compare(self) -> bool:
        return self.handle is not None and bool(
            self.handle.gates.get("TaintTolerationComparisonOperators", False)
        )

    def _tolerated_now(self, pod: Pod, old: Node | None, new: Node | None) -> QueueingHint:
        compare = self._compare()

        def tolerated(node: Node) -> bool:
            return (
                find_untolerated_taint(node.spec.taints, pod.spec.tolerations, comparison_operators=compare)
                is None
            )

        if new is None or not tolerated(new):
            return QueueingHint.SKIP
        return QueueingHint.QUEUE if old is None or not tolerated(old) else QueueingHint.SKIP


def _own_update(pod: Pod, old: Any, new: Pod | None) -> QueueingHint:
    return QueueingHint.QUEUE if new is not None and new.uid == pod.uid else QueueingHint.SKIP
