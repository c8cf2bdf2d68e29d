"""How long a learner waits: from moving a control to the new view, without the browser's part."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labkit.lab import Lab

Json = dict[str, Any]
Controls = list[tuple[str, Any]]
#: Nodes of the cluster -> milliseconds that a control may take.
TARGETS = {100: 100.0, 1000: 500.0}
_PLACED, _WAITING = 20, 5
_POD = "bench-20"
_PLUGIN = """class PreferLast:
    def score(self, state, pod, node):
        return 100 if node.name.endswith("9") else 0
"""


def pod(i: int) -> Json:
    """1 CPU, 1 Gi, spread softly over zones."""
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "bench"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"bench-{i}", "labels": {"app": "bench"}},
        "spec": {
            "topologySpreadConstraints": [spread],
            "containers": [
                {"name": "c", "image": "app:v1", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
            ],
        },
    }


#: Another strategy than the default one.
_CONFIG = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - pluginConfig:
      - name: NodeResourcesFit
        args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""


def full_lab(nodes: int) -> Lab:
    """Every node is full of one pod of priority 0, and `urgent` of priority 1000 needs a whole node."""
    from labkit.lab import Lab

    def filling(name: str, node: str = "", klass: str = "") -> Json:
        found = pod(0)
        found["metadata"]["name"] = name
        found["spec"].pop("topologySpreadConstraints")
        found["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3"
        found["spec"] |= {"nodeName": node} if node else {"priorityClassName": klass}
        return found

    made = Lab(f"nodes-{nodes}")
    made.apply(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "high"},
            "value": 1000,
        }
    )
    for node in made.nodes():
        # As much as the node has: nothing else fits beside it.
        name, cpu = node["metadata"]["name"], node["status"]["allocatable"]["cpu"]
        low = filling(f"low-{name}", node=name)
        low["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
        made.apply(low)
    made.apply(filling("urgent", klass="high"))
    return made


def race_of(nodes: int) -> Any:
    """Two schedulers of different names on a cluster with pods for both."""
    from labkit.several import Member, SeveralSchedulers

    source = [{**n, "status": n["status"]} for n in lab_of(nodes).nodes()]
    for n in source:
        n["metadata"] = {k: v for k, v in n["metadata"].items() if k in ("name", "labels")}
    pods = [pod(i) for i in range(_WAITING)]
    for i, each in enumerate(pods):
        each["metadata"]["namespace"] = "default"
        each["spec"]["schedulerName"] = ("one", "two")[i % 2]
    return SeveralSchedulers([*source, *pods], [Member("one", lease="one"), Member("two", lease="two")])


def lab_of(nodes: int) -> Lab:
    """A lab of `nodes` nodes with placed and with waiting pods."""
    from labkit.lab import Lab

    made = Lab(f"nodes-{nodes}")
    made.apply([pod(i) for i in range(_PLACED)])
    made.run()
    made.apply([pod(i) for i in range(_PLACED, _PLACED + _WAITING)])
    return made


def _widgets() -> dict[str, tuple[Callable[[Any], Any], Controls]]:
    """Widget -> how it is made, and controls to move. All but the explorers drive the lab, each a lab of its own."""
    from labkit import widgets as w

    return {
        "resources_explorer": (w.resources_explorer, [("cpu", 1500), ("strategy", "MostAllocated")]),
        "cluster_map": (w.cluster_map, [("refresh", None), ("search", "9")]),
        "filter_matrix": (
            lambda lab: w.filter_matrix(lab, _POD),
            [("on.NodeResourcesFit", False), ("on.NodeResourcesFit", True)],
        ),
        "score_explorer": (
            lambda lab: w.score_explorer(lab, _POD),
            [("weight.NodeResourcesFit", 5), ("strategy", "MostAllocated")],
        ),
        "playground": (
            w.playground,
            [("step", None), ("weight.NodeResourcesFit", 5), ("advance.10", None), ("back", None)],
        ),
        "queue_view": (w.queue_view, [("step", None), ("advance.1", None), ("back", None)]),
        "plugin_editor": (lambda lab: w.plugin_editor(lab, _PLUGIN), [("apply", None)]),
        "config_editor": (lambda lab: w.config_editor("", lab), [("code", _CONFIG), ("compare", None)]),
        "domains_view": (
            lambda lab: w.domains_view(lab, _POD),
            [("when", "DoNotSchedule"), ("skew", 2), ("affinity", "podAntiAffinity required")],
        ),
        "preemption_explorer": (lambda lab: w.preemption_explorer(lab, "urgent"), [("priority", 500)]),
        "gang_timeline": (_gang, [("step", None), ("advance.60", None), ("back", None)]),
        "scheduler_race": (w.scheduler_race, [("run", None), ("back", None)]),
    }


def _gang(lab: Lab) -> Any:
    from labkit import widgets as w
    from labkit.plugins.course import GangPermit

    lab.plugins.enable(GangPermit)
    return w.gang_timeline(lab)


#: Widgets that are not about the usual cluster.
_CLUSTERS: dict[str, Callable[[int], Any]] = {"preemption_explorer": full_lab, "scheduler_race": race_of}


def measure(nodes: int, rounds: int = 5) -> Iterator[Json]:
    """One row a control: median and worst of `rounds`, in milliseconds, the JSON for the browser included."""
    limit = TARGETS.get(nodes)
    for name, (make, controls) in _widgets().items():
        times: dict[str, list[float]] = {}
        for _ in range(rounds):
            widget = make(_CLUSTERS.get(name, lab_of)(nodes))
            for id, value in controls:
                start = time.perf_counter()
                widget.set(id, value)
                json.dumps(widget.view)
                took = 1000 * (time.perf_counter() - start)
                shown = "" if value is None else f" {value}"
                times.setdefault(f"{id}{shown}" if "\n" not in shown else id, []).append(took)
        for control, found in times.items():
            yield {
                "widget": name,
                "control": control,
                "nodes": nodes,
                "median ms": round(statistics.median(found), 1),
                "worst ms": round(max(found), 1),
                "target ms": limit if limit is not None else "–",
            }
