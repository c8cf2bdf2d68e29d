"""GangPermit: all pods of a gang start together, or none does.

    labels: {gang-id: training, gang-min-count: "4"}

Permit holds each member, its room already booked, until enough members are held. If one cannot stay (its
time-out passes, it is deleted, a later plugin refuses it) all others let go of their room too: a gang that cannot
start never keeps others out. After that the gang rests for a while, or it would take the room straight back.

One thing it cannot do: two gangs that gather at the same time may each hold what the other needs. Both then give
up, again and again. Against that, members must stand together in the queue: see Coscheduling, which sorts it.

The plugin remembers next to nothing: who is held, and who runs, is read from the scheduler. There is no map of
gangs that could leak, and nothing to lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from labkit.framework.handle import Handle, WaitingPod
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.objects.pod import Pod

GANG, SIZE = "gang-id", "gang-min-count"


class GangPermit(Plugin):
    """Args: `permitWaitingTimeSeconds` (60) and `backoffSeconds` (10, how long a gang rests after it gave up)."""

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        args = args or {}
        self._timeout = float(args.get("permitWaitingTimeSeconds", 60))
        self._rest = float(args.get("backoffSeconds", 10))
        self._resting_until: dict[str, float] = {}

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status | None:
        """Refuses members of a gang that gave up a moment ago, and labels that are no numbers."""
        assert self.handle is not None
        gang = gang_of(pod)
        if gang is None:
            return Status.skip()
        if size_of(pod) is None:
            return Status.unresolvable(f"label {SIZE}: {pod.labels.get(SIZE)!r} is not a number of pods")
        if self.handle.clock.now() < self._resting_until.get(gang, 0.0):
            return Status.unresolvable(f"gang {gang} failed recently")
        return None

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status | None, float]:
        """Wait until the gang is complete; whoever completes it lets all others go."""
        gang, size = gang_of(pod), size_of(pod)
        if gang is None or size is None:
            return None, 0.0
        held = self._held(gang)
        ready = len(held) + self._running(gang, held) + 1
        if ready < size:
            return Status.wait(f"gang {gang}: {ready} of {size} pods have room"), self._timeout
        for member in held:
            member.allow(self.name)
        self._resting_until.pop(gang, None)
        return None, 0.0

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Nothing to book: the scheduler counts the pod on its node by itself. Here for the sake of Unreserve."""
        return None

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """One member lost its room: the others give theirs back."""
        assert self.handle is not None
        gang = gang_of(pod)
        if gang is None:
            return
        now = self.handle.clock.now()
        self._resting_until = {g: t for g, t in self._resting_until.items() if t > now}
        self._resting_until[gang] = now + self._rest
        for member in self._held(gang):
            member.reject(self.name, f"gang {gang}: {pod.key} cannot stay")

    def _held(self, gang: str) -> list[WaitingPod]:
        assert self.handle is not None
        return [w for w in self.handle.waiting_pods() if gang_of(w.pod) == gang]

    def _running(self, gang: str, held: list[WaitingPod]) -> int:
        assert self.handle is not None
        # Held pods are counted on their nodes as well.
        held_uids = {w.pod.uid for w in held}
        members = (i.pod for node in self.handle.snapshot.nodes for i in node.pods if gang_of(i.pod) == gang)
        return sum(not p.terminating and p.uid not in held_uids for p in members)

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """More room may complete the gang; room that the gang itself gave back is no news."""
        room = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE
        return [
            ClusterEventWithHint(ClusterEvent("Pod", ActionType.DELETE), self._after_pod_left),
            ClusterEventWithHint(ClusterEvent("Node", room)),
        ]

    @staticmethod
    def _after_pod_left(pod: Pod, old: Pod | None, new: Pod | None) -> QueueingHint:
        own = old is not None and gang_of(old) is not None and gang_of(old) == gang_of(pod)
        return QueueingHint.SKIP if own else QueueingHint.QUEUE


def gang_of(pod: Pod) -> str | None:
    """`namespace/gang`, or None for a pod on its own."""
    gang = pod.labels.get(GANG)
    return f"{pod.namespace}/{gang}" if gang else None


def size_of(pod: Pod) -> int | None:
    """How many members must have room; 1 without the label, None when it is no positive number."""
    text = pod.labels.get(SIZE, "1")
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None
