"""The scale subresource: `autoscaling/v1 Scale` of a workload (spec 20 §4.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.cluster.store_errors import (
    ApiError,
    Cause,
    bad_request,
    conflict,
    invalid,
    no_such_resource,
    not_found,
)
from labkit.cluster.store_metadata import WriteOptions
from labkit.cluster.store_types import ResourceType

if TYPE_CHECKING:
    from labkit.cluster.store import Store

Json = dict[str, Any]


def scale_of(resource: ResourceType, obj: Json) -> Json:
    """The Scale of a workload."""
    if resource.subresource("scale") is None:
        raise no_such_resource()
    meta = obj["metadata"]
    shown = {
        k: meta[k] for k in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp") if k in meta
    }
    replicas = obj["spec"].get("replicas")
    scale: Json = {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": shown,
        "spec": {"replicas": replicas} if replicas else {},
        "status": {"replicas": int((obj.get("status") or {}).get("replicas") or 0)},
    }
    selector = obj["spec"].get("selector")
    if text := selector_text(
        selector if resource.kind != "ReplicationController" else {"matchLabels": selector}
    ):
        scale["status"]["selector"] = text
    return scale


def selector_text(selector: Json | None) -> str:
    """A LabelSelector as `a=b,c in (d)`."""
    if not selector:
        return ""
    parts = [f"{k}={v}" for k, v in sorted((selector.get("matchLabels") or {}).items())]
    for e in selector.get("matchExpressions") or ():
        operator, key, values = e.get("operator"), e.get("key"), ",".join(sorted(e.get("values") or ()))
        word = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": f"{key}",
            "DoesNotExist": f"!{key}",
        }
        parts.append(word.get(str(operator), ""))
    return ",".join(parts)


def update_scale(store: Store, resource: ResourceType, body: Any, options: WriteOptions) -> Json:
    """Set the replicas of a workload; returns the new Scale."""
    if not isinstance(body, dict) or not isinstance(body.get("metadata"), dict):
        raise bad_request("the Scale has no metadata")
    meta = body["metadata"]
    name = str(meta.get("name") or "")
    old = store.peek(resource, name, meta.get("namespace"))
    if old is None:
        raise not_found(resource, name)
    if meta.get("resourceVersion") and meta["resourceVersion"] != old["metadata"]["resourceVersion"]:
        raise conflict(resource, name)
    spec = body.get("spec")
    replicas = spec.get("replicas", 0) if isinstance(spec, dict) else 0
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise bad_request(
            "json: cannot unmarshal value into Go struct field ScaleSpec.spec.replicas of type int32"
        )
    if replicas < 0:
        problem = Cause(
            "FieldValueInvalid",
            f"Invalid value: {replicas}: must be greater than or equal to 0",
            "spec.replicas",
        )
        raise _invalid_scale(name, problem)
    from labkit.cluster.store_writes import replace

    new = {**old, "metadata": dict(old["metadata"]), "spec": {**old["spec"], "replicas": replicas}}
    return scale_of(resource, replace(store, resource, old, new, None, options))


class _Scale:
    group, kind, plural = "autoscaling", "Scale", "scales"
    resource_name, kind_name = "scales.autoscaling", "Scale.autoscaling"


def _invalid_scale(name: str, problem: Cause) -> ApiError:
    return invalid(_Scale(), name, [problem])  # type: ignore[arg-type]
