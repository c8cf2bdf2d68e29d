"""Dry runs on many nodes for one preemptor; in a large cluster each answer is kept until its node changes.

Preemptors are often copies of one template, and each of them changes one node: the others need no second look.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from labkit.framework.cycle_state import CycleState
from labkit.framework.handle import Handle, NodeNotes
from labkit.framework.node_info import NodeInfo
from labkit.framework.results import NodeToStatus
from labkit.framework.status import Code, Status
from labkit.objects.cluster import PodDisruptionBudget
from labkit.objects.pod import Pod
from labkit.plugins._preemption import Candidate, select_victims

_NOT_HELPFUL = "Preemption is not helpful for scheduling"


@dataclass
class Tried:
    """What came of the dry runs: candidates that break no budget and those that do, and why other nodes are none."""

    fine: list[Candidate] = field(default_factory=list)
    violating: list[Candidate] = field(default_factory=list)
    in_vain: NodeToStatus = field(default_factory=lambda: NodeToStatus(Status.unresolvable(_NOT_HELPFUL)))
    errors: list[str] = field(default_factory=list)

    def failed(self, node: NodeInfo, status: Status) -> None:
        """`node` is no candidate."""
        if status.code == Code.ERROR:
            self.errors.append(status.message)
        self.in_vain.set(node.name, status)


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

    def run(self, nodes: Sequence[NodeInfo], want: int) -> Tried:
        """Look at `nodes` in turn, until there are `want` candidates and one of them breaks no budget."""
        if self._notes is not None and want:
            return self._with_notes(self._notes, nodes, want)
        tried = Tried()
        for node in nodes:
            if tried.fine and len(tried.fine) + len(tried.violating) >= want:
                break
            candidate, status = self._look(node)
            if status is not None:
                tried.failed(node, status)
            elif candidate is not None:
                into = tried.violating if candidate.violations else tried.fine
                if len(into) < want:
                    into.append(candidate)
        return tried

    def _with_notes(self, notes: NodeNotes, nodes: Sequence[NodeInfo], want: int) -> Tried:
        """The same where no budget can be broken; only nodes without a valid note are looked at."""
        import numpy as np

        tried = Tried()
        at = np.fromiter((n.index for n in nodes), np.intp, len(nodes))
        helps = notes.codes[at] == 0
        failed: dict[int, Status] = {}
        known = fine = 0
        for k in np.flatnonzero(notes.stale[at]).tolist():
            fine += int(np.count_nonzero(helps[known:k]))
            known = k
            if fine >= want:
                break
            candidate, status = self._look(nodes[k])
            helps[k] = candidate is not None
            if status is not None and status.code == Code.ERROR:
                failed[k] = status
            else:
                notes.put(nodes[k].index, status, candidate)
        chosen = np.flatnonzero(helps)[:want]
        tried.fine = [notes.notes[i] for i in at[chosen].tolist()]
        end = int(chosen[-1]) + 1 if len(chosen) == want else len(nodes)
        in_vain = ~helps[:end]
        in_vain[list(failed)] = False
        tried.in_vain.record(notes.why(at[:end][in_vain]))
        for k, status in failed.items():
            tried.failed(nodes[k], status)
        return tried

    def _look(self, node: NodeInfo) -> tuple[Candidate | None, Status | None]:
        """The candidate, or why there is none."""
        victims, violations, status = select_victims(
            self._handle, self._state.clone(), self._pod, node.clone(), self._budgets
        )
        if status is not None:
            return None, status
        if not victims:
            return None, Status.as_error_of(f'expected at least one victim pod on node "{node.name}"')
        return Candidate(node.name, victims, violations), None
