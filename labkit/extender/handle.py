"""The Handle that plugins get when they run behind an extender: what a single request can offer."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from labkit.framework.clock import Clock, RealClock
from labkit.framework.cycle_state import CycleState
from labkit.framework.node_info import NodeInfo, PodInfo
from labkit.framework.results import NodeToStatus
from labkit.framework.snapshot import Snapshot
from labkit.framework.status import Code, Status
from labkit.objects.pod import Pod


class _NoObjects:
    """The protocol sends pods and nodes only."""

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        """None: nothing but pods and nodes is sent to an extender."""
        return None

    def list(self, kind: str, namespace: str | None = None) -> Iterable[Any]:
        """Empty, for the same reason."""
        return ()


class ExtenderHandle:
    """Nodes of the current request, the cluster client, the real clock; nothing that belongs to a queue."""

    def __init__(self, client: Any = None) -> None:
        self.profile_name = "extender"
        self.clock: Clock = RealClock()
        self._request = threading.local()
        self.objects = _NoObjects()
        self.client = client
        self.gates: Mapping[str, bool] = {}
        self.extenders: list[Any] = []

    @property
    def snapshot(self) -> Snapshot:
        """The nodes of the request that this thread answers."""
        found: Snapshot | None = getattr(self._request, "snapshot", None)
        return found if found is not None else Snapshot()

    def use(self, snapshot: Snapshot) -> None:
        """Make `snapshot` the nodes that plugins see; requests on other threads keep theirs."""
        self._request.snapshot = snapshot

    def run_pre_filter_add_pod(
        self, state: CycleState, pod: Pod, added: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Nothing to keep in step."""
        return None

    def run_pre_filter_remove_pod(
        self, state: CycleState, pod: Pod, removed: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Nothing to keep in step."""
        return None

    def run_filter_with_nominated_pods(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Only kube-scheduler runs its own filters; here every node of the request has passed them."""
        return None

    def nominated_pods(self, node_name: str) -> list[Pod]:
        """Unknown to an extender."""
        return []

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Not an extender's to do."""

    def activate(self, pods: Iterable[Pod]) -> None:
        """There is no queue here."""

    def waiting_pods(self) -> list[Any]:
        """Permit does not exist in the protocol."""
        return []

    def get_waiting_pod(self, uid: str) -> Any | None:
        """Permit does not exist in the protocol."""
        return None

    def reject_waiting_pod(self, uid: str, message: str = "removed") -> bool:
        """Permit does not exist in the protocol."""
        return False

    def preempt_in_memory(self, pod: Pod, plugin: str) -> bool:
        """Victims live in kube-scheduler's memory, not here."""
        return False

    def record_event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        """Write an event when there is a cluster client, else nothing."""
        if self.client is not None and hasattr(self.client, "create_event"):
            self.client.create_event(pod, type_, reason, action, note)

    def total_nodes(self) -> int:
        """Nodes in the request."""
        return len(self.snapshot.nodes)

    def dry_run_notes(self, plugin: str, state: CycleState, pod: Pod, about: Hashable) -> None:
        """Nothing is kept: each request brings its own nodes."""

    def dry_run_status_nodes(self, statuses: NodeToStatus) -> list[NodeInfo]:
        """Nodes of the request whose status is Unschedulable."""
        return statuses.nodes_for_code(self.snapshot, Code.UNSCHEDULABLE)
