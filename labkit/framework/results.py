"""What extension points hand back besides a Status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from labkit.framework.node_info import NodeInfo
from labkit.framework.snapshot import Snapshot
from labkit.framework.status import Code, Status

MAX_NODE_SCORE = 100
MIN_NODE_SCORE = 0


@dataclass(slots=True)
class PreFilterResult:
    """Node names that PreFilter allows; None means all nodes."""

    node_names: set[str] | None = None

    def merge(self, other: PreFilterResult | None) -> PreFilterResult:
        """Intersection; "all" is neutral."""
        if other is None or other.node_names is None:
            return PreFilterResult(None if self.node_names is None else set(self.node_names))
        if self.node_names is None:
            return PreFilterResult(set(other.node_names))
        return PreFilterResult(self.node_names & other.node_names)


@dataclass(slots=True)
class NodeScore:
    """A node's score from one plugin; `normalize_score` changes `score` in place."""

    name: str
    score: int


@dataclass(slots=True)
class PostFilterResult:
    """The node to nominate. `override` False means: leave `status.nominatedNodeName` alone ("no-op")."""

    nominated_node_name: str = ""
    override: bool = True
    #: Facts for the trace; filled by DefaultPreemption (spec 13), read by widgets and conformance.
    victims: list[str] = field(default_factory=list)
    candidates: Mapping[str, dict[str, object]] = field(default_factory=dict)
    ties: list[str] = field(default_factory=list)


class FilterCodes(NamedTuple):
    """A filter's verdicts about all nodes of the snapshot: 0 passes, k gets `statuses[k - 1]`.

    `codes`: integer array by node index.
    """

    codes: Any
    statuses: tuple[Status, ...]


@dataclass(slots=True)
class PreBindPreFlightResult:
    """`allow_parallel`: the plugin's PreBind may run beside its neighbours'."""

    allow_parallel: bool = False


class NodeVerdicts(Protocol):
    """Statuses of many nodes at once, each node at most once (`labkit.engine.verdicts.Verdicts`)."""

    #: All nodes of the snapshot that the verdicts are about, in snapshot order.
    nodes: Sequence[NodeInfo]

    def __len__(self) -> int: ...

    def items(self) -> Iterable[tuple[str, Status]]:
        """(node name, status)."""

    def counts(self) -> Iterable[tuple[Status, int]]:
        """Each status, and how many nodes have it."""

    def with_code(self, code: Code, *, others: bool) -> list[NodeInfo]:
        """Nodes whose status has `code`, and with `others` those that have none, in snapshot order."""


class NodeToStatus(Mapping[str, Status]):
    """Rejected nodes and their statuses, plus one status for every node not named (spec 01 §1.3)."""

    def __init__(self, absent: Status | None = None) -> None:
        self._by_name: dict[str, Status] = {}
        #: Instead of `_by_name`, until somebody asks for a node by name: that takes a name for each node.
        self._verdicts: NodeVerdicts | None = None
        self.absent = absent or Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    def set(self, name: str, status: Status) -> None:
        """Record the status of node `name`."""
        self._explicit[name] = status

    def record(self, verdicts: NodeVerdicts) -> None:
        """Record the statuses of many nodes."""
        if self:
            self._explicit.update(verdicts.items())
        else:
            self._verdicts = verdicts

    @property
    def _explicit(self) -> dict[str, Status]:
        if self._verdicts is not None:
            self._by_name = dict(self._verdicts.items())
            self._verdicts = None
        return self._by_name

    def __getitem__(self, name: str) -> Status:
        return self._explicit.get(name, self.absent)

    def __iter__(self) -> Iterator[str]:
        return iter(self._explicit)

    def __len__(self) -> int:
        return len(self._by_name if self._verdicts is None else self._verdicts)

    def __contains__(self, name: object) -> bool:
        return name in self._explicit

    def counts(self) -> Iterable[tuple[Status, int]]:
        """Statuses of the nodes that have one of their own, and of how many nodes each is."""
        return _same_objects(self._by_name.values()) if self._verdicts is None else self._verdicts.counts()

    def nodes_for_code(self, snapshot: Snapshot, code: Code) -> list[NodeInfo]:
        """Snapshot nodes whose effective status has `code`, in snapshot order."""
        verdicts, absent = self._verdicts, self.absent
        if verdicts is not None and verdicts.nodes is snapshot.nodes:
            return verdicts.with_code(code, others=absent.code == code)
        get = self._explicit.get
        return [node for node in snapshot.nodes if get(node.name, absent).code == code]


@dataclass(slots=True)
class Diagnosis:
    """Why an attempt found no node (spec 01 §1.4)."""

    node_to_status: NodeToStatus = field(default_factory=NodeToStatus)
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    pre_filter_message: str = ""
    post_filter_message: str = ""

    def add_plugin_status(self, status: Status) -> None:
        """Remember the plugin of a rejecting status."""
        if not status.plugin or not status.is_rejected:
            return
        self.unschedulable_plugins.add(status.plugin)
        if status.code == Code.PENDING:
            self.pending_plugins.add(status.plugin)


class FitError(Exception):
    """No node fits. `str()` is the message of the FailedScheduling event (spec 01 §7)."""

    def __init__(self, num_all_nodes: int, diagnosis: Diagnosis) -> None:
        super().__init__(num_all_nodes)
        self.num_all_nodes = num_all_nodes
        self.diagnosis = diagnosis

    def __str__(self) -> str:
        d = self.diagnosis
        text = f"0/{self.num_all_nodes} nodes are available:"
        if d.pre_filter_message:
            text += f" {d.pre_filter_message}."
        else:
            statuses = d.node_to_status
            parts = reason_histogram(statuses.counts(), statuses.absent, self.num_all_nodes)
            if parts:
                text += f" {', '.join(parts)}."
        if d.post_filter_message:
            text += f" {d.post_filter_message}"
        return text


def _same_objects(statuses: Iterable[Status]) -> Iterable[tuple[Status, int]]:
    """Each object once, and how often it is there: plugins say the same of many nodes, often with the same object."""
    objects = list(statuses)
    times = Counter(map(id, objects))
    return ((status, times[key]) for key, status in {id(s): s for s in objects}.items())


def reason_histogram(statuses: Iterable[tuple[Status, int]], absent: Status, num_all_nodes: int) -> list[str]:
    """`["2 Insufficient cpu", ...]` from statuses and how many nodes have each, byte-wise sorted; nodes without a
    status count with the absent one's reasons."""
    counts: Counter[str] = Counter()
    seen = 0
    for status, times in statuses:
        seen += times
        for reason in status.reasons:
            counts[reason] += times
    if num_all_nodes > seen:
        for reason in absent.reasons:
            counts[reason] += num_all_nodes - seen
    return sorted((f"{n} {reason}" for reason, n in counts.items()), key=lambda s: s.encode())
