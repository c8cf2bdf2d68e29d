"""The scheduler's own picture of nodes and pods, and the snapshots it hands to cycles (spec 01 §5.1, §9.1).

Pods are keyed by UID. A node that is gone keeps its pods as a "ghost" that no snapshot shows.
"""

from __future__ import annotations

from collections.abc import Iterator

from labkit.framework.node_info import NodeInfo, PodInfo, pod_info
from labkit.framework.snapshot import Snapshot
from labkit.objects.node import Node
from labkit.objects.pod import Pod

#: Below this many nodes a cycle is quick anyway.
LARGE_FROM = 64
_ZONE = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_REGION = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")


def zone_key(node: Node) -> str:
    """Region and zone of a node as one key; empty when it has neither."""
    labels = node.metadata.labels
    zone = next((labels[k] for k in _ZONE if k in labels), "")
    region = next((labels[k] for k in _REGION if k in labels), "")
    return f"{region}:\x00:{zone}" if zone or region else ""


class NodeTree:
    """Node names by zone; the order of a snapshot is round robin over zones, in order of appearance."""

    def __init__(self) -> None:
        self._zones: dict[str, dict[str, None]] = {}

    def add(self, node: Node) -> None:
        """At the end of its zone."""
        self._zones.setdefault(zone_key(node), {})[node.name] = None

    def remove(self, node: Node) -> None:
        """An empty zone goes too; when it comes back it is the last one."""
        key = zone_key(node)
        names = self._zones.get(key, {})
        names.pop(node.name, None)
        if not names:
            self._zones.pop(key, None)

    def update(self, old: Node, new: Node) -> None:
        """Move a node whose zone changed."""
        if zone_key(old) != zone_key(new):
            self.remove(old)
            self.add(new)

    def names(self) -> Iterator[str]:
        """One node of each zone in turn."""
        zones = [list(names) for names in self._zones.values()]
        for i in range(max(map(len, zones), default=0)):
            for names in zones:
                if i < len(names):
                    yield names[i]


class Cache:
    """Nodes, their pods, and pods that are assumed to be on a node before the API server says so.

    `large_from`: from this many nodes on, answers about nodes are kept from cycle to cycle; None: never.
    """

    def __init__(self, large_from: int | None = LARGE_FROM) -> None:
        self.large_from = large_from
        self.nodes: dict[str, NodeInfo] = {}
        self._tree = NodeTree()
        self._pods: dict[str, Pod] = {}
        self._assumed: set[str] = set()
        self._images: dict[str, tuple[int, dict[str, None]]] = {}
        self._dirty: set[str] = set()
        self._moves: list[tuple[int, PodInfo, str]] = []
        self._list_changed = True
        self._nodes_changed = False

    # --- nodes --------------------------------------------------------------------------------------------

    def add_node(self, node: Node) -> None:
        """A node that is new, or came back while pods were still counted on it."""
        info = self.nodes.get(node.name)
        if info is None:
            self.nodes[node.name] = NodeInfo(node)
        elif info.has_node:
            self.update_node(node)
            return
        else:
            info.set_node(node)
        self._tree.add(node)
        self._add_images(node)
        self._list_changed = True
        self._dirty.add(node.name)

    def update_node(self, node: Node) -> None:
        """A node whose object changed."""
        info = self.nodes.get(node.name)
        if info is None or not info.has_node:
            self.add_node(node)
            return
        old = info.node
        self._tree.update(old, node)
        if old.status.images != node.status.images:
            self._remove_images(old)
            self._add_images(node)
        if old.metadata.labels != node.metadata.labels or old.spec != node.spec:
            self._nodes_changed = True
        info.set_node(node)
        self._dirty.add(node.name)

    def remove_node(self, name: str) -> None:
        """The node is gone; pods on it stay counted until they go."""
        info = self.nodes.get(name)
        if info is None or not info.has_node:
            return
        self._tree.remove(info.node)
        self._remove_images(info.node)
        if info.pods:
            info.node = None  # type: ignore[assignment]
        else:
            del self.nodes[name]
        self._list_changed = True
        self._dirty.discard(name)

    def _add_images(self, node: Node) -> None:
        for image in node.status.images:
            for name in image.names:
                size, holders = self._images.setdefault(name, (image.size_bytes, {}))
                holders[node.name] = None
                self._images[name] = (size, holders)

    def _remove_images(self, node: Node) -> None:
        for image in node.status.images:
            for name in image.names:
                if name in self._images:
                    self._images[name][1].pop(node.name, None)
                    if not self._images[name][1]:
                        del self._images[name]

    # --- pods ---------------------------------------------------------------------------------------------

    def add_pod(self, pod: Pod) -> None:
        """A pod that the API server shows on a node; replaces the assumed one, wherever that was."""
        if pod.uid in self._pods:
            self._take_out(self._pods[pod.uid])
        self._assumed.discard(pod.uid)
        self._put_in(pod)

    def update_pod(self, pod: Pod) -> None:
        """A placed pod whose object changed."""
        self.add_pod(pod)

    def remove_pod(self, pod: Pod) -> None:
        """A placed pod that is gone or has ended."""
        known = self._pods.pop(pod.uid, None)
        self._assumed.discard(pod.uid)
        if known is not None:
            self._take_out(known)

    def assume(self, pod: Pod) -> None:
        """Count `pod` on `spec.nodeName` before the API server does. ValueError when it is counted already."""
        if pod.uid in self._pods:
            raise ValueError(f'pod "{pod.key}" is in the cache, so can\'t be assumed')
        self._put_in(pod)
        self._assumed.add(pod.uid)

    def forget(self, pod: Pod) -> None:
        """Undo `assume`; nothing happens when the pod is not assumed."""
        if pod.uid in self._assumed:
            self.remove_pod(pod)

    def is_assumed(self, pod: Pod) -> bool:
        """True between `assume` and confirmation or `forget`."""
        return pod.uid in self._assumed

    def get_pod(self, uid: str) -> Pod | None:
        """The placed or assumed pod with this UID."""
        return self._pods.get(uid)

    @property
    def assumed_count(self) -> int:
        """Number of assumed pods."""
        return len(self._assumed)

    @property
    def pod_count(self) -> int:
        """Number of pods counted on nodes, assumed ones included."""
        return len(self._pods)

    def _put_in(self, pod: Pod) -> None:
        name = pod.spec.node_name
        info = self.nodes.get(name)
        if info is None:
            info = self.nodes[name] = NodeInfo(None)
        added = pod_info(pod)
        info.add_pod(added)
        self._pods[pod.uid] = pod
        if info.has_node:
            self._dirty.add(name)
            self._moves.append((1, added, name))

    def _take_out(self, pod: Pod) -> None:
        name = pod.spec.node_name
        info = self.nodes.get(name)
        if info is None:
            return
        info.remove_pod(pod)
        if info.has_node:
            self._dirty.add(name)
            self._moves.append((-1, pod_info(pod), name))
        elif not info.pods:
            del self.nodes[name]

    # --- snapshots ----------------------------------------------------------------------------------------

    def update_snapshot(self, snapshot: Snapshot) -> None:
        """Bring `snapshot` up to date. Only what changed since the last call is copied.

        One cache serves one snapshot. The order of nodes is worked out anew only when a node came or went.
        """
        if self._list_changed:
            known = snapshot.by_name
            snapshot.reset(
                self._copy(name) if name in self._dirty or name not in known else known[name]
                for name in self._tree.names()
            )
        else:
            for name in self._dirty:
                snapshot.put(self._copy(name))
        self._write_journal(snapshot)
        self._dirty.clear()
        self._list_changed = self._nodes_changed = False

    def _write_journal(self, snapshot: Snapshot) -> None:
        large = self.large_from is not None and len(snapshot.nodes) >= self.large_from
        if self._nodes_changed or large != snapshot.large:
            snapshot.large = large
            snapshot.begin_epoch()
        elif large and not self._list_changed:
            at = snapshot.by_name
            snapshot.touched += [at[name].index for name in self._dirty]
            snapshot.moves += [(n, info, at[name].index) for n, info, name in self._moves]
            snapshot.trim_journal()
        self._moves.clear()

    def _copy(self, name: str) -> NodeInfo:
        """A node as it is now. How many nodes have its images is counted now, too, and stays until the next copy."""
        info = self.nodes[name].clone()
        info.image_states = {
            name: (self._images[name][0], len(self._images[name][1]))
            for image in info.node.status.images
            for name in image.names
        }
        return info
