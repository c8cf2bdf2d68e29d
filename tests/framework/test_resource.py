"""Vectors of amounts and the names of resources (spec 11 §11.2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from labkit.framework.resource import Resource, is_extended, is_native, is_scalar
from labkit.objects.codec import from_dict
from labkit.objects.node import Node

from tests import strategies


@pytest.mark.parametrize(
    ("name", "native", "extended", "scalar"),
    [
        ("cpu", True, False, False),
        ("foo", True, False, False),
        ("hugepages-2Mi", True, False, True),
        ("attachable-volumes-aws-ebs", True, False, True),
        ("kubernetes.io/batch-cpu", True, False, True),
        ("x.kubernetes.io/y", True, False, True),
        ("nvidia.com/gpu", False, True, True),
        ("example.com/a_b.c", False, True, True),
        ("requests.nvidia.com/gpu", False, False, False),
        ("Example.com/gpu", False, False, False),
        ("a/b/c", False, False, False),
        ("/gpu", False, False, False),
        ("example.com/", False, False, False),
        ("example.com/" + "x" * 64, False, False, False),
        ("x" * 245 + "/y", False, False, False),
        ("x" * 244 + "/y", False, True, True),
    ],
)
def test_names(name: str, native: bool, extended: bool, scalar: bool) -> None:
    """Native, extended (fits behind `requests.` as well), kept by name."""
    assert (is_native(name), is_extended(name), is_scalar(name)) == (native, extended, scalar)


def test_allocatable_not_capacity() -> None:
    """A node offers its allocatable; what is not named there is zero, pods too."""
    node = from_dict(
        {
            "kind": "Node",
            "metadata": {"name": "n"},
            "status": {
                "allocatable": {"cpu": "1500m", "nvidia.com/gpu": "2"},
                "capacity": {"cpu": "4", "pods": "9"},
            },
        }
    )
    assert isinstance(node, Node)
    found = Resource.of_allocatable(node)
    assert [found.get(n) for n in ("cpu", "memory", "ephemeral-storage", "pods", "nvidia.com/gpu", "x")] == [
        1500,
        0,
        0,
        0,
        2,
        0,
    ]


@given(strategies.resource_lists(), strategies.resource_lists())
def test_counting_in_and_out(a: dict[str, str], b: dict[str, str]) -> None:
    """Adding and subtracting the same amounts gets back to where it was; the copy was never touched."""
    total, other = Resource.of_quantities(a), Resource.of_quantities(b)
    before = total.clone()
    total.add(other)
    for name in {*a, *b}:
        assert total.get(name) == before.get(name) + other.get(name)
    total.subtract(other)
    assert all(total.get(name) == before.get(name) for name in {*a, *b})
