"""The search for feasible nodes in a large cluster: the same nodes in the same order, with less asking.

Node-local filters are answered from rows (`rows.py`), filters that know a quick way answer for all nodes at once,
all others are asked node by node, and only about nodes that everybody before them let pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labkit.engine.rows import Index, NotKept
from labkit.engine.verdicts import VerdictRow, Verdicts
from labkit.framework.cycle_state import CycleState
from labkit.framework.node_info import NodeInfo
from labkit.framework.results import FilterCodes
from labkit.framework.status import Code, Status
from labkit.objects.pod import Pod

if TYPE_CHECKING:
    from labkit.engine.framework import Framework

Filters = list[tuple[str, Any, Any]]
#: Nodes looked at beyond those that are needed, so that a few rejections cost no second round.
_SPARE = 32


@dataclass
class Found:
    """Node indexes in the order of the search: `feasible` ones (as many as wanted), `rejected` ones, and all that
    were `visited`; an `error` on the last of these ended the search."""

    feasible: Index
    rejected: Index
    visited: Index
    error: Status | None = None


@dataclass
class _Plan:
    """How the filters of one attempt are asked: kept rows first, then whole columns, then node by node."""

    row: VerdictRow | None
    local: Filters
    columns: list[FilterCodes] = field(default_factory=list)
    single: Filters = field(default_factory=list)
    #: The row takes nominated pods into account; otherwise the nodes `contested` by them are asked about anew.
    with_nominated: bool = False
    contested: set[int] = field(default_factory=set)


class BatchSearch:
    """One search over all nodes of a large snapshot. NotKept when it must be made the ordinary way."""

    def __init__(self, framework: Framework, state: CycleState, pod: Pod) -> None:
        self._framework = framework
        self._state = state
        self._pod = pod
        self._filters = framework.active_filters(state)
        self._plan = self._make_plan()
        self._verdicts: dict[int, Status] = {}

    def run(self, start: int, want: int) -> Found:
        """From node `start` on, until one more than `want` nodes pass."""
        count = len(self._framework.snapshot.nodes)
        order = _order(count, start)
        passes = np.zeros(count, np.bool_)
        at = hits = 0
        error: Status | None = None
        while at < count and hits <= want and error is None:
            end = min(count, at + want + 1 + _SPARE)
            block = order[at:end]
            passed = self._by_rows_and_columns(block)
            if self._plan.single:
                end, error = self._one_by_one(block, passed, at, want + 1 - hits)
            passes[at:end] = passed[: end - at]
            hits += int(np.count_nonzero(passes[at:end]))
            at = end
        positions = np.flatnonzero(passes[:at])
        if len(positions) > want:
            at = int(positions[want])
            positions = positions[:want]
        rejected = order[:at][~passes[:at]]
        return Found(order[positions], rejected, order[: at + 1], error)

    def why(self, rejected: Index) -> Verdicts:
        """What was said of the rejected nodes of this search."""
        plan = self._plan
        if plan.row is not None:
            codes, statuses = plan.row.codes[rejected], plan.row.statuses
        else:
            codes, statuses = np.zeros(len(rejected), np.intp), []
        for column in plan.columns:
            said = column.codes[rejected]
            codes = np.where((codes == 0) & (said > 0), said + len(statuses), codes)
            statuses = [*statuses, *column.statuses]
        if self._verdicts:
            statuses = list(statuses)
            for k, i in enumerate(rejected.tolist()):
                if i in self._verdicts:
                    statuses.append(self._verdicts[i])
                    codes[k] = len(statuses)
        return Verdicts(self._framework.snapshot.nodes, rejected, codes, statuses)

    # --- the three ways of asking -----------------------------------------------------------------------------

    def _make_plan(self) -> _Plan:
        framework, pod = self._framework, self._pod
        signs: list[Any] = []
        for _, plugin, _ in self._filters:
            sign = framework.quick(plugin, "sign_pod")
            shape = sign(pod) if sign is not None else None
            if shape is None:
                break
            signs.append(shape)
        local, rest = self._filters[: len(signs)], self._filters[len(signs) :]
        shape = (tuple(name for name, _, _ in local), tuple(signs))
        nominated = framework.some_nominated
        if nominated and local and not rest and not framework.counts_pods(self._state):
            return _Plan(framework.row_with_nominated("filter", shape, pod), local, with_nominated=True)
        row = framework.rows.row(("filter", shape), VerdictRow, framework.snapshot) if local else None
        plan = _Plan(row, local, contested=self._contested() if nominated else set())
        for i, (_, plugin, _) in enumerate(rest):
            batch = framework.quick(plugin, "filter_batch")
            codes = batch(self._state, pod) if batch is not None else None
            if codes is None:
                plan.single = rest[i:]
                break
            plan.columns.append(codes)
        return plan

    def _by_rows_and_columns(self, block: Index) -> NDArray[np.bool_]:
        plan, nodes = self._plan, self._framework.snapshot.nodes
        if plan.row is not None:
            plan.row.fill(block, nodes, self._ask_local)
            passed: NDArray[np.bool_] = plan.row.codes[block] == 0
        else:
            passed = np.ones(len(block), np.bool_)
        for column in plan.columns:
            passed &= column.codes[block] == 0
        if plan.contested and not plan.single:
            for k, i in enumerate(block.tolist()):
                if i in plan.contested:
                    status = self._with_nominated(nodes[i])
                    passed[k] = status is None
                    if status is not None:
                        self._verdicts[i] = status
        return passed

    def _one_by_one(
        self, block: Index, passed: NDArray[np.bool_], at: int, enough: int
    ) -> tuple[int, Status | None]:
        """Ask the remaining filters; (position where the search stands, the error that ends it)."""
        nodes, framework = self._framework.snapshot.nodes, self._framework
        hits = 0
        for k, i in enumerate(block.tolist()):
            if i in self._plan.contested:
                status = framework.run_filter_with_nominated_pods(
                    self._state, self._pod, nodes[i], self._filters
                )
            elif passed[k]:
                status = framework.run_filter(self._state, self._pod, nodes[i], self._plan.single)
            else:
                continue
            passed[k] = status is None
            if status is None:
                hits += 1
                if hits == enough:
                    return at + k + 1, None
            elif status.code == Code.ERROR:
                return at + k, status
            else:
                self._verdicts[i] = status
        return at + len(block), None

    def _ask_local(self, node: NodeInfo) -> Status | None:
        framework, plan = self._framework, self._plan
        ask = framework.run_filter_with_nominated_pods if plan.with_nominated else framework.run_filter
        return ask(self._state, self._pod, node, plan.local)

    # --- nominated pods ---------------------------------------------------------------------------------------

    def _contested(self) -> set[int]:
        """Nodes to which pods of equal or higher priority are nominated."""
        framework, at = self._framework, self._framework.snapshot.by_name
        return {
            at[name].index
            for name in framework.nominated_nodes()
            if name in at and framework.rivals_of(self._pod, name)
        }

    def _with_nominated(self, node: NodeInfo) -> Status | None:
        status = self._framework.run_filter_with_nominated_pods(self._state, self._pod, node, self._filters)
        if status is not None and status.code == Code.ERROR:
            raise NotKept
        return status


@lru_cache(maxsize=4)
def _places(count: int) -> Index:
    return np.arange(count)


def _order(count: int, start: int) -> Index:
    places = _places(count)
    return places if start == 0 else np.concatenate((places[start:], places[:start]))
