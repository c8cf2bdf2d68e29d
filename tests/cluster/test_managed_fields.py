"""managedFields after a create: who owns what was sent, and that nobody owns what the server adds."""

from __future__ import annotations

from typing import Any

from labkit.cluster.store import Store
from labkit.cluster.store_metadata import WriteOptions

from .asgi import Clock, node, pod


def owned(obj: Any) -> Any:
    """fieldsV1 of the only manager."""
    (entry,) = obj["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("me", "Update")
    return entry["fieldsV1"]


def test_a_new_pod() -> None:
    """Defaults belong to its creator; priority, tolerations and status, which admission and the server add, do not."""
    store = Store(Clock())
    made = store.create(pod("p"), options=WriteOptions(field_manager="me"))
    assert {"priority", "tolerations", "preemptionPolicy"} <= made["spec"].keys()
    fields = owned(made)
    assert fields.keys() == {"f:spec"}
    assert "f:schedulerName" in fields["f:spec"]
    assert not fields["f:spec"].keys() & {"f:priority", "f:tolerations", "f:preemptionPolicy"}
    # A list that is always written has no beginning of its own.
    assert "." not in fields["f:spec"]["f:containers"]


def test_a_new_node() -> None:
    """The status of a node is what its creator says."""
    made = Store(Clock()).create(
        node("n", status={"capacity": {"cpu": "1"}}), options=WriteOptions(field_manager="me")
    )
    assert owned(made)["f:status"]["f:capacity"] == {".": {}, "f:cpu": {}}
