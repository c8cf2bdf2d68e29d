"""Finding the nodes where a pod can run (spec 01 §5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from labkit.engine.trace import SUCCESS, Trace, timed
from labkit.framework.cycle_state import CycleState
from labkit.framework.node_info import NodeInfo
from labkit.framework.results import Diagnosis, NodeToStatus
from labkit.framework.status import Code, Status
from labkit.i18n import t
from labkit.objects.pod import Pod

if TYPE_CHECKING:
    from labkit.engine.framework import Framework

_MIN_FEASIBLE = 100
_MIN_PERCENTAGE = 5
EXTENDER = "Extender"


@dataclass
class Rotation:
    """Where the next search starts; shared by all profiles of a scheduler."""

    next_start: int = 0


class AttemptError(Exception):
    """An attempt that ended in an error which is no FitError."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


def num_feasible_to_find(nodes: int, percentage: int) -> int:
    """How many feasible nodes are enough; `percentage` 0 adapts to the cluster's size."""
    if nodes < _MIN_FEASIBLE:
        return nodes
    if percentage == 0:
        percentage = max(_MIN_PERCENTAGE, 50 - nodes // 125)
    return max(_MIN_FEASIBLE, nodes * percentage // 100)


@dataclass
class Search:
    """One search: the profile, the pod and its state, the global percentage, and the rotation."""

    framework: Framework
    state: CycleState
    pod: Pod
    rotation: Rotation
    percentage: int = 0
    all_nodes: bool = False
    trace: Trace | None = None
    diagnosis: Diagnosis = field(default_factory=Diagnosis)
    #: Rejections that nobody will ask about: counted, not written into the diagnosis.
    untold: int = 0

    def run(self) -> list[NodeInfo]:
        """Feasible nodes, in the order in which they were found. AttemptError when a plugin or extender fails."""
        nodes = self.framework.snapshot.nodes
        with timed(self.trace, "PreFilter"):
            allowed, status, restricting = self.framework.run_pre_filter(
                self.state, self.pod, nodes, self.trace
            )
        if self.trace is not None:
            self.trace.pre_filter_ran = True
            self.trace.allowed_nodes = None if allowed.node_names is None else sorted(allowed.node_names)
        self.diagnosis.unschedulable_plugins = set(restricting)
        if status is not None and not status.is_success:
            if not status.is_rejected:
                raise AttemptError(status)
            self.diagnosis.node_to_status = NodeToStatus(status)
            self.diagnosis.pre_filter_message = status.message
            self.diagnosis.add_plugin_status(status)
            return []
        if self.pod.status.nominated_node_name:
            found = self._nominated_node(nodes, allowed.node_names)
            if found:
                return found
        candidates: Sequence[NodeInfo] = nodes
        if allowed.node_names is not None:
            candidates = [n for n in nodes if n.name in allowed.node_names]
            # The real scheduler shares one set: what rejected the nominated node is named here as well.
            named = " ".join(sorted(self.diagnosis.unschedulable_plugins))
            text = f"node(s) didn't satisfy plugin(s) [{named}]"
            self.diagnosis.node_to_status.absent = Status.unresolvable(text)
        with timed(self.trace, "Filter"):
            feasible, error = self.framework.observe_search(lambda: self._pass_filters(candidates))
        processed = len(feasible) + self.rejected
        self.rotation.next_start = (self.rotation.next_start + processed) % len(nodes)
        if error is not None:
            raise AttemptError(error)
        kept = self._extenders(feasible)
        if len(kept) != len(feasible):
            self.diagnosis.unschedulable_plugins.add(EXTENDER)
        return kept

    def _nominated_node(self, nodes: Sequence[NodeInfo], allowed: set[str] | None) -> list[NodeInfo]:
        node = self.framework.snapshot.by_name.get(self.pod.status.nominated_node_name)
        if node is None:
            return []
        # Looked at on its own, whatever PreFilter allows; a rejection stays for the full search.
        feasible, error = self.framework.observe_search(lambda: self._pass_filters([node], start=0))
        if (
            self.trace is not None
            and self.trace.all_filters
            and allowed is not None
            and node.name not in allowed
        ):
            # A recorded decision has the verdicts of the nodes that PreFilter allows.
            self.trace.filter.pop(node.name, None)
            self.trace.filter_by_plugin.pop(node.name, None)
        if error is not None:
            return []
        try:
            kept = self._extenders(feasible)
        except AttemptError:
            return []
        if kept and self.trace is not None:
            self.trace.notes.append(
                t(
                    f"Only the nominated node {node.name} was considered: it passes all filters.",
                    f"只考虑了提名节点 {node.name}：它通过了所有过滤。",
                )
            )
            self._record_others(nodes, node, allowed)
        return kept

    def _record_others(self, nodes: Sequence[NodeInfo], chosen: NodeInfo, allowed: set[str] | None) -> None:
        if self.trace is None or not self.trace.all_filters:
            return
        for node in nodes:
            if node is not chosen and (allowed is None or node.name in allowed):
                status = self.framework.run_filter_with_nominated_pods(self.state, self.pod, node)
                self._record(node, status)

    def _pass_filters(
        self, nodes: Sequence[NodeInfo], start: int | None = None
    ) -> tuple[list[NodeInfo], Status | None]:
        framework, state, pod = self.framework, self.state, self.pod
        count = len(nodes)
        want = count if self.all_nodes else num_feasible_to_find(count, self._percentage())
        if not self.all_nodes and self._one_is_enough():
            want = 1
        first = self.rotation.next_start if start is None else start
        if not framework.has("filter"):
            found = [nodes[(first + i) % count] for i in range(want)] if count else []
            if self.all_nodes and self.trace is not None:
                for node in found:
                    self._record(node, None)
            return found, None
        if start is None and self._may_batch(nodes):
            from labkit.engine.rows import NotKept

            try:
                return self._pass_in_batch(first, want)
            except NotKept:
                pass
        filters = framework.active_filters(state)
        feasible: list[NodeInfo] = []
        first_error: Status | None = None
        statuses = self.diagnosis.node_to_status
        for i in range(count):
            node = nodes[(first + i) % count]
            status = framework.run_filter_with_nominated_pods(state, pod, node, filters)
            if self.trace is not None:
                self._record(node, status)
            if status is None:
                if len(feasible) == want:
                    break
                feasible.append(node)
            elif status.code == Code.ERROR:
                if self.trace is None or not self.all_nodes:
                    return feasible, status
                # A recorded decision shows every node's verdict, beside the error that ended the attempt.
                first_error = first_error or status
            else:
                statuses.set(node.name, status)
                self.diagnosis.add_plugin_status(status)
        return feasible, first_error

    def _may_batch(self, nodes: Sequence[NodeInfo]) -> bool:
        return (
            self.framework.keeps_answers
            and nodes is self.framework.snapshot.nodes
            and (self.trace is None or not self.trace.all_filters)
        )

    def _pass_in_batch(self, first: int, want: int) -> tuple[list[NodeInfo], Status | None]:
        from labkit.engine.batch import BatchSearch
        from labkit.engine.rows import NotKept

        nodes = self.framework.snapshot.nodes
        search = BatchSearch(self.framework, self.state, self.pod)
        found = search.run(first, want)
        if found.error is not None and self.all_nodes:
            raise NotKept
        feasible = [nodes[i] for i in found.feasible.tolist()]
        statuses = self.diagnosis.node_to_status
        if feasible and found.error is None and self.trace is None and not self.framework.extenders:
            self.untold = (
                sum(nodes[i].name not in statuses for i in found.rejected.tolist())
                if statuses
                else len(found.rejected)
            )
            return feasible, None
        why = search.why(found.rejected)
        statuses.record(why)
        for status, _ in statuses.counts():
            self.diagnosis.add_plugin_status(status)
        if self.trace is not None:
            verdicts = dict.fromkeys([nodes[i].name for i in found.visited.tolist()], SUCCESS)
            verdicts.update(why.items())
            if found.error is not None:
                verdicts[next(reversed(verdicts))] = found.error
            self.trace.filter.update(verdicts)
        return feasible, found.error

    @property
    def rejected(self) -> int:
        """Number of nodes that were rejected."""
        return len(self.diagnosis.node_to_status) + self.untold

    def _record(self, node: NodeInfo, status: Status | None) -> None:
        assert self.trace is not None
        self.trace.filter[node.name] = status or SUCCESS
        if self.trace.all_filters:
            each = self.framework.run_each_filter(self.state, self.pod, node)
            self.trace.filter_by_plugin[node.name] = {name: s or SUCCESS for name, s in each.items()}

    def _percentage(self) -> int:
        own = self.framework.percentage_of_nodes_to_score
        return self.percentage if own is None else own

    def _one_is_enough(self) -> bool:
        extenders = self.framework.extenders
        return not self.framework.has("score") and not any(e.is_filter or e.is_prioritizer for e in extenders)

    def _extenders(self, feasible: list[NodeInfo]) -> list[NodeInfo]:
        for extender in self.framework.extenders:
            if not feasible:
                break
            if not extender.is_interested(self.pod):
                continue
            feasible = self._ask(extender, feasible)
        return feasible

    def _ask(self, extender: Any, feasible: list[NodeInfo]) -> list[NodeInfo]:
        if not extender.is_filter:
            return feasible
        try:
            result = extender.filter(self.pod, feasible)
        except Exception as e:
            if extender.ignorable:
                if self.trace is not None:
                    self.trace.notes.append(
                        t(
                            f"Extender {extender.name} was passed over (ignorable): {e}",
                            f"跳过了 extender {extender.name}（ignorable）：{e}",
                        )
                    )
                return feasible
            raise AttemptError(Status.as_error_of(e)) from e
        statuses = self.diagnosis.node_to_status
        for name, message in result.failed_and_unresolvable.items():
            statuses.set(name, Status.unresolvable(message))
        for name, message in result.failed.items():
            if name not in result.failed_and_unresolvable:
                statuses.set(name, Status.unschedulable(message))
        kept: list[NodeInfo] = result.nodes
        return kept
