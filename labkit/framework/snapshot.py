"""The view of the cluster that one scheduling cycle works on (spec 01 §5.1)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from labkit.framework.node_info import NodeInfo, PodInfo

#: Longer journals are cut: who kept something by them begins anew.
_LONGEST_JOURNAL = 30_000

_INDEX = attrgetter("index")


class Snapshot:
    """Node infos in scheduling order, with the sub-lists that plugins ask for.

    Unchanged during a cycle. `list` order: zones round robin, nodes in order of addition.

    A journal tells what changed from cycle to cycle, so that answers about nodes can be kept: while `epoch` stays
    the same, nodes keep their place, labels and spec; `touched` lists the places whose NodeInfo was replaced, and
    `moves` the pods that came (+1) and went (-1). Both only grow within an epoch. Answers are kept only when
    `large` is set, by the cache: only then the journal is complete.
    """

    def __init__(self, nodes: Iterable[NodeInfo] = ()) -> None:
        self.nodes: list[NodeInfo] = []
        self.by_name: dict[str, NodeInfo] = {}
        #: Nodes having pods with any (anti-)affinity, in list order.
        self.with_affinity: list[NodeInfo] = []
        #: Nodes having pods with required anti-affinity, in list order.
        self.with_required_anti_affinity: list[NodeInfo] = []
        self.epoch = 0
        self.touched: list[int] = []
        self.moves: list[tuple[int, PodInfo, int]] = []
        self.large = False
        #: What plugins keep from cycle to cycle, by who keeps it.
        self.kept: dict[str, Any] = {}
        self.reset(nodes)

    def reset(self, nodes: Iterable[NodeInfo]) -> None:
        """Replace the node list and rebuild every derived list."""
        self.nodes = list(nodes)
        self.by_name = {n.name: n for n in self.nodes}
        for i, n in enumerate(self.nodes):
            n.index = i
        self.with_affinity = [n for n in self.nodes if n.pods_with_affinity]
        self.with_required_anti_affinity = [n for n in self.nodes if n.pods_with_required_anti_affinity]
        self.begin_epoch()

    def begin_epoch(self) -> None:
        """Whatever is kept about nodes is void."""
        self.epoch += 1
        self.touched = []
        self.moves = []

    def trim_journal(self) -> None:
        """Begin anew when the journal has become long."""
        if len(self.touched) > _LONGEST_JOURNAL or len(self.moves) > _LONGEST_JOURNAL:
            self.begin_epoch()

    def put(self, info: NodeInfo) -> None:
        """Replace the node of the same name; the derived lists stay true."""
        i = self.by_name[info.name].index
        info.index = i
        self.nodes[i] = self.by_name[info.name] = info
        _update(self.with_affinity, info, bool(info.pods_with_affinity))
        _update(self.with_required_anti_affinity, info, bool(info.pods_with_required_anti_affinity))

    def get(self, name: str) -> NodeInfo:
        """The node `name`; KeyError with kube-scheduler's text when the snapshot lacks it."""
        try:
            return self.by_name[name]
        except KeyError:
            raise KeyError(f'nodeinfo not found for node name "{name}"') from None

    def is_pvc_used(self, key: str) -> bool:
        """True when some pod in the snapshot uses the claim `namespace/name`."""
        return any(key in n.claim_counts for n in self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)


def _update(nodes: list[NodeInfo], info: NodeInfo, belongs: bool) -> None:
    """Put `info` into a list that is ordered by index, in the place of its former self, or take that out."""
    i = bisect_left(nodes, info.index, key=_INDEX)
    there = i < len(nodes) and nodes[i].index == info.index
    if there and belongs:
        nodes[i] = info
    elif there:
        del nodes[i]
    elif belongs:
        nodes.insert(i, info)
