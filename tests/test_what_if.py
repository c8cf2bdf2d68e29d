"""What-if: the same waiting pods under two sets of plugins, told in words."""

from __future__ import annotations

from typing import Any

import pytest
from labkit import Lab
from labkit.errors import LabError
from labkit.framework.status import Status

CLUSTER = "\n---\n".join(
    f"kind: Node\nmetadata: {{name: {name}}}\nstatus: {{allocatable: {{cpu: {cpu}, memory: 8Gi, pods: 10}}}}"
    for name, cpu in (("large", 8), ("small", 4))
)
POD = "kind: Pod\nmetadata: {{name: web}}\nspec: {{containers: [{{name: c, image: a, resources: {{requests: {{cpu: {cpu}}}}}}}]}}"


class Only:
    """Rejects every node but those named."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        """By name."""
        return None if node.name in self.names else Status.unschedulable("not this one")


@pytest.mark.parametrize(
    ("cpu", "change", "nodes", "outcome", "summary"),
    [
        (1, {"plugins": [Only("large")]}, ("large", "large"), "same", "0 of 1 pods end differently"),
        (1, {"plugins": [Only("small")]}, ("large", "small"), "moves", "1 of 1 pods end differently"),
        (1, {"plugins": [Only()]}, ("large", "–"), "finds no node", "1 of 1 pods end differently"),
        (
            9,
            {"disable": ["NodeResourcesFit"]},
            ("–", "large"),
            "finds a node",
            "1 of 1 pods end differently",
        ),
    ],
)
def test_a_pod_stays_moves_is_placed_or_loses_its_place(
    cpu: int, change: dict[str, Any], nodes: tuple[str, str], outcome: str, summary: str
) -> None:
    """Each of the four outcomes, and the lab as it was."""
    lab = Lab(CLUSTER)
    lab.apply(POD.format(cpu=cpu))
    found = lab.what_if(**change)
    (difference,) = found.differences
    assert (difference.nodes, difference.outcome, found.summary()) == (nodes, outcome, summary)
    assert f"{outcome}" in str(found)
    assert "nodeName" not in lab.pods()[0]["spec"]


@pytest.mark.parametrize(
    ("disable", "problem"),
    [
        (["NodeResourceFit"], "there is no plugin called 'NodeResourceFit'"),
        ({"NodeResourcesFit": ["Score"]}, "there is no extension point called 'Score'"),
    ],
)
def test_a_switch_that_does_not_exist_is_named(disable: Any, problem: str) -> None:
    """A misspelt plugin or point is no silent "same", in a what-if as in `lab.plugins.disable`."""
    lab = Lab(CLUSTER)
    lab.apply(POD.format(cpu=1))
    with pytest.raises(LabError, match=problem):
        lab.what_if(disable=disable)
    name, points = next(iter(dict(disable).items())) if isinstance(disable, dict) else (disable[0], ())
    with pytest.raises(LabError, match=problem):
        lab.plugins.disable(name, *points)


def test_a_plugin_taken_out_of_score_still_filters() -> None:
    """`{name: points}` takes it out there only."""
    lab = Lab(CLUSTER)
    lab.apply(POD.format(cpu=9))
    found = lab.what_if(disable={"NodeResourcesFit": ["pre_score", "score"]})
    assert found.differences[0].nodes == ("–", "–")
