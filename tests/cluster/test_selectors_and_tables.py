"""Label and field selectors; the tables that kubectl prints."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.cluster.apiserver.table_text import duration
from labkit.cluster.store import Store
from labkit.cluster.store_errors import ApiError
from labkit.cluster.store_selectors import parse_labels

from .asgi import Api, Clock, node, pod

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("selector", "matching"),
    [
        ("a=1", ["a1"]),
        ("a==1", ["a1"]),
        ("a!=1", ["a2", "none"]),
        ("a in (1, 2)", ["a1", "a2"]),
        ("a notin (1)", ["a2", "none"]),
        ("a", ["a1", "a2"]),
        ("!a", ["none"]),
        ("a,a!=2", ["a1"]),
        ("a>1", ["a2"]),
        ("a<2", ["a1"]),
        ("a=", []),
        ("", ["a1", "a2", "none"]),
    ],
)
def test_label_selectors(selector: str, matching: list[str]) -> None:
    """Which of three label sets a selector matches."""
    labels: dict[str, dict[str, str]] = {"a1": {"a": "1"}, "a2": {"a": "2"}, "none": {}}
    test = parse_labels(selector)
    assert [n for n, found in labels.items() if test is None or test(found)] == matching


@pytest.mark.parametrize(
    "selector", ["a=b=c", "a in b", "a in (b", "=b", "a b", "a,", "!", "a=b c", "in", "a>x", "a=/"]
)
def test_malformed_label_selectors(selector: str) -> None:
    """Each -> 400 (`in` alone is a key, and legal)."""
    if selector == "in":
        assert parse_labels(selector) is not None
        return
    with pytest.raises(ApiError) as e:
        parse_labels(selector)
    assert e.value.code == 400


@pytest.mark.parametrize(
    ("fields", "matching"),
    [
        ("spec.nodeName=", ["free"]),
        ("spec.nodeName=n", ["bound"]),
        ("spec.nodeName!=n", ["free"]),
        ("status.phase=Pending,spec.schedulerName=other", ["free"]),
        ("metadata.name=bound", ["bound"]),
        ("metadata.name=bound,spec.nodeName=x", []),
        ("spec.hostNetwork=false", ["bound", "free"]),
        ("status.nominatedNodeName=", ["bound", "free"]),
    ],
)
def test_field_selectors(fields: str, matching: list[str]) -> None:
    """Which of two pods a field selector finds."""
    store = Store(Clock())
    store.create(pod("bound", nodeName="n"))
    store.create(pod("free", schedulerName="other"))
    found, _ = store.list("Pod", field_selector=fields)
    assert [p["metadata"]["name"] for p in found] == matching


def test_nodes_by_field() -> None:
    """spec.unschedulable compares with the text of the boolean; a field of another resource is refused."""
    store = Store(Clock())
    store.create(node("open"))
    store.create(node("closed", spec={"unschedulable": True}))
    assert [
        n["metadata"]["name"] for n in store.list("Node", field_selector="spec.unschedulable=true")[0]
    ] == ["closed"]
    assert [
        n["metadata"]["name"] for n in store.list("Node", field_selector="spec.unschedulable=false")[0]
    ] == ["open"]
    with pytest.raises(ApiError, match=r"field label not supported: spec\.nodeName"):
        store.list("Node", field_selector="spec.nodeName=x")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"), (68, "68s"), (120, "2m"), (351, "5m51s"), (660, "11m"), (10_800, "3h"), (11_000, "3h3m"),
        (90_000, "25h"), (180_000, "2d2h"), (800_000, "9d"), (63_000_000, "729d"), (70_000_000, "2y80d"), (-5, "<invalid>"),
    ],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    """Seconds -> what kubectl's AGE column says."""
    assert duration(seconds) == text


def cells(api: Api, url: str) -> list[list[Any]]:
    """The rows of a table."""
    return [row["cells"] for row in api.call("GET", url, accept=TABLE).json["rows"]]


def test_pod_states() -> None:
    """The one word for a pod's state, and how many containers are ready."""
    api = Api()
    statuses: dict[str, Any] = {
        "running": {"phase": "Running", "containerStatuses": [_container({"running": {}}, ready=True)]},
        "waiting": {"containerStatuses": [_container({"waiting": {"reason": "ImagePullBackOff"}})]},
        "done": {
            "phase": "Succeeded",
            "containerStatuses": [_container({"terminated": {"reason": "Completed"}})],
        },
        "killed": {
            "phase": "Failed",
            "containerStatuses": [_container({"terminated": {"exitCode": 137, "signal": 9}})],
        },
        "evicted": {"phase": "Failed", "reason": "Evicted"},
    }
    for name, status in statuses.items():
        api.store.create(pod(name, nodeName="n"))
        api.store.patch("Pod", name, "default", {"status": status}, "merge", "status")
    api.store.create(pod("gated", schedulingGates=[{"name": "a.b/c"}]))
    api.store.create(pod("leaving", nodeName="n"))
    api.store.delete("Pod", "leaving")
    found = {row[0]: (row[1], row[2]) for row in cells(api, "/api/v1/namespaces/default/pods")}
    assert found == {
        "running": ("1/1", "Running"),
        "waiting": ("0/1", "ImagePullBackOff"),
        "done": ("0/1", "Completed"),
        "killed": ("0/1", "Signal:9"),
        "evicted": ("0/1", "Evicted"),
        "gated": ("0/1", "SchedulingGated"),
        "leaving": ("0/1", "Terminating"),
    }


def _container(state: Any, *, ready: bool = False) -> dict[str, Any]:
    return {"name": "c", "ready": ready, "restartCount": 0, "image": "i", "imageID": "", "state": state}


def test_every_resource_has_a_table() -> None:
    """An empty list of each resource -> a Table with columns; each example object -> as many cells as columns."""
    from labkit.cluster.store_types import RESOURCES

    api = Api()
    api.store.create(node())
    api.store.create(pod())
    filled = 0
    for resource in RESOURCES:
        if resource.create_only:
            continue
        prefix = f"/apis/{resource.group}" if resource.group else "/api"
        answer = api.call("GET", f"{prefix}/{resource.version}/{resource.plural}", accept=TABLE).json
        assert answer["kind"] == "Table", resource
        for row in answer["rows"]:
            assert len(row["cells"]) == len(answer["columnDefinitions"])
            filled += 1
    assert filled >= 8  # nodes, pods, namespaces, priority classes, the service


def test_include_object() -> None:
    """includeObject: metadata alone, the whole object, nothing, nonsense."""
    api = Api()
    api.store.create(node())
    url = "/api/v1/nodes?includeObject="
    assert api.call("GET", url, accept=TABLE).json["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    assert "spec" in api.call("GET", url + "Object", accept=TABLE).json["rows"][0]["object"]
    assert api.call("GET", url + "None", accept=TABLE).json["rows"][0]["object"] is None
    assert api.call("GET", url + "Some", accept=TABLE).status == 400
