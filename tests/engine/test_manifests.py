"""Files -> cluster: what is used, what is reported, and where (issue "Bad input")."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labkit.engine.manifests import Manifests, read_manifests

NODE = "kind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: '4', memory: 8Gi, pods: '110'}}\n"
POD = "kind: Pod\nmetadata: {name: good}\nspec: {containers: [{name: c, image: x}]}\n"


def read(*documents: str) -> Manifests:
    """One file of these documents, with a node and a good pod at its ends."""
    return read_manifests([("c.yaml", "---\n".join((NODE, *documents, POD)))])


def only_problem(*documents: str) -> str:
    """The text of the one problem; the node and the good pod are there nevertheless."""
    found = read(*documents)
    assert [n.name for n in found.nodes] == ["n1"]
    assert [p.name for p in found.pending] == ["good"]
    (problem,) = found.problems
    assert problem.hint
    return problem.message


def test_kubectl_list() -> None:
    """A List of nodes and pods; unknown fields are passed over; ended pods are invisible."""
    found = read_manifests(
        [
            (
                "all.yaml",
                """
apiVersion: v1
kind: List
metadata: {resourceVersion: ""}
items:
- {apiVersion: v1, kind: Node, metadata: {name: n1, creationTimestamp: "2026-01-01T00:00:00Z", managedFields: null},
   spec: {podCIDR: 10.0.0.0/24, novelty: {deep: [1]}}, status: {nodeInfo: {machineID: x}, images: null}}
- {apiVersion: v1, kind: Pod, metadata: {name: placed, namespace: a}, spec: {nodeName: n1, containers: []}}
- {apiVersion: v1, kind: Pod, metadata: {name: done, namespace: a}, spec: {nodeName: gone}, status: {phase: Succeeded}}
- {apiVersion: v1, kind: Pod, metadata: {name: new, namespace: a}, spec: {containers: [{name: c, image: x}]}}
""",
            )
        ]
    )
    assert found.problems == []
    assert ([n.name for n in found.nodes], [p.key for p in found.placed], [p.key for p in found.pending]) == (
        ["n1"],
        ["a/placed"],
        ["a/new"],
    )


def test_json_and_several_files() -> None:
    """JSON works as YAML does; files add up."""
    found = read_manifests([("n.yaml", NODE), ("p.json", '{"kind": "Pod", "metadata": {"name": "j"}}')])
    assert ([n.name for n in found.nodes], [p.key for p in found.pending]) == (["n1"], ["default/j"])


@pytest.mark.parametrize(
    ("document", "parts"),
    [
        ("a: [1, 2\n", ["c.yaml", "document 2", "malformed YAML", "line "]),
        ("\tkind: Pod\n", ["document 2", "malformed YAML"]),
        (
            "kind: Pod\nmetadata: {name: x}\nspec: {containers: nope}\n",
            ["document 2", "Pod x", "spec.containers", '"nope"'],
        ),
        (
            "kind: Pod\nmetadata: {name: x, namespace: a}\nspec: {priority: high}\n",
            ["document 2", "Pod a/x", "spec.priority", '"high"', "whole number"],
        ),
        (
            "kind: Pod\nmetadata: {name: x}\nspec: {containers: [{name: c, resources: {requests: {cpu: 1x}}}]}\n",
            ["document 2", "Pod x", "spec.containers[0].resources.requests.cpu", "'1x' is not a quantity"],
        ),
        (
            "kind: Pdo\nmetadata: {name: x}\n",
            ["document 2", "Pdo x", "kind", '"Pdo" is not a Kubernetes kind'],
        ),
        ("metadata: {name: x}\n", ["document 2", "object x", "kind must be text"]),
        ("kind: [Pod]\nmetadata: {name: x}\n", ["document 2", "kind must be text"]),
        ("kind: Pod\n", ["document 2", "metadata.name", "no name"]),
        ("- just\n- a list\n", ["document 2", "expected a Kubernetes object"]),
        ("just text\n", ["document 2", "expected a Kubernetes object"]),
        (
            "kind: Pod\nmetadata: {name: x}\nspec: {nodeName: n9}\n",
            ["document 2", "Pod x", "spec.nodeName", 'no node "n9"'],
        ),
        (
            "kind: Pod\nmetadata: {name: x}\nspec: {priorityClassName: gold}\n",
            ["document 2", "Pod x", "spec.priorityClassName", 'no PriorityClass with name "gold"'],
        ),
    ],
)
def test_bad_input_is_named_and_costs_only_itself(document: str, parts: list[str]) -> None:
    """File, document, object, field, value; the rest is read."""
    message = only_problem(document)
    assert message.startswith("c.yaml")
    for part in parts:
        assert part in message


def test_kinds_that_the_scheduler_does_not_read_are_counted() -> None:
    """No problem, only a note of the kinds."""
    found = read("kind: Deployment\nmetadata: {name: d}\n", "kind: ConfigMap\nmetadata: {name: c}\n")
    assert (found.problems, dict(found.ignored)) == ([], {"Deployment": 1, "ConfigMap": 1})


def test_pods_on_a_broken_node_give_no_second_problem() -> None:
    """One mistake, one message."""
    found = read(
        "kind: Node\nmetadata: {name: n2}\nstatus: {allocatable: {cpu: many}}\n",
        "kind: Pod\nmetadata: {name: x}\nspec: {nodeName: n2}\n",
    )
    assert ["status.allocatable.cpu" in p.message for p in found.problems] == [True]


def test_twice_defined() -> None:
    """The later one counts, with a note."""
    found = read(POD.replace("image: x", "image: first"))
    assert [p.spec.containers[0].image for p in found.pending] == ["x"]
    assert len(found.notes) == 1


def test_defaults_of_the_api_server() -> None:
    """Limits become requests, host ports follow the host network, priority comes from the class."""
    found = read(
        "kind: PriorityClass\nmetadata: {name: gold}\nvalue: 1000\npreemptionPolicy: Never\n",
        """kind: Pod
metadata: {name: x}
spec:
  priorityClassName: gold
  hostNetwork: true
  containers:
  - name: c
    resources: {limits: {cpu: "2", memory: 1Gi}, requests: {cpu: "1"}}
    ports: [{containerPort: 80}]
""",
        "kind: Pod\nmetadata: {name: s}\nspec: {priorityClassName: system-node-critical}\n",
    )
    x, s, good = found.pending
    (c,) = x.spec.containers
    assert c.resources.requests == {"cpu": "1", "memory": "1Gi"}
    assert c.ports[0].host_port == 80
    assert (x.spec.priority, x.spec.preemption_policy, x.spec.scheduler_name) == (
        1000,
        "Never",
        "default-scheduler",
    )
    assert (s.spec.priority, good.spec.priority) == (2000001000, 0)


def test_global_default_class_and_given_priority() -> None:
    """A pod without a class has the default's priority; a stored priority stays."""
    found = read(
        "kind: PriorityClass\nmetadata: {name: d}\nvalue: 7\nglobalDefault: true\n",
        "kind: Pod\nmetadata: {name: x}\nspec: {priority: 3}\n",
    )
    assert [p.spec.priority for p in found.pending] == [3, 7]


def test_match_label_keys_are_merged_into_new_pods_only() -> None:
    """As the API server does on creation."""
    pod = """kind: Pod
metadata: {name: x, labels: {app: web, rev: "2"}%s}
spec:
  affinity:
    podAntiAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
      - {topologyKey: z, labelSelector: {matchLabels: {app: web}}, matchLabelKeys: [rev], mismatchLabelKeys: [app, none]}
"""

    def expressions(text: str) -> list[tuple[str, str, list[str]]]:
        affinity = read(text).pending[0].spec.affinity
        assert affinity is not None
        assert affinity.pod_anti_affinity is not None
        (term,) = affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution
        assert term.label_selector is not None
        return [(e.key, e.operator, e.values) for e in term.label_selector.match_expressions]

    assert expressions(pod % "") == [("rev", "In", ["2"]), ("app", "NotIn", ["web"])]
    assert expressions(pod % ", uid: u1") == []


def test_same_uid_twice() -> None:
    """Copied manifests with the UID left in: two pods all the same."""
    found = read(*(f"kind: Pod\nmetadata: {{name: {n}, uid: same}}\n" for n in "ab"))
    assert len({p.uid for p in found.pending}) == 3


YAML_LIKE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["Pod", "1Gi", "Always"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "kind",
                    "metadata",
                    "name",
                    "spec",
                    "status",
                    "containers",
                    "resources",
                    "requests",
                    "cpu",
                    "labels",
                    "affinity",
                    "tolerations",
                    "nodeName",
                    "items",
                    "allocatable",
                    "volumes",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(YAML_LIKE)
def test_never_a_crash(value: object) -> None:
    """Whatever a file holds, the good objects are read."""
    import json

    found = read_manifests([("x.json", json.dumps(value)), ("n.yaml", NODE + "---\n" + POD)])
    assert "n1" in [n.name for n in found.nodes]
    assert "good" in [p.name for p in found.pods]


def test_line_numbers_are_those_of_the_file() -> None:
    """Also when the documents are parsed one by one."""
    text = "kind: Pod\nmetadata: {name: a}\n---\nkind: Pod\nmetadata: {name: b\nspec: {}\n"
    (problem,) = read_manifests([("c.yaml", text)]).problems
    assert "c.yaml, document 2: line 6, column" in problem.message


def test_new_claims_get_the_default_storage_class() -> None:
    """And the namespace they are created in; an empty class stays empty; new volumes are available."""
    found = read(
        'kind: StorageClass\nmetadata: {name: fast, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}\n',
        "kind: PersistentVolumeClaim\nmetadata: {name: c1}\n",
        'kind: PersistentVolumeClaim\nmetadata: {name: c2}\nspec: {storageClassName: ""}\n',
        "kind: PersistentVolume\nmetadata: {name: v}\n",
    )
    claims = [o for k, o in found.objects if k == "PersistentVolumeClaim"]
    assert [(c.key, c.spec.storage_class_name) for c in claims] == [
        ("default/c1", "fast"),
        ("default/c2", ""),
    ]  # type: ignore[attr-defined]
    assert [o.status.phase for k, o in found.objects if k == "PersistentVolume"] == ["Available"]  # type: ignore[attr-defined]
