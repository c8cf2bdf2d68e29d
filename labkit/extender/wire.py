"""Messages of the extender protocol: tolerant in, strict out (spec 04 §3).

Members carry Go's capitalised names and are matched without regard to case. Pods and nodes stay undecoded
bytes (`msgspec.Raw`) until somebody reads them, so a node that passes is returned byte for byte as it came.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

Raw = msgspec.Raw
#: Pieces of a response body, sent one after another without being joined.
Chunks = list[bytes | memoryview]
Body = bytes | bytearray | memoryview


class WireError(ValueError):
    """The request is not the JSON that the protocol asks for; answered with 400."""


class _NodeList(msgspec.Struct):
    items: list[Raw] | None = None


class _Args(msgspec.Struct):
    Pod: Raw = msgspec.field(default=Raw(b""))
    Nodes: _NodeList | msgspec.UnsetType | None = msgspec.UNSET
    NodeNames: list[str] | msgspec.UnsetType | None = msgspec.UNSET


class FilterArgs(msgspec.Struct):
    """`ExtenderArgs`: exactly one of `nodes` (undecoded) and `node_names` is set in a sound request."""

    pod: Raw
    nodes: list[Raw] | None
    node_names: list[str] | None


class BindArgs(msgspec.Struct):
    """`ExtenderBindingArgs`."""

    pod_name: str
    pod_namespace: str
    pod_uid: str
    node: str


class Victim(msgspec.Struct):
    """A pod that preemption would remove: its UID, and the pod itself in the whole-object form."""

    uid: str
    pod: Raw | None = None


class NodeVictims(msgspec.Struct):
    """`Victims` or `MetaVictims` of one node."""

    pods: list[Victim]
    num_pdb_violations: int = 0


class PreemptArgs(msgspec.Struct):
    """`ExtenderPreemptionArgs`."""

    pod: Raw
    victims: dict[str, NodeVictims]


_decode_args = msgspec.json.Decoder(_Args).decode
_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_raws = msgspec.json.Decoder(list[Raw] | None).decode
_decode_names = msgspec.json.Decoder(list[str] | None).decode


def decode_filter_args(body: Body) -> FilterArgs:
    """Read the body of `/filter` or `/prioritize`. WireError when it is not JSON of the right types."""
    try:
        args = _decode_args(body)
    except (msgspec.MsgspecError, RecursionError):
        args = _Args()
    nodes, names = args.Nodes, args.NodeNames
    if (
        args.Pod
        and nodes is not msgspec.UNSET
        and names is not msgspec.UNSET
        and not (nodes and nodes.items is None)
    ):
        return FilterArgs(
            args.Pod,
            nodes.items if isinstance(nodes, _NodeList) else None,
            names if isinstance(names, list) else None,
        )
    return _decode_tolerantly(body)


def _decode_tolerantly(body: Body) -> FilterArgs:
    """The same for any spelling of the member names, as Go's decoder allows."""
    members = _members(body, "the request")
    node_list = _member(members, "Nodes")
    nodes: list[Raw] | None = None
    if node_list is not None:
        items = _member(_members(node_list, "Nodes"), "items")
        nodes = _typed(_decode_raws, items, "Nodes.items") if items is not None else []
        nodes = nodes or []
    names = _member(members, "NodeNames")
    return FilterArgs(
        _member(members, "Pod") or Raw(b"{}"),
        nodes,
        _typed(_decode_names, names, "NodeNames") if names is not None else None,
    )


def decode_bind_args(body: Body) -> BindArgs:
    """Read the body of `/bind`. WireError when it is not JSON of the right types."""
    members = _members(body, "the request")
    return BindArgs(*(_text(members, name) for name in ("PodName", "PodNamespace", "PodUID", "Node")))


def decode_preempt_args(body: Body) -> PreemptArgs:
    """Read the body of `/preempt`, in the whole-object or the meta form."""
    members = _members(body, "the request")
    victims: dict[str, NodeVictims] = {}
    for name in ("NodeNameToVictims", "NodeNameToMetaVictims"):
        per_node = _member(members, name)
        if per_node is None:
            continue
        for node, value in _members(per_node, name).items():
            victims[node] = _decode_victims(value, f"{name}[{node}]", whole=name == "NodeNameToVictims")
    if all(_member(members, name) is None for name in ("NodeNameToVictims", "NodeNameToMetaVictims")):
        raise WireError("neither NodeNameToVictims nor NodeNameToMetaVictims is set")
    return PreemptArgs(_member(members, "Pod") or Raw(b"{}"), victims)


def _decode_victims(value: Raw, where: str, *, whole: bool) -> NodeVictims:
    if bytes(value) == b"null":
        return NodeVictims([])
    members = _members(value, where)
    pods = _member(members, "Pods")
    found: list[Victim] = []
    for raw in (_typed(_decode_raws, pods, f"{where}.Pods") or []) if pods is not None else []:
        inner = _members(raw, f"{where}.Pods[]")
        if whole:
            meta = _member(inner, "metadata")
            found.append(Victim(_text(_members(meta, "metadata"), "uid") if meta is not None else "", raw))
        else:
            found.append(Victim(_text(inner, "UID")))
    count = _member(members, "NumPDBViolations")
    return NodeVictims(
        found, _typed(msgspec.json.Decoder(int).decode, count, where) if count is not None else 0
    )


def encode_filter_result(
    *,
    nodes: Sequence[Raw] | None = None,
    node_names: Sequence[str] | None = None,
    failed: dict[str, str] | None = None,
    unresolvable: dict[str, str] | None = None,
    error: str = "",
) -> Chunks:
    """`ExtenderFilterResult`. Nodes are passed through in pieces, never copied into one body."""
    tail = b',"NodeNames":%b,"FailedNodes":%b,"FailedAndUnresolvableNodes":%b,"Error":%b}' % (
        _encode(node_names),
        _encode(failed or {}),
        _encode(unresolvable or {}),
        _encode(error),
    )
    if nodes is None:
        return [b'{"Nodes":null' + tail]
    chunks: Chunks = [b'{"Nodes":{"metadata":{},"items":[']
    for i, raw in enumerate(nodes):
        if i:
            chunks.append(b",")
        chunks.append(memoryview(raw))
    chunks.append(b"]}" + tail)
    return chunks


def encode_host_priorities(scores: Iterable[tuple[str, int]]) -> Chunks:
    """`HostPriorityList`: a bare array."""
    return [_encode([{"Host": host, "Score": score} for host, score in scores])]


def encode_binding_result(error: str = "") -> Chunks:
    """`ExtenderBindingResult`."""
    return [_encode({"Error": error})]


def encode_preemption_result(victims: dict[str, NodeVictims]) -> Chunks:
    """`ExtenderPreemptionResult`: the meta form, whatever was asked."""
    return [
        _encode(
            {
                "NodeNameToMetaVictims": {
                    node: {
                        "Pods": [{"UID": v.uid} for v in nv.pods],
                        "NumPDBViolations": nv.num_pdb_violations,
                    }
                    for node, nv in victims.items()
                }
            }
        )
    ]


_encode = msgspec.json.Encoder().encode


def _members(body: Any, where: str) -> dict[str, Raw]:
    if bytes(memoryview(body)[:8]).strip() == b"null":
        return {}
    found: dict[str, Raw] = _typed(_decode_members, body, where)
    return found


def _member(members: dict[str, Raw], name: str) -> Raw | None:
    """A member by name, exact spelling first, else any case; None when absent or null."""
    value = members.get(name)
    if value is None:
        lower = name.lower()
        value = next((v for k, v in members.items() if k.lower() == lower), None)
    return None if value is None or bytes(value) == b"null" else value


def _text(members: dict[str, Raw], name: str) -> str:
    value = _member(members, name)
    if value is None:
        return ""
    text: str = _typed(msgspec.json.Decoder(str).decode, value, name)
    return text


def _typed(decode: Any, value: Any, where: str) -> Any:
    try:
        return decode(value)
    except RecursionError:
        raise WireError(f"{where}: nested too deeply") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as e:
        raise WireError(f"{where}: {e}") from None
