"""Object metadata shared by every kind (Kubernetes API conventions, `metav1`)."""

from __future__ import annotations

from typing import Any

import msgspec


class KubeStruct(msgspec.Struct, rename="camel", kw_only=True, omit_defaults=True):
    """Base of all typed objects: camelCase in JSON, snake_case in Python, absent fields are zero values.

    Typed objects hold only the fields that scheduling reads; the store keeps whole objects as plain dicts.
    They are treated as immutable: make a changed copy with `msgspec.structs.replace`.
    """


class OwnerReference(KubeStruct):
    """`metadata.ownerReferences[]`."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(KubeStruct):
    """`metadata`. Times are RFC 3339 text as the API server writes them."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    finalizers: list[str] = []


class LabelSelectorRequirement(KubeStruct):
    """One of `matchExpressions`."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class LabelSelector(KubeStruct):
    """A label selector; `None` in its place selects nothing, an empty one everything (spec 10 §10.0.2)."""

    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


class KubeObject(KubeStruct, dict=True):
    """Base of top-level kinds. `dict=True` lets derived facts be cached on the (immutable) object."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)

    @property
    def name(self) -> str:
        """`metadata.name`."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """`metadata.namespace`, empty for cluster-scoped kinds."""
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        """`metadata.uid`."""
        return self.metadata.uid

    @property
    def labels(self) -> dict[str, str]:
        """`metadata.labels`, empty when absent."""
        return self.metadata.labels

    @property
    def key(self) -> str:
        """`namespace/name`, or `name` for cluster-scoped kinds."""
        return (
            f"{self.metadata.namespace}/{self.metadata.name}"
            if self.metadata.namespace
            else self.metadata.name
        )


#: Resource name -> quantity as given (text or number); read with `labkit.objects.quantity`.
ResourceList = dict[str, str | int | float]
RawObject = dict[str, Any]
