"""The store in-process: versions, conflicts, deletion, binding, callbacks."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.cluster.client import StoreClient
from labkit.cluster.store import Store
from labkit.cluster.store_deletion import finalize_namespace
from labkit.cluster.store_errors import ApiError
from labkit.cluster.store_metadata import WriteOptions

from .asgi import Clock, node, pod


@pytest.fixture
def store() -> Store:
    """An empty cluster whose time stands still."""
    return Store(Clock())


def refused(code: int, reason: str, call: Any) -> ApiError:
    """The error of a call that must be refused."""
    with pytest.raises(ApiError) as e:
        call()
    assert (e.value.code, e.value.reason) == (code, reason)
    return e.value


def test_same_seed_same_history() -> None:
    """The same calls with the same seed and clock -> equal objects, uids and versions; another seed -> other uids."""

    def run(seed: int) -> list[Any]:
        store = Store(Clock(), seed)
        store.create(pod("a"))
        store.create({**pod(), "metadata": {"generateName": "g-"}})
        return store.list("Pod")[0]

    assert run(1) == run(1)
    assert run(1)[0]["metadata"]["uid"] != run(2)[0]["metadata"]["uid"]


def test_what_is_returned_is_a_copy(store: Store) -> None:
    """Changing what get, list and create return -> the store is unchanged."""
    created = store.create(pod())
    created["spec"]["containers"][0]["image"] = "changed"
    store.list("Pod")[0][0]["metadata"]["labels"] = {"x": "y"}
    got = store.get("Pod", "p")
    assert got["spec"]["containers"][0]["image"] == "i"
    assert "labels" not in got["metadata"]


def test_what_is_given_stays_the_givers(store: Store) -> None:
    """Changing a manifest after create -> the store is unchanged, and the manifest was not written to."""
    manifest = pod()
    store.create(manifest)
    assert manifest == pod()
    manifest["spec"]["containers"][0]["image"] = "changed"
    assert store.get("Pod", "p")["spec"]["containers"][0]["image"] == "i"


def test_optimistic_concurrency(store: Store) -> None:
    """Two writers from one version -> the second is refused with 409; without a version it overwrites."""
    first = store.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}
    )
    store.update({**first, "data": {"a": "2"}})
    refused(409, "Conflict", lambda: store.update({**first, "data": {"a": "3"}}))
    meta = {k: v for k, v in first["metadata"].items() if k != "resourceVersion"}
    assert store.update({**first, "metadata": meta, "data": {"a": "4"}})["data"] == {"a": "4"}


def test_a_write_that_changes_nothing(store: Store) -> None:
    """PUT of the same content -> same resourceVersion, no callback."""
    created = store.create(pod())
    seen: list[str] = []
    store.subscribe(lambda kind, old, new: seen.append(kind))
    assert store.update(created)["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]
    assert seen == []


def test_generation(store: Store) -> None:
    """Deployment: spec change raises it; labels and status do not. Nodes have none."""
    made = store.create(_deployment())
    assert made["metadata"]["generation"] == 1
    scaled = store.patch("Deployment", "d", "default", {"spec": {"replicas": 2}})
    assert scaled["metadata"]["generation"] == 2
    labelled = store.patch("Deployment", "d", "default", {"metadata": {"labels": {"a": "b"}}})
    assert labelled["metadata"]["generation"] == 2
    reported = store.patch("Deployment", "d", "default", {"status": {"replicas": 2}}, subresource="status")
    assert (reported["metadata"]["generation"], reported["status"]["replicas"]) == (2, 2)
    assert "generation" not in store.create(node())["metadata"]


def _deployment() -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


def test_callbacks_in_order(store: Store) -> None:
    """A callback that writes -> everybody sees the first change before the second."""
    seen: list[tuple[str, str]] = []

    def relabel(kind: str, old: Any, new: Any) -> None:
        if kind == "ADDED":
            store.patch("Pod", "p", "default", {"metadata": {"labels": {"seen": "yes"}}})

    store.subscribe(relabel)
    stop = store.subscribe(
        lambda kind, old, new: seen.append((kind, (new or old)["metadata"]["resourceVersion"]))
    )
    store.create(pod())
    assert [kind for kind, _ in seen] == ["ADDED", "MODIFIED"]
    assert int(seen[0][1]) < int(seen[1][1])
    stop()
    store.delete("Pod", "p")
    assert len(seen) == 2


def test_callback_arguments(store: Store) -> None:
    """ADDED has no old object, DELETED no new one, MODIFIED both."""
    seen: list[tuple[str, bool, bool]] = []
    store.subscribe(lambda kind, old, new: seen.append((kind, old is not None, new is not None)))
    store.create(node())
    store.patch("Node", "n", None, {"spec": {"unschedulable": True}})
    store.delete("Node", "n")
    assert seen == [("ADDED", False, True), ("MODIFIED", True, True), ("DELETED", True, False)]


def test_graceful_deletion(store: Store) -> None:
    """A bound pod stays for its grace period; a shorter one cuts it; 0 removes it."""
    store.create(pod(nodeName="n"))
    meta = store.delete("Pod", "p")["metadata"]
    assert (meta["deletionGracePeriodSeconds"], meta["generation"]) == (30, 2)
    assert store.delete("Pod", "p", grace_period_seconds=5)["metadata"]["deletionGracePeriodSeconds"] == 5
    assert store.delete("Pod", "p", grace_period_seconds=60)["metadata"]["deletionGracePeriodSeconds"] == 5
    store.delete("Pod", "p", grace_period_seconds=0)
    refused(404, "NotFound", lambda: store.get("Pod", "p"))


def test_pending_and_finished_pods_go_at_once(store: Store) -> None:
    """No node, or phase Succeeded -> removed by the first delete."""
    store.create(pod("pending"))
    store.create(pod("done", nodeName="n"))
    store.patch("Pod", "done", "default", {"status": {"phase": "Succeeded"}}, subresource="status")
    for name in ("pending", "done"):
        store.delete("Pod", name)
    assert store.list("Pod")[0] == []


def test_finalizers(store: Store) -> None:
    """A finalizer keeps the object; the last one's removal removes it; none may be added meanwhile."""
    store.create({**node(), "metadata": {"name": "n", "finalizers": ["lab.example/x"]}})
    assert "deletionTimestamp" in store.delete("Node", "n")["metadata"]
    error = refused(
        422, "Invalid", lambda: store.patch("Node", "n", None, {"metadata": {"finalizers": ["a.b/c"]}})
    )
    assert "no new finalizers can be added" in error.message
    store.patch("Node", "n", None, {"metadata": {"finalizers": None}}, "merge")
    assert store.peek("Node", "n") is None


def test_delete_preconditions(store: Store) -> None:
    """The uid of another object -> 409, and nothing is deleted."""
    store.create(node())
    error = refused(409, "Conflict", lambda: store.delete("Node", "n", preconditions={"uid": "other"}))
    assert "does not match the UID in record" in error.message
    assert store.peek("Node", "n") is not None


def test_bind(store: Store) -> None:
    """Binding sets the node, the condition and the zone label; a second one is refused."""
    store.create(node(metadata={"labels": {"topology.kubernetes.io/zone": "z1"}}))
    created = store.create(pod())
    StoreClient(store).bind("default", "p", created["metadata"]["uid"], "n")
    bound = store.get("Pod", "p")
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["labels"] == {"topology.kubernetes.io/zone": "z1"}
    assert bound["metadata"]["generation"] == 1
    (condition,) = bound["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    error = refused(409, "Conflict", lambda: store.bind("default", "p", None, "other"))
    assert 'already assigned to node "n"' in error.message


def test_dry_run_stores_nothing(store: Store) -> None:
    """dryRun create, update, delete, bind -> the answer, and an unchanged store."""
    dry = WriteOptions(dry_run=True)
    assert store.create(pod(), options=dry)["spec"]["schedulerName"] == "default-scheduler"
    assert store.list("Pod")[0] == []
    store.create(pod())
    version = store.resource_version
    store.bind("default", "p", None, "n", options=dry)
    store.patch("Pod", "p", "default", {"metadata": {"labels": {"a": "b"}}}, options=dry)
    store.delete("Pod", "p", options=dry)
    store.evict("default", "p", options=dry)
    assert store.resource_version == version
    assert "nodeName" not in store.get("Pod", "p")["spec"]


def test_evict_and_budgets(store: Store) -> None:
    """One disruption allowed -> the first eviction spends it, the second is refused with 429."""
    for name in ("a", "b"):
        store.create(pod(name, labels={"app": "x"}, nodeName="n"))
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        store.patch("Pod", name, "default", {"status": ready}, subresource="status")
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}
    store.create(
        {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}, "spec": spec}
    )
    refused(429, "TooManyRequests", lambda: store.evict("default", "a"))  # nobody has counted yet
    counted = {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1}
    store.patch("PodDisruptionBudget", "b", "default", {"status": counted}, subresource="status")
    store.evict("default", "a")
    assert "deletionTimestamp" in store.get("Pod", "a")["metadata"]
    error = refused(429, "TooManyRequests", lambda: store.evict("default", "b"))
    (cause,) = (error.details or {})["causes"]
    assert cause["message"] == "The disruption budget b needs 1 healthy pods and has 2 currently"


def test_namespaces(store: Store) -> None:
    """A namespace must exist; while it goes nothing is created in it; at the end it and its objects are gone."""
    refused(404, "NotFound", lambda: store.create(pod(namespace="team")))
    store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    store.create(pod("pending", namespace="team"))
    store.create(pod("bound", namespace="team", nodeName="n"))
    assert store.delete("Namespace", "team")["status"]["phase"] == "Terminating"
    refused(403, "Forbidden", lambda: store.create(pod("late", namespace="team")))
    assert not finalize_namespace(store, "team")  # the bound pod has its grace period
    store.delete("Pod", "bound", "team", grace_period_seconds=0)
    assert finalize_namespace(store, "team")
    assert store.peek("Namespace", "team") is None
    refused(403, "Forbidden", lambda: store.delete("Namespace", "default"))


def test_events_are_seen_through_both_groups(store: Store) -> None:
    """An events.k8s.io event -> the same object as core Event, with the other names; gone after an hour."""
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "p.1", "namespace": "default"},
        "eventTime": "2026-01-01T00:00:00.123456Z",
        "reportingController": "s",
        "reportingInstance": "s-1",
        "action": "Binding",
        "reason": "Scheduled",
        "type": "Normal",
        "note": "hello",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p"},
    }
    store.create(event)
    core = store.get("Event", "p.1", "default")
    assert (core["message"], core["involvedObject"]["name"], core["reportingComponent"]) == (
        "hello",
        "p",
        "s",
    )
    assert isinstance(store.clock, Clock)
    store.clock.time += 3601
    store.create({**event, "metadata": {"name": "p.2", "namespace": "default"}})
    assert [e["metadata"]["name"] for e in store.list("Event")[0]] == ["p.2"]


def test_node_taint_at_create() -> None:
    """taint_new_nodes -> a new node is not-ready until somebody takes the taint off."""
    assert "taints" not in Store(Clock()).create(node())["spec"]
    tainted = Store(Clock(), taint_new_nodes=True).create(node())
    assert tainted["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]


def test_unknown_kind(store: Store) -> None:
    """A kind that the API does not have -> 404, with the kinds that it has."""
    error = refused(404, "NotFound", lambda: store.get("Podd", "p"))
    assert "PodDisruptionBudget" in error.message
    refused(
        404, "NotFound", lambda: store.create({"apiVersion": "v2", "kind": "Pod", "metadata": {"name": "x"}})
    )
