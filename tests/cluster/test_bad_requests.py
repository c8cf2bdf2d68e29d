"""Bad input over HTTP -> the right status code and a Status body; never a traceback, never a dead server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .asgi import TOKEN, Api, pod

PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"


@pytest.fixture(scope="module")
def api() -> Api:
    """A cluster with one pod."""
    api = Api()
    api.store.create(pod())
    return api


def nested(depth: int) -> bytes:
    """A pod whose annotations field is a deep list."""
    return b'{"metadata":{"name":"x","annotations":' + b"[" * depth + b"]" * depth + b"}}"


@pytest.mark.parametrize(
    ("method", "url", "body", "content_type", "status", "reason"),
    [
        ("POST", PODS, b"{", None, 400, "BadRequest"),
        ("POST", PODS, b"", None, 400, "BadRequest"),
        ("POST", PODS, b"[]", None, 400, "BadRequest"),
        ("POST", PODS, b"\xff\xfe", None, 400, "BadRequest"),
        ("POST", PODS, b'"x"', None, 400, "BadRequest"),
        ("POST", PODS, {"metadata": []}, None, 400, "BadRequest"),
        ("POST", PODS, {"metadata": {"name": 5}}, None, 400, "BadRequest"),
        ("POST", PODS, {"metadata": {"name": "x", "labels": {"a": 1}}}, None, 400, "BadRequest"),
        ("POST", PODS, {"spec": {"containers": {"a": 1}}}, None, 400, "BadRequest"),
        ("POST", PODS, {"spec": {"priority": 2**40}}, None, 400, "BadRequest"),
        ("POST", PODS, {"spec": {"priority": 1.5}}, None, 400, "BadRequest"),
        ("POST", PODS, nested(100), None, 400, "BadRequest"),
        ("POST", PODS, nested(100_000), None, 400, "BadRequest"),
        ("POST", PODS, b'{"a":' * 200_000 + b"1" + b"}" * 200_000, None, 400, "BadRequest"),
        ("POST", PODS, b"a: [1", "application/yaml", 400, "BadRequest"),
        ("POST", PODS, b"2026-01-01: x", "application/yaml", 422, "Invalid"),
        ("POST", PODS, b"x", "image/png", 415, "UnsupportedMediaType"),
        ("POST", PODS, b"x", "application/vnd.kubernetes.protobuf", 400, "BadRequest"),
        ("POST", PODS, b" " * (3 * 1024 * 1024 + 1), None, 413, "RequestEntityTooLarge"),
        ("POST", PODS + "?dryRun=Some", pod("x"), None, 422, "Invalid"),
        ("POST", PODS + "?fieldValidation=Maybe", pod("x"), None, 422, "Invalid"),
        ("POST", "/api/v1/pods", pod("x"), None, 405, "MethodNotAllowed"),
        ("PUT", PODS, pod("x"), None, 405, "MethodNotAllowed"),
        ("PUT", PODS + "/p", pod("q"), None, 400, "BadRequest"),
        ("PUT", PODS + "/p/nosuch", pod("p"), None, 404, "NotFound"),
        ("POST", PODS + "/p/status", pod("p"), None, 405, "MethodNotAllowed"),
        ("PATCH", PODS + "/p", b"{", MERGE, 400, "BadRequest"),
        ("PATCH", PODS + "/p", [1], MERGE, 400, "BadRequest"),
        ("PATCH", PODS + "/p", {"metadata": None}, MERGE, 400, "BadRequest"),
        ("PATCH", PODS + "/p", {"metadata": {"name": "q"}}, MERGE, 400, "BadRequest"),
        ("PATCH", PODS + "/p", {"spec": None}, MERGE, 422, "Invalid"),
        ("PATCH", PODS + "/p", {"spec": 5}, MERGE, 422, "Invalid"),
        ("PATCH", PODS + "/p", {"metadata": []}, MERGE, 422, "Invalid"),
        ("PATCH", PODS + "/p", {"kind": "Node"}, MERGE, 422, "Invalid"),
        ("PATCH", PODS + "/p", {"apiVersion": "v2"}, MERGE, 422, "Invalid"),
        ("PATCH", PODS + "/p", {"metadata": {"uid": "other"}}, MERGE, 422, "Invalid"),
        ("PATCH", PODS + "/p", {}, "application/json-patch+json", 400, "BadRequest"),
        ("PATCH", PODS + "/p", [5], "application/json-patch+json", 400, "BadRequest"),
        ("PATCH", PODS + "/p", {}, "text/plain", 415, "UnsupportedMediaType"),
        (
            "PATCH",
            PODS + "/p?fieldManager=m",
            b"a: &a [*a]",
            "application/apply-patch+yaml",
            400,
            "BadRequest",
        ),
        ("PATCH", PODS + "/p", {"metadata": {"resourceVersion": "1"}}, MERGE, 409, "Conflict"),
        ("DELETE", PODS + "/p", {"gracePeriodSeconds": "x"}, None, 400, "BadRequest"),
        ("DELETE", PODS + "/p", {"propagationPolicy": "Sideways"}, None, 422, "Invalid"),
        ("DELETE", PODS + "/p?gracePeriodSeconds=x", None, None, 400, "BadRequest"),
        ("DELETE", "/api/v1/namespaces", None, None, 405, "MethodNotAllowed"),
        ("GET", PODS + "?labelSelector=a,,b", None, None, 400, "BadRequest"),
        ("GET", PODS + "?fieldSelector=x", None, None, 400, "BadRequest"),
        ("GET", PODS + "?limit=x", None, None, 400, "BadRequest"),
        ("GET", PODS + "?watch=1&timeoutSeconds=x", None, None, 400, "BadRequest"),
        ("GET", PODS + "?watch=1&resourceVersion=x", None, None, 500, ""),
        ("GET", PODS + "?watch=1&sendInitialEvents=true", None, None, 422, "Invalid"),
        ("GET", PODS + "/p/log", None, None, 400, "BadRequest"),
        ("GET", "/api/v1/nodes/n/pods", None, None, 404, "NotFound"),
        ("OPTIONS", PODS, None, None, 405, "MethodNotAllowed"),
    ],
)
def test_refused(
    api: Api, method: str, url: str, body: Any, content_type: str | None, status: int, reason: str
) -> None:
    """Each request -> its status and reason; the pod is untouched and the server goes on."""
    answer = api.call(method, url, body, content_type)
    assert (answer.status, answer.json.get("reason", "")) == (status, reason), answer.json
    if status >= 400:
        assert answer.json["kind"] == "Status"
        assert answer.json["code"] == status
    assert api.call("GET", PODS + "/p").json["spec"]["containers"][0]["image"] == "i"


def test_yaml_bomb(api: Api) -> None:
    """Nine levels of nine aliases each -> 400, not nine to the ninth parts in memory."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 9)]
    answer = api.call("POST", PODS, "\n".join(lines), "application/yaml")
    assert (answer.status, answer.json["message"]) == (
        400,
        "error converting YAML to JSON: document contains excessive aliasing",
    )


@pytest.mark.parametrize("accept", ["text/html", "application/json;as=Table;v=v9;g=meta.k8s.io"])
def test_not_acceptable(api: Api, accept: str) -> None:
    """Only forms that the server does not have -> 406."""
    assert api.call("GET", PODS, accept=accept).status == 406


def test_unknown_fields(api: Api) -> None:
    """Strict -> 400; Warn -> a header that kubectl prints; Ignore -> nothing. Unknown fields are never stored."""
    body = pod("u", containers=[{"name": "c", "image": "i", "bogus": 1}], more={"x": 1})
    strict = api.call("POST", PODS + "?fieldValidation=Strict&dryRun=All", body)
    assert strict.json["message"] == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: '
        'unknown field "spec.containers[0].bogus", unknown field "spec.more"'
    )
    warned = api.call("POST", PODS + "?dryRun=All", body)
    assert 'unknown field \\"spec.containers[0].bogus\\"' in warned.headers["warning"]
    assert "bogus" not in json.dumps(warned.json)
    assert "warning" not in api.call("POST", PODS + "?fieldValidation=Ignore&dryRun=All", body).headers


@pytest.mark.parametrize(
    ("token", "method", "url", "status"),
    [
        (None, "GET", "/healthz", 200),
        (None, "GET", "/version", 200),
        (None, "GET", PODS, 403),
        (None, "POST", PODS, 403),
        (None, "GET", "/api", 403),
        ("wrong", "GET", "/healthz", 401),
        ("wrong", "POST", PODS, 401),
        ("viewer-token", "GET", PODS, 403),
        ("viewer-token", "GET", "/api/v1", 200),
        (TOKEN, "GET", PODS, 200),
    ],
)
def test_who_may(api: Api, token: str | None, method: str, url: str, status: int) -> None:
    """No token, a wrong one, one without rights, the admin's."""
    body = pod("intruder") if method == "POST" else None
    assert api.call(method, url, body, token=token).status == status
    assert api.store.peek("Pod", "intruder") is None


def test_rbac(api: Api) -> None:
    """A Role and its binding -> exactly those verbs, in that namespace; reviews say the same."""
    for manifest in (
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "reader"},
            "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "reader"},
            "roleRef": {"kind": "Role", "name": "reader"},
            "subjects": [{"kind": "User", "name": "viewer"}],
        },
    ):
        api.store.create(manifest)
    assert api.call("GET", PODS, token="viewer-token").status == 200
    for method, url in (("DELETE", PODS + "/p"), ("GET", "/api/v1/pods"), ("GET", PODS + "?watch=1")):
        answer = api.call(method, url, token="viewer-token")
        assert answer.status == 403
        assert answer.json["message"].startswith("pods ")
    review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    for verb, allowed in (("list", True), ("delete", False)):
        spec = {"resourceAttributes": {"verb": verb, "resource": "pods", "namespace": "default"}}
        assert (
            api.call("POST", review, {"spec": spec}, token="viewer-token").json["status"]["allowed"]
            is allowed
        )
