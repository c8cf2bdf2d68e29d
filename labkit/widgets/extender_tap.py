"""What goes over the connection to an extender, caught on our engine's side, and shortened for reading."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from labkit.engine.trace import ExtenderCall, Trace
from labkit.extender.client import HTTPExtender
from labkit.extender.go_json import member
from labkit.extender.transport import ExtenderCallError

Json = dict[str, Any]
#: Nodes shown of a list, and characters of a line.
SHOWN_NODES, LINE = 4, 84
_MORE = "…"
#: Metadata that says nothing about the decision.
_DULL = (
    "creationTimestamp",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "uid",
)


@dataclass
class Exchange:
    """One request with its answer. `error` is the connection's or HTTP's; `call` is what our engine made of it."""

    verb: str
    request: Any
    response: bytes
    error: str
    milliseconds: float
    extender: HTTPExtender
    call: ExtenderCall
    trace: Trace | None = None

    @property
    def pod(self) -> str:
        """`namespace/name` of the pod that it is about."""
        meta = (self.request.get("Pod") or {}).get("metadata")
        if meta is None:
            return f"{self.request.get('PodNamespace', '')}/{self.request.get('PodName', '')}"
        return f"{meta.get('namespace', 'default')}/{meta.get('name', '')}"

    @property
    def form(self) -> str:
        """Which member carries the nodes, or "" where none does."""
        for name in ("NodeNames", "Nodes", "NodeNameToMetaVictims", "NodeNameToVictims"):
            if self.request.get(name) is not None:
                return name
        return ""

    @property
    def sent(self) -> list[str]:
        """Names of the nodes that were sent."""
        names, nodes = self.request.get("NodeNames"), self.request.get("Nodes")
        if names is not None:
            return list(names)
        return names_in(nodes)

    @property
    def code(self) -> int:
        """The HTTP status, 0 when there was no answer."""
        if not self.error:
            return 200
        found = re.search(r", code (\d+)$", self.error)
        return int(found[1]) if found else 0

    @property
    def answer(self) -> Any:
        """The decoded answer, None when it is no JSON."""
        try:
            return json.loads(self.response)
        except ValueError:
            return None

    @property
    def kept(self) -> list[str]:
        """Nodes that kube-scheduler takes from a filter answer: which member counts depends on nodeCacheCapable."""
        if not isinstance(self.answer, dict):
            return []
        names = member(self.answer, "NodeNames")
        if self.extender.config.node_cache_capable and names is not None:
            return [str(n) for n in names]
        return names_in(member(self.answer, "Nodes"))

    def reasons(self, map_name: str) -> dict[str, str]:
        """`FailedNodes` or `FailedAndUnresolvableNodes` of a filter answer."""
        found = member(self.answer, map_name) if isinstance(self.answer, dict) else None
        return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def names_in(node_list: Any) -> list[str]:
    """Names of the nodes in a NodeList; what has none is left out."""
    items = member(node_list, "items") if isinstance(node_list, dict) else None
    found = [(n.get("metadata") or {}).get("name") for n in items or [] if isinstance(n, dict)]
    return [str(n) for n in found if n]


class Tap:
    """Stands before an extender's transport: hands each exchange to `seen`. While `down()`, nobody answers."""

    def __init__(
        self,
        extender: HTTPExtender,
        seen: Callable[[Exchange], Any],
        down: Callable[[], bool] = lambda: False,
    ) -> None:
        self._extender = extender
        self._transport: Any = extender._transport
        self._seen = seen
        self._down = down
        extender._transport = self  # type: ignore[assignment]  # the same two methods

    def url(self, verb: str) -> str:
        """As the transport's own."""
        return str(self._transport.url(verb))

    def post(self, verb: str, body: bytes) -> bytes:
        """As the transport's own."""
        response, error = b"", ""
        started = time.perf_counter()
        try:
            if self._down():
                address = urlsplit(self._extender.name).netloc
                raise ExtenderCallError(
                    f'Post "{self.url(verb)}": dial tcp {address}: connect: connection refused'
                )
            answer: bytes = self._transport.post(verb, body)
            response = answer
            return answer
        except ExtenderCallError as e:
            error = str(e)
            raise
        finally:
            took = 1000 * (time.perf_counter() - started)
            # The engine opens its record of the call before it asks.
            call = self._extender.calls[-1]
            self._seen(Exchange(verb, json.loads(body), response, error, took, self._extender, call))


def tapped(extender: HTTPExtender) -> bool:
    """Whether a tap is on it already."""
    return isinstance(extender._transport, Tap)


def plain(text: str, url: str) -> str:
    """`text` with the address in `url` replaced by "extender": ports differ from run to run."""
    address = urlsplit(url).netloc
    return text.replace(address, "extender") if address else text


def shorten(value: Any) -> Any:
    """A request or an answer with the parts that learners do not need left out; "…" stands where something was."""
    if isinstance(value, dict):
        return {k: _short_member(k, v) for k, v in value.items()}
    return _cut([shorten(v) for v in value]) if isinstance(value, list) else value


def _short_member(name: str, value: Any) -> Any:
    if name == "metadata" and isinstance(value, dict):
        return {k: v for k, v in value.items() if k not in _DULL}
    if name == "status" and isinstance(value, dict):
        kept = {k: value[k] for k in ("allocatable", "phase") if k in value}
        return kept if len(kept) == len(value) else {**kept, _MORE: _MORE}
    if name == "spec" and isinstance(value, dict) and "containers" in value:
        keys = ("containers", "nodeSelector", "priority", "schedulerName")
        return {**{k: _short_member(k, value[k]) for k in keys if k in value}, _MORE: _MORE}
    if name == "containers" and isinstance(value, list):
        return [{k: c[k] for k in ("name", "image", "resources") if k in c} for c in value]
    return shorten(value)


def _cut(values: list[Any]) -> list[Any]:
    left = len(values) - SHOWN_NODES
    return values if left < 2 else [*values[:SHOWN_NODES], f"{_MORE} {left} {_MORE}"]


def pretty(value: Any, indent: str = "") -> str:
    """JSON with short parts on one line."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(flat) <= LINE or not isinstance(value, (dict, list)):
        return flat
    inner = indent + "  "
    if isinstance(value, dict):
        parts = [f"{inner}{json.dumps(k, ensure_ascii=False)}: {pretty(v, inner)}" for k, v in value.items()]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + pretty(v, inner) for v in value) + f"\n{indent}]"
