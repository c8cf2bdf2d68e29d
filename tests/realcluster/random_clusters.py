"""Random small clusters and pods, as plain objects that an API server accepts; the same seed, the same objects."""

from __future__ import annotations

import random
from typing import Any

from .objects import JSON, make_node, make_pod, make_priority_class

ZONES = ("z1", "z2", "z3")
APPS = ("web", "db", "cache")
TAINTS = (
    {"key": "team", "value": "a", "effect": "NoSchedule"},
    {"key": "gpu", "effect": "NoExecute", "value": ""},
    {"key": "spot", "value": "true", "effect": "PreferNoSchedule"},
)
PRIORITIES = {"low": -5, "middle": 10, "high": 1000}
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def _priority_classes() -> list[JSON]:
    polite = make_priority_class("polite", 500, preemptionPolicy="Never")
    return [polite, *(make_priority_class(name, value) for name, value in PRIORITIES.items())]


class RandomCluster:
    """Nodes, pods that run there, and pods to schedule; `crowded` ones have priorities, budgets and little room."""

    def __init__(self, seed: int, *, crowded: bool = False) -> None:
        self.rng = random.Random(seed)
        self.crowded = crowded
        self.nodes = [self._node(i) for i in range(self.rng.randint(2, 7))]
        residents = self.rng.randint(8, 16) if crowded else self.rng.randint(0, 8)
        self.residents = [self._resident(i) for i in range(residents)]
        self.pods = [self._pod(i) for i in range(self.rng.randint(2, 4))]
        self.priority_classes = _priority_classes() if crowded else []
        self.budgets = [self._budget(app) for app in APPS if crowded and self._chance(5)]

    def _chance(self, of_ten: int) -> bool:
        return self.rng.random() * 10 < of_ten

    def _node(self, i: int) -> JSON:
        rng = self.rng
        labels = {"tier": rng.choice(("gold", "iron")), "cores": str(rng.choice((2, 4, 8)))}
        if self._chance(8):
            labels[ZONE] = rng.choice(ZONES)
        spec: dict[str, Any] = {"unschedulable": True} if self._chance(1) else {}
        node = make_node(
            f"n{i}",
            cpu=rng.choice(("1", "2", "3500m", "4")),
            memory=rng.choice(("1Gi", "2Gi", "4G")),
            pods=rng.choice((2, 4, 110)),
            labels=labels,
            taints=[t for t in TAINTS if self._chance(2)],
            **spec,
        )
        if self._chance(3):
            node["status"]["images"] = [
                {"names": [f"registry/{a}:v1"], "sizeBytes": rng.choice((50, 300, 900)) * 2**20}
                for a in APPS
                if self._chance(5)
            ]
        return node

    def _resident(self, i: int) -> JSON:
        pod = self._plain(f"r{i}")
        pod["spec"]["nodeName"] = self.rng.choice(self.nodes)["metadata"]["name"]
        if self._chance(3):
            pod["spec"]["affinity"] = self._pod_affinity()
        if self._chance(2):
            pod["spec"]["containers"][0]["ports"] = [
                {"containerPort": 80, "hostPort": self.rng.choice((80, 81))}
            ]
        return pod

    def _plain(self, name: str) -> JSON:
        rng = self.rng
        pod = make_pod(
            name,
            cpu=rng.choice((None, "100m", "500m", "1")),
            memory=rng.choice((None, "64Mi", "500M", "1Gi")),
            labels={"app": rng.choice(APPS), "rev": rng.choice("12")},
        )
        pod["spec"]["containers"][0]["image"] = f"registry/{rng.choice(APPS)}:v1"
        if self.crowded:
            pod["spec"]["containers"][0]["resources"] = {
                "requests": {"cpu": rng.choice(("500m", "800m", "1"))}
            }
            pod["spec"]["priorityClassName"] = rng.choice(("low", "low", "middle", "high", "polite"))
        return pod

    def _budget(self, app: str) -> JSON:
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": app, "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": app}}},
        }

    def _pod(self, i: int) -> JSON:
        rng, pod = self.rng, self._plain(f"p{i}")
        spec = pod["spec"]
        if self._chance(1) and not self.crowded:
            spec["containers"][0]["resources"] = {"requests": {"cpu": "3", "memory": "3Gi"}}
        if self._chance(2):
            spec["nodeSelector"] = {"tier": rng.choice(("gold", "iron", "none"))}
        spec["tolerations"] = [
            {"key": t["key"], "operator": "Exists"} if self._chance(5) else {**t, "operator": "Equal"}
            for t in TAINTS
            if self._chance(3)
        ]
        affinity: JSON = {}
        if self._chance(3):
            affinity["nodeAffinity"] = self._node_affinity()
        if self._chance(4):
            affinity |= self._pod_affinity()
        if affinity:
            spec["affinity"] = affinity
        if self._chance(4):
            spec["topologySpreadConstraints"] = [self._spread(key) for key in (ZONE, HOST) if self._chance(6)]
        if self._chance(2):
            spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": rng.choice((80, 81))}]
        if self._chance(2):
            sidecar = {
                "name": "s",
                "image": "x",
                "restartPolicy": "Always",
                "resources": {"requests": {"cpu": "200m"}},
            }
            init = {"name": "i", "image": "x", "resources": {"limits": {"cpu": "1500m", "memory": "100Mi"}}}
            spec["initContainers"] = [c for c in (sidecar, init) if self._chance(6)]
        return pod

    def _node_affinity(self) -> JSON:
        rng = self.rng

        def term() -> JSON:
            return {
                "matchExpressions": [
                    rng.choice(
                        (
                            {"key": "tier", "operator": "In", "values": ["gold"]},
                            {"key": "tier", "operator": "NotIn", "values": ["gold"]},
                            {"key": "cores", "operator": "Gt", "values": ["2"]},
                            {"key": ZONE, "operator": "Exists"},
                            {"key": ZONE, "operator": "DoesNotExist"},
                        )
                    )
                ]
            }

        found: JSON = {}
        if self._chance(5):
            terms = [term() for _ in range(rng.randint(1, 2))]
            found["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": rng.randint(1, 100), "preference": term()} for _ in range(rng.randint(0, 2))
        ]
        return found

    def _pod_affinity(self) -> JSON:
        rng, found = self.rng, {}
        for kind in ("podAffinity", "podAntiAffinity"):
            if not self._chance(5):
                continue

            def term() -> JSON:
                return {
                    "topologyKey": rng.choice((ZONE, HOST)),
                    "labelSelector": {"matchLabels": {"app": rng.choice(APPS)}},
                }

            if self._chance(5):
                found[kind] = {"requiredDuringSchedulingIgnoredDuringExecution": [term()]}
            else:
                weighted = {"weight": rng.randint(1, 100), "podAffinityTerm": term()}
                found[kind] = {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}
        return found

    def _spread(self, key: str) -> JSON:
        rng = self.rng
        found: JSON = {
            "maxSkew": rng.randint(1, 3),
            "topologyKey": key,
            "whenUnsatisfiable": rng.choice(("DoNotSchedule", "ScheduleAnyway")),
            "labelSelector": {"matchLabels": {"app": rng.choice(APPS)}},
        }
        if self._chance(3):
            found["matchLabelKeys"] = ["rev"]
        if found["whenUnsatisfiable"] == "DoNotSchedule" and self._chance(3):
            found["minDomains"] = rng.randint(1, 4)
        if self._chance(3):
            found["nodeTaintsPolicy"] = "Honor"
        return found
