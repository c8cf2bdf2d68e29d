"""The decision of one scheduling cycle: from PreFilter to the chosen node, and PostFilter when there is none."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from labkit.engine.feasible import AttemptError, Rotation, Search
from labkit.engine.prioritize import pick, prioritize
from labkit.engine.trace import Trace, timed
from labkit.engine.trace_scores import Scores
from labkit.framework.cycle_state import CycleState
from labkit.framework.results import FitError, PostFilterResult
from labkit.framework.status import Code, Status
from labkit.i18n import t
from labkit.objects.pod import Pod

if TYPE_CHECKING:
    from labkit.engine.framework import Framework

NO_NODES = "no nodes available to schedule pods"


@dataclass
class Settings:
    """What all cycles of a scheduler share: rotation, global percentage, random tie-breaks, and whether to look
    at all nodes whatever the percentage says (as recorded decisions do)."""

    rotation: Rotation = field(default_factory=Rotation)
    percentage_of_nodes_to_score: int = 0
    rng: random.Random = field(default_factory=lambda: random.Random(0))
    all_nodes: bool = False


@dataclass
class CycleResult:
    """`node` on success; else `status`, and `fit_error` when no node fits.

    `nominated`: the node to write into `status.nominatedNodeName` ("" clears it), None leaves it alone.
    """

    node: str | None = None
    status: Status | None = None
    fit_error: FitError | None = None
    nominated: str | None = None
    post_filter: PostFilterResult | None = None
    evaluated: int = 0
    feasible: int = 0

    @property
    def message(self) -> str:
        """The text of the failure; "" on success."""
        return self.status.message if self.status is not None else ""


def schedule_pod(
    framework: Framework,
    state: CycleState,
    pod: Pod,
    settings: Settings,
    trace: Trace | None = None,
    *,
    run_post_filter: bool = True,
) -> CycleResult:
    """Decide where `pod` goes (spec 01 §3). The snapshot must be up to date; nothing outside `state` is changed."""
    if not framework.snapshot.nodes:
        return _error(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, error=RuntimeError(NO_NODES)), trace)
    search = Search(
        framework,
        state,
        pod,
        settings.rotation,
        settings.percentage_of_nodes_to_score,
        settings.all_nodes,
        trace,
    )
    try:
        feasible = search.run()
    except AttemptError as e:
        return _error(e.status, trace)
    evaluated = len(feasible) + search.rejected
    if not feasible:
        return _no_fit(framework, state, pod, search, trace, run_post_filter)
    if len(feasible) == 1:
        if trace is not None:
            trace.node, trace.best = feasible[0].name, [feasible[0].name]
            trace.notes.append(t("Score skipped: one feasible node", "跳过打分：只有一个可行节点"))
        return CycleResult(feasible[0].name, evaluated=evaluated, feasible=1)
    with timed(trace, "Score"):
        totals, tie_breaks, problem = prioritize(framework, state, pod, feasible, settings.rng, trace)
    if problem is not None:
        if trace is not None:
            trace.scores, trace.pre_score_codes = Scores(), {}
        return _error(problem, trace)
    node = feasible[pick(totals, tie_breaks)].name
    if trace is not None:
        top = max(totals)
        trace.node = node
        trace.best = sorted(n.name for n, total in zip(feasible, totals, strict=True) if total == top)
    return CycleResult(node, evaluated=evaluated, feasible=len(feasible))


def _error(status: Status, trace: Trace | None) -> CycleResult:
    if trace is not None:
        trace.error = status
        trace.message = trace.full_message = status.message
    return CycleResult(status=status, nominated="")


def _no_fit(
    framework: Framework,
    state: CycleState,
    pod: Pod,
    search: Search,
    trace: Trace | None,
    run_post_filter: bool,
) -> CycleResult:
    fit_error = FitError(len(framework.snapshot.nodes), search.diagnosis)
    message = str(fit_error)
    nominated: str | None = ""
    result: PostFilterResult | None = None
    if run_post_filter and framework.has("post_filter"):
        with timed(trace, "PostFilter"):
            result, status = framework.run_post_filter(state, pod, search.diagnosis.node_to_status)
        search.diagnosis.post_filter_message = status.message
        nominated = result.nominated_node_name if result is not None and result.override else None
        if trace is not None:
            trace.post_filter_status, trace.post_filter_result = status, result
            if status.traceback:
                trace.notes.append(status.traceback)
    if trace is not None:
        trace.message, trace.full_message = message, str(fit_error)
    return CycleResult(
        status=Status(Code.UNSCHEDULABLE, error=fit_error),
        fit_error=fit_error,
        nominated=nominated,
        post_filter=result,
        evaluated=search.rejected,
    )
