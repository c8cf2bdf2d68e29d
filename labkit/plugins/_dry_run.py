"""Dry runs on many nodes for one preemptor; in a large cluster each answer is kept until its node changes.

Preemptors are often copies of one template, and each of them changes one node: the others need no second look.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

from labkit.framework.cycle_state import CycleState
from labkit.framework.handle import Handle
from labkit.framework.node_info import NodeInfo
from labkit.framework.status import Code, Status
from labkit.objects.cluster import PodDisruptionBudget
from labkit.objects.pod import Pod
from labkit.plugins._preemption import Candidate, select_victims

Answer = tuple[Candidate | None, Status | None]


class DryRun:
    """The dry run for `pod` (spec 13 §5), node by node."""

    def __init__(
        self, handle: Handle, state: CycleState, pod: Pod, budgets: Sequence[PodDisruptionBudget]
    ) -> None:
        self._handle = handle
        self._state = state
        self._pod = pod
        self._budgets = budgets
        # What a budget still allows changes without the node changing.
        self._notes = (
            None if budgets else handle.dry_run_notes("DefaultPreemption", state, pod, about=pod.priority)
        )

    def on(self, node: NodeInfo) -> Answer:
        """The candidate, or why there is none (no status: no victims were needed)."""
        if self._notes is None:
            return self._look(node)
        nominated = self._others_nominated(node)
        note: tuple[list[Pod], Answer] | None = self._notes.get(node)
        if note is not None and len(note[0]) == len(nominated) and all(map(is_, note[0], nominated)):
            return note[1]
        answer = self._look(node)
        if answer[1] is None or answer[1].code != Code.ERROR:
            self._notes.put(node, (nominated, answer))
        return answer

    def _others_nominated(self, node: NodeInfo) -> list[Pod]:
        nominated = self._handle.nominated_pods(node.name)
        return [p for p in nominated if p.uid != self._pod.uid] if nominated else nominated

    def _look(self, node: NodeInfo) -> Answer:
        victims, violations, status = select_victims(
            self._handle, self._state.clone(), self._pod, node.clone(), self._budgets
        )
        if status is not None or not victims:
            return None, status
        return Candidate(node.name, victims, violations), None
