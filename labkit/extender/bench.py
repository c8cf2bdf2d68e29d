"""Speed of the extender server, end to end over HTTP (`labkit bench extender`).

The server runs in a process of its own with a per-node Python filter; another process generates the bodies,
sends them over one kept-alive connection and times each exchange.
"""

from __future__ import annotations

import gc
import http.client
import json
import multiprocessing
import resource
import statistics
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

import msgspec

from labkit.framework.node_info import NodeInfo
from labkit.framework.status import Status
from labkit.objects.pod import Pod

#: Approximate bytes a node in each payload; 0 = the name form.
PAYLOADS = {"names": 0, "lean": 3_000, "full": 10_000}
SIZES = (100, 1000, 5000)


class Row(msgspec.Struct):
    """One line of the result. Times in milliseconds, memory in MiB (growth of the server's peak)."""

    payload: str
    nodes: int
    verb: str
    p50_ms: float
    p90_ms: float
    p99_ms: float
    rps: float
    json_loads_ms: float
    peak_mib: float
    body_mib: float


class BenchPlugin:
    """A real per-node filter and score: reads what the node says of itself, or its name in the name form."""

    name = "BenchPlugin"

    def filter(self, state: Any, pod: Pod, node: NodeInfo) -> Status | None:
        """Reject nodes labelled as drained."""
        if node.node.metadata.labels.get("bench.labkit/drained") == "true":
            return Status.unschedulable("drained")
        return None

    def score(self, state: Any, pod: Pod, node: NodeInfo) -> int:
        """Prefer zone a."""
        return 100 if node.node.metadata.labels.get("topology.kubernetes.io/zone") == "a" else 10


def make_node(i: int, size: int) -> dict[str, Any]:
    """Node `i` with an image list that brings its JSON to about `size` bytes."""
    node: dict[str, Any] = {
        "metadata": {
            "name": f"node-{i:05d}",
            "uid": f"00000000-0000-0000-0000-{i:012d}",
            "resourceVersion": str(1000 + i),
            "labels": {
                "kubernetes.io/hostname": f"node-{i:05d}",
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "topology.kubernetes.io/zone": "abc"[i % 3],
                "bench.labkit/drained": "true" if i % 10 == 9 else "false",
            },
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
        },
        "spec": {"podCIDR": f"10.{i // 256 % 256}.{i % 256}.0/24", "providerID": f"bench://{i}"},
        "status": {
            "capacity": {"cpu": "16", "memory": "64Gi", "pods": "110", "ephemeral-storage": "200Gi"},
            "allocatable": {"cpu": "15800m", "memory": "62Gi", "pods": "110", "ephemeral-storage": "180Gi"},
            "conditions": [
                {
                    "type": kind,
                    "status": "False",
                    "lastHeartbeatTime": "2030-01-01T00:00:00Z",
                    "reason": "Kubelet",
                }
                for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")
            ],
            "nodeInfo": {"kubeletVersion": "v1.36.2", "osImage": "Linux", "architecture": "amd64"},
            "images": [],
        },
    }
    images = node["status"]["images"]
    length = len(json.dumps(node))
    while length < size:
        image = {
            "names": [
                f"images.example/app-{len(images)}@sha256:{'0123456789abcdef' * 4}",
                f"images.example/app-{len(images)}:v1",
            ],
            "sizeBytes": 50_000_000 + len(images),
        }
        images.append(image)
        length += len(json.dumps(image)) + 2
    return node


def make_body(payload: str, nodes: int) -> bytes:
    """The body that kube-scheduler would post."""
    pod = {
        "metadata": {"name": "bench", "namespace": "default", "uid": "bench-uid"},
        "spec": {
            "containers": [{"name": "c", "image": "app:v1", "resources": {"requests": {"cpu": "100m"}}}]
        },
        "status": {"phase": "Pending"},
    }
    if payload == "names":
        body = {"Pod": pod, "Nodes": None, "NodeNames": [f"node-{i:05d}" for i in range(nodes)]}
    else:
        items = [make_node(i, PAYLOADS[payload]) for i in range(nodes)]
        body = {"Pod": pod, "Nodes": {"metadata": {}, "items": items}, "NodeNames": None}
    return json.dumps(body, separators=(",", ":")).encode()


def run(
    payloads: Sequence[str] = tuple(PAYLOADS),
    sizes: Sequence[int] = SIZES,
    verbs: Sequence[str] = ("filter",),
    seconds: float = 2.0,
) -> list[Row]:
    """Measure every combination; `seconds` is the time spent on each after the warm-up."""
    context = multiprocessing.get_context("spawn")
    return [
        _measure(context, payload, nodes, verb, seconds)
        for payload in payloads
        for nodes in sizes
        for verb in verbs
    ]


def _measure(context: Any, payload: str, nodes: int, verb: str, seconds: float) -> Row:
    ours, theirs = context.Pipe()
    server = context.Process(target=_serve, args=(theirs,), daemon=True)
    server.start()
    port = ours.recv()
    inbox, outbox = context.Pipe(duplex=False)
    client = context.Process(target=_load, args=(outbox, port, payload, nodes, verb, seconds), daemon=True)
    client.start()
    times, loads, size = inbox.recv()
    client.join()
    ours.send("peak")
    peak = ours.recv()
    server.join(5)
    if server.is_alive():
        server.terminate()
    cuts = statistics.quantiles(times, n=100, method="inclusive") if len(times) > 1 else [times[0]] * 99
    p50, p90, p99 = (round(1000 * c, 3) for c in (statistics.median(times), cuts[89], cuts[98]))
    return Row(
        payload=payload,
        nodes=nodes,
        verb=verb,
        p50_ms=p50,
        p90_ms=p90,
        p99_ms=p99,
        rps=round(len(times) / sum(times), 1),
        json_loads_ms=round(1000 * loads, 3),
        peak_mib=round(peak, 1),
        body_mib=round(size / 2**20, 3),
    )


def _serve(pipe: Connection) -> None:
    from labkit.extender.server import ExtenderServer
    from labkit.extender.service import ExtenderService

    server = ExtenderServer(ExtenderService([BenchPlugin()]))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pipe.send(server.port)
    pipe.recv()
    pipe.send((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
    server.stop()


def _load(pipe: Connection, port: int, payload: str, nodes: int, verb: str, seconds: float) -> None:
    body = make_body(payload, nodes)
    loads = min(_timed(lambda: json.loads(body)) for _ in range(3))
    gc.collect()
    gc.disable()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.connect()
    times: list[float] = []
    answer = bytearray(len(body) + 65536)

    def exchange() -> None:
        connection.request("POST", f"/{verb}", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            raise RuntimeError(f"{verb} answered {response.status}: {response.read(300)!r}")
        view = memoryview(answer)
        got = 0
        while n := response.readinto(view[got:]):
            got += n

    for _ in range(3):
        exchange()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        times.append(_timed(exchange))
    pipe.send((times, loads, len(body)))


def _timed(call: Any) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
