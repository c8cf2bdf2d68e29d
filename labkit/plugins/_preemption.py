"""The dry run of preemption: victims on a node, and which node to take (spec 13 §5, §6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

from labkit.framework.cycle_state import CycleState
from labkit.framework.handle import Handle
from labkit.framework.node_info import NodeInfo, PodInfo
from labkit.framework.status import Status, is_success
from labkit.objects.cluster import PodDisruptionBudget
from labkit.objects.pod import Pod
from labkit.objects.selectors import SelectorError, compile_label_selector
from labkit.plugins._pattern_sort import pattern_sorted

#: Added per victim, so that more victims always cost more than any difference in priority.
_PER_VICTIM = 2**31


@dataclass
class Candidate:
    """A node where preemption would help: victims (most important first) and how many budgets they break."""

    node: str
    victims: list[Pod]
    violations: int

    @cached_property
    def cost(self) -> tuple[int, int, int, int]:
        """The first four criteria of the choice among candidates (spec 13 §6), lower is better."""
        total = sum(v.priority + _PER_VICTIM for v in self.victims)
        return (self.violations, self.victims[0].priority, total, len(self.victims))

    @cached_property
    def start(self) -> str:
        """The earliest start among the most important victims; "" when none of them has started."""
        top = max(v.priority for v in self.victims)
        starts = (v.status.start_time for v in self.victims if v.priority == top)
        return min(filter(None, starts), default="")


class CandidateFacts(Mapping[str, dict[str, object]]):
    """Candidates as traces show them: node -> victims' keys and broken budgets. Written out when somebody asks."""

    def __init__(self, candidates: Sequence[Candidate]) -> None:
        self._by_node = {c.node: c for c in candidates}

    def __getitem__(self, node: str) -> dict[str, object]:
        candidate = self._by_node[node]
        return {"victims": [v.key for v in candidate.victims], "pdbViolations": candidate.violations}

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_node)

    def __len__(self) -> int:
        return len(self._by_node)

    def __repr__(self) -> str:
        return repr(dict(self))


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
    """Most important first; equally important ones where the reference's unstable sort leaves them."""
    keys = [(-p.priority, p.status.start_time) for p in pods]
    if all(start for _, start in keys) and len(set(keys)) == len(keys):
        return [p for _, p in sorted(zip(keys, pods, strict=True), key=itemgetter(0))]
    return pattern_sorted(pods, more_important(_Now()))


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


_CRITERIA = (
    "fewest PDB violations",
    "lowest highest victim priority",
    "lowest sum of victim priorities",
    "fewest victims",
)


def best_candidates(candidates: Sequence[Candidate]) -> list[tuple[str, list[Candidate]]]:
    """What each criterion leaves, in turn: (criterion, candidates); the last entry holds the winners."""
    left = list(candidates)
    steps: list[tuple[str, list[Candidate]]] = []
    for i, name in enumerate(_CRITERIA):
        if len(left) > 1:
            low = min(c.cost[i] for c in left)
            left = [c for c in left if c.cost[i] == low]
            steps.append((name, left))
    if len(left) > 1:
        left = _latest_start(left)
        steps.append(("latest start of the most important victim", left))
    return steps or [("only candidate", left)]


def winners(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The last entry of `best_candidates`, found at once."""
    low = min(c.cost for c in candidates)
    left = [c for c in candidates if c.cost == low]
    return _latest_start(left) if len(left) > 1 else left


def _latest_start(candidates: Sequence[Candidate]) -> list[Candidate]:
    # Victims that have not started start "now", and the clock is read anew for each candidate: the last is the latest.
    not_started = [c for c in candidates if not c.start]
    if not_started:
        return not_started[-1:]
    latest = max(c.start for c in candidates)
    return [c for c in candidates if c.start == latest]
