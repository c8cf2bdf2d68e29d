"""What a plugin may use of the scheduler that runs it (spec 01 §15)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from labkit.framework.clock import Clock
from labkit.framework.cycle_state import CycleState
from labkit.framework.node_info import NodeInfo, PodInfo
from labkit.framework.snapshot import Snapshot
from labkit.framework.status import Status
from labkit.objects.pod import Pod

if TYPE_CHECKING:
    from labkit.framework.results import NodeToStatus, NodeVerdicts


class ObjectLister(Protocol):
    """Typed read access to cached cluster objects. Kinds by name: "PersistentVolumeClaim", "Namespace", ..."""

    def get(self, kind: str, namespace: str, name: str) -> Any | None:
        """The object (typed, `labkit.objects`), or None. `namespace` is "" for cluster-scoped kinds."""

    def list(self, kind: str, namespace: str | None = None) -> Iterable[Any]:
        """All objects of `kind` (in `namespace`, if given), in order of addition."""


class WaitingPod(Protocol):
    """A pod held by Permit."""

    @property
    def pod(self) -> Pod:
        """The (assumed) pod: `spec.node_name` is the chosen node."""

    def pending_plugins(self) -> list[str]:
        """Plugins that have not allowed it yet."""

    def allow(self, plugin: str) -> None:
        """`plugin` lets it go; when no plugin is left the pod is bound. Never blocks."""

    def reject(self, plugin: str, message: str) -> None:
        """`plugin` rejects it: Unreserve runs, the pod goes back to the queue. Never blocks."""


class NodeNotes(Protocol):
    """What a plugin found out about single nodes, kept for as long as they stay as they are.

    By index of the node in the current snapshot: `codes` is 0 where the verdict was good, `stale` is True where
    there is none or the node has changed since.
    """

    codes: Any
    stale: Any
    #: What was noted beside a verdict.
    notes: dict[int, Any]

    def put(self, i: int, status: Status | None, note: Any = None) -> None:
        """Keep a verdict; None is good."""

    def why(self, at: Any) -> NodeVerdicts:
        """The verdicts that were not good, of the nodes with these indexes (an array)."""


class Handle(Protocol):
    """The scheduler, as a plugin sees it."""

    @property
    def profile_name(self) -> str:
        """`schedulerName` of the profile the plugin belongs to."""

    @property
    def profile_names(self) -> tuple[str, ...]:
        """`schedulerName` of every profile of this scheduler."""

    @property
    def clock(self) -> Clock:
        """The scheduler's clock."""

    @property
    def snapshot(self) -> Snapshot:
        """The current cycle's snapshot; valid in the scheduling cycle only."""

    @property
    def objects(self) -> ObjectLister:
        """Cached cluster objects other than nodes and pods."""

    @property
    def client(self) -> Any:
        """The cluster client (`labkit.cluster.client.ClusterClient`), or None where there is no cluster."""

    @property
    def gates(self) -> Mapping[str, bool]:
        """Feature gates."""

    @property
    def extenders(self) -> list[Any]:
        """Configured extenders (`labkit.engine.extender_api.Extender`), non-ignorable first."""

    def run_pre_filter_add_pod(
        self, state: CycleState, pod: Pod, added: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Tell the PreFilter plugins that `added` is (hypothetically) on `node`."""

    def run_pre_filter_remove_pod(
        self, state: CycleState, pod: Pod, removed: PodInfo, node: NodeInfo
    ) -> Status | None:
        """Tell the PreFilter plugins that `removed` is (hypothetically) gone from `node`."""

    def run_filter_with_nominated_pods(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Filter verdict on one node, nominated pods taken into account (spec 01 §4.3)."""

    def nominated_pods(self, node_name: str) -> list[Pod]:
        """Pods nominated to a node, in order of nomination."""

    def nominate(self, pod: Pod, node_name: str) -> None:
        """Put (or move) `pod` in the nominator; an empty node name removes it."""

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move pods to the active queue at once (spec 02 §10)."""

    def waiting_pods(self) -> list[WaitingPod]:
        """Pods held by Permit, in order of arrival."""

    def get_waiting_pod(self, uid: str) -> WaitingPod | None:
        """The waiting pod with this UID, or None."""

    def reject_waiting_pod(self, uid: str, message: str = "removed") -> bool:
        """Reject a waiting pod; False when there is none."""

    def preempt_in_memory(self, pod: Pod, plugin: str) -> bool:
        """Cancel a victim that is waiting on Permit or in PreBind; False when it must be deleted through the API."""

    def record_event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        """Write a Kubernetes event about `pod`."""

    def total_nodes(self) -> int:
        """Number of nodes in the snapshot."""

    def dry_run_status_nodes(self, statuses: NodeToStatus) -> list[NodeInfo]:
        """Snapshot nodes whose effective status is Unschedulable, in snapshot order."""

    def dry_run_notes(self, plugin: str, state: CycleState, pod: Pod, about: Hashable) -> NodeNotes | None:
        """Notes that `plugin` keeps from cycle to cycle, of dry runs on single nodes; None: nothing may be kept.

        They are shared by pods that all active filters treat alike and that agree in `about`. A note may rest on the
        filters' verdicts about the node with pods taken away or added, and on nothing else that can change.
        """
