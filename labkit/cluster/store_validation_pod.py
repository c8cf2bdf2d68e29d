"""Validation of pods and pod templates (spec 20 §8.2, §8.6)."""

from __future__ import annotations

from typing import Any

from labkit.cluster.store_metadata import is_dns_label
from labkit.cluster.store_problems import Problems, why_no_dns_label
from labkit.cluster.store_validation_scheduling import check_labels_of_selector, check_scheduling
from labkit.objects.quantity import parse_quantity

Json = dict[str, Any]
_ZERO = parse_quantity("0")
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_IMMUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)

__all__ = ["check_labels_of_selector", "check_pod", "check_pod_spec", "check_pod_update"]


def check_pod(pod: Json, problems: Problems) -> None:
    """A new pod."""
    check_pod_spec(pod["spec"], "spec", problems)


def check_pod_spec(spec: Json, path: str, problems: Problems, *, template: bool = False) -> None:
    """A pod spec, in a pod or in a template."""
    volumes = _volumes(spec, path, problems)
    containers = spec.get("containers") or []
    if not containers:
        problems.required(f"{path}.containers")
    names: set[str] = set()
    ports: set[str] = set()
    for key in ("containers", "initContainers"):
        for i, container in enumerate(spec.get(key) or ()):
            where = f"{path}.{key}[{i}]"
            _container(container, where, problems, names, volumes)
            if key == "containers":
                _ports(container, where, problems, ports)
            _resources(container.get("resources") or {}, f"{where}.resources", problems)
    if spec.get("resources"):
        _resources(spec["resources"], f"{path}.resources", problems)
    problems.one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), ("Always", "OnFailure", "Never"))
    problems.one_of(
        f"{path}.dnsPolicy",
        spec.get("dnsPolicy"),
        ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
    )
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2147483647:
        problems.invalid(
            f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive"
        )
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        problems.invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0")
    check_scheduling(spec, path, problems)


def _volumes(spec: Json, path: str, problems: Problems) -> set[str]:
    names: set[str] = set()
    for i, volume in enumerate(spec.get("volumes") or ()):
        name, where = volume.get("name") or "", f"{path}.volumes[{i}]"
        if not name:
            problems.required(f"{where}.name")
        elif not is_dns_label(name):
            problems.invalid(f"{where}.name", name, why_no_dns_label(name))
        elif name in names:
            problems.duplicate(f"{where}.name", name)
        names.add(name)
        sources = [k for k in volume if k != "name"]
        if len(sources) > 1:
            problems.forbidden(f"{where}.{sources[1]}", "may not specify more than 1 volume type")
        claim = volume.get("persistentVolumeClaim")
        if claim is not None and not claim.get("claimName"):
            problems.required(f"{where}.persistentVolumeClaim.claimName")
    return names


def _container(container: Json, path: str, problems: Problems, names: set[str], volumes: set[str]) -> None:
    name = container.get("name") or ""
    if not name:
        problems.required(f"{path}.name")
    elif not is_dns_label(name):
        problems.invalid(f"{path}.name", name, why_no_dns_label(name))
    elif name in names:
        problems.duplicate(f"{path}.name", name)
    names.add(name)
    image = container.get("image") or ""
    if not image:
        problems.required(f"{path}.image")
    elif image != image.strip():
        problems.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    problems.one_of(
        f"{path}.imagePullPolicy", container.get("imagePullPolicy"), ("Always", "IfNotPresent", "Never")
    )
    mounts: set[str] = set()
    for i, mount in enumerate(container.get("volumeMounts") or ()):
        where = f"{path}.volumeMounts[{i}]"
        if not mount.get("name"):
            problems.required(f"{where}.name")
        elif mount["name"] not in volumes:
            problems.add("FieldValueNotFound", f"{where}.name", f'Not found: "{mount["name"]}"')
        if not mount.get("mountPath"):
            problems.required(f"{where}.mountPath")
        elif mount["mountPath"] in mounts:
            problems.invalid(f"{where}.mountPath", mount["mountPath"], "must be unique")
        mounts.add(mount.get("mountPath") or "")
    for i, variable in enumerate(container.get("env") or ()):
        if not variable.get("name"):
            problems.required(f"{path}.env[{i}].name")


def _ports(container: Json, path: str, problems: Problems, taken: set[str]) -> None:
    for i, port in enumerate(container.get("ports") or ()):
        where = f"{path}.ports[{i}]"
        number = port.get("containerPort") or 0
        if number == 0:
            problems.required(f"{where}.containerPort")
        elif not 1 <= number <= 65535:
            problems.invalid(f"{where}.containerPort", number, "must be between 1 and 65535, inclusive")
        host = port.get("hostPort") or 0
        if host and not 1 <= host <= 65535:
            problems.invalid(f"{where}.hostPort", host, "must be between 1 and 65535, inclusive")
        problems.one_of(f"{where}.protocol", port.get("protocol"), ("SCTP", "TCP", "UDP"))
        if host:
            text = f"{port.get('protocol')}/{port.get('hostIP') or ''}/{host}"
            if text in taken:
                problems.duplicate(f"{where}.hostPort", text)
            taken.add(text)


def _resources(resources: Json, path: str, problems: Problems) -> None:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if not limits and not requests:
        return
    for section, found in (("limits", limits), ("requests", requests)):
        for name, amount in found.items():
            _resource_name(name, f"{path}.{section}", problems)
            quantity = parse_quantity(amount)
            if quantity < _ZERO:
                problems.invalid(f"{path}.{section}[{name}]", amount, "must be greater than or equal to 0")
            elif _is_whole(name) and quantity.amount.denominator != 1:
                problems.invalid(f"{path}.{section}[{name}]", amount, "must be an integer")
    for name, amount in requests.items():
        limit = limits.get(name)
        if limit is None:
            if _no_overcommit(name):
                problems.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        elif _no_overcommit(name) and parse_quantity(amount) != parse_quantity(limit):
            problems.invalid(f"{path}.requests", amount, f"must be equal to {name} limit of {limit}")
        elif parse_quantity(amount) > parse_quantity(limit):
            problems.invalid(
                f"{path}.requests", amount, f"must be less than or equal to {name} limit of {limit}"
            )


def _resource_name(name: str, path: str, problems: Problems) -> None:
    if name in _COMPUTE or name.startswith("hugepages-"):
        return
    if "/" not in name:
        problems.invalid(f"{path}[{name}]", name, "must be a standard resource type or fully qualified")
        problems.invalid(f"{path}[{name}]", name, "must be a standard resource for containers")


def _no_overcommit(name: str) -> bool:
    return name.startswith("hugepages-") or _is_whole(name)


def _is_whole(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def check_pod_update(old: Json, pod: Json, problems: Problems) -> None:
    """A changed pod: nearly everything of its spec is final."""
    before, after = old["spec"], pod["spec"]
    if before == after:
        return
    check_pod_spec(after, "spec", problems)
    if not after.get("containers"):
        problems.forbidden("spec.containers", "pod updates may not add or remove containers")
    if problems:
        return
    gated = bool(before.get("schedulingGates"))
    gates = [g.get("name") for g in before.get("schedulingGates") or ()]
    for i, gate in enumerate(after.get("schedulingGates") or ()):
        if gate.get("name") not in gates:
            problems.forbidden(
                f"spec.schedulingGates[{i}].name",
                f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
            )
    if problems:
        return
    allowed = dict(after)
    for key in ("containers", "initContainers"):
        if not _same_but_images(before.get(key) or [], after.get(key) or []):
            problems.forbidden("spec", _IMMUTABLE)
            return
        _take(allowed, before, key)
    for key in ("activeDeadlineSeconds", "schedulingGates", "ephemeralContainers"):
        _take(allowed, before, key)
    _deadline(before, after, problems)
    kept = [t for t in before.get("tolerations") or () if t in (after.get("tolerations") or ())]
    if len(kept) == len(before.get("tolerations") or ()):
        _take(allowed, before, "tolerations")
    else:
        problems.forbidden(
            "spec.tolerations", "existing toleration can not be modified except its tolerationSeconds"
        )
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and after.get(
        "terminationGracePeriodSeconds"
    ) == 1:
        _take(allowed, before, "terminationGracePeriodSeconds")
    if gated:
        _gated_changes(before, after, allowed, problems)
    if not problems and allowed != before:
        problems.forbidden("spec", _IMMUTABLE)


def _take(target: Json, source: Json, key: str) -> None:
    if key in source:
        target[key] = source[key]
    else:
        target.pop(key, None)


def _same_but_images(before: list[Json], after: list[Json]) -> bool:
    def rest(container: Json) -> Json:
        return {k: v for k, v in container.items() if k not in ("image", "resources")} | {
            "resources": container.get("resources") or {}
        }

    return len(before) == len(after) and all(rest(a) == rest(b) for a, b in zip(before, after, strict=True))


def _deadline(before: Json, after: Json, problems: Problems) -> None:
    was, now = before.get("activeDeadlineSeconds"), after.get("activeDeadlineSeconds")
    if was is not None and (now is None or now > was):
        problems.invalid("spec.activeDeadlineSeconds", now, "must be less than or equal to previous value")


def _gated_changes(before: Json, after: Json, allowed: Json, problems: Problems) -> None:
    was, now = before.get("nodeSelector") or {}, after.get("nodeSelector") or {}
    if all(now.get(k) == v for k, v in was.items()):
        _take(allowed, before, "nodeSelector")
    else:
        problems.invalid("spec.nodeSelector", now, "only additions are allowed (no mutations or deletions)")
    if before.get("affinity") == after.get("affinity"):
        return
    if _narrows(before.get("affinity") or {}, after.get("affinity") or {}):
        _take(allowed, before, "affinity")
    else:
        problems.invalid(
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
            _terms(after.get("affinity") or {}),
            "only additions are allowed (no mutations or deletions)",
        )


def _terms(affinity: Json) -> list[Json]:
    required = (affinity.get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    return required.get("nodeSelectorTerms") or []


def _narrows(before: Json, after: Json) -> bool:
    rest_before = {k: v for k, v in before.items() if k != "nodeAffinity"}
    rest_after = {k: v for k, v in after.items() if k != "nodeAffinity"}
    if rest_before != rest_after:
        return False
    was, now = _terms(before), _terms(after)
    if not was:
        return True
    if len(was) != len(now):
        return False
    return all(
        all(e in (new.get(key) or ()) for e in old.get(key) or ())
        for old, new in zip(was, now, strict=True)
        for key in ("matchExpressions", "matchFields")
    )
