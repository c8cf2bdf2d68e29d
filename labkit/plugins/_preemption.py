"""The dry run of preemption: victims on a node, and which node to take (spec 13 §5, §6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from labkit.framework.cycle_state import CycleState
from labkit.framework.handle import Handle
from labkit.framework.node_info import NodeInfo, PodInfo
from labkit.framework.status import Status, is_success
from labkit.objects.cluster import PodDisruptionBudget
from labkit.objects.pod import Pod
from labkit.objects.selectors import SelectorError, compile_label_selector

#: Added per victim, so that more victims always cost more than any difference in priority.
_PER_VICTIM = 2**31
_INSERTION_SORT_LIMIT = 12


@dataclass
class Candidate:
    """A node where preemption would help: victims (most important first) and how many budgets they break."""

    node: str
    victims: list[Pod]
    violations: int


class _Now:
    """Pods without a start time started "now", and the clock is read anew at each look: later each time."""

    def __init__(self) -> None:
        self._ticks = 0

    def start(self, pod: Pod) -> tuple[int, str, int]:
        if pod.status.start_time:
            return (0, pod.status.start_time, 0)
        self._ticks += 1
        return (1, "", self._ticks)


def more_important(now: _Now) -> Callable[[Pod, Pod], bool]:
    """Higher priority, or the same and started strictly earlier."""

    def less(a: Pod, b: Pod) -> bool:
        if a.priority != b.priority:
            return a.priority > b.priority
        first = now.start(a)
        return first < now.start(b)

    return less


def sort_by_importance(pods: Sequence[Pod]) -> list[Pod]:
    """Most important first: an insertion sort, as the reference's for up to twelve pods."""
    less = more_important(_Now())
    found = list(pods)
    if len(found) > _INSERTION_SORT_LIMIT:
        return sorted(found, key=lambda p: (-p.priority, not p.status.start_time, p.status.start_time))
    for i in range(1, len(found)):
        j = i
        while j > 0 and less(found[j], found[j - 1]):
            found[j], found[j - 1] = found[j - 1], found[j]
            j -= 1
    return found


def split_by_budget(
    pods: Sequence[Pod], budgets: Sequence[PodDisruptionBudget]
) -> tuple[list[Pod], list[Pod]]:
    """(pods whose eviction would break a budget, the others), each in the given order."""
    allowed = [b.status.disruptions_allowed for b in budgets]
    violating: list[Pod] = []
    fine: list[Pod] = []
    for pod in pods:
        bad = False
        for i, budget in enumerate(budgets if pod.labels else ()):
            if budget.namespace != pod.namespace or not _selects(budget, pod):
                continue
            if pod.name in budget.status.disrupted_pods:
                continue
            allowed[i] -= 1
            bad = bad or allowed[i] < 0
        (violating if bad else fine).append(pod)
    return violating, fine


def _selects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    if budget.spec.selector is None:
        return False
    try:
        selector = compile_label_selector(budget.spec.selector)
    except SelectorError:
        return False
    return not selector.is_empty and selector.matches(pod.labels)


def select_victims(
    handle: Handle, state: CycleState, pod: Pod, node: NodeInfo, budgets: Sequence[PodDisruptionBudget]
) -> tuple[list[Pod], int, Status | None]:
    """(victims most important first, budget violations, status) on a private copy of `node` and `state`."""
    lower = [info for info in node.pods if info.pod.priority < pod.priority]
    infos = {info.pod.uid: info for info in lower}
    for info in lower:
        status = _remove(handle, state, pod, node, info)
        if not is_success(status):
            return [], 0, status
    if not lower:
        return [], 0, Status.unresolvable("No preemption victims found for incoming pod")
    status = handle.run_filter_with_nominated_pods(state, pod, node)
    if not is_success(status):
        return [], 0, status
    violating, fine = split_by_budget(sort_by_importance([info.pod for info in lower]), budgets)
    victims: list[Pod] = []
    violations = 0
    for group, counts in ((violating, True), (fine, False)):
        for candidate in group:
            info = infos[candidate.uid]
            node.add_pod(info)
            status = handle.run_pre_filter_add_pod(state, pod, info, node)
            if not is_success(status):
                return [], 0, status
            if is_success(handle.run_filter_with_nominated_pods(state, pod, node)):
                continue
            status = _remove(handle, state, pod, node, info)
            if not is_success(status):
                return [], 0, status
            victims.append(candidate)
            violations += counts
    if violating and fine:
        victims = sort_by_importance(victims)
    return victims, violations, None


def _remove(handle: Handle, state: CycleState, pod: Pod, node: NodeInfo, info: PodInfo) -> Status | None:
    node.remove_pod(info.pod)
    return handle.run_pre_filter_remove_pod(state, pod, info, node)


def best_candidates(candidates: Sequence[Candidate]) -> list[tuple[str, list[Candidate]]]:
    """What each criterion leaves, in turn: (criterion, candidates); the last entry holds the winners."""
    now = _Now()
    left = list(candidates)
    steps: list[tuple[str, list[Candidate]]] = []
    for name, cost in (
        ("fewest PDB violations", lambda c: c.violations),
        ("lowest highest victim priority", lambda c: c.victims[0].priority),
        ("lowest sum of victim priorities", lambda c: sum(v.priority + _PER_VICTIM for v in c.victims)),
        ("fewest victims", lambda c: len(c.victims)),
    ):
        if len(left) > 1:
            low = min(cost(c) for c in left)
            left = [c for c in left if cost(c) == low]
            steps.append((name, left))
    if len(left) > 1:
        starts = [(_earliest_start(c, now), c) for c in left]
        latest = max(s for s, _ in starts)
        left = [c for s, c in starts if s == latest]
        steps.append(("latest start of the most important victim", left))
    return steps or [("only candidate", left)]


def _earliest_start(candidate: Candidate, now: _Now) -> tuple[int, str, int]:
    top = max(v.priority for v in candidate.victims)
    return min(now.start(v) for v in candidate.victims if v.priority == top)
