"""JSON, merge and strategic merge patches, as functions of plain JSON."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.cluster.store_errors import ApiError
from labkit.cluster.store_patch import json_patch, merge_patch, strategic_merge_patch
from labkit.cluster.store_schema import struct

POD = struct("core.v1.Pod")


def strategic(original: Any, patch: Any) -> Any:
    """Patch a pod; the original is left alone."""
    before = repr(original)
    patched = strategic_merge_patch(original, patch, POD)
    assert repr(original) == before
    return patched


@pytest.mark.parametrize(
    ("original", "patch", "expected"),
    [  # from RFC 7386, appendix A
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"a": "foo"}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch(original: Any, patch: Any, expected: Any) -> None:
    """RFC 7386's own examples."""
    assert merge_patch(original, patch) == expected


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        ([{"op": "add", "path": "/b", "value": 1}], {"a": [1, 2], "b": 1}),
        ([{"op": "add", "path": "/a/1", "value": 9}], {"a": [1, 9, 2]}),
        ([{"op": "add", "path": "/a/-", "value": 9}], {"a": [1, 2, 9]}),
        ([{"op": "remove", "path": "/a/0"}], {"a": [2]}),
        ([{"op": "replace", "path": "/a/0", "value": 7}], {"a": [7, 2]}),
        ([{"op": "move", "from": "/a", "path": "/b~1c"}], {"b/c": [1, 2]}),
        ([{"op": "copy", "from": "/a/0", "path": "/~0"}], {"a": [1, 2], "~": 1}),
        ([{"op": "test", "path": "/a/1", "value": 2}, {"op": "remove", "path": "/a"}], {}),
    ],
)
def test_json_patch(operations: Any, expected: Any) -> None:
    """RFC 6902 operations on {"a": [1, 2]}."""
    original = {"a": [1, 2]}
    assert json_patch(original, operations) == expected
    assert original == {"a": [1, 2]}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 1},
        {"op": "remove", "path": "/x"},
        {"op": "remove", "path": "/a/2"},
        {"op": "replace", "path": "/a/2", "value": 1},
        {"op": "replace", "path": "/x/y", "value": 1},
        {"op": "add", "path": "/a/01", "value": 1},
        {"op": "add", "path": "/x/y", "value": 1},
        {"op": "add", "path": "a", "value": 1},
        {"op": "add", "path": "/b"},
        {"op": "move", "from": "/a", "path": "/a/0"},
        {"op": "move", "path": "/a"},
        {"op": "nonsense", "path": "/a"},
        {"path": "/a"},
        {"op": "remove"},
    ],
)
def test_json_patch_refused(operation: Any) -> None:
    """A failing test, a missing path, a malformed operation -> 422."""
    with pytest.raises(ApiError) as e:
        json_patch({"a": [1, 2]}, [operation])
    assert e.value.code == 422


def test_containers_merge_by_name() -> None:
    """A container of the same name is merged, another one added; args are replaced."""
    original = {"spec": {"containers": [{"name": "a", "image": "1", "args": ["x", "y"]}]}}
    patch = {"spec": {"containers": [{"name": "b", "image": "2"}, {"name": "a", "args": ["z"]}]}}
    assert strategic(original, patch)["spec"]["containers"] == [
        {"name": "a", "image": "1", "args": ["z"]},
        {"name": "b", "image": "2"},
    ]


def test_directives() -> None:
    """$patch delete and replace, $deleteFromPrimitiveList, $retainKeys, $setElementOrder."""
    volumes = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    retained = {
        "spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}
    }
    assert strategic(volumes, retained)["spec"]["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]

    containers = {"spec": {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}}
    deleted = {"spec": {"containers": [{"name": "b", "$patch": "delete"}]}}
    assert strategic(containers, deleted)["spec"]["containers"] == [{"name": "a"}, {"name": "c"}]
    replaced = {"spec": {"containers": [{"name": "z"}, {"$patch": "replace"}]}}
    assert strategic(containers, replaced)["spec"]["containers"] == [{"name": "z"}]
    order = [{"name": n} for n in ("c", "new", "a")]
    ordered = {"spec": {"$setElementOrder/containers": order, "containers": [{"name": "new", "image": "i"}]}}
    assert [c["name"] for c in strategic(containers, ordered)["spec"]["containers"]] == ["b", "c", "new", "a"]

    finalizers = {"metadata": {"finalizers": ["a", "b"]}}
    removed = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]}}
    assert strategic(finalizers, removed)["metadata"]["finalizers"] == ["b", "c"]
    assert strategic({"spec": {"affinity": {"x": {}}}}, {"spec": {"affinity": {"$patch": "delete"}}})[
        "spec"
    ] == {"affinity": {}}


def test_atomic_lists_are_replaced() -> None:
    """tolerations have no merge key: the patch's list is the list."""
    original = {"spec": {"tolerations": [{"key": "a"}, {"key": "b"}]}}
    assert strategic(original, {"spec": {"tolerations": [{"key": "c"}]}})["spec"]["tolerations"] == [
        {"key": "c"}
    ]


def test_scheduler_condition_patch() -> None:
    """kube-scheduler's DisruptionTarget patch: the known condition stays, the new one follows."""
    original = {"status": {"conditions": [{"type": "PodScheduled", "status": "True"}]}}
    patch = {
        "status": {
            "$setElementOrder/conditions": [{"type": "PodScheduled"}, {"type": "DisruptionTarget"}],
            "conditions": [{"type": "DisruptionTarget", "status": "True"}],
        }
    }
    assert strategic(original, patch)["status"]["conditions"] == [
        {"type": "PodScheduled", "status": "True"},
        {"type": "DisruptionTarget", "status": "True"},
    ]


def test_json_patch_replaces_what_is_not_there() -> None:
    """A key that is missing is set, as on the real server; so counts what stands behind the first slash only."""
    assert json_patch({"a": 1}, [{"op": "replace", "path": "/x", "value": 2}]) == {"a": 1, "x": 2}
    assert json_patch({"a": 1}, [{"op": "add", "path": "x/a", "value": 2}]) == {"a": 2}


@pytest.mark.parametrize("patch_of", [json_patch, lambda o, p: strategic_merge_patch(o, p, None)])
def test_null_changes_nothing(patch_of: Any) -> None:
    """The patch `null` of a JSON patch or a strategic merge."""
    assert patch_of({"a": 1}, None) == {"a": 1}


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        ([], 400, "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ("x", 400, "json: cannot unmarshal string into Go value of type map[string]interface {}"),
        (
            {
                "spec": {
                    "containers": [{"image": "i", "ports": [{"hostPort": 1}], "tty": True, "stdin": None}]
                }
            },
            500,
            "map: map[image:i ports:[map[hostPort:1]] stdin:<nil> tty:true] does not contain declared merge key: name",
        ),
        ({"spec": {"$patch": "bogus"}}, 500, "unknown patch type: bogus in map: map[$patch:bogus]"),
        (
            {"spec": {"containers": [{"name": "a", "$patch": "bogus"}]}},
            500,
            "unknown patch type: bogus in map: map[$patch:bogus name:a]",
        ),
        (
            {"spec": {"containers": ["x"]}},
            500,
            "list element types are not identical: [[map[name:a]] [x]]",
        ),
    ],
)
def test_strategic_refused(patch: Any, code: int, message: str) -> None:
    """No object is the client's fault; the real server takes a bad directive or a missing key for its own."""
    with pytest.raises(ApiError) as e:
        strategic({"spec": {"containers": [{"name": "a"}]}}, patch)
    assert (e.value.code, e.value.message) == (code, message)
