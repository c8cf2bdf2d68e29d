"""Views on a lab or a trace. Controllers hold the state and can be tested without a kernel; no scheduling logic.

Each function returns a widget to put last in a cell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labkit.engine.trace import Trace
    from labkit.lab import Lab
    from labkit.widgets.base import LabWidget


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
