"""One run of DefaultPreemption on a scene, kept in full: candidates, nodes tried in vain, and what each criterion left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from labkit.engine.framework import Framework
from labkit.engine.informer import typed
from labkit.engine.trace import Trace
from labkit.framework.plugin import plugin_name
from labkit.framework.results import NodeToStatus
from labkit.framework.status import Code, Status
from labkit.objects.cluster import PodDisruptionBudget
from labkit.objects.pod import Pod
from labkit.plugins._preemption import Candidate, best_candidates, sort_by_importance, split_by_budget
from labkit.plugins.default_preemption import DefaultPreemption
from labkit.widgets.scene import Json, Scene

_BUDGET = "PodDisruptionBudget"


@dataclass
class DryRun:
    """What DefaultPreemption found. `ran` is False when it did not get to look at nodes."""

    trace: Trace
    ran: bool = False
    candidates: list[Candidate] = field(default_factory=list)
    tried: dict[str, Status] = field(default_factory=dict)
    pods: dict[str, list[Pod]] = field(default_factory=dict)
    budgets: list[PodDisruptionBudget] = field(default_factory=list)
    enabled: bool = False

    @property
    def nominated(self) -> str:
        """The node that is taken, or ""."""
        result, status = self.trace.post_filter_result, self.trace.post_filter_status
        if result is None or status is None or not status.is_success:
            return ""
        return result.nominated_node_name

    @property
    def steps(self) -> list[tuple[str, list[Candidate]]]:
        """Each criterion that was needed, and the candidates that it left."""
        return best_candidates(self.candidates) if self.candidates else []

    def ranked(self) -> list[Candidate]:
        """Best first: the winners, then the winners among the rest, and so on."""
        left = list(self.candidates)
        found: list[Candidate] = []
        while left:
            best = {c.node for c in best_candidates(left)[-1][1]}
            found += sorted(
                (c for c in left if c.node in best), key=lambda c: (c.node != self.nominated, c.node)
            )
            left = [c for c in left if c.node not in best]
        return found

    def out_at(self, node: str) -> str | None:
        """The criterion by which a candidate lost; None for those that are left at the end."""
        for criterion, left in self.steps:
            if all(c.node != node for c in left):
                return criterion
        return None

    def put_back(self, node: str, priority: int) -> list[tuple[Pod, bool]]:
        """Pods of lower priority in the order in which they are put back, each with: would its eviction break a budget?"""
        lower = [p for p in self.pods.get(node, ()) if p.priority < priority]
        violating, fine = split_by_budget(sort_by_importance(lower), self.budgets)
        return [*((p, True) for p in violating), *((p, False) for p in fine)]

    def not_tried(self, node: str) -> bool:
        """Preemption leaves the node alone: its status is not Unschedulable."""
        status = self.trace.filter.get(node)
        return status is not None and status.code is not Code.UNSCHEDULABLE


class PreemptionScene(Scene):
    """A scene whose budgets can be changed, and that remembers the dry run."""

    def budgets(self) -> list[Json]:
        """The lab's PodDisruptionBudgets."""
        return self.lab.look(_BUDGET)

    def allow(self, budget: Json, disruptions: int) -> None:
        """Have this budget allow so many disruptions."""
        status = {**(budget.get("status") or {}), "disruptionsAllowed": disruptions}
        self._objects.put(_BUDGET, typed({**budget, "status": status}, _BUDGET))

    def preempt(self, pod: Json) -> DryRun:
        """Decide `pod`, and keep what DefaultPreemption looked at on the way."""
        found = DryRun(Trace(""))

        def listen(framework: Framework) -> None:
            for plugin in framework.plugins("post_filter"):
                if type(plugin) is DefaultPreemption:
                    found.enabled = True
                    _record(plugin, found)
                elif plugin_name(plugin) != "DynamicResources":
                    # A learner's own one is the lab's object: it might carry out what it decides.
                    framework.remove(plugin_name(plugin), ["post_filter"])
            found.pods = {n.name: [i.pod for i in n.pods] for n in framework.snapshot.nodes}

        found.trace = self.decide(pod, change=listen)
        found.budgets = list(self._objects.list(_BUDGET))
        return found


def _record(plugin: DefaultPreemption, into: DryRun) -> None:
    find = plugin.find_candidates

    def found(*args: Any) -> tuple[list[Candidate], NodeToStatus, list[str]]:
        candidates, tried, errors = find(*args)
        into.ran, into.candidates, into.tried = True, list(candidates), dict(tried)
        return candidates, tried, errors

    # The scene has made this plugin for one decision: nobody else meets the wrapped method.
    plugin.find_candidates = found  # type: ignore[method-assign, assignment]


def start_of(victims: Sequence[Pod]) -> str:
    """When the most important victim started, or "": victims come most important first."""
    return victims[0].status.start_time or ""
