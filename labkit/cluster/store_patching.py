"""PATCH: find, change, and put back through the same door as PUT (spec 20 §8.5)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from labkit.cluster import store_apply, store_events, store_writes
from labkit.cluster.store_errors import (
    ApiError,
    Cause,
    bad_request,
    invalid,
    invalid_options,
    no_such_resource,
    not_found,
)
from labkit.cluster.store_metadata import WriteOptions, check_preconditions
from labkit.cluster.store_patch import json_patch, merge_patch, strategic_merge_patch
from labkit.cluster.store_problems import Problems, go_value
from labkit.cluster.store_schema import DecodeError, Struct, copy, json_type, struct
from labkit.cluster.store_types import ResourceType, stored_type

if TYPE_CHECKING:
    from labkit.cluster.store import Store

Json = dict[str, Any]
PATCH_TYPES = ("strategic", "merge", "json", "apply")


def patch(
    store: Store,
    resource: ResourceType,
    name: str,
    namespace: str | None,
    body: Any,
    patch_type: str,
    subresource: str | None,
    *,
    force: bool,
    options: WriteOptions,
) -> tuple[Json, bool]:
    """Patch an object; returns it and whether that created it (apply only)."""
    if patch_type not in PATCH_TYPES:
        raise bad_request(f"unknown patch type {patch_type!r}; types: {', '.join(PATCH_TYPES)}")
    if subresource is not None and resource.subresource(subresource) is None:
        raise no_such_resource()
    old = store.peek(resource, name, namespace)
    if patch_type == "apply":
        return _apply(store, resource, name, namespace, old, body, subresource, force, options)
    if old is None:
        raise not_found(resource, name)
    if subresource == "scale":
        from labkit.cluster.store_scale import scale_of, update_scale

        changed = _changed(scale_of(resource, old), body, patch_type, struct("autoscaling.v1.Scale"))
        changed.setdefault("metadata", {}).update(name=name, namespace=old["metadata"]["namespace"])
        return update_scale(store, resource, changed, options), False
    before = store_events.as_seen_by(resource, old)
    changed = _changed(before, body, patch_type, resource.schema)
    return _put(store, resource, old, before, changed, name, subresource, options), False


def _changed(before: Json, body: Any, patch_type: str, schema: Struct) -> Json:
    if patch_type == "json":
        changed = json_patch(before, body)
    elif patch_type == "merge":
        if body is None:
            raise bad_request("Invalid JSON Patch")
        if not isinstance(body, dict):
            raise bad_request(
                f"error decoding patch: json: cannot unmarshal {json_type(body)} into Go value of type "
                "map[string]interface {}"
            )
        changed = merge_patch(before, body)
    else:
        changed = strategic_merge_patch(before, body, schema)
    if not isinstance(changed, dict):
        raise _unfit(changed, f"json: cannot unmarshal {json_type(changed)} into Go value")
    return changed


def _unfit(changed: Any, why: str) -> ApiError:
    """422 of a patch whose result is no object of the type."""
    shown = go_value(json.dumps(changed, ensure_ascii=False, separators=(",", ":")))
    problem = Cause("FieldValueInvalid", f"Invalid value: {shown}: {why}", "patch")
    return ApiError(422, "Invalid", f"patch: {problem.message}", {"causes": [problem.to_dict()]})


def _decode(resource: ResourceType, before: Json, changed: Json, unknown: list[str]) -> Json:
    """`changed` decoded; what the patch left alone is what the store holds, and is only copied."""
    fresh = {key: value for key, value in changed.items() if value is not before.get(key)}
    decoded = resource.schema.decode(fresh, unknown)
    kept = {key: copy(value) for key, value in changed.items() if key not in fresh}
    return {**decoded, **kept}


def _put(
    store: Store,
    resource: ResourceType,
    old: Json,
    before: Json | None,
    changed: Json,
    name: str,
    subresource: str | None,
    options: WriteOptions,
) -> Json:
    for key, right in (("kind", resource.kind), ("apiVersion", resource.api_version)):
        if changed.get(key, right) != right:
            raise _unfit(changed, f"{key} {changed[key]!r} is not {right!r}")
    changed = {**changed, "metadata": {} if changed.get("metadata") is None else changed["metadata"]}
    unknown: list[str] = []
    try:
        decoded = _decode(resource, before or {}, changed, unknown)
    except DecodeError as e:
        raise _unfit(changed, str(e)) from None
    except RecursionError:
        raise _unfit({}, "the object is nested too deeply") from None
    obj = store_writes.accepted(resource, decoded, unknown, options)
    meta, stored = obj["metadata"], old["metadata"]
    if not meta.get("name"):
        raise bad_request(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if meta["name"] != name:
        raise bad_request(
            f"the name of the object ({meta['name']}) does not match the name on the URL ({name})"
        )
    if resource.namespaced and meta.get("namespace") != stored["namespace"]:
        if "namespace" in changed["metadata"]:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        meta["namespace"] = stored["namespace"]
    if meta.get("uid", stored["uid"]) != stored["uid"]:
        problem = Problems()
        problem.invalid("metadata.uid", meta["uid"], "field is immutable")
        raise invalid(resource, name, problem.found)
    key = f"{stored['namespace']}/{name}" if resource.namespaced else name
    check_preconditions(resource, key, old, meta)
    obj = store_events.as_stored(resource, obj)
    kept = stored_type(resource)
    return store_events.as_seen_by(
        resource, store_writes.replace(store, kept, old, obj, subresource, options)
    )


def _apply(
    store: Store,
    resource: ResourceType,
    name: str,
    namespace: str | None,
    old: Json | None,
    body: Any,
    subresource: str | None,
    force: bool,
    options: WriteOptions,
) -> tuple[Json, bool]:
    if not options.field_manager:
        raise invalid_options(
            "PatchOptions",
            Cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager"),
        )
    if not isinstance(body, dict):
        raise bad_request("error decoding YAML: the patch is no object")
    config = {**body, "metadata": dict(body.get("metadata") or {})}
    if config["metadata"].get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    # Refuses what is no object of this type before anybody owns a part of it.
    store_writes.decode(resource, config, options)
    if old is None:
        if subresource is not None:
            raise not_found(resource, name)
        config["metadata"].setdefault("name", name)
        if namespace and resource.namespaced:
            config["metadata"].setdefault("namespace", namespace)
    applied = WriteOptions(options.dry_run, options.field_manager, "Ignore", options.warnings, applied=True)
    before = store_events.as_seen_by(resource, old) if old is not None else None
    merged = store_apply.apply(
        resource,
        before,
        config,
        options.field_manager,
        force=force,
        now=store.now_text(),
        subresource=subresource,
    )
    if old is None:
        return store_writes.create(store, merged, resource, applied), True
    return _put(store, resource, old, before, merged, name, subresource, applied), False
