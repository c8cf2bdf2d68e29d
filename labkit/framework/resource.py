"""A vector of amounts: CPU in millicores, memory and ephemeral storage in bytes, the rest in units (spec 11 §11.2)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from labkit.objects.names import is_label_key
from labkit.objects.node import Node
from labkit.objects.quantity import Quantity, milli_value_of, value_of


def is_native(name: str) -> bool:
    """No `/` in the name, or `kubernetes.io/` in it."""
    return "/" not in name or "kubernetes.io/" in name


@lru_cache(maxsize=4096)
def is_extended(name: str) -> bool:
    """A resource that somebody outside Kubernetes named, such as `nvidia.com/gpu`."""
    # The name must also do as a quota's, which puts "requests." before it.
    return not is_native(name) and not name.startswith("requests.") and is_label_key(f"requests.{name}")


@lru_cache(maxsize=4096)
def is_scalar(name: str) -> bool:
    """A resource kept by name: extended, huge pages, attachable volumes, or one of `kubernetes.io/`."""
    return (
        is_extended(name)
        or name.startswith(("hugepages-", "attachable-volumes-"))
        or "kubernetes.io/" in name
    )


class Resource:
    """Amounts of one node or pod. `scalars` maps names such as `nvidia.com/gpu` to units."""

    __slots__ = ("allowed_pod_number", "ephemeral_storage", "memory", "milli_cpu", "scalars")

    def __init__(
        self,
        milli_cpu: int = 0,
        memory: int = 0,
        ephemeral_storage: int = 0,
        allowed_pod_number: int = 0,
        scalars: dict[str, int] | None = None,
    ) -> None:
        self.milli_cpu = milli_cpu
        self.memory = memory
        self.ephemeral_storage = ephemeral_storage
        self.allowed_pod_number = allowed_pod_number
        self.scalars: dict[str, int] = scalars if scalars is not None else {}

    @classmethod
    def of_allocatable(cls, node: Node) -> Resource:
        """What a node offers: `status.allocatable`, absent = 0."""
        return cls.of_quantities(node.status.allocatable)

    @classmethod
    def of_quantities(cls, amounts: Mapping[str, Any]) -> Resource:
        """From names and quantities (text or `Quantity`), each rounded up."""
        found = cls()
        for name, quantity in amounts.items():
            exact = isinstance(quantity, Quantity)
            if name == "cpu":
                found.milli_cpu = quantity.milli_value() if exact else milli_value_of(quantity)
                continue
            units = quantity.value() if exact else value_of(quantity)
            if name == "memory":
                found.memory = units
            elif name == "ephemeral-storage":
                found.ephemeral_storage = units
            elif name == "pods":
                found.allowed_pod_number = units
            elif is_scalar(name):
                found.scalars[name] = units
        return found

    def get(self, name: str) -> int:
        """The amount of a resource by its Kubernetes name; 0 when absent."""
        if name == "cpu":
            return self.milli_cpu
        if name == "memory":
            return self.memory
        if name == "ephemeral-storage":
            return self.ephemeral_storage
        if name == "pods":
            return self.allowed_pod_number
        return self.scalars.get(name, 0)

    def add(self, other: Resource) -> None:
        """Count `other` in."""
        self.milli_cpu += other.milli_cpu
        self.memory += other.memory
        self.ephemeral_storage += other.ephemeral_storage
        for name, units in other.scalars.items():
            self.scalars[name] = self.scalars.get(name, 0) + units

    def subtract(self, other: Resource) -> None:
        """Count `other` out."""
        self.milli_cpu -= other.milli_cpu
        self.memory -= other.memory
        self.ephemeral_storage -= other.ephemeral_storage
        for name, units in other.scalars.items():
            self.scalars[name] = self.scalars.get(name, 0) - units

    def clone(self) -> Resource:
        """A copy."""
        return Resource(
            self.milli_cpu, self.memory, self.ephemeral_storage, self.allowed_pod_number, dict(self.scalars)
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Resource):
            return NotImplemented
        return all(getattr(self, s) == getattr(other, s) for s in Resource.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{self.milli_cpu}m cpu, {self.memory} B memory, {self.scalars}>"
