"""DefaultPreemption (spec 13)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from labkit.framework.cycle_state import CycleState
from labkit.framework.events import ActionType, ClusterEvent, ClusterEventWithHint, QueueingHint
from labkit.framework.handle import Handle
from labkit.framework.plugin import Plugin
from labkit.framework.results import Diagnosis, FitError, NodeToStatus, PostFilterResult
from labkit.framework.status import Code, Status
from labkit.objects.cluster import PodDisruptionBudget
from labkit.objects.pod import Pod
from labkit.plugins._dry_run import DryRun, Tried
from labkit.plugins._preemption import Candidate, CandidateFacts, winners
from labkit.plugins._preemption_executor import PreemptionExecutor

_WAITING = "waiting for the preemption for this pod to be finished"


class DefaultPreemption(Plugin):
    """Makes room for a pod that fits nowhere by removing pods of lower priority from one node."""

    def __init__(self, args: Any = None, handle: Handle | None = None) -> None:
        super().__init__(args, handle)
        self._percentage = _arg(args, "min_candidate_nodes_percentage", "minCandidateNodesPercentage", 10)
        self._absolute = _arg(args, "min_candidate_nodes_absolute", "minCandidateNodesAbsolute", 100)
        self._rng = random.Random(0)
        #: Carries the decision out; None leaves that to the caller (what-ifs, recorded scenarios).
        self.executor: PreemptionExecutor | None = None

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Keeps a preemptor out of the queue while its victims' deletions are being issued."""
        if self.executor is not None and self.executor.holds_back(pod):
            return Status.unresolvable(_WAITING)
        return None

    def post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """Success with the node to nominate, or why preemption does not help."""
        result, status = self._preempt(state, pod, statuses)
        if status.message:
            code = status.code
            text = f"preemption: {status.message}"
            status = Status.as_error_of(text) if code == Code.ERROR else Status(code, text)
        return result, status

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Lets a pod that is held back by PreEnqueue be looked at when a pod goes; never queues by itself."""
        return [ClusterEventWithHint(ClusterEvent("Pod", ActionType.DELETE), _never)]

    def _preempt(
        self, state: CycleState, pod: Pod, statuses: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        assert self.handle is not None
        reason = self._not_eligible(pod, statuses)
        if reason:
            return None, Status.unschedulable(reason)
        candidates, tried, errors = self.find_candidates(state, pod, statuses)
        if not candidates:
            if errors:
                text = errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"
                return None, Status.as_error_of(text)
            return PostFilterResult(""), Status.unschedulable(self._no_candidate_text(tried))
        problem = None
        if self.handle.extenders:
            candidates, problem = self._ask_extenders(pod, candidates)
        if problem is not None:
            return None, problem
        if not candidates:
            return None, Status.unschedulable("no candidate node for preemption")
        best = winners(candidates)
        chosen = min(best, key=lambda c: c.node.encode())
        result = PostFilterResult(
            chosen.node,
            victims=[v.key for v in chosen.victims],
            candidates=CandidateFacts(candidates),
            ties=[c.node for c in best],
        )
        if self.executor is not None:
            status = self.executor.execute(pod, chosen, self.handle)
            if status is not None and not status.is_success:
                return None, status
        return result, Status.success()

    def _not_eligible(self, pod: Pod, statuses: NodeToStatus) -> str:
        assert self.handle is not None
        if pod.spec.preemption_policy == "Never":
            return "not eligible due to preemptionPolicy=Never."
        nominated = pod.status.nominated_node_name
        if not nominated or statuses[nominated].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return ""
        node = self.handle.snapshot.by_name.get(nominated)
        for info in node.pods if node is not None else ():
            if info.pod.priority < pod.priority and info.pod.terminating and _preempted(info.pod):
                return "not eligible due to a terminating pod on the nominated node."
        return ""

    def find_candidates(
        self, state: CycleState, pod: Pod, statuses: NodeToStatus
    ) -> tuple[list[Candidate], NodeToStatus, list[str]]:
        """(candidates, statuses of the nodes that were tried in vain, error texts)."""
        assert self.handle is not None
        potential = self.handle.dry_run_status_nodes(statuses)
        n = len(potential)
        if n == 0:
            return [], Tried().in_vain, []
        want = min(max(n * self._percentage // 100, self._absolute), n)
        offset = self._rng.randrange(n) if want < n else 0
        budgets: Sequence[PodDisruptionBudget] = list(self.handle.objects.list("PodDisruptionBudget"))
        tried = DryRun(self.handle, state, pod, budgets).run(potential[offset:] + potential[:offset], want)
        return tried.fine + tried.violating, tried.in_vain, tried.errors

    def _no_candidate_text(self, tried: NodeToStatus) -> str:
        assert self.handle is not None
        return str(FitError(self.handle.total_nodes(), Diagnosis(node_to_status=tried)))

    def _ask_extenders(self, pod: Pod, candidates: list[Candidate]) -> tuple[list[Candidate], Status | None]:
        assert self.handle is not None
        # Dry runs are kept for later preemptors; an extender may do with its candidates what it likes.
        candidates = [Candidate(c.node, list(c.victims), c.violations) for c in candidates]
        for extender in self.handle.extenders:
            if not extender.supports_preemption or not extender.is_interested(pod):
                continue
            try:
                answer = extender.process_preemption(pod, candidates, self.handle.snapshot)
                for c in answer:
                    if not c.victims and not extender.ignorable:
                        raise RuntimeError(f'expected at least one victim pod on node "{c.node}"')
            except Exception as e:
                if extender.ignorable:
                    continue
                return [], Status.as_error_of(e)
            candidates = [c for c in answer if c.victims]
            if not candidates:
                break
        return candidates, None


def _preempted(pod: Pod) -> bool:
    for condition in pod.status.conditions:
        if condition.type == "DisruptionTarget":
            return condition.status == "True" and condition.reason == "PreemptionByScheduler"
    return False


def _never(pod: Pod, old: Any, new: Any) -> QueueingHint:
    return QueueingHint.SKIP


def _arg(args: Any, attribute: str, json_name: str, default: int) -> int:
    value = args.get(json_name) if isinstance(args, dict) else getattr(args, attribute, None)
    return default if value is None else int(value)
