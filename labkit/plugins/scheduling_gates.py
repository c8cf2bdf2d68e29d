"""SchedulingGates (spec 10 §10.7)."""

from __future__ import annotations

from typing import Any

from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from labkit.framework.plugin import Plugin
from labkit.framework.status import Status
from labkit.objects.pod import Pod


class SchedulingGates(Plugin):
    """Keeps a pod out of the active queue until its `spec.schedulingGates` are gone."""

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """UnschedulableAndUnresolvable while there are gates."""
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        return Status.unresolvable(f"waiting for scheduling gates: [{' '.join(g.name for g in gates)}]")

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """The pod's own update that removes its last gate."""
        event = ClusterEvent("Pod", ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        return [ClusterEventWithHint(event, _own_update)]


def _own_update(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return QueueingHint.QUEUE if new is not None and new.uid == pod.uid else QueueingHint.SKIP
