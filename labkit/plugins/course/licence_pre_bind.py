"""LicencePreBind: a pod that needs a licence is bound only after the licence server has given it one.

    labels: {licence: simulator}

Something outside the cluster must be had before the pod starts: here a licence, elsewhere an address, a GPU lease,
a volume. The work is split over three points, and each has its reason:

* Reserve books in memory. It runs in the scheduling cycle, one pod at a time, so two pods never count on the same
  last licence, although their binding cycles overlap.
* PreBind asks the server. That may be slow and may fail: it belongs into the binding cycle.
* Unreserve undoes both. It runs after *any* later failure, also when Reserve or PreBind did not get their turn,
  and may run twice: giving back what one does not have must do nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from labkit.framework.handle import Handle
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.objects.pod import Pod

LABEL = "licence"


class LicenceServer:
    """Stands for a service on the network. `holders` are the pods' UIDs."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.holders: set[str] = set()

    @property
    def free(self) -> int:
        """Licences that nobody holds."""
        return self.total - len(self.holders)

    def take(self, holder: str) -> None:
        """Give `holder` a licence; it keeps the one that it has. RuntimeError when none is left."""
        if holder not in self.holders and self.free < 1:
            raise RuntimeError("the licence server has no licence left")
        self.holders.add(holder)

    def give_back(self, holder: str) -> None:
        """Take it back; nothing happens when `holder` has none."""
        self.holders.discard(holder)


class LicencePreBind(Plugin):
    """Args: `server`, a LicenceServer, or `licences`, how many a server of its own has (1)."""

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        args = args or {}
        self.server: LicenceServer = args.get("server") or LicenceServer(int(args.get("licences", 1)))
        self._booked: set[str] = set()

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """No licence is free: no node will do. Another pod that ends gives one back, so preemption may help."""
        if LABEL not in pod.labels:
            return Status.skip()
        self._collect(nodes)
        promised = self._booked - self.server.holders
        if self.server.free - len(promised) < 1:
            return Status.unschedulable("no licence is free")
        return None

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Book a licence in memory."""
        if LABEL in pod.labels:
            self._booked.add(pod.uid)
        return None

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Nothing to do for a pod without the label."""
        return None if LABEL in pod.labels else Status.skip()

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Turn the booking into a licence; the pod is tried again after a back-off when that fails."""
        try:
            self.server.take(pod.uid)
        except RuntimeError as e:
            return Status.as_error_of(e)
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Neither booked nor held any more."""
        self._booked.discard(pod.uid)
        self.server.give_back(pod.uid)

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """The server knows now; the booking has done its work."""
        self._booked.discard(pod.uid)

    def _collect(self, nodes: Sequence[NodeInfo]) -> None:
        # A pod that is gone needs no licence. Pods on their way to a node are counted on it already.
        alive = {info.pod.uid for node in nodes for info in node.pods}
        for holder in self.server.holders - alive - self._booked:
            self.server.give_back(holder)

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """A pod with a licence is gone."""
        return [ClusterEventWithHint(ClusterEvent("Pod", ActionType.DELETE), self._after_pod_left)]

    @staticmethod
    def _after_pod_left(pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        had = old is not None and LABEL in old.labels
        return QueueingHint.QUEUE if had else QueueingHint.SKIP
