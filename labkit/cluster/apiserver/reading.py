"""GET: single objects, lists with paging and versions, their views (spec 20 §7.1)."""

from __future__ import annotations

import base64
import json
from typing import Any

from labkit.cluster import store_events
from labkit.cluster.apiserver import tables
from labkit.cluster.apiserver.requests import Accepted, Request, Target
from labkit.cluster.apiserver.responses import Response, bare, encode, json_response, list_body, yaml_response
from labkit.cluster.store import Store
from labkit.cluster.store_errors import (
    Cause,
    bad_request,
    expired,
    invalid_options,
    no_such_resource,
    not_found,
    too_large_version,
)
from labkit.cluster.store_keys import check_version_text, key_of, object_key
from labkit.cluster.store_selectors import Match, compile_selectors
from labkit.cluster.store_types import ResourceType, stored_type

Json = dict[str, Any]
_STREAMS = ("attach", "exec", "portforward")
_EXPIRED_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


def get_one(store: Store, target: Target, request: Request, accepted: Accepted) -> Response:
    """One object, its status, or its scale."""
    assert target.name is not None
    resource = target.resource
    if "get" not in resource.verbs:
        from labkit.cluster.store_errors import method_not_allowed

        raise method_not_allowed()
    check_future(store, request.query.get("resourceVersion"))
    found = store.peek(resource, target.name, target.namespace)
    if found is None:
        raise not_found(resource, target.name)
    if target.subresource == "scale":
        from labkit.cluster.store_scale import scale_of

        scale = scale_of(resource, found)
        if accepted.view == "Table":
            return json_response(tables.scale_table(scale, store.clock.now(), _include(request)))
        return json_response(scale)
    if target.subresource is not None:
        refuse_streams(target)
        known = resource.subresource(target.subresource)
        if known is None or "get" not in known.verbs:
            raise no_such_resource()
        if target.subresource == "log":
            raise bad_request(
                f'container "{(found["spec"].get("containers") or [{}])[0].get("name", "")}" in pod "{target.name}" keeps '
                "no log: containers are simulated here"
            )
    return view(store, resource, store_events.as_seen_by(resource, found), request, accepted)


def refuse_streams(target: Target) -> None:
    """ApiError 400 for what needs a real container: `kubectl exec`, `attach`, `cp` and `port-forward`."""
    if target.resource.kind == "Pod" and target.subresource in _STREAMS:
        raise bad_request(
            f'pod "{target.name}" has no container to connect to ({target.subresource}): containers are simulated here'
        )


def view(
    store: Store, resource: ResourceType, obj: Json, request: Request, accepted: Accepted, status: int = 200
) -> Response:
    """One object in the form that the client asked for."""
    if accepted.view == "Table":
        stored = store_events.as_stored(resource, obj)
        meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        table = tables.table(resource, [stored], meta, store.clock.now(), _include(request))
        return json_response(table, status)
    if accepted.view == "PartialObjectMetadata":
        return json_response(tables.partial(obj), status)
    if accepted.form == "yaml":
        return yaml_response(obj, status)
    return json_response(obj, status, pretty=request.flag("pretty"))


def _include(request: Request) -> str:
    include = request.query.get("includeObject", "") or "Metadata"
    if include not in ("Metadata", "Object", "None"):
        raise bad_request(f'unrecognized includeObject value: "{include}"')
    return include


def get_list(store: Store, target: Target, request: Request, accepted: Accepted) -> Response:
    """A list, or a page of it."""
    resource, query = target.resource, request.query
    if "list" not in resource.verbs:
        from labkit.cluster.store_errors import method_not_allowed

        raise method_not_allowed()
    match = compile_selectors(resource, query.get("labelSelector"), query.get("fieldSelector"))
    namespace = target.namespace
    limit = request.integer("limit") or 0
    with store.lock:
        version, start = _position(store, request)
        objects = _select(store, resource, namespace, match, version, start, query.get("fieldSelector"))
        version = store.version if version is None else version
        meta: Json = {"resourceVersion": str(version)}
        if 0 < limit < len(objects):
            last = object_key(stored_type(resource), objects[limit - 1])
            meta["continue"] = _token(version, last + "\0")
            if match is None:
                meta["remainingItemCount"] = len(objects) - limit
            objects = objects[:limit]
        return _list_view(store, resource, objects, meta, request, accepted)


def _select(
    store: Store,
    resource: ResourceType,
    namespace: str | None,
    match: Match | None,
    version: int | None,
    start: str,
    fields: str | None,
) -> list[Json]:
    from labkit.cluster.store_selectors import selectable_name

    name = selectable_name(resource, fields)
    if name is not None and version is None and (namespace or not resource.namespaced):
        found = store.objects(resource).get(key_of(stored_type(resource), name, namespace))
        return [found] if found is not None and (match is None or match(found)) else []
    objects = store.select(resource, namespace, match, at=version)
    if start:
        kept = stored_type(resource)
        objects = [o for o in objects if object_key(kept, o) >= start]
    return objects


def _list_view(
    store: Store,
    resource: ResourceType,
    objects: list[Json],
    meta: Json,
    request: Request,
    accepted: Accepted,
) -> Response:
    if accepted.view == "Table":
        return json_response(tables.table(resource, objects, meta, store.clock.now(), _include(request)))
    seen = [store_events.as_seen_by(resource, o) for o in objects]
    if accepted.view == "PartialObjectMetadata":
        items = [tables.partial(o) for o in seen]
        body = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": meta,
            "items": items,
        }
        return json_response(body)
    if accepted.form == "yaml":
        listed = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": meta}
        return yaml_response({**listed, "items": [bare(o) for o in seen]})
    return Response(200, list_body(resource.kind, resource.api_version, meta, seen))


def _position(store: Store, request: Request) -> tuple[int | None, str]:
    """The version to read at (None: newest), and the key to start from."""
    query = request.query
    given, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    token = query.get("continue", "")
    if match and not given:
        _bad_match("resourceVersionMatch is forbidden unless resourceVersion is provided")
    if match not in ("", "Exact", "NotOlderThan"):
        problem = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
        raise invalid_options("ListOptions", Cause("FieldValueNotSupported", problem, "resourceVersionMatch"))
    if match == "Exact" and given == "0":
        _bad_match('resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    if token:
        if match:
            _bad_match("resourceVersionMatch is forbidden when continue is provided")
        if given not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        version, start = _read_token(token)
        if version < 0:
            return None, start
        lost = store.history(_resource_of(request)).lost_version
        if version < lost:
            raise expired(_EXPIRED_CONTINUE, metadata={"continue": _token(-1, start)})
        return min(version, store.version), start
    if not given:
        return None, ""
    number = check_version_text(given)
    check_future(store, given)
    if match == "Exact":
        if number < store.history(_resource_of(request)).lost_version:
            raise expired()
        return number, ""
    return None, ""


def _resource_of(request: Request) -> ResourceType:
    from labkit.cluster.apiserver.requests import parse_path

    return parse_path(request.path).resource


def _bad_match(why: str) -> None:
    raise invalid_options(
        "ListOptions", Cause("FieldValueForbidden", f"Forbidden: {why}", "resourceVersionMatch")
    )


def check_future(store: Store, text: str | None) -> None:
    """ApiError 504 for a resourceVersion that does not exist yet, 400 for what is none."""
    if text and check_version_text(text) > store.version:
        raise too_large_version(int(text), store.version)


def _token(version: int, start: str) -> str:
    raw = encode({"v": "meta.k8s.io/v1", "rv": version, "start": start})
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _quoted(byte: int) -> str:
    """A character as Go quotes it."""
    return f"'{chr(byte)}'" if 0x20 <= byte < 0x7F else f"'\\u{byte:04x}'"


def _read_token(token: str) -> tuple[int, str]:
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        try:
            parsed = json.loads(raw.decode("latin-1"))
        except ValueError:
            what = "unexpected end of JSON input" if not raw else f"invalid character {_quoted(raw[0])}"
            raise ValueError(what + (" looking for beginning of value" if raw else "")) from None
        version, start = parsed["rv"], parsed["start"]
        if parsed["v"] != "meta.k8s.io/v1" or not isinstance(version, int) or not isinstance(start, str):
            raise ValueError("unexpected content")
    except (ValueError, KeyError, TypeError, RecursionError) as e:
        raise bad_request(f"invalid continue token: continue key is not valid: {e}") from None
    return version, start
