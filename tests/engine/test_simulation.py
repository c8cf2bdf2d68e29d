"""Pods in, places out: the whole engine, pod after pod."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.config import load_config
from labkit.engine.manifests import read_manifests
from labkit.engine.simulation import Outcome, Simulation


def node(name: str, cpu: str = "4", **labels: str) -> str:
    """A node as a YAML document."""
    pairs = ", ".join(f"{k.replace('_', '/')}: {v}" for k, v in labels.items())
    return f"""kind: Node
metadata: {{name: {name}, labels: {{kubernetes.io/hostname: {name}{", " + pairs if pairs else ""}}}}}
status: {{allocatable: {{cpu: "{cpu}", memory: 8Gi, pods: "110"}}}}
"""


def pod(name: str, cpu: str = "1", extra: str = "", meta: str = "", status: str = "") -> str:
    """A pod as a YAML document."""
    return f"""kind: Pod
metadata: {{name: {name}{meta}}}
spec:
  containers: [{{name: c, image: x, resources: {{requests: {{cpu: "{cpu}"}}}}}}]
{extra}
status: {{{status}}}
"""


def run(*documents: str, config: Any = None, seed: int | None = None) -> Outcome:
    """Simulate these documents."""
    manifests = read_manifests([("t.yaml", "---\n".join(documents))])
    assert manifests.problems == []
    return Simulation(manifests, load_config(config), seed=seed).run()


def places(outcome: Outcome) -> dict[str, str | None]:
    """pod name -> node."""
    return {p.pod.removeprefix("default/"): p.node for p in outcome.pods}


def test_state_goes_from_pod_to_pod() -> None:
    """Two nodes with room for one pod each: the third pod finds none."""
    outcome = run(node("a", "1"), node("b", "1"), pod("p"), pod("q"), pod("r"))
    assert places(outcome) == {"p": "a", "q": "b", "r": None}
    assert outcome.pods[2].trace is not None
    assert (outcome.pods[2].trace.full_message or "").startswith(
        "0/2 nodes are available: 2 Insufficient cpu. "
    )


def test_more_important_pods_first() -> None:
    """Room for one: the pod of higher priority gets it, though it stands last."""
    outcome = run(node("a", "1"), pod("low"), pod("high", extra="  priority: 10"))
    assert [p.pod for p in outcome.pods] == ["default/high", "default/low"]
    assert places(outcome) == {"high": "a", "low": None}


def test_older_pods_before_new_ones() -> None:
    """Equal priority: by creation, then by place in the file."""
    outcome = run(
        node("a"),
        pod("new"),
        pod("b", meta=', creationTimestamp: "2026-01-02T00:00:00Z"'),
        pod("a", meta=', creationTimestamp: "2026-01-01T00:00:00Z"'),
    )
    assert [p.pod for p in outcome.pods] == ["default/a", "default/b", "default/new"]


def test_preemption_to_the_end() -> None:
    """The victim is deleted, the pod is nominated and lands there on its second attempt."""
    outcome = run(
        node("a", "1"),
        pod("victim", extra="  nodeName: a"),
        pod("vip", extra="  priority: 10"),
    )
    (vip,) = outcome.pods
    assert (vip.result, vip.node, len(vip.traces)) == ("scheduled", "a", 2)
    assert [(p.victim, p.preemptor, p.node) for p in outcome.preemptions] == [
        ("default/victim", "default/vip", "a")
    ]


def test_companions_that_come_later() -> None:
    """A pod that wants to be beside another one waits until that one is placed."""
    affinity = """  priority: 5
  affinity:
    podAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}"""
    outcome = run(
        node("a"), node("b"), pod("friend", extra=affinity), pod("web", meta=", labels: {app: web}")
    )
    assert places(outcome) == {"friend": "a", "web": "a"}
    assert outcome.pods[0].trace is not None
    assert outcome.pods[0].trace.attempt == 2


@pytest.mark.parametrize(
    ("extra", "meta", "result"),
    [
        ("  schedulingGates: [{name: x/y}]", "", "gated"),
        ("  schedulerName: other", "", "foreign"),
        ("", ', deletionTimestamp: "2026-01-01T00:00:00Z"', "deleting"),
    ],
)
def test_pods_that_are_not_scheduled(extra: str, meta: str, result: str) -> None:
    """Gated, someone else's, or on their way out."""
    assert [p.result for p in run(node("a"), pod("p", extra=extra, meta=meta)).pods] == [result]


def test_no_nodes() -> None:
    """Nothing to go to."""
    (p,) = run(pod("p")).pods
    assert p.trace is not None
    assert (p.result, p.trace.full_message) == ("unschedulable", "no nodes available to schedule pods")


def test_configuration_counts() -> None:
    """MostAllocated packs, the default spreads."""
    documents = node("a"), node("b"), pod("placed", extra="  nodeName: b"), pod("p")
    pack = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
  plugins: {score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit}]}}
"""
    assert places(run(*documents)) == {"p": "a"}
    assert places(run(*documents, config=pack)) == {"p": "b"}


def test_volumes_are_bound_with_their_first_consumer() -> None:
    """Two pods share a claim that waits: the second follows the volume of the first."""
    storage = """kind: StorageClass
metadata: {name: local}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
---
kind: PersistentVolume
metadata: {name: pv}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: local
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [b]}]}]}}
---
kind: PersistentVolumeClaim
metadata: {name: data, namespace: default}
spec: {accessModes: [ReadWriteOnce], storageClassName: local, resources: {requests: {storage: 1Gi}}}
"""
    use = "  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]"
    outcome = run(node("a"), node("b"), storage, pod("p", extra=use), pod("q", extra=use))
    assert places(outcome) == {"p": "b", "q": "b"}
    assert outcome.pods[0].trace is not None
    assert outcome.pods[0].trace.volumes == [{"claim": "default/data", "volume": "pv"}]


def test_seed_picks_among_equals_and_is_repeatable() -> None:
    """Without a seed the first of five equal nodes; with one always the same for that seed, not for all seeds."""
    documents = *(node(n) for n in "abcde"), pod("p")
    assert places(run(*documents)) == {"p": "a"}
    picked = [places(run(*documents, seed=i))["p"] for i in range(10)]
    assert picked == [places(run(*documents, seed=i))["p"] for i in range(10)]
    assert len(set(picked)) > 1
