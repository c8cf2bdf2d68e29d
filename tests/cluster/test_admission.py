"""What a cluster adds to objects or refuses: priority, tolerations, limits, quotas, storage classes, runtime classes."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.cluster.store import Store
from labkit.cluster.store_errors import ApiError

from .asgi import Clock, node, pod


@pytest.fixture
def store() -> Store:
    """An empty cluster."""
    return Store(Clock())


def message(call: Any) -> str:
    """The text of the refusal."""
    with pytest.raises(ApiError) as e:
        call()
    return e.value.message


def container(requests: Any = None, limits: Any = None) -> list[dict[str, Any]]:
    """One container with resources."""
    resources = {k: v for k, v in (("requests", requests), ("limits", limits)) if v}
    return [{"name": "c", "image": "i", "resources": resources}]


def make(store: Store, kind: str, name: str, api_version: str = "v1", **parts: Any) -> Any:
    """Create any object."""
    meta = {"name": name, **parts.pop("metadata", {})}
    return store.create({"apiVersion": api_version, "kind": kind, "metadata": meta, **parts})


def test_quota_counts_what_is_there(store: Store) -> None:
    """3 CPUs allowed, two pods of 1 -> a third of 2 is refused; a deleted pod gives its share back."""
    make(store, "ResourceQuota", "q", spec={"hard": {"requests.cpu": "3", "pods": "10"}})
    for name in ("a", "b"):
        store.create(pod(name, containers=container({"cpu": "1"})))
    assert store.get("ResourceQuota", "q")["status"]["used"] == {"requests.cpu": "2", "pods": "2"}
    assert message(lambda: store.create(pod("c", containers=container({"cpu": "2"})))) == (
        'pods "c" is forbidden: exceeded quota: q, requested: requests.cpu=2, used: requests.cpu=2, '
        "limited: requests.cpu=3"
    )
    assert "must specify requests.cpu for: c" in message(lambda: store.create(pod("d")))
    store.delete("Pod", "a")
    store.create(pod("c", containers=container({"cpu": "2"})))
    assert store.get("ResourceQuota", "q")["status"]["used"]["requests.cpu"] == "3"


def test_quota_scopes_and_object_counts(store: Store) -> None:
    """A quota on one priority class counts only its pods; count/… counts any resource."""
    make(store, "PriorityClass", "high", "scheduling.k8s.io/v1", value=10)
    term = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    make(
        store,
        "ResourceQuota",
        "q",
        spec={"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": [term]}},
    )
    make(store, "ResourceQuota", "maps", spec={"hard": {"count/configmaps": "1"}})
    for name in ("a", "b"):
        store.create(pod(name))
    store.create(pod("h", priorityClassName="high"))
    assert "exceeded quota: q" in message(lambda: store.create(pod("h2", priorityClassName="high")))
    make(store, "ConfigMap", "one")
    assert "exceeded quota: maps" in message(lambda: make(store, "ConfigMap", "two"))


def test_limit_range(store: Store) -> None:
    """Defaults are filled in where nothing is said; bounds are enforced."""
    limits = [
        {
            "type": "Container",
            "default": {"cpu": "500m"},
            "defaultRequest": {"cpu": "100m"},
            "max": {"cpu": "1"},
        }
    ]
    make(store, "LimitRange", "l", spec={"limits": limits})
    found = store.create(pod())
    assert found["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "500m"},
        "requests": {"cpu": "100m"},
    }
    assert (
        "LimitRanger plugin set: cpu request for container c; cpu limit"
        in (found["metadata"]["annotations"]["kubernetes.io/limit-ranger"])
    )
    assert message(lambda: store.create(pod("big", containers=container(limits={"cpu": "2"})))) == (
        'pods "big" is forbidden: maximum cpu usage per Container is 1, but limit is 2'
    )


def test_runtime_class(store: Store) -> None:
    """Overhead and scheduling rules come from the class; a missing class is refused."""
    make(
        store,
        "RuntimeClass",
        "kata",
        "node.k8s.io/v1",
        handler="kata",
        overhead={"podFixed": {"cpu": "250m"}},
        scheduling={"nodeSelector": {"kata": "yes"}},
    )
    found = store.create(pod(runtimeClassName="kata"))["spec"]
    assert (found["overhead"], found["nodeSelector"]) == ({"cpu": "250m"}, {"kata": "yes"})
    assert "not found" in message(lambda: store.create(pod("x", runtimeClassName="nosuch")))


def test_default_storage_class(store: Store) -> None:
    """A claim without a class gets the default one; one that says "" does not."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    mark = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    make(store, "StorageClass", "std", "storage.k8s.io/v1", provisioner="p", metadata=mark)
    assert make(store, "PersistentVolumeClaim", "a", spec=spec)["spec"]["storageClassName"] == "std"
    none = make(store, "PersistentVolumeClaim", "b", spec={**spec, "storageClassName": ""})
    assert none["spec"]["storageClassName"] == ""


@pytest.mark.parametrize(
    ("requests", "limits", "expected"),
    [
        ({}, {}, "BestEffort"),
        ({"cpu": "1"}, {}, "Burstable"),
        ({}, {"cpu": "1", "memory": "1Gi"}, "Guaranteed"),
        ({"cpu": "500m"}, {"cpu": "1", "memory": "1Gi"}, "Burstable"),
        ({"cpu": "1000m"}, {"cpu": "1", "memory": "1Gi"}, "Guaranteed"),
        ({}, {"cpu": "1"}, "Burstable"),
        ({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "1"}, "BestEffort"),
    ],
)
def test_qos_class(store: Store, requests: Any, limits: Any, expected: str) -> None:
    """Requests and limits of the one container -> the QoS class in status."""
    assert store.create(pod(containers=container(requests, limits)))["status"]["qosClass"] == expected


def test_without_admission() -> None:
    """admission=False -> no tolerations, no priority, no namespace needed; defaults still."""
    found = Store(Clock(), admission=False).create(pod(namespace="nowhere"))["spec"]
    assert "tolerations" not in found
    assert "priority" not in found
    assert found["schedulerName"] == "default-scheduler"


def test_gated_pods(store: Store) -> None:
    """While gated: gates only go, node selectors only grow; afterwards nothing of the spec changes."""
    store.create(pod(schedulingGates=[{"name": "a.b/one"}, {"name": "a.b/two"}], nodeSelector={"x": "1"}))

    def patch(spec: Any) -> Any:
        return store.patch("Pod", "p", "default", {"spec": spec}, "merge")

    assert patch({"nodeSelector": {"y": "2"}})["spec"]["nodeSelector"] == {"x": "1", "y": "2"}
    assert "only additions are allowed" in message(lambda: patch({"nodeSelector": {"x": "3"}}))
    assert "only deletion is allowed" in message(lambda: patch({"schedulingGates": [{"name": "a.b/three"}]}))
    assert len(patch({"schedulingGates": [{"name": "a.b/two"}]})["spec"]["schedulingGates"]) == 1
    patch({"schedulingGates": None})
    assert "pod updates may not change fields" in message(lambda: patch({"nodeSelector": {"z": "1"}}))
    assert patch({"activeDeadlineSeconds": 5})["spec"]["activeDeadlineSeconds"] == 5


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (node(spec={"taints": [{"key": "k", "effect": "Never"}]}), "metadata.taints[0].effect: Unsupported value"),
        (node("Bad_Name"), "a lowercase RFC 1123 subdomain"),
        (pod(containers=[{"name": "c"}]), "spec.containers[0].image: Required value"),
        (pod(containers=container({"cpu": "-1"})), "must be greater than or equal to 0"),
        (pod(containers=container({"gpu": "1"})), "must be a standard resource"),
        (pod(containers=container({"a.b/c": "1500m"}, {"a.b/c": "1500m"})), "must be an integer"),
        (pod(labels={"a b": "c"}), "metadata.labels: Invalid value"),
        (pod(tolerations=[{"operator": "Equal", "value": "v"}]), "operator must be Exists when `key` is empty"),
        (pod(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}] * 2),
         "Duplicate value"),
    ],
)  # fmt: skip
def test_invalid(store: Store, manifest: Any, expected: str) -> None:
    """Each bad object -> 422 with the field and the reason."""
    with pytest.raises(ApiError) as e:
        store.create(manifest)
    assert (e.value.code, e.value.reason) == (422, "Invalid")
    assert expected in e.value.message
    assert e.value.details is not None
    assert e.value.details["causes"]


def test_disruption_counts(store: Store) -> None:
    """Three ready pods, minAvailable 2 -> one disruption allowed; one pod less -> none; percentages of the owner's scale."""
    from labkit.cluster.store_disruption import DisruptionCounter

    counter = DisruptionCounter(store)
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pod()["spec"]}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    owner = make(store, "ReplicaSet", "r", "apps/v1", spec=spec)
    selector = {"matchLabels": {"app": "x"}}
    make(store, "PodDisruptionBudget", "two", "policy/v1", spec={"minAvailable": 2, "selector": selector})
    make(
        store,
        "PodDisruptionBudget",
        "half",
        "policy/v1",
        spec={"maxUnavailable": "50%", "selector": selector},
    )
    reference = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "r",
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    for name in ("a", "b", "c"):
        manifest = pod(name, labels={"app": "x"})
        manifest["metadata"]["ownerReferences"] = [reference]
        store.create(manifest)
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        store.patch("Pod", name, "default", {"status": ready}, subresource="status")

    def allowed(name: str) -> int:
        status: dict[str, Any] = store.get("PodDisruptionBudget", name)["status"]
        return int(status["disruptionsAllowed"])

    assert (allowed("two"), allowed("half")) == (1, 2)
    store.delete("PodDisruptionBudget", "half")
    store.evict("default", "a")
    assert allowed("two") == 0
    with pytest.raises(ApiError, match="disruption budget"):
        store.evict("default", "b")
    counter.stop()
    store.delete("Pod", "b")
    assert allowed("two") == 0


def test_volumes_in_use_are_kept(store: Store) -> None:
    """A claim that a placed pod uses waits for the pod; a bound volume waits for the claim; unused ones go at once."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    make(store, "PersistentVolumeClaim", "unused", spec=spec)
    store.delete("PersistentVolumeClaim", "unused")
    assert store.peek("PersistentVolumeClaim", "unused") is None

    made = make(store, "PersistentVolumeClaim", "used", spec=spec)
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "used"}}]
    store.create(pod(volumes=volumes, nodeName="n"))
    assert "deletionTimestamp" in store.delete("PersistentVolumeClaim", "used")["metadata"]
    store.delete("Pod", "p", grace_period_seconds=0)
    assert store.peek("PersistentVolumeClaim", "used") is None

    source = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    make(store, "PersistentVolume", "v", spec=source)
    store.patch("PersistentVolume", "v", None, {"status": {"phase": "Bound"}}, "merge", "status")
    store.delete("PersistentVolume", "v")
    assert store.peek("PersistentVolume", "v") is not None
    store.patch("PersistentVolume", "v", None, {"status": {"phase": "Released"}}, "merge", "status")
    assert store.peek("PersistentVolume", "v") is None
