"""From a question's scenario to the input of one run: short forms written out, parameters filled in."""

from __future__ import annotations

import copy
import hashlib
import random
import re
from collections.abc import Mapping
from typing import Any

import msgspec
import yaml

from labkit.errors import InputError
from labkit.i18n import t
from labkit.quiz.model import Parameter, Question, Scenario

API_VERSION = "kubescheduler.config.k8s.io/v1"
_PLACE = re.compile(r"\$\{(\w+)\}")
_NODE_KEYS = {"labels", "annotations", "taints", "unschedulable", "images", "allocatable"}
_POD_KEYS = {
    "labels",
    "annotations",
    "node",
    "limits",
    "priority",
    "spec",
    "status",
    "namespace",
    "overhead",
    "image",
}


def draw(question: Question, seed: str) -> dict[str, Any]:
    """The question's parameters for a learner's seed; always the same for the same seed."""
    return draw_values(question.id, question.parameters, seed)


def draw_values(id: str, parameters: Mapping[str, Parameter], seed: str) -> dict[str, Any]:
    """Numbers for the question `id`, which itself need not be at hand."""
    digest = hashlib.sha256(f"{seed}/{id}".encode()).digest()
    rng = random.Random(int.from_bytes(digest[:8], "big"))
    return {name: rng.choice(p.values()) for name, p in sorted(parameters.items())}


def fill(value: Any, values: Mapping[str, Any]) -> Any:
    """Replace `${name}` in all texts of `value`; a text that is only `${name}` becomes the number itself."""
    if not values:
        return value
    if isinstance(value, str):
        whole = _PLACE.fullmatch(value)
        if whole and whole[1] in values:
            return values[whole[1]]
        return _PLACE.sub(lambda m: str(values.get(m[1], m[0])), value)
    if isinstance(value, dict):
        return {fill(k, values) if isinstance(k, str) else k: fill(v, values) for k, v in value.items()}
    if isinstance(value, list):
        return [fill(v, values) for v in value]
    return value


def instance(question: Question, seed: str) -> Any:
    """The question with its parameters filled in (it has none left); itself when it has none."""
    if not question.parameters:
        return question
    raw = msgspec.to_builtins(question)
    drawn = draw(question, seed)
    return msgspec.convert({**fill(raw, drawn), "id": question.id, "parameters": {}}, type(question))


def engine_input(scenario: Scenario, **replaced: str) -> dict[str, Any]:
    """`{config, objects, pods}` as the engine's replay takes it. Raises InputError for YAML that cannot be used.

    `replaced` puts a learner's text in the place of "config", "pods" or "objects".
    """
    config: Any = scenario.config
    objects: Any = scenario.objects
    pods: list[dict[str, Any]] = [_pod(name, short) for name, short in scenario.pods.items()]
    if "config" in replaced:
        config = replaced["config"]
    if "objects" in replaced:
        objects = replaced["objects"]
    if "pods" in replaced:
        pods = [_completed(raw) for raw in _documents(replaced["pods"], "pods")]
    existing = [_node(name, short) for name, short in scenario.nodes.items()]
    existing += [_pod(name, short) for name, short in scenario.placed.items()]
    existing += [_completed(raw) for raw in _documents(objects, "objects")]
    pending = [o for o in existing if o.get("kind") == "Pod" and not o["spec"].get("nodeName")]
    return {
        "name": "quiz",
        "config": _config(config),
        "objects": [o for o in existing if o not in pending],
        "pods": pods + pending,
    }


def _config(config: Any) -> dict[str, Any] | None:
    if isinstance(config, str):
        found = _documents(config, "config")
        config = found[0] if found else None
    if config is None:
        return None
    return {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration", **config}


def _documents(value: Any, source: str) -> list[dict[str, Any]]:
    if value is None:
        return []
    if isinstance(value, list):
        return [copy.deepcopy(v) for v in value]
    if source == "config":
        try:
            loaded = yaml.safe_load(value)
        except yaml.YAMLError as e:
            mark = getattr(e, "problem_mark", None)
            line = f" (line {mark.line + 1})" if mark else ""
            what = getattr(e, "problem", None) or e
            raise InputError(t(f"is not YAML{line}: {what}", f"不是 YAML{line}：{what}"), file=source) from e
        if not isinstance(loaded, dict):
            raise InputError(t("must be a map", "必须是一个映射（map）"), file=source, value=loaded)
        return [loaded]
    from labkit.objects.codec import from_dict, load_documents

    documents = load_documents(value, source)
    for document in documents:
        from_dict(document.raw)
    return [copy.deepcopy(d.raw) for d in documents]


def _node(name: str, short: Mapping[str, Any]) -> dict[str, Any]:
    short = copy.deepcopy(dict(short))
    resources = {k: str(v) for k, v in short.items() if k not in _NODE_KEYS}
    resources.setdefault("pods", "110")
    spec = {k: short[k] for k in ("taints", "unschedulable") if k in short}
    status: dict[str, Any] = {
        "capacity": dict(resources),
        "allocatable": short.get("allocatable") or resources,
    }
    if "images" in short:
        status["images"] = short["images"]
    labels = {"kubernetes.io/hostname": name, **(short.get("labels") or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": status,
    }


def _pod(name: str, short: Mapping[str, Any]) -> dict[str, Any]:
    short = copy.deepcopy(dict(short))
    requests = {k: str(v) for k, v in short.items() if k not in _POD_KEYS}
    container: dict[str, Any] = {"name": "app", "image": short.get("image", "app")}
    resources = {k: v for k, v in (("requests", requests), ("limits", short.get("limits"))) if v}
    if resources:
        container["resources"] = resources
    spec = {"containers": [container], **(short.get("spec") or {})}
    for key, field in (("node", "nodeName"), ("priority", "priority"), ("overhead", "overhead")):
        if key in short:
            spec[field] = short[key]
    metadata = {
        "name": name,
        "namespace": short.get("namespace", "default"),
        "labels": short.get("labels") or {},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    if "status" in short:
        pod["status"] = short["status"]
    return _completed(pod)


def _completed(raw: dict[str, Any]) -> dict[str, Any]:
    """What the API server would have set on a pod: namespace, uid, priority, scheduler, requests from limits."""
    if raw.get("kind") != "Pod":
        return raw
    metadata = raw.setdefault("metadata", {})
    metadata.setdefault("namespace", "default")
    metadata.setdefault("uid", f"{metadata['namespace']}-{metadata.get('name')}")
    spec = raw.setdefault("spec", {})
    spec.setdefault("priority", 0)
    spec.setdefault("schedulerName", "default-scheduler")
    for container in [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]:
        if container is None:
            raise InputError(
                t("must be a container, got nothing", "必须是一个容器，却是空的"),
                object=f"Pod {metadata.get('name')}",
                field="spec.containers",
            )
        resources = container.get("resources") or {}
        limits = resources.get("limits") or {}
        if limits:
            resources["requests"] = {**limits, **(resources.get("requests") or {})}
    return raw
