"""Where a pod group may go as a whole (alpha, gate TopologyAwareWorkloadScheduling; spec 15 §1.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.objects.cluster import PodGroup
from labkit.objects.pod import Pod


@dataclass(slots=True)
class Placement:
    """A named set of nodes; `proposed` are the group's pods that fit there."""

    name: str
    nodes: list[NodeInfo]
    proposed: list[Pod] = field(default_factory=list)


class TopologyPlacementGenerator(Plugin):
    """One placement for each value of the node label that the group's constraint names."""

    def placement_generate(
        self, group: PodGroup, scheduled: Sequence[Pod], nodes: Sequence[NodeInfo]
    ) -> tuple[list[Placement], Status | None]:
        """Placements in the order in which their first node stands in `nodes`.

        Without constraint: all nodes. Pods of the group that run already fix the domain.
        """
        key = group.topology_key
        if not key:
            return [Placement("", list(nodes))], None
        domains: dict[str, list[NodeInfo]] = {}
        for node in nodes:
            if key in node.node.labels:
                domains.setdefault(node.node.labels[key], []).append(node)
        if scheduled:
            fixed = self._domain(key, scheduled, nodes)
            if isinstance(fixed, Status):
                return [], fixed
            domains = {fixed: domains[fixed]}
        return [Placement(value, members) for value, members in domains.items()], None

    @staticmethod
    def _domain(key: str, scheduled: Sequence[Pod], nodes: Sequence[NodeInfo]) -> str | Status:
        by_name = {node.name: node for node in nodes}
        text = "cannot determine domain for already scheduled pods: "
        found: dict[str, None] = {}
        for pod in scheduled:
            node = by_name.get(pod.spec.node_name)
            if node is None or key not in node.node.labels:
                return Status.as_error_of(f"{text}node {pod.spec.node_name!r} has no label {key!r}")
            found[node.node.labels[key]] = None
        if len(found) > 1:
            return Status.as_error_of(f"{text}they are in several: {', '.join(found)}")
        return next(iter(found))


class PodGroupPodsCount(Plugin):
    """Prefers placements that take more pods of the group."""

    def placement_score(self, group: PodGroup, scheduled: Sequence[Pod], placement: Placement) -> int:
        """How many pods of the group would run there."""
        return len({p.uid for p in (*scheduled, *placement.proposed)})

    def normalize_placement_scores(self, scores: list[int]) -> list[int]:
        """The most becomes 100."""
        most = max(scores, default=0)
        return [100 * score // most if most else 0 for score in scores]
