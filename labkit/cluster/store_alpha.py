"""Shapes of pod groups, which kube-apiserver serves only when told to, and of the CRD of coscheduling (spec 15)."""

from __future__ import annotations

from typing import Any

NATIVE = "scheduling.k8s.io/v1alpha2"
OUT_OF_TREE = "scheduling.x-k8s.io/v1alpha1"
_PREFIX = "scheduling.v1alpha2."
_META: list[dict[str, Any]] = [
    {"inline": True, "type": "meta.v1.TypeMeta"},
    {"json": "metadata", "omitempty": True, "pb": 1, "type": "meta.v1.ObjectMeta"},
]


def _fields(**types: str) -> list[dict[str, Any]]:
    """Optional fields in order; `*` marks a pointer."""
    return [
        {"json": name, "omitempty": True, "pb": i, "type": text.lstrip("*"), "ptr": text.startswith("*")}
        for i, (name, text) in enumerate(types.items(), 1)
    ]


def _object(spec: str, status: str = "") -> list[dict[str, Any]]:
    rows = [*_META, {"json": "spec", "omitempty": True, "pb": 2, "type": spec}]
    return rows + ([{"json": "status", "omitempty": True, "pb": 3, "type": status}] if status else [])


#: `apiVersion/kind` -> type name
KINDS = {
    f"{NATIVE}/PodGroup": _PREFIX + "PodGroup",
    f"{NATIVE}/Workload": _PREFIX + "Workload",
    f"{OUT_OF_TREE}/PodGroup": "coscheduling.v1alpha1.PodGroup",
}
_POLICY, _CONSTRAINTS = "*" + _PREFIX + "PodGroupSchedulingPolicy", "*" + _PREFIX + "SchedulingConstraints"
_SPEC_TAIL = {
    "schedulingPolicy": _POLICY,
    "schedulingConstraints": _CONSTRAINTS,
    "resourceClaims": f"[]{_PREFIX}PodGroupResourceClaim",
    "disruptionMode": "*string",
    "priorityClassName": "string",
    "priority": "*int32",
}
#: Type name -> rows as in `data/api-types.json`
TYPES: dict[str, list[dict[str, Any]]] = {
    _PREFIX + "PodGroup": _object(_PREFIX + "PodGroupSpec", _PREFIX + "PodGroupStatus"),
    _PREFIX + "PodGroupSpec": _fields(
        podGroupTemplateRef=f"*{_PREFIX}PodGroupTemplateReference", **_SPEC_TAIL
    ),
    _PREFIX + "PodGroupTemplateReference": _fields(workload=f"*{_PREFIX}WorkloadPodGroupTemplateReference"),
    _PREFIX + "WorkloadPodGroupTemplateReference": _fields(
        workloadName="string", podGroupTemplateName="string"
    ),
    _PREFIX + "PodGroupSchedulingPolicy": _fields(
        basic=f"*{_PREFIX}BasicSchedulingPolicy", gang=f"*{_PREFIX}GangSchedulingPolicy"
    ),
    _PREFIX + "BasicSchedulingPolicy": [],
    _PREFIX + "GangSchedulingPolicy": _fields(minCount="int32"),
    _PREFIX + "SchedulingConstraints": _fields(topology=f"[]{_PREFIX}TopologyConstraint"),
    _PREFIX + "TopologyConstraint": _fields(key="string"),
    _PREFIX + "PodGroupResourceClaim": _fields(
        name="string", resourceClaimName="*string", resourceClaimTemplateName="*string"
    ),
    _PREFIX + "PodGroupStatus": [
        {
            "json": "conditions",
            "omitempty": True,
            "patchMergeKey": "type",
            "patchStrategy": "merge",
            "pb": 1,
            "type": "[]meta.v1.Condition",
        }
    ],
    _PREFIX + "Workload": _object(_PREFIX + "WorkloadSpec"),
    _PREFIX + "WorkloadSpec": _fields(
        controllerRef=f"*{_PREFIX}TypedLocalObjectReference", podGroupTemplates=f"[]{_PREFIX}PodGroupTemplate"
    ),
    _PREFIX + "TypedLocalObjectReference": _fields(apiGroup="string", kind="string", name="string"),
    _PREFIX + "PodGroupTemplate": _fields(name="string", **_SPEC_TAIL),
    "coscheduling.v1alpha1.PodGroup": _object(
        "coscheduling.v1alpha1.PodGroupSpec", "coscheduling.v1alpha1.PodGroupStatus"
    ),
    "coscheduling.v1alpha1.PodGroupSpec": _fields(
        minMember="int32", minResources="map[string]api.resource.Quantity", scheduleTimeoutSeconds="*int32"
    ),
    "coscheduling.v1alpha1.PodGroupStatus": _fields(
        phase="string",
        occupiedBy="string",
        running="int32",
        succeeded="int32",
        failed="int32",
        scheduleStartTime="*meta.v1.Time",
    ),
}
