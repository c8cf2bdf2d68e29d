"""What a plugin is: a class that defines some of these methods. Which points it serves is what it defines.

Deriving from `Plugin` is optional; it gives a name and keeps `args` and `handle`. A plugin that needs
neither can be any class with, say, a `filter` method. Each class below is the contract of one extension
point; none has behaviour (spec 01 §4). A method may return None wherever a Status is expected: success.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from labkit.framework.cycle_state import CycleState
    from labkit.framework.events import ClusterEventWithHint
    from labkit.framework.handle import Handle
    from labkit.framework.node_info import NodeInfo, PodInfo, QueuedPodInfo
    from labkit.framework.results import (
        NodeScore,
        NodeToStatus,
        PostFilterResult,
        PreBindPreFlightResult,
        PreFilterResult,
    )
    from labkit.framework.status import Status
    from labkit.objects.pod import Pod

#: Extension point -> the method that serves it, in the order in which a pod meets them.
EXTENSION_POINTS: dict[str, str] = {
    "pre_enqueue": "pre_enqueue",
    "queue_sort": "less",
    "pre_filter": "pre_filter",
    "filter": "filter",
    "post_filter": "post_filter",
    "pre_score": "pre_score",
    "score": "score",
    "reserve": "reserve",
    "permit": "permit",
    "pre_bind": "pre_bind",
    "bind": "bind",
    "post_bind": "post_bind",
}


class Plugin:
    """Convenience base. `args` are the typed plugin args of the profile (or None), `handle` the scheduler."""

    #: Name in configurations, traces and messages; the class name unless set.
    name: str = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__:
            cls.name = cls.__name__

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        self.args = args
        self.handle = handle


def plugin_name(plugin: object) -> str:
    """The name of a plugin object or class: its `name`, else its class name."""
    name = getattr(plugin, "name", "")
    if isinstance(name, str) and name:
        return name
    return plugin.__name__ if isinstance(plugin, type) else type(plugin).__name__


class PreEnqueuePlugin(Protocol):
    """Before a pod enters the active queue. Any non-success keeps it out: no event, no condition."""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """May `pod` be queued? Cheap; called with the queue locked."""


class QueueSortPlugin(Protocol):
    """Orders the active queue; exactly one per scheduler."""

    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        """True when `a` goes before `b`."""


class PreFilterPlugin(Protocol):
    """Once per attempt, before filtering. Skip switches the plugin's Filter off for this pod."""

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> Status | PreFilterResult | tuple[PreFilterResult | None, Status | None] | None:
        """Compute what `filter` needs; optionally restrict the nodes."""


class PreFilterExtensions(Protocol):
    """Optional for a PreFilter plugin: keep its state true in what-ifs (nominated pods, preemption)."""

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node: NodeInfo) -> Status | None:
        """`added` is now (hypothetically) on `node`."""

    def remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node: NodeInfo) -> Status | None:
        """`removed` is now (hypothetically) gone from `node`."""


class FilterPlugin(Protocol):
    """Per node: can the pod run here? The first plugin that says no decides."""

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        """Success (None), Unschedulable, or UnschedulableAndUnresolvable with reasons. Must not change anything."""


class PostFilterPlugin(Protocol):
    """Only when no node fits: make room, or explain."""

    def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status | None] | Status | None:
        """Success with a nominated node, or Unschedulable."""


class PreScorePlugin(Protocol):
    """Once per attempt, with the feasible nodes, when there are at least two. Skip switches Score off."""

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Compute what `score` needs."""


class ScorePlugin(Protocol):
    """Per feasible node: how good is it? After normalising, an integer from 0 to 100."""

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int | tuple[int, Status | None]:
        """The raw score."""


class ScoreExtensions(Protocol):
    """Optional for a Score plugin: bring the raw scores of all nodes into 0..100."""

    def normalize_score(self, state: CycleState, pod: Pod, scores: list[NodeScore]) -> Status | None:
        """Change `scores[i].score` in place."""


class ReservePlugin(Protocol):
    """Book and unbook what the pod will use. `unreserve` is called in reverse order after any later failure,
    also when this plugin's `reserve` did not run: it must be idempotent and must not fail."""

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Book."""

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Unbook."""


class PermitPlugin(Protocol):
    """The last gate before binding: let through, reject, or hold for a while."""

    def permit(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> tuple[Status | None, float] | Status | None:
        """(status, time-out in seconds); the time-out counts with Wait only and is cut to 15 minutes."""


class PreBindPlugin(Protocol):
    """Work that must be done before the pod is bound."""

    def pre_bind_pre_flight(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> Status | tuple[PreBindPreFlightResult | None, Status | None] | None:
        """Will `pre_bind` do anything? Success or Skip. Optional; absent means yes."""

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Do it."""


class BindPlugin(Protocol):
    """Binds the pod; Skip passes it to the next Bind plugin."""

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Bind `pod` to `node_name`."""


class PostBindPlugin(Protocol):
    """After a successful bind; informational."""

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Clean up."""


class EnqueueExtensions(Protocol):
    """Which cluster events may make a pod that this plugin rejected schedulable (spec 02 §11).

    Absent on a plugin that can reject: every event queues.
    """

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Events with their hint functions."""
