"""A Framework that tells `Metrics` how long its extension points and plugins take. Used only with metrics on."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from labkit.engine.framework import Framework
from labkit.framework.cycle_state import CycleState
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import plugin_name
from labkit.framework.results import NodeToStatus, PostFilterResult, PreFilterResult
from labkit.framework.status import Code, Status
from labkit.objects.pod import Pod

if TYPE_CHECKING:
    from labkit.engine.trace import Trace

#: One cycle in ten has its plugins measured one by one.
_SAMPLED = 0.1
#: method -> the point's name in metrics
_POINTS = {
    "pre_enqueue": "PreEnqueue",
    "pre_filter": "PreFilter",
    "filter": "Filter",
    "post_filter": "PostFilter",
    "pre_score": "PreScore",
    "score": "Score",
    "reserve": "Reserve",
    "unreserve": "Unreserve",
    "permit": "Permit",
    "pre_bind": "PreBind",
    "bind": "Bind",
    "post_bind": "PostBind",
}
Found = tuple[list[NodeInfo], Status | None]


class MeasuredFramework(Framework):
    """Same answers, plus measurements. `services.metrics` is a `labkit.engine.metrics.Metrics`."""

    _sampled = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Which cycles are sampled changes no decision.
        self._rng = random.Random(0)

    def plugins(self, point: str) -> list[Any]:
        """The plugins, each in a wrapper that measures its calls at this point."""
        found = super().plugins(point)
        return [_Measured(p, point, self) for p in found] if point in _POINTS else found

    def _point(self, name: str, status: Status | None, started: float) -> None:
        label = (status.code if status is not None else Code.SUCCESS).label
        seconds = time.perf_counter() - started
        self.services.metrics.extension_point(name, label, self.profile_name, seconds)

    # --- Filter: once for all nodes ---------------------------------------------------------------------------

    def active_filters(self, state: CycleState) -> list[tuple[str, Any, Any]]:
        """The filters, counting their calls."""
        return [(name, plugin, self._counting(name, check)) for name, plugin, check in self._filters(state)]

    def _filters(self, state: CycleState) -> list[tuple[str, Any, Any]]:
        skip = state.skip_filter_plugins
        found = [(plugin_name(p), p) for p, _ in self._points["filter"]]
        return [(name, p, p.filter) for name, p in found if name not in skip]

    def _counting(self, name: str, check: Callable[..., Any]) -> Callable[..., Any]:
        calls, sampled, metrics = self._calls, self._sampled, self.services.metrics

        def counted(state: CycleState, pod: Pod, node: NodeInfo) -> Any:
            calls[name] += 1
            if not sampled:
                return check(state, pod, node)
            started = time.perf_counter()
            status = check(state, pod, node)
            metrics.plugin(name, "Filter", _label(status), time.perf_counter() - started)
            return status

        return counted

    _calls: Counter[str] = Counter()

    def observe_search(self, search: Callable[[], Found]) -> Found:
        """Measured as one call of the point Filter."""
        self._calls = Counter()
        started = time.perf_counter()
        feasible, error = search()
        self._point("Filter", error, started)
        for name, times in self._calls.items():
            self.services.metrics.evaluated(name, "Filter", self.profile_name, times)
        return feasible, error

    # --- the other points -------------------------------------------------------------------------------------

    def run_pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], trace: Trace | None = None
    ) -> tuple[PreFilterResult, Status | None, set[str]]:
        """Measured. A cycle begins here: is it a sampled one?"""
        self._sampled = self._rng.random() < _SAMPLED
        started = time.perf_counter()
        found = super().run_pre_filter(state, pod, nodes, trace)
        self._point("PreFilter", found[1], started)
        return found

    def run_post_filter(
        self, state: CycleState, pod: Pod, statuses: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """Measured."""
        started = time.perf_counter()
        result, status = super().run_post_filter(state, pod, statuses)
        self._point("PostFilter", status, started)
        if result is not None and result.victims:
            self.services.metrics.preemption(len(result.victims))
        return result, status

    def run_pre_score(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], trace: Trace | None = None
    ) -> Status | None:
        """Measured."""
        started = time.perf_counter()
        status = super().run_pre_score(state, pod, nodes, trace)
        self._point("PreScore", status, started)
        return status

    def run_score(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo], trace: Trace | None = None
    ) -> tuple[list[int], Status | None]:
        """Measured."""
        started = time.perf_counter()
        totals, status = super().run_score(state, pod, nodes, trace)
        self._point("Score", status, started)
        for plugin, _ in self._points["score"]:
            name = plugin_name(plugin)
            if name not in state.skip_score_plugins:
                self.services.metrics.evaluated(name, "Score", self.profile_name, len(nodes))
        return totals, status

    def run_reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Measured."""
        started = time.perf_counter()
        status = super().run_reserve(state, pod, node_name)
        self._point("Reserve", status, started)
        return status

    def run_unreserve(self, state: CycleState, pod: Pod, node_name: str) -> list[Status]:
        """Measured."""
        started = time.perf_counter()
        problems = super().run_unreserve(state, pod, node_name)
        self._point("Unreserve", None, started)
        return problems

    def run_permit(
        self, state: CycleState, pod: Pod, node_name: str
    ) -> tuple[Status | None, dict[str, float]]:
        """Measured."""
        started = time.perf_counter()
        status, waits = super().run_permit(state, pod, node_name)
        self._point("Permit", status, started)
        return status, waits

    def run_pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Measured."""
        started = time.perf_counter()
        status = super().run_pre_bind(state, pod, node_name)
        self._point("PreBind", status, started)
        return status

    def run_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        """Measured."""
        started = time.perf_counter()
        status = super().run_bind(state, pod, node_name)
        self._point("Bind", status, started)
        return status

    def run_post_bind(self, state: CycleState, pod: Pod, node_name: str) -> list[Status]:
        """Measured."""
        started = time.perf_counter()
        problems = super().run_post_bind(state, pod, node_name)
        self._point("PostBind", None, started)
        return problems

    def plugin_called(self, plugin: str, method: str, answer: Any, seconds: float) -> None:
        """A wrapped plugin answered."""
        metrics, point = self.services.metrics, _POINTS[method]
        if method == "pre_enqueue":
            # Upstream's label says Success here whatever the plugin answered.
            metrics.extension_point(point, "Success", self.profile_name, seconds)
            return
        label = _label(answer)
        if method in ("pre_filter", "pre_score") and label != "Skip":
            metrics.evaluated(plugin, point, self.profile_name)
        if method == "post_filter" and plugin == "DefaultPreemption":
            metrics.preemption_attempt()
        if self._sampled:
            metrics.plugin(plugin, point, label, seconds)


class _Measured:
    """A plugin with a stop-watch at one of its methods; all else is the plugin's own."""

    def __init__(self, plugin: Any, method: str, framework: MeasuredFramework) -> None:
        self._plugin = plugin
        self._method = method
        self._framework = framework
        self.name = plugin_name(plugin)

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(self._plugin, attribute)
        if attribute != self._method:
            return found

        def measured(*args: Any) -> Any:
            started = time.perf_counter()
            answer = found(*args)
            seconds = time.perf_counter() - started
            self._framework.plugin_called(self.name, self._method, answer, seconds)
            return answer

        return measured


def _label(answer: Any) -> str:
    if isinstance(answer, tuple):
        answer = next((part for part in answer if isinstance(part, Status)), None)
    return answer.code.label if isinstance(answer, Status) else Code.SUCCESS.label
