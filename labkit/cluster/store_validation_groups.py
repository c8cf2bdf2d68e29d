"""Validation of pod groups and workloads (spec 15 §1), and of the out-of-tree PodGroup (spec 15 §2)."""

from __future__ import annotations

from typing import Any

from labkit.cluster.store_alpha import NATIVE
from labkit.cluster.store_problems import Problems

Json = dict[str, Any]
_POLICIES = ("basic", "gang")
_IMMUTABLE = (
    "podGroupTemplateRef",
    "schedulingPolicy",
    "schedulingConstraints",
    "resourceClaims",
    "disruptionMode",
    "priorityClassName",
    "priority",
)


def check_pod_group(obj: Json, problems: Problems) -> None:
    """A PodGroup of either group."""
    spec = obj.get("spec") or {}
    if obj.get("apiVersion") != NATIVE:
        if int(spec.get("minMember") or 0) < 1:
            problems.invalid(
                "spec.minMember",
                spec.get("minMember") or 0,
                "spec.minMember in body should be greater than or equal to 1",
            )
        return
    _policy(spec.get("schedulingPolicy") or {}, "spec", problems)
    topology = (spec.get("schedulingConstraints") or {}).get("topology") or []
    if len(topology) > 1:
        problems.add(
            "FieldValueTooMany",
            "spec.schedulingConstraints.topology",
            f"Too many: {len(topology)}: must have at most 1 item",
        )
    problems.one_of("spec.disruptionMode", spec.get("disruptionMode"), ("Pod", "PodGroup"), empty=True)


def _policy(policy: Json, path: str, problems: Problems) -> None:
    given = [name for name in _POLICIES if policy.get(name) is not None]
    if not given:
        problems.invalid(f"{path}.schedulingPolicy", "", "must specify one of: `basic`, `gang`")
    elif len(given) > 1:
        problems.invalid(
            f"{path}.schedulingPolicy",
            "{" + ", ".join(given) + "}",
            "must specify exactly one of: `basic`, `gang`",
        )
    elif given == ["gang"]:
        count = int(policy["gang"].get("minCount") or 0)
        if count == 0:
            problems.required(f"{path}.schedulingPolicy.gang.minCount")
        elif count < 0:
            problems.invalid(
                f"{path}.schedulingPolicy.gang.minCount", count, "must be greater than or equal to 1"
            )


def check_pod_group_update(old: Json, obj: Json, problems: Problems) -> None:
    """The spec of a native one stays as it is."""
    if obj.get("apiVersion") != NATIVE:
        check_pod_group(obj, problems)
        return
    before, now = old.get("spec") or {}, obj.get("spec") or {}
    for name in _IMMUTABLE:
        if before.get(name) != now.get(name):
            problems.invalid(f"spec.{name}", None, "field is immutable")


def check_workload(obj: Json, problems: Problems) -> None:
    """One to eight templates, each with a name and a policy."""
    templates = (obj.get("spec") or {}).get("podGroupTemplates") or []
    if not templates:
        problems.required("spec.podGroupTemplates")
    for i, template in enumerate(templates):
        path = f"spec.podGroupTemplates[{i}]"
        if not template.get("name"):
            problems.required(f"{path}.name")
        _policy(template.get("schedulingPolicy") or {}, path, problems)
