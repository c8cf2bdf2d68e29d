"""Server-side apply: ownership, conflicts, removal of what is no longer applied."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.cluster.store import Store
from labkit.cluster.store_errors import ApiError
from labkit.cluster.store_metadata import WriteOptions

from .asgi import Clock, pod


def by(manager: str) -> WriteOptions:
    """Write as a manager."""
    return WriteOptions(field_manager=manager)


@pytest.fixture
def store() -> Store:
    """An empty cluster."""
    return Store(Clock())


def apply(store: Store, manager: str, *, force: bool = False, **parts: Any) -> Any:
    """Apply the config map `c`."""
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", **parts.pop("metadata", {})},
        **parts,
    }
    return store.patch("ConfigMap", "c", "default", config, "apply", force=force, options=by(manager))


def owners(obj: Any) -> dict[str, list[str]]:
    """manager -> names of the data keys that it owns."""
    return {
        e["manager"]: sorted(k[2:] for k in e["fieldsV1"].get("f:data", {}) if k != ".")
        for e in obj["metadata"]["managedFields"]
    }


def test_creates_and_removes_what_is_no_longer_applied(store: Store) -> None:
    """Applied a and b, then only b -> a is gone."""
    apply(store, "me", data={"a": "1", "b": "1"})
    found = apply(store, "me", data={"b": "2"})
    assert found["data"] == {"b": "2"}
    assert owners(found) == {"me": ["b"]}


def test_conflict_and_force(store: Store) -> None:
    """Another manager's value -> 409 that names it; forced -> the field changes hands."""
    apply(store, "me", data={"a": "1"})
    with pytest.raises(ApiError) as e:
        apply(store, "you", data={"a": "2"})
    assert (e.value.code, e.value.message) == (
        409,
        'Apply failed with 1 conflict: conflict with "me": .data.a',
    )
    found = apply(store, "you", data={"a": "2"}, force=True)
    assert owners(found) == {"me": [], "you": ["a"]}


def test_shared_fields(store: Store) -> None:
    """Two managers apply the same value -> both own it, and it stays when one lets go."""
    apply(store, "me", data={"a": "1"})
    apply(store, "you", data={"a": "1", "b": "1"})
    found = apply(store, "me", data={})
    assert found["data"] == {"a": "1", "b": "1"}


def test_update_takes_ownership(store: Store) -> None:
    """A plain patch of an applied field -> its writer owns it; the next apply conflicts."""
    apply(store, "me", data={"a": "1"})
    found = store.patch("ConfigMap", "c", "default", {"data": {"a": "2"}}, options=by("kubectl-patch"))
    assert owners(found) == {"me": [], "kubectl-patch": ["a"]}
    with pytest.raises(ApiError) as e:
        apply(store, "me", data={"a": "1"})
    assert 'conflict with "kubectl-patch" using v1' in e.value.message


def test_fields_from_before(store: Store) -> None:
    """An object that nobody kept record of -> its fields belong to before-first-apply."""
    store.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}})
    with pytest.raises(ApiError) as e:
        apply(store, "me", data={"a": "2"})
    assert "before-first-apply" in e.value.message


def test_lists_by_key(store: Store) -> None:
    """Two managers apply one container each -> both are there; one lets go -> its container goes."""
    store.create(pod(schedulingGates=[{"name": "a.b/c"}]), options=by("creator"))

    def conditions(manager: str, *types: str) -> Any:
        wanted = [{"type": t, "status": "True"} for t in types]
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p"},
            "status": {"conditions": wanted},
        }
        found = store.patch("Pod", "p", "default", body, "apply", "status", options=by(manager))
        return sorted(c["type"] for c in found["status"]["conditions"])

    assert conditions("me", "A", "B") == ["A", "B", "PodScheduled"]
    assert conditions("you", "C") == ["A", "B", "C", "PodScheduled"]
    assert conditions("me", "B") == ["B", "C", "PodScheduled"]


def test_needs_a_manager(store: Store) -> None:
    """Without fieldManager -> 422."""
    with pytest.raises(ApiError) as e:
        store.patch("ConfigMap", "c", "default", {"metadata": {"name": "c"}}, "apply")
    assert e.value.code == 422


def test_applying_the_same_twice_changes_nothing(store: Store) -> None:
    """The second apply -> the same resourceVersion."""
    first = apply(store, "me", data={"a": "1"}, metadata={"labels": {"x": "y"}})
    again = apply(store, "me", data={"a": "1"}, metadata={"labels": {"x": "y"}})
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
