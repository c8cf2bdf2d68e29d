"""OpenAPI documents made from the type table: what `apply`, `create` and `explain` of kubectl read (spec 20 §4.4)."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from importlib import resources as package_files
from typing import Any

import msgspec

from labkit.cluster.store_schema import is_struct, struct
from labkit.cluster.store_types import GROUP_VERSIONS, RESOURCES, ResourceType

Json = dict[str, Any]
_INFO = {"title": "Kubernetes", "version": "v1.36.2"}
_PREFIX = "io.k8s."
_SCALARS: dict[str, Json] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "bytes": {"type": "string", "format": "byte"},
    "api.resource.Quantity": {"type": "string"},
    "util.intstr.IntOrString": {"type": "string", "format": "int-or-string"},
    "meta.v1.Time": {"type": "string", "format": "date-time"},
    "meta.v1.MicroTime": {"type": "string", "format": "date-time"},
    "meta.v1.Duration": {"type": "string"},
    "runtime.RawExtension": {"type": "object"},
    "meta.v1.FieldsV1": {"type": "object"},
    "time.Time": {"type": "string"},
}


def _path_of(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


@lru_cache(maxsize=1)
def index() -> Json:
    """`/openapi/v3`: the documents, each with a hash, by which clients cache."""
    paths = {}
    for group, version in GROUP_VERSIONS:
        path = _path_of(group, version)
        digest = hashlib.sha256(document(group, version)).hexdigest().upper()
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return {"paths": paths}


@lru_cache(maxsize=64)
def document(group: str, version: str) -> bytes:
    """The OpenAPI v3 document of a group version, as JSON."""
    members = [r for r in RESOURCES if (r.group, r.version) == (group, version)]
    schemas: Json = {}
    paths: Json = {}
    for resource in members:
        _add_schema(schemas, resource.schema.name, "#/components/schemas/")
        for path, operations in _paths(resource).items():
            paths[path] = operations
    for resource in members:
        _name_kind(schemas, resource)
    return msgspec.json.encode(
        {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": schemas}},
        order="sorted",
    )


@lru_cache(maxsize=1)
def swagger() -> bytes:
    """`/openapi/v2` as JSON."""
    definitions: Json = {}
    paths: Json = {}
    for resource in RESOURCES:
        _add_schema(definitions, resource.schema.name, "#/definitions/")
        _name_kind(definitions, resource)
        paths.update(_paths(resource, v2=True))
    return msgspec.json.encode(
        {"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": definitions}, order="sorted"
    )


PROTOBUF_V2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


def swagger_protobuf() -> bytes:
    """`/openapi/v2` as kubectl asks for it: a Document without definitions.

    kubectl reads it only for kinds that v3 does not have, that is for those that this API does not know.
    """

    def field(number: int, content: bytes) -> bytes:
        return bytes((number << 3 | 2, len(content))) + content

    info = field(1, _INFO["title"].encode()) + field(2, _INFO["version"].encode())
    return field(1, b"2.0") + field(2, info) + field(8, b"")


def _name_kind(schemas: Json, resource: ResourceType) -> None:
    schemas[_schema_name(resource.schema.name)]["x-kubernetes-group-version-kind"] = [
        {"group": resource.group, "kind": resource.kind, "version": resource.version}
    ]


def _paths(resource: ResourceType, *, v2: bool = False) -> Json:
    base = f"/{_path_of(resource.group, resource.version)}"
    if resource.namespaced:
        base += "/namespaces/{namespace}"
    base += f"/{resource.plural}"
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    names = {
        "get": ("get", "get"),
        "update": ("put", "put"),
        "patch": ("patch", "patch"),
        "delete": ("delete", "delete"),
    }
    single = {
        method: _operation(action, kind, v2=v2)
        for verb, (method, action) in names.items()
        if verb in resource.verbs
    }
    many = {}
    if "list" in resource.verbs:
        many["get"] = _operation("list", kind, v2=v2)
    if "create" in resource.verbs:
        many["post"] = _operation("post", kind, v2=v2)
    found = {base: many} if many else {}
    if single:
        found[f"{base}/{{name}}"] = single
    return found


def _operation(action: str, kind: Json, *, v2: bool) -> Json:
    names = ["pretty"]
    if action in ("post", "put", "patch"):
        names += ["dryRun", "fieldManager", "fieldValidation"] + (["force"] if action == "patch" else [])
    parameters = []
    for name in names:
        schema = {"type": "boolean" if name == "force" else "string", "uniqueItems": True}
        parameters.append({"name": name, "in": "query", **(schema if v2 else {"schema": schema})})
    return {
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": kind,
    }


def _schema_name(name: str) -> str:
    if name.startswith("meta."):
        return f"{_PREFIX}apimachinery.pkg.apis.{name}"
    return f"{_PREFIX}api.{name}"


def _add_schema(schemas: Json, name: str, prefix: str) -> None:
    full = _schema_name(name)
    if full in schemas:
        return
    shape = struct(name)
    schema: Json = {"type": "object"}
    schemas[full] = schema
    told = descriptions()
    if name in told:
        schema["description"] = told[name]
    properties: Json = {}
    required = []
    for key, field in shape.fields.items():
        prop = _type_schema(schemas, field.type, prefix)
        text = told.get(f"{name}.{key}") or _GENERAL.get(key)
        if text:
            prop = {"description": text, **prop}
        if field.patch_strategy:
            prop["x-kubernetes-patch-strategy"] = field.patch_strategy
        if field.merge_key:
            prop["x-kubernetes-patch-merge-key"] = field.merge_key
        properties[key] = prop
        if not field.omitempty and not field.ptr and key not in ("metadata", "spec", "status"):
            required.append(key)
    schema["properties"] = properties
    if required:
        schema["required"] = sorted(required)


_GENERAL = {
    "apiVersion": "The API group and version that this object is written in.",
    "kind": "The kind of this object.",
    "metadata": "Name, namespace, labels and what the server keeps about the object.",
    "spec": "What is wanted.",
    "status": "What is.",
}


def _type_schema(schemas: Json, name: str, prefix: str) -> Json:
    if name.startswith("[]"):
        return {"type": "array", "items": _type_schema(schemas, name[2:], prefix)}
    if name.startswith("map[string]"):
        return {"type": "object", "additionalProperties": _type_schema(schemas, name[11:], prefix)}
    if name in _SCALARS:
        return dict(_SCALARS[name])
    if not is_struct(name):
        return {"type": "object"}
    _add_schema(schemas, name, prefix)
    reference = {"$ref": prefix + _schema_name(name)}
    return reference if prefix == "#/definitions/" else {"allOf": [reference]}


@lru_cache(maxsize=1)
def descriptions() -> dict[str, str]:
    """What `kubectl explain` says of types and fields, as far as the course needs it."""
    text = (
        package_files.files("labkit.cluster")
        .joinpath("data/api-descriptions.json")
        .read_text(encoding="utf-8")
    )
    found: dict[str, str] = json.loads(text)
    return found
