"""Validation of what a pod says about its placement: selectors, affinity, spread, tolerations, gates."""

from __future__ import annotations

from typing import Any

from labkit.cluster.store_problems import NOT_A_LABEL_KEY, NOT_A_LABEL_VALUE, Problems
from labkit.objects.names import is_label_key, is_label_value

Json = dict[str, Any]
_EMPTY = "name part must be non-empty"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def check_scheduling(spec: Json, path: str, problems: Problems) -> None:
    """Everything in a pod spec that tells the scheduler something."""
    for key, value in (spec.get("nodeSelector") or {}).items():
        if not is_label_key(key):
            problems.invalid(f"{path}.nodeSelector", key, NOT_A_LABEL_KEY)
        if not is_label_value(value):
            problems.invalid(f"{path}.nodeSelector", value, NOT_A_LABEL_VALUE)
    affinity = spec.get("affinity") or {}
    if affinity.get("nodeAffinity"):
        _node_affinity(affinity["nodeAffinity"], f"{path}.affinity.nodeAffinity", problems)
    for kind in ("podAffinity", "podAntiAffinity"):
        if affinity.get(kind):
            _pod_affinity(affinity[kind], f"{path}.affinity.{kind}", problems)
    for i, toleration in enumerate(spec.get("tolerations") or ()):
        _toleration(toleration, f"{path}.tolerations[{i}]", problems)
    for i, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        _spread(constraint, f"{path}.topologySpreadConstraints[{i}]", problems)
    _spread_duplicates(spec, path, problems)
    group = spec.get("schedulingGroup")
    if group is not None and not group.get("podGroupName"):
        problems.invalid(f"{path}.schedulingGroup.podGroupName", None, "must specify one of: `podGroupName`")
    seen = set()
    for i, gate in enumerate(spec.get("schedulingGates") or ()):
        name = gate.get("name") or ""
        if not is_label_key(name):
            problems.invalid(f"{path}.schedulingGates[{i}]", name, NOT_A_LABEL_KEY if name else _EMPTY)
        if name in seen:
            problems.duplicate(f"{path}.schedulingGates[{i}]", name)
        seen.add(name)
    if spec.get("schedulingGates") and spec.get("nodeName"):
        problems.forbidden(f"{path}.nodeName", "cannot be set until all schedulingGates have been cleared")


def _node_affinity(affinity: Json, path: str, problems: Problems) -> None:
    required = affinity.get(_REQUIRED)
    if required is not None:
        terms = required.get("nodeSelectorTerms") or []
        if not terms:
            problems.required(
                f"{path}.{_REQUIRED}.nodeSelectorTerms", "must have at least one node selector term"
            )
        for i, term in enumerate(terms):
            _node_term(term, f"{path}.{_REQUIRED}.nodeSelectorTerms[{i}]", problems)
    for i, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        where = f"{path}.{_PREFERRED}[{i}]"
        _weight(preferred.get("weight"), f"{where}.weight", problems)
        _node_term(preferred.get("preference") or {}, f"{where}.preference", problems)


def _node_term(term: Json, path: str, problems: Problems) -> None:
    for i, requirement in enumerate(term.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{i}]"
        operator, values = requirement.get("operator"), requirement.get("values") or []
        if operator in ("In", "NotIn"):
            if not values:
                problems.required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                problems.forbidden(
                    f"{where}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                )
        elif operator in ("Gt", "Lt"):
            if len(values) != 1:
                problems.required(
                    f"{where}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'"
                )
        else:
            problems.invalid(f"{where}.operator", operator or "", "not a valid selector operator")
        if not is_label_key(requirement.get("key") or ""):
            problems.invalid(
                f"{where}.key",
                requirement.get("key") or "",
                NOT_A_LABEL_KEY if requirement.get("key") else _EMPTY,
            )
    for i, requirement in enumerate(term.get("matchFields") or ()):
        where = f"{path}.matchFields[{i}]"
        if requirement.get("operator") in ("In", "NotIn"):
            if len(requirement.get("values") or ()) != 1:
                problems.required(
                    f"{where}.values",
                    "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
                )
        else:
            problems.invalid(
                f"{where}.operator", requirement.get("operator") or "", "not a valid selector operator"
            )
        if requirement.get("key") != "metadata.name":
            problems.invalid(f"{where}.key", requirement.get("key") or "", "not a valid field selector key")


def _weight(weight: Any, path: str, problems: Problems) -> None:
    if not 1 <= int(weight or 0) <= 100:
        problems.invalid(path, weight or 0, "must be in the range 1-100")


def _pod_affinity(affinity: Json, path: str, problems: Problems) -> None:
    for i, term in enumerate(affinity.get(_REQUIRED) or ()):
        _pod_term(term, f"{path}.{_REQUIRED}[{i}]", problems)
    for i, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        where = f"{path}.{_PREFERRED}[{i}]"
        _weight(preferred.get("weight"), f"{where}.weight", problems)
        _pod_term(preferred.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm", problems)


def _pod_term(term: Json, path: str, problems: Problems) -> None:
    for key in ("labelSelector", "namespaceSelector"):
        if term.get(key):
            check_labels_of_selector(term[key], f"{path}.{key}", problems)
    topology = term.get("topologyKey") or ""
    if not topology:
        problems.required(f"{path}.topologyKey", "can not be empty")
        problems.invalid(f"{path}.topologyKey", "", _EMPTY)
        problems.invalid(f"{path}.topologyKey", "", NOT_A_LABEL_KEY)
    elif not is_label_key(topology):
        problems.invalid(f"{path}.topologyKey", topology, NOT_A_LABEL_KEY)


def check_labels_of_selector(selector: Json, path: str, problems: Problems) -> None:
    """A LabelSelector."""
    for key, value in (selector.get("matchLabels") or {}).items():
        if not is_label_key(key):
            problems.invalid(f"{path}.matchLabels", key, NOT_A_LABEL_KEY)
        if not is_label_value(value):
            problems.invalid(f"{path}.matchLabels", value, NOT_A_LABEL_VALUE)
    for i, requirement in enumerate(selector.get("matchExpressions") or ()):
        where = f"{path}.matchExpressions[{i}]"
        operator, values = requirement.get("operator"), requirement.get("values") or []
        if operator in ("In", "NotIn"):
            if not values:
                problems.required(f"{where}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                problems.forbidden(
                    f"{where}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                )
        else:
            problems.invalid(f"{where}.operator", operator or "", "not a valid selector operator")
        if not is_label_key(requirement.get("key") or ""):
            problems.invalid(
                f"{where}.key",
                requirement.get("key") or "",
                NOT_A_LABEL_KEY if requirement.get("key") else _EMPTY,
            )


def _toleration(toleration: Json, path: str, problems: Problems) -> None:
    key, operator, value = (
        toleration.get("key") or "",
        toleration.get("operator") or "",
        toleration.get("value") or "",
    )
    if key and not is_label_key(key):
        problems.invalid(f"{path}.key", key, NOT_A_LABEL_KEY)
    if not key and operator != "Exists":
        problems.invalid(
            f"{path}.operator",
            operator,
            'operator must be Exists when `key` is empty, which means "match all values and all keys"',
        )
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        problems.invalid(
            f"{path}.effect",
            toleration.get("effect") or "",
            "effect must be 'NoExecute' when `tolerationSeconds` is set",
        )
    if operator in ("", "Equal"):
        if not is_label_value(value):
            problems.invalid(f"{path}.operator", value, NOT_A_LABEL_VALUE)
    elif operator == "Exists":
        if value:
            problems.invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    elif operator in ("Lt", "Gt"):
        problems.unsupported(f"{path}.operator", operator, ("Equal", "Exists", "Lt", "Gt"))
    else:
        problems.unsupported(f"{path}.operator", operator, ("Equal", "Exists"))
    if toleration.get("effect"):
        problems.one_of(
            f"{path}.effect", toleration["effect"], ("NoSchedule", "PreferNoSchedule", "NoExecute")
        )


def _spread(constraint: Json, path: str, problems: Problems) -> None:
    if int(constraint.get("maxSkew") or 0) <= 0:
        problems.invalid(f"{path}.maxSkew", constraint.get("maxSkew") or 0, "must be greater than zero")
    if not constraint.get("topologyKey"):
        problems.required(f"{path}.topologyKey", "can not be empty")
    elif not is_label_key(constraint["topologyKey"]):
        problems.invalid(f"{path}.topologyKey", constraint["topologyKey"], NOT_A_LABEL_KEY)
    when = constraint.get("whenUnsatisfiable")
    problems.one_of(f"{path}.whenUnsatisfiable", when, ("DoNotSchedule", "ScheduleAnyway"))
    domains = constraint.get("minDomains")
    if domains is not None:
        if domains <= 0:
            problems.invalid(f"{path}.minDomains", domains, "must be greater than zero")
        if when != "DoNotSchedule":
            problems.invalid(
                f"{path}.minDomains",
                domains,
                f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}",
            )
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if constraint.get(field) is not None:
            problems.one_of(f"{path}.{field}", constraint[field], ("Honor", "Ignore"))
    selector = constraint.get("labelSelector")
    if selector:
        check_labels_of_selector(selector, f"{path}.labelSelector", problems)
    keys = {e.get("key") for e in (selector or {}).get("matchExpressions") or ()} | set(
        (selector or {}).get("matchLabels") or ()
    )
    for i, key in enumerate(constraint.get("matchLabelKeys") or ()):
        if selector is None:
            problems.forbidden(
                f"{path}.matchLabelKeys", "must not be specified when labelSelector is not set"
            )
            break
        if key in keys:
            problems.invalid(
                f"{path}.matchLabelKeys[{i}]", key, "exists in both matchLabelKeys and labelSelector"
            )


def _spread_duplicates(spec: Json, path: str, problems: Problems) -> None:
    seen = set()
    for i, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        pair = (constraint.get("topologyKey"), constraint.get("whenUnsatisfiable"))
        if pair in seen:
            problems.duplicate(
                f"{path}.topologySpreadConstraints[{i}].{{topologyKey, whenUnsatisfiable}}",
                f"{{{pair[0]}, {pair[1]}}}",
            )
        seen.add(pair)
