"""HorizontalPodAutoscaler of autoscaling/v2: what is filled in and what is refused (spec 20 §8, kubectl autoscale)."""

from __future__ import annotations

import copy
from typing import Any

from labkit.cluster.store_problems import Problems

Json = dict[str, Any]

_UP: Json = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_DOWN: Json = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}
_CPU: Json = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
#: Type of a metric -> its field.
SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_WINDOW, _PERIOD = 3600, 1800


def autoscaler_defaults(obj: Json) -> None:
    """One replica at least, 80 % of the requested CPU; of a `behavior` the rules that are left out."""
    spec = obj["spec"]
    if spec.get("minReplicas") is None:
        spec["minReplicas"] = 1
    if not spec.get("metrics"):
        spec["metrics"] = [copy.deepcopy(_CPU)]
    behavior = spec.get("behavior")
    if behavior is not None:
        for name, rules in (("scaleUp", _UP), ("scaleDown", _DOWN)):
            given = {k: v for k, v in (behavior.get(name) or {}).items() if v is not None}
            behavior[name] = {**copy.deepcopy(rules), **given}


def check_autoscaler(obj: Json, problems: Problems) -> None:
    """Replicas, target, metrics and behavior, in the API server's words."""
    spec = obj["spec"]
    least, most = spec.get("minReplicas"), int(spec.get("maxReplicas") or 0)
    if least is not None and least < 1:
        problems.invalid("spec.minReplicas", least, "must be greater than or equal to 1")
    if most == 0:
        problems.required("spec.maxReplicas", "must be set and greater than 0")
    elif most < 0:
        problems.invalid("spec.maxReplicas", most, "must be greater than or equal to 1")
    if least is not None and most < least:
        problems.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    target = spec.get("scaleTargetRef") or {}
    for field in ("kind", "name"):
        if not target.get(field):
            problems.required(f"spec.scaleTargetRef.{field}")
    version = str(target.get("apiVersion") or "")
    if version.count("/") > 1:
        why = f"unexpected GroupVersion string: {version}"
        problems.invalid("spec.scaleTargetRef.apiVersion", version, why)
    elif "/" not in version and target.get("kind") != "ReplicationController":
        problems.invalid("spec.scaleTargetRef.apiVersion", version, "apiVersion must specify API group")
    for i, metric in enumerate(spec.get("metrics") or ()):
        _metric(metric, f"spec.metrics[{i}]", problems)
    if least == 0 and not any(m.get("type") in ("Object", "External") for m in spec.get("metrics") or ()):
        problems.forbidden(
            "spec.metrics",
            "must specify at least one Object or External metric to support scaling to zero replicas",
        )
    for name in ("scaleUp", "scaleDown"):
        if (rules := (spec.get("behavior") or {}).get(name)) is not None:
            _rules(rules, f"spec.behavior.{name}", problems)


def _metric(metric: Json, path: str, problems: Problems) -> None:
    kind = metric.get("type") or ""
    source = SOURCES.get(kind)
    if source is None:
        if not kind:
            problems.required(f"{path}.type", "must specify a metric source type")
        problems.unsupported(f"{path}.type", kind, tuple(SOURCES))
        return
    for other in SOURCES.values():
        if other != source and metric.get(other) is not None:
            problems.forbidden(f"{path}.{other}", "must populate the given metric source only")
    found = metric.get(source)
    if found is None:
        problems.required(f"{path}.{source}", "must populate information for the given metric source")
        return
    if source in ("resource", "containerResource") and not found.get("name"):
        problems.required(f"{path}.{source}.name", "must specify a resource name")
    if source == "containerResource" and not found.get("container"):
        problems.required(f"{path}.{source}.container", "must specify a container")
    _target(source, found.get("target") or {}, f"{path}.{source}.target", problems)


def _target(source: str, target: Json, path: str, problems: Problems) -> None:
    if not target.get("type"):
        problems.required(f"{path}.type", "must specify a metric target type")
    if target.get("type") not in ("Utilization", "Value", "AverageValue"):
        problems.invalid(
            f"{path}.type", target.get("type") or "", "must be either Utilization, Value, or AverageValue"
        )
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        problems.invalid(f"{path}.averageUtilization", utilization, "must be greater than 0")
    if source in ("resource", "containerResource"):
        if utilization is None and target.get("averageValue") is None:
            problems.required(
                f"{path}.averageUtilization", "must set either a target raw value or a target utilization"
            )
        elif utilization is not None and target.get("averageValue") is not None:
            problems.forbidden(
                f"{path}.averageValue", "may not set both a target raw value and a target utilization"
            )
    elif source == "pods" and target.get("averageValue") is None:
        problems.required(f"{path}.averageValue", "must specify a positive target averageValue")


def _rules(rules: Json, path: str, problems: Problems) -> None:
    window = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        problems.invalid(
            f"{path}.stabilizationWindowSeconds", window, "must be greater than or equal to zero"
        )
    elif window is not None and window > _WINDOW:
        problems.invalid(
            f"{path}.stabilizationWindowSeconds", window, f"must be less than or equal to {_WINDOW}"
        )
    if rules.get("selectPolicy") is not None:
        problems.one_of(f"{path}.selectPolicy", rules["selectPolicy"], ("Disabled", "Max", "Min"))
    if not rules.get("policies"):
        problems.required(f"{path}.policies", "must specify at least one Policy")
    for i, policy in enumerate(rules.get("policies") or ()):
        here = f"{path}.policies[{i}]"
        problems.one_of(f"{here}.type", policy.get("type"), ("Percent", "Pods"))
        for field in ("value", "periodSeconds"):
            amount = int(policy.get(field) or 0)
            if amount <= 0:
                problems.invalid(f"{here}.{field}", amount, "must be greater than zero")
            elif field == "periodSeconds" and amount > _PERIOD:
                problems.invalid(f"{here}.{field}", amount, f"must be less than or equal to {_PERIOD}")
