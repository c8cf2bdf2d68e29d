"""Config maps, secrets, limits, quotas and their like: what is refused, at create and at update."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.cluster.store import Store
from labkit.cluster.store_errors import ApiError

from .asgi import Api, Clock, pod

Json = dict[str, Any]


def of(kind: str, version: str = "v1", **parts: Any) -> Json:
    """A manifest."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "o"}, **parts}


MEBIBYTE = "y" * (1 << 20)
TEMPLATE = {
    "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}}
}
RBAC = "rbac.authorization.k8s.io/v1"
BAD: list[tuple[Json, list[str]]] = [
    (of("ConfigMap", data={"x": MEBIBYTE + "y"}), ["[]"]),
    (of("ConfigMap", data={"a b": ""}), ["data[a b]"]),
    (of("ConfigMap", binaryData={"..x": ""}), ["binaryData[..x]"]),
    (of("Secret", stringData={"x": MEBIBYTE + "y"}), ["data"]),
    (of("Secret", stringData={"..": "x"}), ["data[..]"]),
    (
        of("LimitRange", spec={"limits": [{"type": "Pod", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]}),
        ["spec.limits[0].min[cpu]"],
    ),
    (of("ResourceQuota", spec={"hard": {"nonsense": "1"}}), ["spec.hard[nonsense]", "spec.hard[nonsense]"]),
    (of("CronJob", "batch/v1", spec={"schedule": "* * *", "jobTemplate": TEMPLATE}), ["spec.schedule"]),
    (of("RoleBinding", RBAC, roleRef={"kind": "Node", "name": "r"}), ["roleRef.kind"]),
    (of("ClusterRoleBinding", RBAC, roleRef={"kind": "Role", "name": "r"}), ["roleRef.kind"]),
    (
        of("ResourceClaim", "resource.k8s.io/v1", spec={"devices": {"requests": [{"name": "r"}]}}),
        ["spec.devices.requests[0]"],
    ),
]


@pytest.mark.parametrize(("manifest", "fields"), BAD)
def test_refused(manifest: Json, fields: list[str]) -> None:
    """422, and the causes name the fields."""
    with pytest.raises(ApiError) as e:
        Store(Clock()).create(manifest)
    assert e.value.code == 422
    assert [c["field"] for c in (e.value.details or {})["causes"]] == fields


def test_the_largest_that_fit() -> None:
    """A mebibyte in all."""
    store = Store(Clock())
    store.create(of("ConfigMap", data={"x": MEBIBYTE}))
    store.create(of("Secret", stringData={"x": MEBIBYTE}))
    with pytest.raises(ApiError):
        store.patch("ConfigMap", "o", "default", {"data": {"z": "1"}}, "merge")


def test_text_of_a_secret_is_encoded() -> None:
    """stringData goes into data and wins there; nobody reads it back. Updates too."""
    store = Store(Clock())
    made = store.create(of("Secret", data={"a": "eA==", "b": "eA=="}, stringData={"b": "z"}))
    assert (made["data"], "stringData" in made) == ({"a": "eA==", "b": "eg=="}, False)
    changed = store.patch("Secret", "o", "default", {"stringData": {"c": "1"}}, "merge")
    assert (changed["data"]["c"], "stringData" in changed) == ("MQ==", False)


@pytest.mark.parametrize("stream", ["exec", "attach", "portforward"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_streams_are_refused_with_the_reason(stream: str, method: str) -> None:
    """kubectl exec, attach and port-forward: 400 that says why; 404 for a pod that is not there."""
    api = Api()
    api.store.create(pod("p"))
    answer = api.call(method, f"/api/v1/namespaces/default/pods/p/{stream}")
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")
    assert answer.json["message"].endswith(f"({stream}): containers are simulated here")
    assert api.call(method, f"/api/v1/namespaces/default/pods/q/{stream}").status == 404
