"""POST, PUT, PATCH, DELETE and the subresources (spec 20 §8)."""

from __future__ import annotations

from typing import Any

from labkit.cluster import store_deletion, store_events, store_patching, store_pods, store_writes
from labkit.cluster.apiserver.bodies import parse_object, parse_patch
from labkit.cluster.apiserver.reading import refuse_streams, view
from labkit.cluster.apiserver.requests import Accepted, Request, Target
from labkit.cluster.apiserver.responses import Response, json_response, list_body
from labkit.cluster.store import Store
from labkit.cluster.store_errors import (
    bad_request,
    method_not_allowed,
    no_such_resource,
    success,
)
from labkit.cluster.store_metadata import WriteOptions
from labkit.cluster.store_selectors import compile_selectors
from labkit.cluster.store_types import POD, ResourceType

Json = dict[str, Any]


def read_object(request: Request, target: Target, kind: str, api_version: str) -> Json:
    """The object of a POST or PUT body, of the expected kind; names and namespace agree with the URL. ApiError 400, 415."""
    body = parse_object(request.body, request.headers.get("content-type"), kind)
    given_kind, given_version = body.get("kind") or kind, body.get("apiVersion") or api_version
    if given_kind != kind:
        short = str(given_version).rpartition("/")[2]
        raise bad_request(
            f'{given_kind} in version "{given_version}" cannot be handled as a {kind}: converting '
            f"({short}.{given_kind}) to ({_internal(api_version)}.{kind}): unknown conversion"
        )
    if given_version != api_version and kind != "Eviction":
        raise bad_request(
            f"the API version in the data ({given_version}) does not match the expected API version ({api_version})"
        )
    meta = body.get("metadata")
    if meta is None:
        meta = {}
    if not isinstance(meta, dict):
        raise bad_request(
            f'{kind} in version "{api_version.rpartition("/")[2]}" cannot be handled as a {kind}: json: cannot unmarshal '
            f"value into Go struct field {kind}.metadata of type v1.ObjectMeta"
        )
    meta = dict(meta)
    if target.namespace is not None:
        if meta.get("namespace") not in (None, "", target.namespace):
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        meta["namespace"] = target.namespace
    return {**body, "kind": kind, "apiVersion": api_version, "metadata": meta}


def _internal(api_version: str) -> str:
    group = api_version.rpartition("/")[0]
    return group.split(".")[0] if group else "core"


def post(store: Store, target: Target, request: Request, accepted: Accepted) -> Response:
    """Create an object, or use a subresource that is created."""
    resource, options = target.resource, request.write_options()
    if target.name is not None:
        return _post_subresource(store, target, request)
    if "create" not in resource.verbs:
        raise method_not_allowed()
    if resource.namespaced and target.namespace is None:
        raise method_not_allowed()
    body = read_object(request, target, resource.kind, resource.api_version)
    if resource.kind == "Binding":
        return _bind(store, target, body, str(body["metadata"].get("name") or ""), request)
    found = store.create(body, resource=resource, options=options)
    return view(store, resource, found, request, accepted, 201)


def _post_subresource(store: Store, target: Target, request: Request) -> Response:
    resource, name = target.resource, target.name or ""
    known = resource.subresource(target.subresource or "")
    if target.subresource is None:
        raise method_not_allowed()
    if known is None:
        if store.peek(resource, name, target.namespace) is not None:
            refuse_streams(target)
        raise no_such_resource()
    if "create" not in known.verbs:
        raise method_not_allowed()
    if resource is POD and known.name == "binding":
        body = read_object(request, target, "Binding", "v1")
        if store.peek(POD, name, target.namespace) is not None and body["metadata"].get("name") not in (
            None,
            "",
            name,
        ):
            raise bad_request("name in URL does not match name in Binding object")
        return _bind(store, target, body, name, request)
    if resource is POD and known.name == "eviction":
        return _evict(store, target, request)
    from labkit.cluster.apiserver.reviews import token_request

    return json_response(
        token_request(
            store, target, read_object(request, target, "TokenRequest", "authentication.k8s.io/v1")
        ),
        201,
    )


def _bind(store: Store, target: Target, body: Json, name: str, request: Request) -> Response:
    meta = body["metadata"]
    namespace = target.namespace or "default"
    if not name:
        raise bad_request("name must be provided")
    if store.peek(POD, name, namespace) is not None:
        node = store_pods.check_target(body.get("target"))
    else:
        node = (
            str((body.get("target") or {}).get("name") or "-")
            if isinstance(body.get("target"), dict)
            else "-"
        )
    annotations, labels = meta.get("annotations"), meta.get("labels")
    for value in (annotations, labels):
        if value is not None and not isinstance(value, dict):
            raise bad_request(
                "json: cannot unmarshal value into Go struct field Binding.metadata of type map[string]string"
            )
    store.bind(
        namespace,
        name,
        meta.get("uid"),
        node,
        annotations=annotations,
        labels=labels,
        topology=target.name is not None,
        options=request.write_options(),
    )
    return json_response(success(), 201)


def _evict(store: Store, target: Target, request: Request) -> Response:
    body = read_object(request, target, "Eviction", "policy/v1")
    name = target.name or ""
    if body["metadata"].get("name") not in (None, "", name):
        raise bad_request("name in URL does not match name in Eviction object")
    delete_options = store_deletion.check_options(body.get("deleteOptions") or {})
    options = request.write_options()
    if "All" in (delete_options.get("dryRun") or ()):
        options = WriteOptions(True, options.field_manager)
    store.evict(
        target.namespace or "default",
        name,
        delete_options.get("gracePeriodSeconds"),
        delete_options.get("preconditions"),
        options=options,
    )
    return json_response(success(), 201)


def put(store: Store, target: Target, request: Request, accepted: Accepted) -> Response:
    """Replace an object or a part of it."""
    resource, name, sub = target.resource, target.name, target.subresource
    if name is None or ("update" not in resource.verbs):
        raise method_not_allowed()
    if sub is not None:
        known = resource.subresource(sub)
        if known is None:
            raise no_such_resource()
        if "update" not in known.verbs:
            raise method_not_allowed()
    kind, api_version = (
        ("Scale", "autoscaling/v1") if sub == "scale" else (resource.kind, resource.api_version)
    )
    body = read_object(request, target, kind, api_version)
    given = body["metadata"].get("name")
    if given and given != name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
    body["metadata"]["name"] = name
    with store.lock:
        found, created = store_writes.update(store, body, sub, resource, request.write_options())
        if sub == "scale":
            return json_response(found)
        return view(store, resource, found, request, accepted, 201 if created else 200)


def patch(store: Store, target: Target, request: Request, accepted: Accepted) -> Response:
    """Change an object or a part of it."""
    resource, name, sub = target.resource, target.name, target.subresource
    if name is None or "patch" not in resource.verbs:
        raise method_not_allowed()
    if sub is not None:
        known = resource.subresource(sub)
        if known is None:
            raise no_such_resource()
        if "patch" not in known.verbs:
            raise method_not_allowed()
    body, patch_type = parse_patch(request.body, request.headers.get("content-type"))
    options = request.write_options()
    if patch_type == "apply" and not request.query.get("fieldManager"):
        options = WriteOptions(options.dry_run, "", options.field_validation, options.warnings)
    with store.lock:
        found, created = store_patching.patch(
            store,
            resource,
            name,
            target.namespace,
            body,
            patch_type,
            sub,
            force=request.flag("force"),
            options=options,
        )
        if sub == "scale":
            return json_response(found)
        return view(store, resource, found, request, accepted, 201 if created else 200)


def _delete_options(request: Request) -> tuple[int | None, Json | None, str | None, bool]:
    body: Json = {}
    if request.body.strip():
        body = store_deletion.check_options(
            parse_object(request.body, request.headers.get("content-type"), "DeleteOptions")
        )
    grace = body.get("gracePeriodSeconds")
    if grace is None:
        grace = request.integer("gracePeriodSeconds")
    preconditions = body.get("preconditions")
    if preconditions is not None and not isinstance(preconditions, dict):
        raise bad_request(
            "json: cannot unmarshal value into Go struct field DeleteOptions.preconditions of type v1.Preconditions"
        )
    propagation = body.get("propagationPolicy") or request.query.get("propagationPolicy")
    if not propagation:
        orphan = body.get("orphanDependents")
        propagation = None if orphan is None else "Orphan" if orphan else "Background"
    return grace, preconditions, propagation, "All" in (body.get("dryRun") or ())


def delete(store: Store, target: Target, request: Request, accepted: Accepted) -> Response:
    """Delete an object, or a collection."""
    resource = target.resource
    if target.subresource is not None:
        raise method_not_allowed()
    if ("delete" if target.name is not None else "deletecollection") not in resource.verbs:
        raise method_not_allowed()
    grace, preconditions, propagation, dry_run = _delete_options(request)
    options = request.write_options()
    if dry_run:
        options = WriteOptions(True, options.field_manager)
    if target.name is None:
        return _delete_many(store, target, request, grace, propagation, options)
    with store.lock:
        before = store.peek(resource, target.name, target.namespace)
        found = store.delete(
            resource, target.name, target.namespace, grace, preconditions, propagation, options=options
        )
        gone = store.peek(resource, target.name, target.namespace) is None
    found = store_events.as_seen_by(resource, found)
    # These answer with the object even when it is gone at once.
    if resource.kind in _RETURNS_OBJECT:
        return view(store, resource, found, request, accepted)
    if not gone and not options.dry_run:
        return view(store, resource, found, request, accepted)
    details = {
        "name": target.name,
        **({"group": resource.group} if resource.group else {}),
        "kind": resource.plural,
        "uid": (before or found)["metadata"]["uid"],
    }
    return json_response(success(details, code=None))


_RETURNS_OBJECT: frozenset[str] = frozenset(
    {
        "Pod",
        "Namespace",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "ServiceAccount",
        "StorageClass",
        "ResourceQuota",
        "PodTemplate",
        "Service",
        "ReplicationController",
    }
)


def _delete_many(
    store: Store,
    target: Target,
    request: Request,
    grace: int | None,
    propagation: str | None,
    options: WriteOptions,
) -> Response:
    resource: ResourceType = target.resource
    match = compile_selectors(
        resource, request.query.get("labelSelector"), request.query.get("fieldSelector")
    )
    with store.lock:
        objects = store.select(resource, target.namespace, match)
        found = store_deletion.delete_collection(store, resource, objects, grace, propagation, options)
        seen = [store_events.as_seen_by(resource, o) for o in found]
        meta = {"resourceVersion": store.resource_version}
        return Response(200, list_body(resource.kind, resource.api_version, meta, seen))
