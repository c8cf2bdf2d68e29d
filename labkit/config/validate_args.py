"""Validation of plugin args; `path` is empty when a plugin is built, which also validates (spec 03 §6)."""

from __future__ import annotations

import re
from typing import Any

from labkit.config.args import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from labkit.config.errors import Json, child, duplicate, forbidden, invalid, required, unsupported
from labkit.config.gates import FeatureGates
from labkit.config.names import label_key_errors, label_value_errors

_RATIO = "RequestedToCapacityRatio"
_STRATEGIES = ("LeastAllocated", "MostAllocated", _RATIO)
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_SECOND = 1_000_000_000


def validate_args(path: str, args: PluginArgs, gates: FeatureGates) -> list[str]:
    """What is wrong with the args of a plugin; empty when nothing is."""
    match args:
        case DefaultPreemptionArgs():
            return _default_preemption(path, args)
        case InterPodAffinityArgs():
            return _in_range(child(path, "hardPodAffinityWeight"), args.hard_pod_affinity_weight, 100)
        case NodeAffinityArgs():
            return _node_affinity(path, args)
        case NodeResourcesBalancedAllocationArgs():
            return _balanced(path, args)
        case NodeResourcesFitArgs():
            return _fit(path, args)
        case PodTopologySpreadArgs():
            return _spread(path, args)
        case VolumeBindingArgs():
            return _volume_binding(path, args, gates)
        case DynamicResourcesArgs():
            return _dynamic_resources(path, args, gates)
    return []


def _in_range(path: str, value: int, highest: int) -> list[str]:
    return [] if 0 <= value <= highest else [invalid(path, value, f"not in valid range [0, {highest}]")]


def _default_preemption(path: str, args: DefaultPreemptionArgs) -> list[str]:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    percentage_path = child(path, "minCandidateNodesPercentage")
    absolute_path = child(path, "minCandidateNodesAbsolute")
    found = _in_range(percentage_path, percentage, 100)
    if absolute < 0:
        found.append(invalid(absolute_path, absolute, "not in valid range [0, inf)"))
    if percentage == 0 and absolute == 0:
        both = "cannot be zero at the same time as"
        found.append(invalid(percentage_path, 0, f"{both} minCandidateNodesAbsolute"))
        found.append(invalid(absolute_path, 0, f"{both} minCandidateNodesPercentage"))
    return found


def _balanced(path: str, args: NodeResourcesBalancedAllocationArgs) -> list[str]:
    found = []
    seen: set[str] = set()
    for index, resource in enumerate(args.resources):
        place = child(path, f"resources[{index}]")
        if resource.name in seen:
            found.append(duplicate(f"{place}.name", resource.name))
        seen.add(resource.name)
        if resource.weight != 1:
            found.append(invalid(f"{place}.weight", resource.weight, "must be 1"))
    return found


def _shape(path: str, shape: list[UtilizationShapePoint]) -> list[str]:
    if not shape:
        return [required(path, "at least one point must be specified")]
    found = []
    for index in range(1, len(shape)):
        if shape[index - 1].utilization >= shape[index].utilization:
            place = f"{path}[{index}].utilization"
            found.append(
                invalid(place, shape[index].utilization, "values must be sorted in increasing order")
            )
            break
    for index, point in enumerate(shape):
        found += _in_range(f"{path}[{index}].utilization", point.utilization, 100)
        found += _in_range(f"{path}[{index}].score", point.score, 10)
    return found


def _fit(path: str, args: NodeResourcesFitArgs) -> list[str]:
    found = []
    for index, name in enumerate(args.ignored_resources):
        place = child(path, f"ignoredResources[{index}]")
        found += [invalid(place, name, text) for text in label_key_errors(name)]
    for index, group in enumerate(args.ignored_resource_groups):
        place = child(path, f"ignoredResourceGroups[{index}]")
        if "/" in group:
            found.append(invalid(place, group, "resource group name can't contain '/'"))
        found += [invalid(place, group, text) for text in label_key_errors(group)]
    strategy = args.scoring_strategy
    place = child(path, "scoringStrategy")
    if strategy.type not in _STRATEGIES:
        found.append(unsupported(f"{place}.type", Json(strategy.type), _STRATEGIES))
    for index, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            found.append(invalid(f"{place}.resources[{index}].weight", resource.weight, detail))
    ratio_path = f"{place}.requestedToCapacityRatio"
    if strategy.type == _RATIO:
        if strategy.shape is None:
            found.append(required(ratio_path, f"must be specified when type is {_RATIO}"))
        else:
            found += _shape(f"{ratio_path}.shape", strategy.shape)
    elif strategy.shape is not None:
        found.append(forbidden(ratio_path, f"must be nil when type is not {_RATIO}"))
    return found


def _spread(path: str, args: PodTopologySpreadArgs) -> list[str]:
    found = []
    type_path = child(path, "defaultingType")
    if args.defaulting_type not in ("System", "List"):
        found.append(unsupported(type_path, Json(args.defaulting_type), ("System", "List")))
    elif args.defaulting_type == "System" and args.default_constraints:
        detail = "when .defaultConstraints are not empty"
        found.append(invalid(type_path, Json(args.defaulting_type), detail))
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(args.default_constraints):
        place = child(path, f"defaultConstraints[{index}]")
        skew = constraint.get("maxSkew", 0)
        if skew <= 0:
            found.append(invalid(f"{place}.maxSkew", skew, "not in valid range (0, inf)"))
        key = constraint.get("topologyKey", "")
        if not key:
            found.append(required(f"{place}.topologyKey", "can not be empty"))
        else:
            found += [invalid(f"{place}.topologyKey", key, text) for text in label_key_errors(key)]
        action = constraint.get("whenUnsatisfiable", "")
        if not action:
            found.append(required(f"{place}.whenUnsatisfiable", "can not be empty"))
        elif action not in ("DoNotSchedule", "ScheduleAnyway"):
            actions = ("DoNotSchedule", "ScheduleAnyway")
            found.append(unsupported(f"{place}.whenUnsatisfiable", Json(action), actions))
        if constraint.get("labelSelector") is not None:
            detail = "constraint must not define a selector, as they deduced for each pod"
            found.append(forbidden(f"{place}.labelSelector", detail))
        if (key, action) in seen:
            found.append(duplicate(place, f"{{{key}, {action}}}"))
        seen.add((key, action))
    return found


def _volume_binding(path: str, args: VolumeBindingArgs, gates: FeatureGates) -> list[str]:
    found = []
    if args.bind_timeout_seconds < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        found.append(invalid(child(path, "bindTimeoutSeconds"), args.bind_timeout_seconds, detail))
    shape_path = child(path, "shape")
    if gates.enabled("StorageCapacityScoring"):
        found += _shape(shape_path, args.shape or [])
    elif args.shape is not None:
        points = [{"Utilization": point.utilization, "Score": point.score} for point in args.shape]
        detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        found.append(invalid(shape_path, Json(points), detail))
    return found


def _dynamic_resources(path: str, args: DynamicResourcesArgs, gates: FeatureGates) -> list[str]:
    found = []
    filter_path, binding_path = child(path, "filterTimeout"), child(path, "bindingTimeout")
    if args.filter_timeout is not None:
        if not gates.enabled("DRASchedulerFilterTimeout"):
            found.append(forbidden(filter_path, "DRASchedulingFilterTimeout feature gate is disabled"))
        elif args.filter_timeout.nanoseconds < 0:
            found.append(invalid(filter_path, str(args.filter_timeout), "must be zero or positive"))
    if args.binding_timeout is not None:
        if not (
            gates.enabled("DRADeviceBindingConditions") and gates.enabled("DRAResourceClaimDeviceStatus")
        ):
            detail = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
            found.append(forbidden(binding_path, detail))
        elif args.binding_timeout.nanoseconds < _SECOND:
            found.append(invalid(binding_path, str(args.binding_timeout), "must be at least 1 second"))
    return found


# --- node affinity -----------------------------------------------------------------------------------


def _node_affinity(path: str, args: NodeAffinityArgs) -> list[str]:
    affinity = args.added_affinity or {}
    found = []
    required_path = child(path, "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution")
    needed = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for index, term in enumerate(needed.get("nodeSelectorTerms", [])):
        found += _node_term(f"{required_path}.nodeSelectorTerms[{index}]", term)
    preferred_path = child(path, "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution")
    for index, preferred in enumerate(affinity.get("preferredDuringSchedulingIgnoredDuringExecution", [])):
        if preferred.get("weight", 0) != 0:
            found += _node_term(f"{preferred_path}[{index}]", preferred.get("preference", {}))
    return found


def _node_term(path: str, term: dict[str, Any]) -> list[str]:
    found = []
    for index, requirement in enumerate(term.get("matchExpressions", [])):
        found += _label_requirement(f"{path}.matchExpressions[{index}]", requirement)
    for index, requirement in enumerate(term.get("matchFields", [])):
        place = f"{path}.matchFields[{index}]"
        operator, values = requirement.get("operator", ""), requirement.get("values")
        if operator not in ("In", "NotIn"):
            found.append(unsupported(f"{place}.operator", Json(operator), ("In", "NotIn")))
        elif len(values or []) != 1:
            found.append(invalid(f"{place}.values", Json(values), "must have one element"))
    return found


def _label_requirement(path: str, requirement: dict[str, Any]) -> list[str]:
    key, operator = requirement.get("key", ""), requirement.get("operator", "")
    given = requirement.get("values")
    values: list[str] = given or []
    if operator not in _OPERATORS:
        return [unsupported(f"{path}.operator", Json(operator), _OPERATORS)]
    found = []
    if wrong := label_key_errors(key):
        found.append(invalid(f"{path}.key", key, "; ".join(wrong)))
    detail = None
    if operator in ("In", "NotIn") and not values:
        detail = "for 'in', 'notin' operators, values set can't be empty"
    elif operator in ("Exists", "DoesNotExist") and values:
        detail = "values set must be empty for exists and does not exist"
    elif operator in ("Gt", "Lt") and len(values) != 1:
        detail = "for 'Gt', 'Lt' operators, exactly one value is required"
    if detail is not None:
        found.append(invalid(f"{path}.values", Json(given), detail))
    if operator in ("Gt", "Lt"):
        for index, value in enumerate(values):
            if not _is_int64(value):
                number = "for 'Gt', 'Lt' operators, the value must be an integer"
                found.append(invalid(f"{path}.values[{index}]", value, number))
    for index, value in enumerate(values):
        if wrong := label_value_errors(value):
            found.append(invalid(f"{path}.values[{index}][{key}]", value, "; ".join(wrong)))
    return list(dict.fromkeys(found))


def _is_int64(text: str) -> bool:
    return bool(re.fullmatch(r"[-+]?[0-9]+", text, re.ASCII)) and -(1 << 63) <= int(text) < 1 << 63
