"""Which pods are nominated to which nodes (spec 02 §10)."""

from __future__ import annotations

from collections.abc import Callable

from labkit.objects.pod import Pod

#: Longer journals are cut: who kept something by them begins anew.
_LONGEST_JOURNAL = 30_000


class Nominator:
    """Nominated pods by node, in order of nomination. `is_waiting(pod)`: the pod still exists and has no node.

    A journal tells which nodes' nominations changed, so that answers that rest on them can be kept: `changed` only
    grows while `epoch` stays the same.
    """

    def __init__(self, is_waiting: Callable[[Pod], bool] | None = None) -> None:
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._node_of: dict[str, str] = {}
        self._is_waiting = is_waiting
        self.epoch = 0
        self.changed: list[str] = []

    def add(self, pod: Pod, node_name: str | None = None) -> None:
        """Nominate to `node_name`, or to the pod's own `status.nominatedNodeName` when None."""
        self.delete(pod)
        node = pod.status.nominated_node_name if node_name is None else node_name
        if not node or (self._is_waiting is not None and not self._is_waiting(pod)):
            return
        self._by_node.setdefault(node, {})[pod.uid] = pod
        self._node_of[pod.uid] = node
        self._note(node)

    def delete(self, pod: Pod) -> None:
        """Forget the pod's nomination."""
        node = self._node_of.pop(pod.uid, None)
        if node is not None:
            pods = self._by_node[node]
            pods.pop(pod.uid, None)
            if not pods:
                del self._by_node[node]
            self._note(node)

    def update(self, old: Pod, new: Pod) -> None:
        """A newer version of the pod; one that knows nothing of the nomination yet does not end it."""
        kept = self._node_of.get(old.uid)
        if kept and not old.status.nominated_node_name and not new.status.nominated_node_name:
            self.add(new, kept)
        else:
            self.add(new)

    def pods_for(self, node_name: str) -> list[Pod]:
        """Pods nominated to a node."""
        pods = self._by_node.get(node_name)
        return list(pods.values()) if pods else []

    def nodes(self) -> list[str]:
        """Nodes that pods are nominated to."""
        return list(self._by_node)

    def node_of(self, pod: Pod) -> str:
        """The node a pod is nominated to, or ""."""
        return self._node_of.get(pod.uid, "")

    @property
    def empty(self) -> bool:
        """No pod is nominated."""
        return not self._by_node

    def _note(self, node: str) -> None:
        if len(self.changed) >= _LONGEST_JOURNAL:
            self.epoch += 1
            self.changed = []
        self.changed.append(node)
