"""Validation of each kind but Pod: those fields that scheduling and the course depend on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labkit.cluster.store_autoscaling import check_autoscaler
from labkit.cluster.store_problems import Problems
from labkit.cluster.store_services import check_service, check_service_update
from labkit.cluster.store_validation_config import (
    check_config_map,
    check_cron_job,
    check_device_requests,
    check_limit_range,
    check_quota,
    check_role_binding,
    check_secret,
)
from labkit.cluster.store_validation_groups import check_pod_group, check_pod_group_update, check_workload
from labkit.cluster.store_validation_pod import (
    check_labels_of_selector,
    check_pod,
    check_pod_spec,
    check_pod_update,
)
from labkit.cluster.store_validation_storage import (
    check_claim,
    check_claim_update,
    check_storage_class,
    check_storage_class_update,
    check_volume,
)
from labkit.cluster.store_validation_workloads import (
    check_stateful_set_update,
    check_workload_set,
    check_workload_set_update,
)
from labkit.objects.quantity import parse_quantity

Json = dict[str, Any]
MAX_USER_PRIORITY = 1_000_000_000
SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def _node(node: Json, problems: Problems) -> None:
    seen = set()
    for i, taint in enumerate(node["spec"].get("taints") or ()):
        path = f"metadata.taints[{i}]"
        if not taint.get("key"):
            problems.invalid(f"{path}.key", "", "name part must be non-empty")
        if not taint.get("effect"):
            problems.required(f"{path}.effect")
        else:
            problems.one_of(f"{path}.effect", taint["effect"], TAINT_EFFECTS)
        identity = (taint.get("key"), taint.get("effect"))
        if identity in seen:
            shown = {
                "Key": taint.get("key") or "",
                "Value": taint.get("value") or "",
                "Effect": taint.get("effect") or "",
                "TimeAdded": taint.get("timeAdded"),
            }
            problems.duplicate(path, shown, "taints must be unique by key and effect pair")
        seen.add(identity)
    for section in ("capacity", "allocatable"):
        for name, amount in ((node.get("status") or {}).get(section) or {}).items():
            if parse_quantity(amount).amount < 0:
                problems.invalid(f"status.{section}.{name}", amount, "must be greater than or equal to 0")


def _node_update(old: Json, node: Json, problems: Problems) -> None:
    _node(node, problems)
    for field in ("podCIDR", "providerID"):
        before = old["spec"].get(field)
        if before and node["spec"].get(field) != before:
            problems.forbidden(
                f"spec.{field}", f'node updates may not change {field} except from "" to valid'
            )


def _priority_class(obj: Json, problems: Problems) -> None:
    name, value = obj["metadata"].get("name", ""), int(obj.get("value") or 0)
    if name.startswith("system-"):
        known = SYSTEM_CLASSES.get(name)
        if known is None:
            problems.forbidden(
                "metadata.name",
                "priority class names with 'system-' prefix are reserved for system use only. error: "
                f"{name} is not a known system priority class",
            )
        elif known != value:
            problems.forbidden(
                "metadata.name",
                "priority class names with 'system-' prefix are reserved for system use only. error: "
                f"value of {name} PriorityClass must be {known}",
            )
    elif value > MAX_USER_PRIORITY:
        problems.forbidden(
            "value", f"maximum allowed value of a user defined priority is {MAX_USER_PRIORITY}"
        )
    problems.one_of(
        "preemptionPolicy", obj.get("preemptionPolicy"), ("PreemptLowerPriority", "Never"), empty=True
    )


def _priority_class_update(old: Json, obj: Json, problems: Problems) -> None:
    if old.get("value") != obj.get("value"):
        problems.forbidden("value", "may not be changed in an update.")
    if old.get("preemptionPolicy") != obj.get("preemptionPolicy"):
        problems.invalid("preemptionPolicy", obj.get("preemptionPolicy"), "field is immutable")


def _job(obj: Json, problems: Problems) -> None:
    spec = obj["spec"]
    for field in (
        "parallelism",
        "completions",
        "backoffLimit",
        "activeDeadlineSeconds",
        "ttlSecondsAfterFinished",
    ):
        if spec.get(field) is not None and spec[field] < 0:
            problems.invalid(f"spec.{field}", spec[field], "must be greater than or equal to 0")
    pod_spec = (spec.get("template") or {}).get("spec")
    if pod_spec is None:
        problems.required("spec.template.spec.containers")
        return
    check_pod_spec(pod_spec, "spec.template.spec", problems, template=True)
    if pod_spec.get("restartPolicy") not in ("OnFailure", "Never"):
        policy = pod_spec.get("restartPolicy") or ""
        problems.add(
            "FieldValueRequired" if policy in ("", "Always") else "FieldValueNotSupported",
            "spec.template.spec.restartPolicy",
            'Required value: valid values: "OnFailure", "Never"'
            if policy in ("", "Always")
            else f'Unsupported value: "{policy}": supported values: "OnFailure", "Never"',
        )


def _job_update(old: Json, obj: Json, problems: Problems) -> None:
    _job(obj, problems)
    for field in ("completions", "selector", "completionMode", "podFailurePolicy", "template"):
        mutable = field == "template" and old["spec"].get("suspend")
        if not mutable and old["spec"].get(field) != obj["spec"].get(field):
            problems.invalid(f"spec.{field}", obj["spec"].get(field), "field is immutable")


def _lease(obj: Json, problems: Problems) -> None:
    seconds = obj["spec"].get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        problems.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    transitions = obj["spec"].get("leaseTransitions")
    if transitions is not None and transitions < 0:
        problems.invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0")


def _event(obj: Json, problems: Problems) -> None:
    involved = (obj.get("involvedObject") or {}).get("namespace") or ""
    namespace = obj["metadata"].get("namespace", "default")
    if (involved or "default") != namespace and not (
        not involved and namespace in ("default", "kube-system")
    ):
        problems.invalid("involvedObject.namespace", involved, "does not match event.namespace")


def _budget(obj: Json, problems: Problems) -> None:
    spec = obj["spec"]
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        problems.invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        value = spec.get(field)
        if isinstance(value, int) and value < 0:
            problems.invalid(f"spec.{field}", value, "must be greater than or equal to 0")
        elif isinstance(value, str) and not (
            value.endswith("%") and value[:-1].isdigit() and int(value[:-1]) <= 100
        ):
            problems.invalid(
                f"spec.{field}",
                value,
                "must be a valid percent value (e.g. '5%')"
                if not value.endswith("%")
                else "must not be greater than 100%",
            )
    if spec.get("selector") is not None:
        check_labels_of_selector(spec["selector"], "spec.selector", problems)


def _config_map_update(old: Json, obj: Json, problems: Problems) -> None:
    check_config_map(obj, problems)
    if not old.get("immutable"):
        return
    for field in ("data", "binaryData"):
        if old.get(field) != obj.get(field):
            problems.forbidden(field, "field is immutable when `immutable` is set")
    if not obj.get("immutable"):
        problems.forbidden("immutable", "field is immutable when `immutable` is set")


CREATE_CHECKS: dict[str, Callable[[Json, Problems], None]] = {
    "Pod": check_pod,
    "Node": _node,
    "PriorityClass": _priority_class,
    "Deployment": check_workload_set,
    "ReplicaSet": check_workload_set,
    "StatefulSet": check_workload_set,
    "DaemonSet": check_workload_set,
    "Job": _job,
    "HorizontalPodAutoscaler": check_autoscaler,
    "ConfigMap": check_config_map,
    "Secret": check_secret,
    "LimitRange": check_limit_range,
    "CronJob": check_cron_job,
    "RoleBinding": check_role_binding,
    "ClusterRoleBinding": check_role_binding,
    "ResourceClaim": check_device_requests,
    "ResourceClaimTemplate": check_device_requests,
    "Lease": _lease,
    "Event": _event,
    "PodDisruptionBudget": _budget,
    "PersistentVolumeClaim": check_claim,
    "PersistentVolume": check_volume,
    "StorageClass": check_storage_class,
    "ResourceQuota": check_quota,
    "Service": check_service,
    "PodGroup": check_pod_group,
    "Workload": check_workload,
}
UPDATE_CHECKS: dict[str, Callable[[Json, Json, Problems], None]] = {
    "Pod": check_pod_update,
    "Node": _node_update,
    "PriorityClass": _priority_class_update,
    "Deployment": check_workload_set_update,
    "ReplicaSet": check_workload_set_update,
    "DaemonSet": check_workload_set_update,
    "StatefulSet": check_stateful_set_update,
    "HorizontalPodAutoscaler": lambda _, new, problems: check_autoscaler(new, problems),
    "Job": _job_update,
    "PersistentVolumeClaim": check_claim_update,
    "StorageClass": check_storage_class_update,
    "ConfigMap": _config_map_update,
    "Secret": lambda _, new, problems: check_secret(new, problems),
    "LimitRange": lambda _, new, problems: check_limit_range(new, problems),
    "CronJob": lambda _, new, problems: check_cron_job(new, problems),
    "ResourceQuota": lambda _, new, problems: check_quota(new, problems),
    "Service": check_service_update,
    "PodGroup": check_pod_group_update,
}
