"""Typed objects from dicts: null is absent, unknown fields pass, what is wrong is named (Kubernetes API conventions)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labkit.errors import InputError
from labkit.framework.requests import pod_requests
from labkit.objects.codec import KINDS, drop_nulls, from_dict, to_dict
from labkit.objects.node import Node
from labkit.objects.pod import Pod


def pod(spec: Any = None, **metadata: Any) -> Pod:
    found = from_dict(
        {"kind": "Pod", "metadata": {"name": "web", "namespace": "shop", **metadata}, "spec": spec}
    )
    assert isinstance(found, Pod)
    return found


def test_fields_are_read_in_camel_case() -> None:
    """JSON names become Python names; what is absent has its zero value."""
    found = pod(
        {"nodeName": "n1", "containers": [{"name": "c", "ports": [{"hostPort": 80, "hostIP": "::1"}]}]}
    )
    port = found.spec.containers[0].ports[0]
    assert (found.key, found.spec.node_name, port.host_port, port.host_ip) == ("shop/web", "n1", 80, "::1")
    assert (found.spec.tolerations, found.spec.affinity, found.spec.node_selector) == ([], None, None)


def test_null_is_absent_in_every_place() -> None:
    """A null field is the same as no field."""
    nulls = {
        "nodeName": None,
        "containers": [{"name": "c", "resources": None, "ports": None, "restartPolicy": None}],
        "affinity": None,
        "tolerations": None,
        "overhead": None,
        "hostNetwork": None,
    }
    assert pod(nulls, labels=None) == pod({"containers": [{"name": "c"}]})
    assert pod(None) == pod({})


def test_null_inside_maps_and_lists_is_a_zero_value() -> None:
    """As JSON decoding does in Kubernetes: an empty text, a zero quantity, an empty item."""
    found = pod(
        {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": None}}}],
            "tolerations": [None],
            "nodeSelector": {"a": None},
        },
        labels={"b": None},
    )
    assert str(pod_requests(found)["cpu"]) == "0"
    assert (found.spec.tolerations[0].key, found.spec.node_selector, found.labels) == (
        "",
        {"a": ""},
        {"b": ""},
    )


def test_an_empty_map_is_not_an_absent_one() -> None:
    """NodeAffinity asks whether `nodeSelector` is there at all."""
    assert (pod({"nodeSelector": {}}).spec.node_selector, pod({}).spec.node_selector) == ({}, None)


def test_unknown_fields_pass() -> None:
    """Fields that scheduling does not read are no error."""
    assert pod({"dnsPolicy": "Default", "containers": [{"name": "c", "stdin": True}]}) == pod(
        {"containers": [{"name": "c"}]}
    )


@pytest.mark.parametrize(
    ("spec", "field", "says"),
    [
        ({"containers": "x"}, "spec.containers", 'expected a list, got "x"'),
        ({"containers": [{"name": 5}]}, "spec.containers[0].name", "expected text, got 5"),
        ({"priority": "high"}, "spec.priority", 'expected a whole number, got "high"'),
        ({"hostNetwork": "yes"}, "spec.hostNetwork", 'expected true or false, got "yes"'),
        ({"nodeName": ["n"]}, "spec.nodeName", 'expected text, got ["n"]'),
        ({"tolerations": {"key": "a"}}, "spec.tolerations", 'expected a list, got {"key": "a"}'),
        ("x", "spec", 'expected an object, got "x"'),
    ],
)
def test_wrong_types(spec: Any, field: str, says: str) -> None:
    """The message names object, field, what was expected and what stands there."""
    with pytest.raises(InputError) as caught:
        pod(spec)
    assert (caught.value.object, caught.value.field) == ("Pod shop/web", field)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (
            {"containers": [{"resources": {"requests": {"cpu": "1 core"}}}]},
            "spec.containers[0].resources.requests.cpu",
        ),
        (
            {"initContainers": [{"resources": {"limits": {"memory": "1K"}}}]},
            "spec.initContainers[0].resources.limits.memory",
        ),
        ({"overhead": {"cpu": ""}}, "spec.overhead.cpu"),
        ({"resources": {"requests": {"memory": "1e999999999"}}}, "spec.resources.requests.memory"),
    ],
)
def test_bad_quantities(spec: Any, field: str) -> None:
    """A quantity that does not parse is named with its whole path, and with how to write one."""
    with pytest.raises(InputError) as caught:
        pod(spec)
    assert caught.value.field == field
    assert caught.value.hint is not None
    assert "128Mi" in caught.value.hint


def test_bad_quantity_of_a_node() -> None:
    """Nodes are checked as pods are."""
    with pytest.raises(InputError, match=r"Node n1, status.allocatable.cpu: 'four' is not a quantity"):
        from_dict({"kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "four"}}})


def test_labels_may_be_called_like_resource_lists() -> None:
    """Only resource lists hold quantities: a label or annotation `requests` is text."""
    assert pod({}, labels={"requests": "many"}, annotations={"limits": "none"}).labels == {"requests": "many"}


def test_unknown_kinds() -> None:
    """A kind that the scheduler does not read is refused with the kinds it does read."""
    with pytest.raises(InputError) as caught:
        from_dict({"kind": "Deployment", "metadata": {"name": "d"}})
    assert "'Deployment'" in str(caught.value)
    assert "Pod" in str(caught.value)


def test_depth_is_no_crash() -> None:
    """Thousands of levels are an input error like any other."""
    deep: dict[str, Any] = {}
    inner = deep
    for _ in range(5000):
        inner["x"] = inner = {}
    with pytest.raises(InputError, match="nested too deeply"):
        from_dict({"kind": "Pod", "metadata": {"name": "p"}, "spec": deep})


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_goes_out_and_in(kind: str) -> None:
    """What is read, written and read again is the same object, and its metadata is what was given."""
    raw = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", "labels": {"a": "b"}}}
    written = to_dict(from_dict(raw))
    assert from_dict(written) == from_dict(raw)
    assert {k: written[k] for k in raw} == raw


def test_drop_nulls() -> None:
    """Nulls leave objects at every depth; items of lists stay where they are."""
    assert drop_nulls({"a": None, "b": [{"c": None}, None], "d": 0}) == {"b": [{}, None], "d": 0}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
field_names = st.sampled_from(
    [
        "metadata",
        "spec",
        "status",
        "labels",
        "containers",
        "resources",
        "requests",
        "affinity",
        "taints",
        "allocatable",
    ]
)


@given(st.sampled_from(sorted(KINDS)), st.dictionaries(field_names, json_values), json_values)
def test_any_input_gives_an_object_or_an_input_error(kind: str, raw: dict[str, Any], spec: Any) -> None:
    """Nothing that can be written in JSON raises anything else."""
    try:
        outcome = type(from_dict({**raw, "kind": kind, "spec": raw.get("spec", spec)})).__name__
    except InputError as e:
        outcome = str(e)
    assert outcome == kind or outcome.startswith(f"{kind} ")


def test_null_node() -> None:
    """A node of nulls is an empty node."""
    found = from_dict(
        {
            "kind": "Node",
            "metadata": {"name": "n"},
            "spec": {"taints": None, "unschedulable": None},
            "status": None,
        }
    )
    assert isinstance(found, Node)
    assert (found.spec.taints, found.spec.unschedulable, found.status.allocatable) == ([], False, {})
