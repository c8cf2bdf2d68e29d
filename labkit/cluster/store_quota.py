"""ResourceQuota: what a namespace uses, and what it may not exceed."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from labkit.cluster.store_errors import forbidden
from labkit.cluster.store_types import POD, RESOURCE_QUOTA, ResourceType
from labkit.objects.quantity import Quantity, parse_quantity

if TYPE_CHECKING:
    from labkit.cluster.store import Store

Json = dict[str, Any]
_SHORT = ("cpu", "memory", "ephemeral-storage")


def check(store: Store, resource: ResourceType, old: Json | None, obj: Json) -> None:
    """403 when the write would exceed a quota of its namespace; else the quotas' status takes it in."""
    table = store.objects(RESOURCE_QUOTA)
    if not table or not resource.namespaced or resource is RESOURCE_QUOTA:
        return
    namespace, name = obj["metadata"]["namespace"], obj["metadata"].get("name", "")
    for key in sorted(k for k in table if k.startswith(f"{namespace}/")):
        quota = table[key]
        hard: Json = quota["spec"].get("hard") or {}
        if resource is POD and not _in_scope(quota["spec"], obj):
            continue
        before = usage_of(resource, old) if old is not None else {}
        after = usage_of(resource, obj)
        quota_name = quota["metadata"]["name"]
        missing = sorted(_missing(resource, hard, obj))
        if missing and old is None:
            raise forbidden(resource, name, f"failed quota: {quota_name}: must specify {'; '.join(missing)}")
        added = {k: after[k] - before.get(k, Fraction(0)) for k in after if k in hard}
        if not any(amount > 0 for amount in added.values()):
            continue
        used = used_in(store, quota)
        over = sorted(k for k, a in added.items() if a > 0 and used[k] + a > parse_quantity(hard[k]).amount)
        if over:
            raise forbidden(
                resource,
                name,
                f"exceeded quota: {quota_name}, requested: {_list(over, added, hard)}, used: {_list(over, used, hard)}, "
                f"limited: {','.join(f'{k}={hard[k]}' for k in over)}",
            )


def _list(keys: list[str], amounts: dict[str, Fraction], hard: Json) -> str:
    return ",".join(f"{k}={_text(amounts[k], hard[k])}" for k in keys)


def _text(amount: Fraction, like: str) -> str:
    return Quantity(amount, parse_quantity(like).format).canonical()


def used_in(store: Store, quota: Json) -> dict[str, Fraction]:
    """What the quota's namespace uses of each thing it limits."""
    hard: Json = quota["spec"].get("hard") or {}
    namespace = quota["metadata"]["namespace"]
    used = dict.fromkeys(hard, Fraction(0))
    wanted = {_resource_counted(k) for k in hard}
    for resource in store.stored_resources():
        if not resource.namespaced or resource.resource_name not in wanted:
            continue
        for key, obj in store.objects(resource).items():
            if not key.startswith(f"{namespace}/") or (resource is POD and not _in_scope(quota["spec"], obj)):
                continue
            for name, amount in usage_of(resource, obj).items():
                if name in used:
                    used[name] += amount
    return used


def status_of(store: Store, quota: Json) -> Json:
    """The status that the quota should have."""
    hard: Json = quota["spec"].get("hard") or {}
    return {"hard": dict(hard), "used": {k: _text(v, hard[k]) for k, v in used_in(store, quota).items()}}


def _resource_counted(name: str) -> str:
    if name.startswith("count/"):
        return name.removeprefix("count/")
    if name in ("pods", *_SHORT) or name.startswith(("requests.", "limits.")):
        return "persistentvolumeclaims" if name == "requests.storage" else "pods"
    if name.startswith("services."):
        return "services"
    return name


def usage_of(resource: ResourceType, obj: Json) -> dict[str, Fraction]:
    """What one object counts for."""
    one = Fraction(1)
    usage = {f"count/{resource.resource_name}": one}
    if resource is POD:
        if (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
            return usage
        usage["pods"] = one
        for section in ("requests", "limits"):
            for name, amount in _pod_amounts(obj["spec"], section).items():
                usage[f"{section}.{name}"] = amount
                if section == "requests" and name in _SHORT:
                    usage[name] = amount
        return usage
    usage[resource.resource_name] = one
    if resource.kind == "Service":
        kind = obj["spec"].get("type")
        usage["services.loadbalancers"] = one if kind == "LoadBalancer" else Fraction(0)
        ports = len(obj["spec"].get("ports") or ()) if kind in ("NodePort", "LoadBalancer") else 0
        usage["services.nodeports"] = Fraction(ports)
    elif resource.kind == "PersistentVolumeClaim":
        storage = ((obj["spec"].get("resources") or {}).get("requests") or {}).get("storage")
        if storage is not None:
            usage["requests.storage"] = parse_quantity(storage).amount
    return usage


def _pod_amounts(spec: Json, section: str) -> dict[str, Fraction]:
    sums: dict[str, Fraction] = {}
    for container in spec.get("containers") or ():
        for name, amount in ((container.get("resources") or {}).get(section) or {}).items():
            sums[name] = sums.get(name, Fraction(0)) + parse_quantity(amount).amount
    sidecars: dict[str, Fraction] = {}
    peaks: dict[str, Fraction] = {}
    for container in spec.get("initContainers") or ():
        found = (container.get("resources") or {}).get(section) or {}
        always = container.get("restartPolicy") == "Always"
        for name, amount in found.items():
            value = parse_quantity(amount).amount
            if always:
                sidecars[name] = sidecars.get(name, Fraction(0)) + value
                sums[name] = sums.get(name, Fraction(0)) + value
            else:
                peaks[name] = max(peaks.get(name, Fraction(0)), value + sidecars.get(name, Fraction(0)))
    for name, value in peaks.items():
        sums[name] = max(sums.get(name, Fraction(0)), value)
    for name, amount in ((spec.get("resources") or {}).get(section) or {}).items():
        sums[name] = parse_quantity(amount).amount
    for name, amount in (spec.get("overhead") or {}).items():
        if section == "requests" or name in sums:
            sums[name] = sums.get(name, Fraction(0)) + parse_quantity(amount).amount
    return sums


def _missing(resource: ResourceType, hard: Json, obj: Json) -> list[str]:
    """What must be given because a quota limits it: `limits.cpu for: c`."""
    if resource is not POD or (obj["spec"].get("resources") or {}).get("requests"):
        return []
    found = []
    for name in hard:
        if name in ("cpu", "memory"):
            section, wanted = "requests", name
        elif name in ("requests.cpu", "requests.memory", "limits.cpu", "limits.memory"):
            section, _, wanted = name.partition(".")
        else:
            continue
        without = [
            c.get("name", "")
            for key in ("containers", "initContainers")
            for c in obj["spec"].get(key) or ()
            if wanted not in ((c.get("resources") or {}).get(section) or {})
        ]
        if without:
            found.append(f"{name} for: {','.join(sorted(without))}")
    return found


def _in_scope(spec: Json, pod: Json) -> bool:
    terms = [{"scopeName": s, "operator": "Exists"} for s in spec.get("scopes") or ()]
    terms += (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    return all(_matches(t, pod) for t in terms)


def _matches(term: Json, pod: Json) -> bool:
    scope, spec = term.get("scopeName"), pod["spec"]
    best_effort = (pod.get("status") or {}).get("qosClass") == "BestEffort"
    if scope == "BestEffort":
        return best_effort
    if scope == "NotBestEffort":
        return not best_effort
    if scope == "Terminating":
        return spec.get("activeDeadlineSeconds") is not None
    if scope == "NotTerminating":
        return spec.get("activeDeadlineSeconds") is None
    if scope == "PriorityClass":
        name, values = spec.get("priorityClassName") or "", term.get("values") or ()
        operator = term.get("operator")
        found = {
            "In": name in values,
            "NotIn": name not in values,
            "Exists": bool(name),
            "DoesNotExist": not name,
        }
        return found.get(str(operator), False)
    return True


def refresh(store: Store, namespace: str) -> None:
    """Bring the status of the namespace's quotas up to date."""
    for key in sorted(k for k in store.objects(RESOURCE_QUOTA) if k.startswith(f"{namespace}/")):
        quota = store.objects(RESOURCE_QUOTA)[key]
        status = status_of(store, quota)
        if quota.get("status") != status:
            store.commit(
                RESOURCE_QUOTA, quota, {**quota, "metadata": dict(quota["metadata"]), "status": status}
            )
