"""Nodes as an extender receives them: decoded only as far as a plugin reads.

In the whole-node form each node stays bytes; its labels, taints and allocatable amounts are decoded when a
plugin first looks at `node`, its image list and conditions only when those are read. In the name form a node
is looked up by name, or known by nothing but its name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from labkit.framework.node_info import NodeInfo
from labkit.objects.meta import KubeObject, KubeStruct, ObjectMeta, ResourceList
from labkit.objects.node import ContainerImage, Node, NodeCondition, NodeSpec
from labkit.objects.pod import Pod

#: Node name -> what the extender knows of it, or None.
NodeSource = Callable[[str], NodeInfo | None]

_NULL = msgspec.Raw(b"null")
_EMPTY = msgspec.Raw(b"{}")
_decode_images = msgspec.json.Decoder(list[ContainerImage] | None).decode
_decode_conditions = msgspec.json.Decoder(list[NodeCondition] | None).decode


class _LazyStatus(KubeStruct, dict=True):
    """Stands in for NodeStatus; the long lists are decoded when read."""

    allocatable: ResourceList = {}
    capacity: ResourceList = {}
    declared_features: list[str] = []
    raw_images: msgspec.Raw = msgspec.field(default=_NULL, name="images")
    raw_conditions: msgspec.Raw = msgspec.field(default=_NULL, name="conditions")

    @property
    def images(self) -> list[ContainerImage]:
        """`status.images`."""
        if "images" not in self.__dict__:
            self.__dict__["images"] = _decode_images(self.raw_images) or []
        found: list[ContainerImage] = self.__dict__["images"]
        return found

    @property
    def conditions(self) -> list[NodeCondition]:
        """`status.conditions`."""
        if "conditions" not in self.__dict__:
            self.__dict__["conditions"] = _decode_conditions(self.raw_conditions) or []
        found: list[NodeCondition] = self.__dict__["conditions"]
        return found


class _LazyNode(KubeObject):
    """Stands in for Node: metadata is decoded, spec and status when a plugin reads them (from `raw`)."""

    @property
    def spec(self) -> NodeSpec:
        """`spec`."""
        if "spec" not in self.__dict__:
            self.__dict__["spec"] = _decode_part(_decode_spec, NodeSpec, self._parts().spec)
        found: NodeSpec = self.__dict__["spec"]
        return found

    @property
    def status(self) -> _LazyStatus:
        """`status`."""
        if "status" not in self.__dict__:
            self.__dict__["status"] = _decode_part(_decode_status, _LazyStatus, self._parts().status)
        found: _LazyStatus = self.__dict__["status"]
        return found

    def _parts(self) -> _Parts:
        if "parts" not in self.__dict__:
            self.__dict__["parts"] = _decode_parts(self.__dict__["raw"])
        found: _Parts = self.__dict__["parts"]
        return found


class _Parts(msgspec.Struct):
    spec: msgspec.Raw = _EMPTY
    status: msgspec.Raw = _EMPTY


_decode_node = msgspec.json.Decoder(_LazyNode).decode
_decode_parts = msgspec.json.Decoder(_Parts).decode
_decode_spec = msgspec.json.Decoder(NodeSpec).decode
_decode_status = msgspec.json.Decoder(_LazyStatus).decode
_decode_pod = msgspec.json.Decoder(Pod).decode
#: Go writes a node's members in this order; metadata rarely takes more bytes than `_HEAD`.
_SPEC = b'},"spec":'
_HEAD = 1024


class ReceivedNode(NodeInfo):
    """A NodeInfo over undecoded bytes; it holds no pods, as the protocol sends none (spec 04 §6)."""

    __slots__ = ()

    def __init__(self, raw: msgspec.Raw, index: int) -> None:
        # The other slots of NodeInfo stay unset until __getattr__ is asked for one: most plugins read labels.
        self.node = decode_node(raw)
        self.index = index

    def __getattr__(self, name: str) -> Any:
        if name not in NodeInfo.__slots__:
            raise AttributeError(f"NodeInfo has no attribute {name!r}")
        index = self.index
        NodeInfo.__init__(self, self.node)
        self.index = index
        return getattr(self, name)


def decode_node(raw: msgspec.Raw) -> Node:
    """The node in `raw`, decoded as far as its metadata. ValueError when a field has the wrong type."""
    node = _decode_head(raw)
    if node is None:
        try:
            node = _decode_node(raw)
        except msgspec.ValidationError:
            cleaned: Node = msgspec.convert(without_nulls(msgspec.json.decode(raw)), Node)
            return cleaned
    node.__dict__["raw"] = raw
    return node  # type: ignore[return-value]  # same attributes as Node


def _decode_head(raw: msgspec.Raw) -> _LazyNode | None:
    """The node from its first bytes, so that a long status is not read a second time; None where the metadata
    does not come first. What precedes `"spec"` is whole JSON only when that is a member of the node itself."""
    head = bytes(memoryview(raw)[:_HEAD])
    end = head.find(_SPEC)
    if end < 0:
        return None
    try:
        node = _decode_node(head[: end + 1] + b"}")
    except msgspec.MsgspecError:
        return None
    return node if node.metadata.name else None


def _decode_part(decode: Callable[[msgspec.Raw], Any], cls: type, raw: msgspec.Raw) -> Any:
    try:
        return decode(raw)
    except msgspec.ValidationError:
        return msgspec.convert(without_nulls(msgspec.json.decode(raw)) or {}, cls)


def decode_pod(raw: msgspec.Raw) -> Pod:
    """The pod in `raw`. ValueError when a field has the wrong type."""
    try:
        return _decode_pod(raw)
    except msgspec.ValidationError:
        return msgspec.convert(without_nulls(msgspec.json.decode(raw)), Pod)


def without_nulls(value: Any) -> Any:
    """The same JSON value without null members: in Kubernetes null means absent."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    if isinstance(value, list):
        return [without_nulls(v) for v in value]
    return value


class NamedNodes:
    """Nodes for the name form: from a source where there is one, else known by name only. Bounded memory."""

    def __init__(self, source: NodeSource | None = None, limit: int = 50_000) -> None:
        self._source = source
        self._limit = limit
        self._bare: dict[str, NodeInfo] = {}

    def all(self, names: Sequence[str]) -> list[NodeInfo]:
        """What is known of each of `names`."""
        if self._source is not None:
            return [self.get(name) for name in names]
        bare = self._bare
        return [bare.get(name) or self.get(name) for name in names]

    def get(self, name: str) -> NodeInfo:
        """What is known of node `name`."""
        if self._source is not None:
            known = self._source(name)
            if known is not None:
                return known
        bare = self._bare.get(name)
        if bare is None:
            if len(self._bare) >= self._limit:
                self._bare.clear()
            bare = self._bare[name] = NodeInfo(Node(metadata=ObjectMeta(name=name)))
        return bare
