"""The search for feasible nodes in a large cluster: the same nodes in the same order, with less asking.

Node-local filters are answered from rows (`rows.py`), filters that know a quick way answer for all nodes at once,
all others are asked node by node, and only about nodes that everybody before them let pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from labkit.engine.rows import FilterRow, Index, NotKept
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
    status_of: Callable[[int], Status]
    error: Status | None = None


@dataclass
class _Plan:
    """How the filters of one attempt are asked: kept rows first, then whole columns, then node by node."""

    row: FilterRow | None
    local: Filters
    columns: list[FilterCodes] = field(default_factory=list)
    single: Filters = field(default_factory=list)


class BatchSearch:
    """One search over all nodes of a large snapshot. NotKept when it must be made the ordinary way."""

    def __init__(self, framework: Framework, state: CycleState, pod: Pod) -> None:
        self._framework = framework
        self._state = state
        self._pod = pod
        self._filters = framework.active_filters(state)
        self._plan = self._make_plan()
        self._verdicts: dict[int, Status] = {}
        self._rivals = self._places_with_rivals()

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
        return Found(order[positions], rejected, order[: at + 1], self._status_of, error)

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
        row = None
        if local:
            shape = (tuple(name for name, _, _ in local), tuple(signs))
            row = framework.rows.filter_row(shape, framework.snapshot)
        plan = _Plan(row, local)
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
            passed = plan.row.passes[block]
        else:
            passed = np.ones(len(block), np.bool_)
        for column in plan.columns:
            passed &= column.codes[block] == 0
        if self._rivals and not plan.single:
            for i, k in self._places_in(block):
                status = self._with_rivals(nodes[i], i)
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
            if i in self._rivals:
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
        return self._framework.run_filter(self._state, self._pod, node, self._plan.local)

    # --- nominated pods ---------------------------------------------------------------------------------------

    def _places_with_rivals(self) -> dict[int, tuple[str, ...]]:
        """Indexes of nodes to which pods of equal or higher priority are nominated, with the uids of those."""
        framework, pod = self._framework, self._pod
        at = framework.snapshot.by_name
        found = {}
        for name in framework.nominated_nodes():
            node = at.get(name)
            rivals = framework.rivals_of(pod, name) if node is not None else []
            if node is not None and rivals:
                found[node.index] = tuple(r.uid for r in rivals)
        return found

    def _places_in(self, block: Index) -> list[tuple[int, int]]:
        mark = np.zeros(len(self._framework.snapshot.nodes), np.bool_)
        mark[list(self._rivals)] = True
        return [(int(block[k]), k) for k in np.flatnonzero(mark[block]).tolist()]

    def _with_rivals(self, node: NodeInfo, i: int) -> Status | None:
        row, rivals = self._plan.row, self._rivals[i]
        # Only what node-local filters say depends on nothing but this node and the pods on it.
        kept = row.with_rivals if row is not None and not self._plan.columns else None
        if kept is not None and i in kept and kept[i][0] == rivals:
            return kept[i][1]
        status = self._framework.run_filter_with_nominated_pods(self._state, self._pod, node, self._filters)
        if status is not None and status.code == Code.ERROR:
            raise NotKept
        if kept is not None:
            kept[i] = (rivals, status)
        return status

    # --- why not ------------------------------------------------------------------------------------------------

    def _status_of(self, i: int) -> Status:
        found = self._verdicts.get(i)
        if found is None and self._plan.row is not None:
            found = self._plan.row.statuses.get(i)
        if found is None:
            codes = (c.statuses[c.codes[i] - 1] for c in self._plan.columns if c.codes[i])
            found = next(codes)
        return found


@lru_cache(maxsize=4)
def _places(count: int) -> Index:
    return np.arange(count)


def _order(count: int, start: int) -> Index:
    places = _places(count)
    return places if start == 0 else np.concatenate((places[start:], places[:start]))
