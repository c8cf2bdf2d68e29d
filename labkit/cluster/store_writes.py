"""Create and update: read, default, admit, validate, commit (spec 20 §8.1, §8.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labkit.cluster import store_admission, store_events, store_strategy, store_validation
from labkit.cluster.store_defaults import set_defaults
from labkit.cluster.store_errors import ApiError, already_exists, bad_request, no_such_resource, not_found
from labkit.cluster.store_metadata import (
    WriteOptions,
    changed,
    check_finalizers,
    check_preconditions,
    keep_owned,
    prepare_new,
    spec_changed,
)
from labkit.cluster.store_schema import DecodeError
from labkit.cluster.store_types import ResourceType, by_kind, stored_type

if TYPE_CHECKING:
    from labkit.cluster.store import Store


def decode(resource: ResourceType, body: Any, options: WriteOptions) -> dict[str, Any]:
    """The body as an object of its resource, copied. ApiError 400 for what does not fit the type."""
    unknown: list[str] = []
    try:
        obj: dict[str, Any] = resource.schema.decode(body, unknown)
    except DecodeError as e:
        raise bad_request(f"{_problem(resource)}{e}") from None
    except RecursionError:
        raise bad_request(f"{_problem(resource)}the object is nested too deeply") from None
    return accepted(resource, obj, unknown, options)


def accepted(
    resource: ResourceType, obj: dict[str, Any], unknown: list[str], options: WriteOptions
) -> dict[str, Any]:
    """A decoded object with its kind and namespace. ApiError 400 for unknown fields, when these are not welcome."""
    if unknown and options.field_validation != "Ignore":
        told = [f'unknown field "{path}"' for path in unknown]
        if options.field_validation == "Strict":
            raise bad_request(f"{_problem(resource)}strict decoding error: {', '.join(told)}")
        options.warnings.extend(told)
    obj["kind"], obj["apiVersion"] = resource.kind, resource.api_version
    if resource.namespaced:
        obj["metadata"].setdefault("namespace", "default")
    else:
        obj["metadata"].pop("namespace", None)
    return obj


def _problem(resource: ResourceType) -> str:
    return f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: '


def resource_of(obj: Any) -> ResourceType:
    """The resource of an object that names its kind. ApiError 400 or 404."""
    if not isinstance(obj, dict) or not isinstance(obj.get("kind"), str):
        raise bad_request("the object has no kind")
    api_version, kind = obj.get("apiVersion"), obj["kind"]
    found = by_kind(str(api_version), kind)
    if found is None or found.create_only:
        raise ApiError(404, "NotFound", f'no matches for kind "{kind}" in version "{api_version}"', {})
    return found


def create(store: Store, body: Any, resource: ResourceType | None, options: WriteOptions) -> dict[str, Any]:
    """Store a new object; returns the stored dict as its resource shows it."""
    resource = resource or resource_of(body)
    obj = decode(resource, body, options)
    prepare_new(resource, obj, store.ids, store.now_text())
    if resource is not stored_type(resource):
        store_validation.check_new_style_event(obj)
        obj = store_events.as_stored(resource, obj)
    kept = stored_type(resource)
    if store.admission:
        store_admission.check_namespace(store, resource, obj)
    set_defaults(kept, obj)
    store_strategy.prepare_create(store, kept, obj)
    if options.field_manager and not options.applied:
        from labkit.cluster import store_apply

        # What admission adds, and a status that the server begins, belongs to nobody.
        seen = {k: v for k, v in obj.items() if k != "status" or not store_strategy.begins_status(kept)}
        store_apply.track(kept, None, seen, options.field_manager, store.now_text())
    if store.admission:
        store_admission.admit_create(store, kept, obj)
    store_validation.validate_create(kept, obj)
    name = obj["metadata"]["name"]
    if store.peek(kept, name, obj["metadata"].get("namespace")) is not None:
        raise already_exists(resource, name)
    if store.admission:
        store_admission.check_create(store, kept, obj)
    if not options.dry_run:
        store_strategy.allocate(store, kept, obj)
        store.commit(kept, None, obj)
    return store_events.as_seen_by(resource, obj)


def update(
    store: Store, body: Any, subresource: str | None, resource: ResourceType | None, options: WriteOptions
) -> tuple[dict[str, Any], bool]:
    """Replace an object; returns it as its resource shows it, and whether that created it."""
    resource = resource or resource_of(body)
    if subresource == "scale":
        from labkit.cluster import store_scale

        return store_scale.update_scale(store, resource, body, options), False
    obj = decode(resource, body, options)
    meta = obj["metadata"]
    name = meta.get("name", "")
    old = store.peek(resource, name, meta.get("namespace"))
    if old is None:
        if resource.create_on_update and subresource is None:
            meta.pop("resourceVersion", None)
            return create(store, body, resource, options), True
        raise not_found(resource, name)
    key = f"{meta['namespace']}/{name}" if resource.namespaced else name
    check_preconditions(resource, key, old, meta)
    obj = store_events.as_stored(resource, obj)
    return store_events.as_seen_by(
        resource, replace(store, stored_type(resource), old, obj, subresource, options)
    ), False


def replace(
    store: Store,
    resource: ResourceType,
    old: dict[str, Any],
    obj: dict[str, Any],
    subresource: str | None,
    options: WriteOptions,
) -> dict[str, Any]:
    """Put a decoded object in the place of `old`, whose preconditions hold; returns the stored dict."""
    if subresource is not None and resource.subresource(subresource) is None:
        raise no_such_resource()
    keep_owned(old, obj)
    set_defaults(resource, obj)
    store_strategy.prepare_update(store, resource, old, obj, subresource)
    if store.admission:
        store_admission.admit_update(store, resource, old, obj, subresource)
    check_finalizers(resource, old, obj)
    store_validation.validate_update(resource, old, obj, subresource)
    if store.admission:
        store_admission.check_update(store, resource, old, obj, subresource)
    if resource.has_generation and subresource != "status" and spec_changed(old, obj):
        obj["metadata"]["generation"] = int(old["metadata"].get("generation", 0)) + 1
    managed = obj["metadata"].get("managedFields") != old["metadata"].get("managedFields")
    if not changed(old, obj) and not (managed and options.field_manager):
        return old
    if options.field_manager and not options.applied:
        from labkit.cluster import store_apply

        store_apply.track(resource, old, obj, options.field_manager, store.now_text(), subresource)
    elif not options.applied and "managedFields" in old["metadata"]:
        obj["metadata"].setdefault("managedFields", old["metadata"]["managedFields"])
    if options.dry_run:
        return obj
    meta = obj["metadata"]
    if (
        "deletionTimestamp" in meta
        and not meta.get("finalizers")
        and not meta.get("deletionGracePeriodSeconds")
    ):
        from labkit.cluster import store_deletion

        return store_deletion.finish(store, resource, old, obj)
    return store.commit(resource, old, obj)
