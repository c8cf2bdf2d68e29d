"""A request as the API sees it: what its path, query and headers ask for (spec 20 §4, §7)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl

from labkit.cluster.apiserver.auth import User
from labkit.cluster.store_errors import ApiError, Cause, invalid_options
from labkit.cluster.store_metadata import WriteOptions
from labkit.cluster.store_types import GROUP_VERSIONS, ResourceType, by_plural

_TRUE = ("1", "t", "T", "true", "TRUE", "True")


@dataclass
class Target:
    """What a resource path names."""

    resource: ResourceType
    namespace: str | None = None
    name: str | None = None
    subresource: str | None = None
    watch_path: bool = False


class PathNotFound(Exception):
    """A path outside of the API: answered as text, 404."""


@dataclass
class Request:
    """One HTTP request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    user: User
    body: bytes = b""
    warnings: list[str] = field(default_factory=list)

    def flag(self, name: str) -> bool:
        """A boolean query parameter, in any of the spellings that clients use."""
        return self.query.get(name, "") in _TRUE

    def write_options(self) -> WriteOptions:
        """dryRun, fieldManager and fieldValidation. ApiError 422 for values that there are not."""
        dry_run, validation = self.query.get("dryRun", ""), self.query.get("fieldValidation", "") or "Warn"
        kind = {"POST": "CreateOptions", "PATCH": "PatchOptions", "DELETE": "DeleteOptions"}.get(
            self.method, "UpdateOptions"
        )
        if dry_run not in ("", "All"):
            problem = f'Unsupported value: "{dry_run}": supported values: "All"'
            raise invalid_options(kind, Cause("FieldValueNotSupported", problem, "dryRun"))
        if validation not in ("Ignore", "Warn", "Strict"):
            problem = f'Unsupported value: "{validation}": supported values: "Ignore", "Warn", "Strict"'
            raise invalid_options(kind, Cause("FieldValueNotSupported", problem, "fieldValidation"))
        return WriteOptions(bool(dry_run), self.field_manager(), validation, self.warnings)

    def field_manager(self) -> str:
        """The manager named in the query, else the client program's name."""
        named = self.query.get("fieldManager")
        if named:
            if len(named) > 128:
                raise invalid_options(
                    "PatchOptions",
                    Cause("FieldValueTooLong", "Too long: may not be more than 128 bytes", "fieldManager"),
                )
            return named
        return self.headers.get("user-agent", "").split("/")[0][:128] or "unknown"

    def integer(self, name: str) -> int | None:
        """A whole-number query parameter. ApiError 400 when it is none."""
        text = self.query.get(name)
        if not text:
            return None
        try:
            return int(text)
        except ValueError:
            message = f'strconv.ParseInt: parsing "{text}": invalid syntax'
            raise ApiError(400, "BadRequest", message) from None


def parse_query(raw: bytes) -> dict[str, str]:
    """The query parameters; of repeated ones the first counts."""
    found: dict[str, str] = {}
    for key, value in parse_qsl(raw.decode("latin-1"), keep_blank_values=True):
        found.setdefault(key, value)
    return found


def parse_path(path: str) -> Target:
    """The resource, object and subresource that a path names. PathNotFound, ApiError 404."""
    parts = [p for p in path.split("/") if p]
    if len(parts) >= 3 and parts[0] == "api" and parts[1] == "v1":
        group, version, rest = "", "v1", parts[2:]
    elif len(parts) >= 4 and parts[0] == "apis":
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise PathNotFound
    if (group, version) not in GROUP_VERSIONS:
        raise PathNotFound
    watch_path = rest[0] == "watch"
    if watch_path:
        rest = rest[1:]
    namespace = None
    if (
        len(rest) >= 3
        and rest[0] == "namespaces"
        and not (len(rest) == 3 and rest[2] in ("status", "finalize"))
    ):
        namespace, rest = rest[1], rest[2:]
    if not 1 <= len(rest) <= 3:
        raise _unknown()
    resource = by_plural(group, version, rest[0])
    if resource is None or (namespace is not None and not resource.namespaced):
        raise _unknown()
    name = rest[1] if len(rest) > 1 else None
    if name is not None and resource.namespaced and namespace is None:
        raise _unknown()
    return Target(resource, namespace, name, rest[2] if len(rest) > 2 else None, watch_path)


def _unknown() -> ApiError:
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


@dataclass(frozen=True)
class Accepted:
    """What the client wants to see: `json` or `yaml`; plain, as `Table`, or as `PartialObjectMetadata`."""

    form: str = "json"
    view: str = ""
    discovery: str = ""


@lru_cache(maxsize=256)
def negotiate(accept: str | None) -> Accepted:
    """The first acceptable form that this server can give. ApiError 406 when there is none."""
    if not accept:
        return Accepted()
    for part in accept.split(","):
        media, *parameters = [p.strip() for p in part.split(";")]
        values: dict[str, Any] = dict(p.split("=", 1) for p in parameters if "=" in p)
        media = media.lower()
        if media in ("application/json", "*/*", "application/*", "application/vnd.kubernetes.protobuf"):
            view = values.get("as", "")
            if view in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList"):
                if values.get("g") == "meta.k8s.io" and values.get("v") in ("v1", "v1beta1"):
                    return Accepted("json", "Table" if view == "Table" else "PartialObjectMetadata")
                continue
            if view == "APIGroupDiscoveryList":
                if values.get("g") == "apidiscovery.k8s.io" and values.get("v") == "v2":
                    return Accepted("json", "", "v2")
                continue
            if not view:
                return Accepted()
        elif media == "application/yaml":
            return Accepted("yaml")
    raise ApiError(
        406,
        "NotAcceptable",
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml",
        {},
    )
