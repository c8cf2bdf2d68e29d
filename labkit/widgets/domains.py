"""What the plugins counted for one decision, by topology domain: read from their own state, nothing is counted here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from labkit.engine.framework import Framework
from labkit.engine.trace import Trace
from labkit.framework.cycle_state import CycleState
from labkit.framework.plugin import plugin_name
from labkit.objects.pod import Pod
from labkit.plugins._affinity_counts import FilterState, topology_of
from labkit.plugins._spread_constraints import HOSTNAME
from labkit.plugins._spread_counts import HardState, SoftState

SPREAD, AFFINITY = "PodTopologySpread", "InterPodAffinity"
Kind = Literal["hard", "soft", "together", "apart", "kept-out", "wishes"]


@dataclass
class Domain:
    """A value of a topology key (None: nodes without the label). `count` None: the plugin does not count it."""

    value: str | None
    nodes: list[str] = field(default_factory=list)
    count: int | None = None
    skew: int | None = None


@dataclass
class Rule:
    """One constraint or term, or what existing pods want within one topology key."""

    kind: Kind
    plugin: str
    key: str
    domains: list[Domain]
    max_skew: int = 0
    min_domains: int = 1
    minimum: int = 0
    self_match: bool = False

    @property
    def counted(self) -> int:
        """How many domains the plugin counts."""
        return sum(d.count is not None for d in self.domains)

    @property
    def nobody(self) -> bool:
        """No pod matches anywhere."""
        return not any(d.count for d in self.domains)


def rules(framework: Framework, pod: Pod, trace: Trace) -> list[Rule]:
    """All rules that hold for `pod`: the hard ones in the order of its manifest, then what is only scored.

    The soft ones are known once the trace has scores: their domains are those of feasible nodes.
    """
    snapshot = framework.snapshot
    labels = {n.name: n.node.metadata.labels for n in snapshot.nodes}
    found: list[Rule] = []
    state = CycleState()
    for plugin in framework.plugins("pre_filter"):
        if plugin_name(plugin) in (SPREAD, AFFINITY):
            plugin.pre_filter(state, pod, snapshot.nodes)
    hard: HardState | None = state.get(f"PreFilter{SPREAD}")
    if hard is not None:
        found += _hard(hard, labels)
    near: FilterState | None = state.get(f"PreFilter{AFFINITY}")
    if near is not None:
        found += _required(near, labels)
    feasible = [n for n in snapshot.nodes if n.name in trace.scores]
    for plugin in framework.plugins("pre_score") if feasible else ():
        if plugin_name(plugin) in (SPREAD, AFFINITY):
            plugin.pre_score(state, pod, feasible)
    soft: SoftState | None = state.get(f"PreScore{SPREAD}")
    if soft is not None:
        counts = [
            {n.node.labels[c.key]: c.count(pod, n) for n in feasible if c.key in n.node.labels}
            if c.key == HOSTNAME
            else soft.counts[i]
            for i, c in enumerate(soft.constraints)
        ]
        found += [
            Rule(
                "soft",
                SPREAD,
                c.key,
                [Domain(v, ns, n.get(v) if v is not None else None) for v, ns in _values(labels, c.key)],
                c.max_skew,
                self_match=c.selector.matches(pod.labels),
            )
            for c, n in zip(soft.constraints, counts, strict=True)
        ]
    points: Any = state.get(f"PreScore{AFFINITY}")
    if points is not None:
        by_key = points if isinstance(points, dict) else topology_of(points)
        found += [_amounts("wishes", key, labels, by_key[key]) for key in sorted(by_key)]
    return found


def _hard(state: HardState, labels: Mapping[str, Mapping[str, str]]) -> list[Rule]:
    found = []
    for i, c in enumerate(state.constraints):
        counts, minimum, own = state.counts[i], state.minimum(i), state.self_match[i]
        domains = [
            Domain(value, nodes)
            if value is None
            else Domain(value, nodes, counts.get(value), counts.get(value, 0) + own - minimum)
            for value, nodes in _values(labels, c.key)
        ]
        found.append(Rule("hard", SPREAD, c.key, domains, c.max_skew, c.min_domains, minimum, bool(own)))
    return found


def _required(state: FilterState, labels: Mapping[str, Mapping[str, str]]) -> list[Rule]:
    def of(counts: Mapping[tuple[str, str], int], key: str) -> dict[str, int]:
        return {value: n for (k, value), n in counts.items() if k == key}

    together = dict.fromkeys(t.key for t in state.required)
    apart = dict.fromkeys(t.key for t in state.required_anti)
    closed = dict.fromkeys(sorted(k for k, _ in state.existing_anti))
    return [
        *(_amounts("together", k, labels, of(state.affinity, k)) for k in together),
        *(_amounts("apart", k, labels, of(state.anti, k)) for k in apart),
        *(_amounts("kept-out", k, labels, of(state.existing_anti, k)) for k in closed),
    ]


def _amounts(kind: Kind, key: str, labels: Mapping[str, Mapping[str, str]], by: Mapping[str, int]) -> Rule:
    domains = [
        Domain(value, nodes, None if value is None else by.get(value, 0))
        for value, nodes in _values(labels, key)
    ]
    return Rule(kind, AFFINITY, key, domains)


def _values(labels: Mapping[str, Mapping[str, str]], key: str) -> list[tuple[str | None, list[str]]]:
    """Values of a label with their nodes, in byte order; the nodes without it at the end."""
    by: dict[str | None, list[str]] = {}
    for node in sorted(labels):
        by.setdefault(labels[node].get(key), []).append(node)
    return sorted(by.items(), key=lambda e: (e[0] is None, e[0] or ""))
