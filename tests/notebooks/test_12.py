"""Module 12: what answers to its exercises score, and what the checks say to typical wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.notebooks.support import SOLUTION, STUB, most_points, run_module

EVERYBODY = """
def schedule_once(cluster):
    nodes = [n["metadata"]["name"] for n in cluster.nodes()]
    bound = {}
    for i, pod in enumerate(cluster.pods()):
        meta = pod["metadata"]
        cluster.client.bind(meta["namespace"], meta["name"], meta["uid"], nodes[i % len(nodes)])
        bound[meta["name"]] = nodes[i % len(nodes)]
    return bound
"""
SWALLOWS = """
def schedule_once(cluster):
    load = {n["metadata"]["name"]: 0 for n in cluster.nodes() if not (n.get("spec") or {}).get("taints")}
    for pod in cluster.pods():
        if pod["spec"].get("nodeName") in load:
            load[pod["spec"]["nodeName"]] += 1
    bound = {}
    for pod in cluster.pods():
        meta = pod["metadata"]
        if pod["spec"].get("nodeName") or pod["spec"]["schedulerName"] != "mini" or not load:
            continue
        node = min(load, key=lambda n: (load[n], n))
        try:
            cluster.client.bind(meta["namespace"], meta["name"], meta["uid"], node)
        except Exception:
            continue
        load[node] += 1
        bound[meta["name"]] = node
    return bound
"""
HEAD = 'MENDED = """\nkind: ClusterRole\nrules:\n'
STARS = HEAD + '  - {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}\n"""'
NO_WATCH = HEAD + '  - {apiGroups: [""], resources: [pods, nodes], verbs: [get, list]}\n"""'


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_solutions_score_full_and_stubs_nothing() -> None:
    """10 points and 0 points."""
    assert run_module("12", SOLUTION).total == most_points("12") == 10
    assert run_module("12", STUB).total == 0


@pytest.mark.parametrize(
    ("answer", "visible", "hidden", "said"),
    [
        (EVERYBODY, 0, 1.2, "what it returns: expected"),
        (SWALLOWS, 3, 1.2, ""),
        ("schedule_once = None", 0, 0, "TypeError"),
    ],
    ids=["binds everybody", "swallows errors", "nothing"],
)
def test_wrong_schedulers(answer: str, visible: float, hidden: float, said: str) -> None:
    """3 visible points and 2 hidden."""
    outcome = run_module("12", {"mini": answer})
    assert outcome.points["mini-visible"] == visible
    assert outcome.points["mini-hidden"] <= hidden
    assert said in outcome.reports["mini-visible"]


@pytest.mark.parametrize(
    ("answer", "visible", "hidden", "said"),
    [
        (STARS, 3, 0, "the role allows more than a scheduler needs"),
        (NO_WATCH, 1, 0, "may watch pods: the role does not allow it"),
        ("MENDED = 'rules: ['", 0, 0, "expected"),
    ],
    ids=["stars", "no watch", "no YAML"],
)
def test_wrong_rights(answer: str, visible: float, hidden: float, said: str) -> None:
    """3 visible points and 2 hidden."""
    outcome = run_module("12", {"mended": answer})
    assert (outcome.points["mended-visible"], outcome.points["mended-hidden"]) == (visible, hidden)
    assert said in outcome.reports["mended-visible"] + outcome.reports["mended-hidden"]
