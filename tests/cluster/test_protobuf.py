"""Protobuf bodies as kube-scheduler and kubectl sent them -> the objects that they mean."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest
from labkit.cluster.apiserver.protobuf import MAGIC, decode
from labkit.cluster.store_errors import ApiError

from .asgi import Api, pod

BODIES = [
    json.loads(line)
    for line in (Path(__file__).parent / "recordings" / "protobuf.jsonl").read_text().splitlines()
]
PROTOBUF = "application/vnd.kubernetes.protobuf"


def _without_zero(value: Any) -> Any:
    if isinstance(value, dict):
        found = {k: _without_zero(v) for k, v in value.items()}
        return {k: v for k, v in found.items() if v not in (None, {}, [])}
    return [_without_zero(v) for v in value] if isinstance(value, list) else value


@pytest.mark.parametrize("recorded", BODIES, ids=[f"{b['method']} {b['uri'].split('?')[0]}" for b in BODIES])
def test_recorded_body(recorded: dict[str, Any]) -> None:
    """The bytes of a recorded request -> the object; empty parts do not count."""
    assert _without_zero(decode(base64.b64decode(recorded["bodyBase64"]))) == _without_zero(
        recorded["decoded"]
    )


def test_recorded_binding_binds() -> None:
    """kube-scheduler's protobuf Binding -> 201, and the pod is on the node."""
    recorded = next(b for b in BODIES if b["decoded"].get("kind") == "Binding")
    api = Api()
    name = recorded["decoded"]["metadata"]["name"]
    api.store.create(pod(name))
    stored = api.store.peek("Pod", name)
    assert stored is not None
    stored["metadata"]["uid"] = recorded["decoded"]["metadata"]["uid"]
    answer = api.call("POST", recorded["uri"], base64.b64decode(recorded["bodyBase64"]), PROTOBUF)
    assert answer.status == 201, answer.body
    assert api.store.get("Pod", name)["spec"]["nodeName"] == recorded["decoded"]["target"]["name"]


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", MAGIC, MAGIC + b"\xff", MAGIC + b"\x0a\x05\x0a\x02v1", MAGIC + b"\x12\xff\xff\xff\xff\x0f"],
)
def test_malformed(body: bytes) -> None:
    """Bytes that are no envelope of a known kind -> 400."""
    with pytest.raises(ApiError) as e:
        decode(body)
    assert e.value.code == 400


def test_damaged_bytes_never_crash() -> None:
    """Recorded bodies with bytes changed at random (seed 1) -> an object, or 400; nothing else."""
    rng = random.Random(1)
    refused = 0
    for _ in range(2000):
        body = bytearray(base64.b64decode(rng.choice(BODIES)["bodyBase64"]))
        for _ in range(rng.randint(1, 4)):
            body[rng.randrange(len(body))] = rng.randrange(256)
        refused += _refuses(bytes(body[: rng.randint(1, len(body))]))
    assert 0 < refused < 2000


def _refuses(body: bytes) -> bool:
    try:
        decoded = decode(body)
    except ApiError as e:
        return e.code == 400 or pytest.fail(f"code {e.code}")
    return not isinstance(decoded, dict)
