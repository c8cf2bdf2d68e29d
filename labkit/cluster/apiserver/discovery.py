"""What this API has: plain and aggregated discovery (spec 20 §4.1)."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from typing import Any

from labkit.cluster.store_types import GROUP_VERSIONS, RESOURCES, ResourceType

Json = dict[str, Any]
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERSION: Json = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.2",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "2026-06-01T00:00:00Z",
    "goVersion": "go1.26.6",
    "compiler": "gc",
    "platform": "linux/amd64",
}


def api_versions(address: str) -> Json:
    """`/api`."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def _group(name: str) -> Json | None:
    versions = [{"groupVersion": f"{g}/{v}", "version": v} for g, v in GROUP_VERSIONS if g == name and g]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]} if versions else None


def groups() -> Json:
    """`/apis`."""
    names = dict.fromkeys(g for g, _ in GROUP_VERSIONS if g)
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(n) for n in names]}


def group(name: str) -> Json | None:
    """`/apis/GROUP`."""
    found = _group(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **found} if found else None


def _members(group_name: str, version: str) -> list[ResourceType]:
    return sorted(
        (r for r in RESOURCES if (r.group, r.version) == (group_name, version)), key=lambda r: r.plural
    )


@lru_cache(maxsize=64)
def resources(group_name: str, version: str) -> Json | None:
    """`/apis/GROUP/VERSION` or `/api/v1`."""
    found = _members(group_name, version)
    if not found:
        return None
    rows: list[Json] = []
    for r in found:
        row: Json = {
            "name": r.plural,
            "singularName": r.singular,
            "namespaced": r.namespaced,
            "kind": r.kind,
            "verbs": list(r.verbs),
        }
        if r.short_names:
            row["shortNames"] = list(r.short_names)
        if r.categories:
            row["categories"] = list(r.categories)
        if not r.create_only:
            row["storageVersionHash"] = _hash(f"{r.group}/{r.version}/{r.kind}")
        rows.append(row)
        for s in r.subresources:
            sub: Json = {"name": f"{r.plural}/{s.name}", "singularName": "", "namespaced": r.namespaced}
            if s.group:
                sub.update(group=s.group, version=s.version)
            rows.append({**sub, "kind": s.kind, "verbs": list(s.verbs)})
    group_version = f"{group_name}/{version}" if group_name else version
    # The core list has no apiVersion, as on the real server.
    head = {
        "kind": "APIResourceList",
        **({"apiVersion": "v1"} if group_name else {}),
        "groupVersion": group_version,
    }
    return {**head, "resources": rows}


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


@lru_cache(maxsize=2)
def aggregated(*, core: bool) -> Json:
    """`/api` or `/apis` as one APIGroupDiscoveryList."""
    names = [""] if core else list(dict.fromkeys(g for g, _ in GROUP_VERSIONS if g))
    items = []
    for name in names:
        versions = [
            {"version": v, "resources": [_aggregated_row(r) for r in _members(g, v)], "freshness": "Current"}
            for g, v in GROUP_VERSIONS
            if g == name
        ]
        items.append({"metadata": {"name": name} if name else {}, "versions": versions})
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _aggregated_row(r: ResourceType) -> Json:
    row: Json = {
        "resource": r.plural,
        "responseKind": {"group": "", "version": "", "kind": r.kind},
        "scope": "Namespaced" if r.namespaced else "Cluster",
        "singularResource": r.singular,
        "verbs": list(r.verbs),
    }
    if r.short_names:
        row["shortNames"] = list(r.short_names)
    if r.categories:
        row["categories"] = list(r.categories)
    if r.subresources:
        row["subresources"] = [
            {
                "subresource": s.name,
                "responseKind": {"group": s.group, "version": s.version, "kind": s.kind},
                "verbs": list(s.verbs),
            }
            for s in r.subresources
        ]
    return row


def etag(document: Any) -> str:
    """An ETag of a document."""
    import msgspec

    return '"' + hashlib.sha256(msgspec.json.encode(document)).hexdigest().upper() + '"'


def root_paths() -> Json:
    """`/`."""
    paths = ["/api", "/api/v1", "/apis"]
    for name, version in GROUP_VERSIONS:
        if name:
            paths += [f"/apis/{name}", f"/apis/{name}/{version}"]
    paths += ["/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version"]
    return {"paths": list(dict.fromkeys(paths))}
