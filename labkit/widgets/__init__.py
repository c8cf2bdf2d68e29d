"""Views on a lab or a trace. Controllers hold the state and can be tested without a kernel; no scheduling logic.

Each function returns a widget to put last in a cell.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labkit.engine.trace import Trace
    from labkit.extender.server import ExtenderServer
    from labkit.lab import Lab
    from labkit.several import SeveralSchedulers
    from labkit.widgets.base import LabWidget


class _Family(ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        # Python puts an imported submodule into its package: `labkit.widgets.playground` the module would take
        # the place of `playground` the function with the first call.
        if not (isinstance(value, ModuleType) and callable(self.__dict__.get(name))):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Family


def resources_explorer(lab: Lab, *, cpu: str = "1", memory: str = "1Gi") -> LabWidget:
    """Sliders for a pod's requests, the scoring strategy and the resource weights; nodes and scores as you move."""
    from labkit.widgets.base import LabWidget
    from labkit.widgets.resources import ResourcesExplorerController

    return LabWidget(ResourcesExplorerController(lab, cpu=cpu, memory=memory))


def trace_explorer(source: Lab | Trace | list[Trace]) -> LabWidget:
    """A decision plugin by plugin; of a lab, all decisions so far."""
    from labkit.widgets.base import LabWidget
    from labkit.widgets.trace import TraceExplorerController

    traces: Any = getattr(source, "traces", source)
    return LabWidget(TraceExplorerController(list(traces) if isinstance(traces, list) else [traces]))


def cluster_map(lab: Lab) -> LabWidget:
    """Nodes in their zones, with the pods on them."""
    from labkit.widgets.base import LabWidget
    from labkit.widgets.cluster_map import ClusterMapController

    return LabWidget(ClusterMapController(lab))


def playground(lab: Lab) -> LabWidget:
    """The whole lab in one picture, to step through, with the score plugins' switches and weights. It drives the lab."""
    from labkit.widgets.base import LabWidget
    from labkit.widgets.playground import PlaygroundController

    return LabWidget(PlaygroundController(lab))


def filter_matrix(lab: Lab, pod: Any) -> LabWidget:
    """Every node against every Filter plugin. `pod`: the name of a pod in the lab, or a manifest (YAML text or dict)."""
    from labkit.widgets.base import LabWidget
    from labkit.widgets.filter_matrix import FilterMatrixController

    return LabWidget(FilterMatrixController(lab, pod))


def score_explorer(lab: Lab, pod: Any) -> LabWidget:
    """Weights, switches and strategies of the score plugins, and which one decides. `pod` as in `filter_matrix`."""
    from labkit.widgets.base import LabWidget
    from labkit.widgets.score_explorer import ScoreExplorerController

    return LabWidget(ScoreExplorerController(lab, pod))


def queue_view(lab: Lab) -> LabWidget:
    """The scheduling queue, step by step and back in time. It drives the lab."""
    from labkit.widgets.base import LabWidget
    from labkit.widgets.queue_view import QueueViewController

    return LabWidget(QueueViewController(lab))


def plugin_editor(lab: Lab, source: str, *, disable: tuple[str, ...] = ()) -> LabWidget:
    """Edit a plugin's code, apply it, and compare the decisions; `disable` as for `Lab.what_if`."""
    from labkit.widgets.base import LabWidget
    from labkit.widgets.plugin_editor import PluginEditorController

    return LabWidget(PluginEditorController(lab, source, disable=disable))


def config_editor(text: str, lab: Lab) -> LabWidget:
    """A KubeSchedulerConfiguration, checked as you type: what kube-scheduler says, what would run, which pods move."""
    from labkit.widgets.base import LabWidget
    from labkit.widgets.config_editor import ConfigEditorController

    return LabWidget(ConfigEditorController(lab, text))


def domains_view(lab: Lab, pod: Any) -> LabWidget:
    """Spread constraints and inter-pod terms, domain by domain, with controls for them. `pod` as in `filter_matrix`."""
    from labkit.widgets.base import LabWidget
    from labkit.widgets.domains_view import DomainsViewController

    return LabWidget(DomainsViewController(lab, pod))


def preemption_explorer(lab: Lab, pod: Any) -> LabWidget:
    """For a pod that fits nowhere: candidate nodes with their victims, and what decides. `pod` as in `filter_matrix`."""
    from labkit.widgets.base import LabWidget
    from labkit.widgets.preemption_explorer import PreemptionExplorerController

    return LabWidget(PreemptionExplorerController(lab, pod))


def scheduler_race(several: SeveralSchedulers) -> LabWidget:
    """Several schedulers on one cluster: who saw what, who bound, where they collide. It drives `several`."""
    from labkit.widgets.base import LabWidget
    from labkit.widgets.scheduler_race import SchedulerRaceController

    return LabWidget(SchedulerRaceController(several))


def gang_timeline(lab: Lab) -> LabWidget:
    """A gang in virtual time: Reserve, the wait at Permit and how it ended, pod by pod. It drives the lab."""
    from labkit.widgets.base import LabWidget
    from labkit.widgets.gang_timeline import GangTimelineController

    return LabWidget(GangTimelineController(lab))


def extender_inspector(source: Lab | ExtenderServer, lab: Lab | None = None) -> LabWidget:
    """Calls of an HTTP extender: requests, answers, and what becomes of them, with switches.

    `source`: a lab with extenders in its configuration, or a server, which is asked about the cluster of `lab`.
    """
    from labkit.widgets.base import LabWidget
    from labkit.widgets.extender_inspector import ExtenderInspectorController

    return LabWidget(ExtenderInspectorController(source, lab))
