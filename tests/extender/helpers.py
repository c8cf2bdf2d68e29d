"""Small helpers: a server around plugins, and one-line requests to it."""

from __future__ import annotations

import http.client
import json
from typing import Any

from labkit.extender.server import ExtenderServer
from labkit.extender.service import ExtenderService
from labkit.framework.status import Status

POD = {
    "metadata": {"name": "p", "namespace": "default", "uid": "u1"},
    "spec": {"containers": [{"name": "c"}]},
}


def node(name: str, **labels: str) -> dict[str, Any]:
    """A node with labels and a field nobody knows."""
    return {"metadata": {"name": name, "labels": labels}, "spec": {"unknown": [1, {"x": None}]}, "status": {}}


def names(*nodes: str) -> dict[str, Any]:
    """A request in the name form."""
    return {"Pod": POD, "Nodes": None, "NodeNames": list(nodes)}


def nodes(*items: dict[str, Any]) -> dict[str, Any]:
    """A request in the whole-node form."""
    return {"Pod": POD, "Nodes": {"metadata": {}, "items": list(items)}, "NodeNames": None}


def post(server: ExtenderServer, verb: str, body: Any) -> tuple[int, Any]:
    """(HTTP status, decoded answer)."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=10)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", f"/{verb}", data, {"Content-Type": "application/json"})
    response = connection.getresponse()
    answer = response.read()
    connection.close()
    return response.status, json.loads(answer) if answer else None


def serve(*plugins: object, **options: Any) -> ExtenderServer:
    """A server on a free port; use as a context manager."""
    return ExtenderServer(ExtenderService(plugins, client=options.pop("client", None)), **options)


class Only:
    """Lets nodes pass by name; the others are rejected, `never` ones for good."""

    name = "Only"

    def __init__(self, *allowed: str, never: tuple[str, ...] = ()) -> None:
        self.allowed = allowed
        self.never = never

    def filter(self, state: Any, pod: Any, node: Any) -> Status | None:
        """By name."""
        if node.name in self.allowed:
            return None
        return Status.unresolvable("never") if node.name in self.never else Status.unschedulable("not now")


class Points:
    """Scores from a dict."""

    name = "Points"

    def __init__(self, points: dict[str, Any]) -> None:
        self.points = points

    def score(self, state: Any, pod: Any, node: Any) -> Any:
        """What the dict says."""
        return self.points[node.name]
