"""Validation of Deployment, ReplicaSet, StatefulSet and DaemonSet: selector, template, strategy, bounds."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from labkit.cluster.store_metadata import is_dns_label
from labkit.cluster.store_pods import label_selector
from labkit.cluster.store_problems import Problems, why_no_dns_label
from labkit.cluster.store_validation_pod import check_labels_of_selector, check_pod_spec

Json = dict[str, Any]
_PERCENT = re.compile(r"[0-9]+%")
_NOT_NEGATIVE = "must be greater than or equal to 0"
_NO_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)


def check_workload_set(obj: Json, problems: Problems) -> None:
    """A new one."""
    _CHECKS[obj["kind"]](obj["spec"], problems)


def check_workload_set_update(old: Json, obj: Json, problems: Problems) -> None:
    """A changed one: its selector stays."""
    check_workload_set(obj, problems)
    before, after = old["spec"].get("selector"), obj["spec"].get("selector")
    if before != after:
        problems.invalid("spec.selector", after, "field is immutable")


def check_stateful_set_update(old: Json, obj: Json, problems: Problems) -> None:
    """A changed StatefulSet: most of it stays."""
    mutable = (
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    )
    check_workload_set(obj, problems)
    rest_before = {k: v for k, v in old["spec"].items() if k not in mutable}
    rest_after = {k: v for k, v in obj["spec"].items() if k not in mutable}
    if rest_before != rest_after:
        problems.forbidden(
            "spec",
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
            "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        )


def _not_negative(spec: Json, problems: Problems, *fields: str, at: str = "spec") -> None:
    for field in fields:
        if (spec.get(field) or 0) < 0:
            problems.invalid(f"{at}.{field}", spec[field], _NOT_NEGATIVE)


def _deployment(spec: Json, problems: Problems) -> None:
    _not_negative(spec, problems, "replicas")
    _selector(spec, "deployment", problems)
    _template(spec, "ReplicaSet", problems)
    strategy = spec.get("strategy") or {}
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "Recreate" and rolling is not None:
        problems.forbidden(
            "spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'"
        )
    elif kind == "RollingUpdate" and rolling is not None:
        path = "spec.strategy.rollingUpdate"
        _amounts(rolling, path, problems)
        if not _size(rolling.get("maxUnavailable")) and not _size(rolling.get("maxSurge")):
            why = "may not be 0 when `maxSurge` is 0"
            problems.invalid(f"{path}.maxUnavailable", rolling.get("maxUnavailable"), why)
        _at_most_all(rolling, path, problems, "maxUnavailable")
    elif kind not in ("Recreate", "RollingUpdate"):
        problems.unsupported("spec.strategy", _go_strategy(kind), ("Recreate", "RollingUpdate"))
    _not_negative(spec, problems, "minReadySeconds", "revisionHistoryLimit")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None:
        _not_negative(spec, problems, "progressDeadlineSeconds")
        if deadline <= (spec.get("minReadySeconds") or 0):
            problems.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _replica_set(spec: Json, problems: Problems) -> None:
    _not_negative(spec, problems, "replicas", "minReadySeconds")
    _selector(spec, "deployment", problems)
    _template(spec, "ReplicaSet", problems)


def _stateful_set(spec: Json, problems: Problems) -> None:
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        problems.invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    strategy = spec.get("updateStrategy") or {}
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "OnDelete" and rolling is not None:
        shown = {"Partition": rolling.get("partition"), "MaxUnavailable": rolling.get("maxUnavailable")}
        why = "only allowed for updateStrategy 'RollingUpdate'"
        problems.invalid("spec.updateStrategy.rollingUpdate", shown, why)
    elif kind == "RollingUpdate":
        _not_negative(rolling or {}, problems, "partition", at="spec.updateStrategy.rollingUpdate")
    elif kind not in ("OnDelete", "RollingUpdate"):
        problems.invalid("spec.updateStrategy", _go_strategy(kind), "must be 'RollingUpdate' or 'OnDelete'")
    for field, value in (spec.get("persistentVolumeClaimRetentionPolicy") or {}).items():
        path = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
        problems.one_of(path, value, ("Retain", "Delete"))
    _not_negative(spec, problems, "replicas", "minReadySeconds")
    _not_negative(spec.get("ordinals") or {}, problems, "start", at="spec.ordinals")
    _selector(spec, "statefulset", problems)
    _template(spec, "StatefulSet", problems)
    name = spec.get("serviceName")
    if name and not is_dns_label(name):
        problems.invalid("spec.serviceName", name, why_no_dns_label(name))


def _daemon_set(spec: Json, problems: Problems) -> None:
    if spec.get("selector") is not None:
        _selector(spec, "daemonset", problems)
    _template(spec, "DaemonSet", problems)
    _not_negative(spec, problems, "minReadySeconds")
    strategy = spec.get("updateStrategy") or {}
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate")
    if kind == "RollingUpdate" and rolling is not None:
        path = "spec.updateStrategy.rollingUpdate"
        _amounts(rolling, path, problems)
        away, surge = _size(rolling.get("maxUnavailable")), _size(rolling.get("maxSurge"))
        if away and surge:
            why = "may not be set when maxUnavailable is non-zero"
            problems.invalid(f"{path}.maxSurge", rolling["maxSurge"], why)
        elif not away and not surge:
            problems.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")
        _at_most_all(rolling, path, problems, "maxUnavailable", "maxSurge")
    elif kind not in ("OnDelete", "RollingUpdate"):
        problems.unsupported("spec.updateStrategy", _go_strategy(kind), ("RollingUpdate", "OnDelete"))
    _not_negative(spec, problems, "revisionHistoryLimit")


_CHECKS: dict[str, Callable[[Json, Problems], None]] = {
    "Deployment": _deployment,
    "ReplicaSet": _replica_set,
    "StatefulSet": _stateful_set,
    "DaemonSet": _daemon_set,
}


def _selector(spec: Json, word: str, problems: Problems) -> None:
    selector = spec.get("selector")
    if selector is None:
        problems.required("spec.selector")
    elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
        problems.invalid("spec.selector", selector, f"empty selector is invalid for {word}")
    else:
        check_labels_of_selector(selector, "spec.selector", problems)


def _template(spec: Json, kind: str, problems: Problems) -> None:
    selector, template = spec.get("selector"), spec.get("template") or {}
    meta = template.get("metadata") or {}
    # Without a selector nothing matches.
    if selector is None or not label_selector(selector)({"metadata": meta}):
        why = "`selector` does not match template `labels`"
        problems.invalid("spec.template.metadata.labels", meta.get("labels"), why)
    pod_spec = template.get("spec")
    if pod_spec is None:
        problems.required("spec.template.spec.containers")
        return
    check_pod_spec(pod_spec, "spec.template.spec", problems, template=True)
    if pod_spec.get("restartPolicy") not in (None, "Always"):
        problems.unsupported("spec.template.spec.restartPolicy", pod_spec["restartPolicy"], ("Always",))
    if pod_spec.get("activeDeadlineSeconds") is not None:
        why = f"activeDeadlineSeconds in {kind} is not Supported"
        problems.forbidden("spec.template.spec.activeDeadlineSeconds", why)


def _amounts(rolling: Json, path: str, problems: Problems) -> None:
    for field in ("maxUnavailable", "maxSurge"):
        value = rolling.get(field)
        if isinstance(value, str):
            if not _PERCENT.fullmatch(value):
                problems.invalid(f"{path}.{field}", value, _NO_PERCENT)
        elif (value or 0) < 0:
            problems.invalid(f"{path}.{field}", value, _NOT_NEGATIVE)


def _at_most_all(rolling: Json, path: str, problems: Problems, *fields: str) -> None:
    for field in fields:
        value = rolling.get(field)
        if isinstance(value, str) and _size(value) > 100:
            problems.invalid(f"{path}.{field}", value, "must not be greater than 100%")


def _size(value: Any) -> int:
    """A number or a percentage, as a number."""
    if isinstance(value, str):
        return int(value[:-1]) if _PERCENT.fullmatch(value) else 0
    return int(value or 0)


def _go_strategy(kind: Any) -> Json:
    """As the server's Go type shows it."""
    return {"Type": kind, "RollingUpdate": None}
