"""Proofs about extenders: the scheduler's side is the real one, the extender's answers are given (spec 04)."""

from __future__ import annotations

import json
from typing import Any

from labkit.quiz.model import Scenario
from labkit.quiz.proof_world import World

_URL = "http://extender.example"


class _Wire:
    """Stands for the network: answers each verb with what it was told, or with an HTTP status that is not 200."""

    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers
        self.requests: list[tuple[str, dict[str, Any]]] = []

    def post(self, verb: str, body: bytes) -> bytes:
        from labkit.extender.transport import ExtenderCallError

        self.requests.append((verb, json.loads(body)))
        answer = self.answers[verb]
        if isinstance(answer, int):
            raise ExtenderCallError(f"failed {verb} with extender at URL {_URL}/{verb}, code {answer}")
        return json.dumps(answer).encode()


def _run(
    answers: dict[str, Any], nodes: list[str], settings: dict[str, Any], *, full: bool = False
) -> tuple[World, _Wire, Any]:
    from labkit.config import load_config
    from labkit.extender.client import build_extenders
    from labkit.quiz.scenario import API_VERSION

    entry: dict[str, Any] = {"urlPrefix": _URL, "weight": 1, **{f"{v}Verb": v for v in answers}, **settings}
    config = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration", "extenders": [entry]}
    extenders = build_extenders(load_config(config))
    wire = _Wire(answers)
    for extender in extenders:
        extender._transport = wire  # type: ignore[assignment]
    world = World({name: {"cpu": 4, "memory": "8Gi"} for name in nodes})
    if full:
        world.add(Scenario(placed={f"old-{name}": {"node": name, "cpu": 4} for name in nodes}))
        important = {"kind": "PriorityClass", "metadata": {"name": "important"}, "value": 1000}
        world.client.create({"apiVersion": "scheduling.k8s.io/v1", **important})
        world.add(Scenario(pods={"web": {"cpu": 4, "spec": {"priorityClassName": "important"}}}))
    else:
        world.add(Scenario(pods={"web": {"cpu": 1}}))
    trace = world.scheduler(extenders=extenders).schedule_one()
    return world, wire, trace


def extender_run(
    answers: dict[str, Any], nodes: list[str], settings: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A pod on empty nodes, with an extender that gives these answers by verb (a number: that HTTP status).

    What it was asked, the pod's node, the message, and the points that the extender adds by node.
    """
    world, wire, trace = _run(answers, nodes, settings or {})
    points = {node: score.extender for node, score in trace.scores.items()}
    return {
        "asked": [verb for verb, _ in wire.requests],
        "node": world.nodes_of("web")[0],
        "message": str(trace.message or ""),
        "points": points,
    }


def extender_request(cache_capable: bool) -> dict[str, str]:
    """Members of the filter request, each with what is in it: "names", "objects", "an object" or "null"."""
    nodes = ["n1", "n2"]
    answers: dict[str, Any] = {"filter": {"NodeNames": nodes}}
    _, wire, _ = _run(answers, nodes, {"nodeCacheCapable": cache_capable})
    return {name: _kind(value) for name, value in sorted(wire.requests[0][1].items())}


def extender_members(verb: str) -> list[str]:
    """Names of the members of what an extender is sent for `verb`; for preempt the nodes are full."""
    empty: dict[str, Any] = {
        "preempt": {"NodeNameToMetaVictims": {}},
        "bind": {"Error": ""},
        "prioritize": [],
    }
    answers = {verb: empty.get(verb, {"NodeNames": ["n1", "n2"]})}
    _, wire, _ = _run(answers, ["n1", "n2"], {}, full=verb == "preempt")
    return sorted(wire.requests[0][1])


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return "names"
    return "objects" if "items" in value else "an object"
