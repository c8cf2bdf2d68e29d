"""Discovery and OpenAPI: what clients read before they do anything."""

from __future__ import annotations

import json
from pathlib import Path

from .asgi import Api

RECORDED = Path(__file__).parent / "recordings"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def test_resources_as_recorded() -> None:
    """Core, apps and policy of the real server: ours have the same names, verbs, short names and categories."""
    api = Api()
    lists = [json.loads(line) for line in (RECORDED / "resource-lists.jsonl").read_text().splitlines()]
    for recorded in lists:
        version = recorded["groupVersion"]
        url = f"/apis/{version}" if "/" in version else f"/api/{version}"
        ours = {r["name"]: r for r in api.call("GET", url).json["resources"]}
        for row in recorded["resources"]:
            if row["name"] in ours:
                expected = {k: v for k, v in row.items() if k != "storageVersionHash"}
                assert {k: v for k, v in ours[row["name"]].items() if k != "storageVersionHash"} == expected
        missing = {r["name"] for r in recorded["resources"]} - ours.keys()
        # These need a kubelet, or are of no use to anybody.
        assert missing <= {
            "componentstatuses", "nodes/proxy", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "services/proxy",
        }  # fmt: skip


def test_what_kube_scheduler_watches() -> None:
    """The 18 collections of kube-scheduler 1.36 -> 200, all of them."""
    api = Api()
    collections = [
        *(f"/api/v1/{r}" for r in ("pods", "nodes", "namespaces", "services", "replicationcontrollers")),
        *(f"/api/v1/{r}" for r in ("persistentvolumes", "persistentvolumeclaims")),
        *(f"/apis/apps/v1/{r}" for r in ("replicasets", "statefulsets")),
        "/apis/policy/v1/poddisruptionbudgets",
        *(f"/apis/storage.k8s.io/v1/{r}" for r in ("storageclasses", "csinodes", "csidrivers")),
        *(f"/apis/storage.k8s.io/v1/{r}" for r in ("csistoragecapacities", "volumeattachments")),
        *(f"/apis/resource.k8s.io/v1/{r}" for r in ("resourceclaims", "resourceslices", "deviceclasses")),
    ]
    assert len(collections) == 18
    assert {url: api.call("GET", url).status for url in collections} == dict.fromkeys(collections, 200)


def test_both_forms_say_the_same() -> None:
    """Aggregated discovery and the plain lists name the same resources; an ETag saves the second answer."""
    api = Api()
    for root in ("/api", "/apis"):
        answer = api.call("GET", root, accept=AGGREGATED)
        assert answer.headers["content-type"] == AGGREGATED
        for item in answer.json["items"]:
            for version in item["versions"]:
                group = item["metadata"].get("name")
                url = f"/apis/{group}/{version['version']}" if group else f"/api/{version['version']}"
                plain = {r["name"] for r in api.call("GET", url).json["resources"]}
                names = {r["resource"] for r in version["resources"]}
                names |= {
                    f"{r['resource']}/{s['subresource']}"
                    for r in version["resources"]
                    for s in r.get("subresources", ())
                }
                assert names == plain
        again = api.call("GET", root, accept=AGGREGATED, headers=[("if-none-match", answer.headers["etag"])])
        assert (again.status, again.body) == (304, b"")


def test_openapi() -> None:
    """Each document: every kind has a PATCH with fieldValidation, every reference has a schema."""
    api = Api()
    paths = api.call("GET", "/openapi/v3").json["paths"]
    assert "api/v1" in paths
    for entry in paths.values():
        document = api.call("GET", entry["serverRelativeURL"]).json
        schemas = document["components"]["schemas"]
        text = json.dumps(document)
        for reference in set(text.split('"#/components/schemas/')[1:]):
            assert reference.split('"')[0] in schemas
        for operations in document["paths"].values():
            if "patch" in operations:
                assert "fieldValidation" in [p["name"] for p in operations["patch"]["parameters"]]
    pod_spec = api.call("GET", "/openapi/v3/api/v1").json["components"]["schemas"][
        "io.k8s.api.core.v1.PodSpec"
    ]
    assert pod_spec["required"] == ["containers"]
    assert api.call("GET", "/openapi/v2").json["definitions"]


def test_other_paths() -> None:
    """Health, version, metrics, the root; trailing slashes; what there is not."""
    api = Api()
    for path in ("/healthz", "/livez", "/readyz"):
        assert api.call("GET", path).body == b"ok"
    assert api.call("GET", "/version/").json["minor"] == "36"
    assert "/apis/apps/v1" in api.call("GET", "/").json["paths"]
    assert 'apiserver_storage_objects{resource="namespaces"} 4' in api.call("GET", "/metrics").body.decode()
    for path in (
        "/nonsense",
        "/apis/nope.io/v1",
        "/apis/nope.io/v1/foos",
        "/api/v2",
        "/openapi/v3/apis/nope.io/v1",
    ):
        answer = api.call("GET", path)
        assert (answer.status, answer.body) == (404, b"404 page not found\n")
    assert api.call("POST", "/version", {}).status == 405


def test_descriptions_name_real_fields() -> None:
    """Each description for `kubectl explain` belongs to a type or field that there is."""
    from labkit.cluster.apiserver.openapi import descriptions
    from labkit.cluster.store_schema import struct, type_names

    types = set(type_names())
    for name in descriptions():
        if name not in types:
            type_name, _, field = name.rpartition(".")
            assert field in struct(type_name).fields, name
