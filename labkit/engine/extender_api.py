"""What the engine asks of an extender (spec 04). The HTTP client is one implementation; tests bring their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from labkit.framework.node_info import NodeInfo
from labkit.objects.pod import Pod

if TYPE_CHECKING:
    from labkit.framework.snapshot import Snapshot


@dataclass(slots=True)
class FilterResult:
    """Nodes that are left, and messages for nodes that are not: where preemption might help, and where not."""

    nodes: list[NodeInfo]
    failed: dict[str, str] = field(default_factory=dict)
    failed_and_unresolvable: dict[str, str] = field(default_factory=dict)


class Extender(Protocol):
    """One configured extender. Every method that asks the extender raises an exception whose text is the error."""

    name: str
    ignorable: bool
    weight: int

    @property
    def is_filter(self) -> bool:
        """It has a filter verb."""

    @property
    def is_prioritizer(self) -> bool:
        """It has a prioritize verb."""

    @property
    def is_binder(self) -> bool:
        """It has a bind verb."""

    @property
    def supports_preemption(self) -> bool:
        """It has a preempt verb."""

    def is_interested(self, pod: Pod) -> bool:
        """No managed resources, or the pod names one of them in requests or limits of a container (§4)."""

    def filter(self, pod: Pod, nodes: Sequence[NodeInfo]) -> FilterResult:
        """Which of `nodes` are left (§6)."""

    def prioritize(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Iterable[tuple[str, int]]:
        """(host, score) pairs, neither clamped nor weighted (§7)."""

    def bind(self, pod: Pod, node_name: str) -> None:
        """Bind the pod (§8)."""

    def process_preemption(self, pod: Pod, candidates: list[Any], snapshot: Snapshot) -> list[Any]:
        """What is left of the candidates (objects with `node`, `victims`, `violations`), in any order (§9)."""
