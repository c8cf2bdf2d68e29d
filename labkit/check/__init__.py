"""Checks of exercises, for test cells.

    from labkit import check
    check.score_plugin(LeastAllocated, like="NodeResourcesFit", points=2)      # the cell's last expression

A check returns a report whose text is the number of points (nbgrader reads it) and whose picture says, in the
learner's language, what passed, what did not and why. Nothing here writes to stderr, which would cost the
learner the cell, and no learner's `__eq__` is ever asked.
"""

from __future__ import annotations

from labkit.check.clusters import cluster
from labkit.check.configs import configuration
from labkit.check.gangs import gang
from labkit.check.outcomes import Outcome, measure, outcome, play, workload
from labkit.check.plugins import HIDDEN, VISIBLE, filter_plugin, run, scenario, score_plugin
from labkit.check.preempting import Plan, Running, pick_node, victims
from labkit.check.queueing import queue_sort
from labkit.check.report import Case, Exercise
from labkit.check.reserving import reserving

__all__ = [
    "HIDDEN",
    "VISIBLE",
    "Case",
    "Exercise",
    "Outcome",
    "Plan",
    "Running",
    "cluster",
    "configuration",
    "filter_plugin",
    "gang",
    "measure",
    "outcome",
    "pick_node",
    "play",
    "queue_sort",
    "reserving",
    "run",
    "scenario",
    "score_plugin",
    "victims",
    "workload",
]
