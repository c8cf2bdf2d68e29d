"""A cluster over the network, behind the same client protocol as the lab's own store.

Kubeconfig, certificates and tokens are the official client's business; requests are plain Kubernetes REST.
"""

from __future__ import annotations

import contextlib
import copy
import json
import ssl
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from labkit.cluster.store_errors import ApiError
from labkit.cluster.store_types import ResourceType, resource_type
from labkit.errors import LabError

Json = dict[str, Any]
_PATCH_TYPES = {
    "strategic": "application/strategic-merge-patch+json",
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
#: Seconds for ordinary requests, and for a watch without news.
_TIMEOUT, _WATCH_SECONDS = 30.0, 290


class LiveClient:
    """Requests to one API server. Refusals are ApiError; a server that cannot be reached is ConnectionError."""

    def __init__(self, configuration: Any, *, field_manager: str = "labkit") -> None:
        from kubernetes.client import ApiClient

        self._api = ApiClient(configuration)
        self._host = str(configuration.host).rstrip("/")
        self._pool = self._api.rest_client.pool_manager
        self._manager = field_manager
        self._timeout = _TIMEOUT
        self._headers = {"Accept": "application/json", "User-Agent": "labkit"}
        for setting in configuration.auth_settings().values():
            if setting.get("in") == "header" and setting.get("value"):
                self._headers[str(setting["key"])] = str(setting["value"])

    def timed(self, seconds: float) -> LiveClient:
        """The same client, whose requests (watches apart) give up after so many seconds."""
        found = copy.copy(self)
        found._timeout = seconds
        return found

    def _unreachable(self, error: Exception) -> ConnectionError:
        return ConnectionError(f"{self._host} cannot be reached: {_cause(error)}")

    # --- requests -------------------------------------------------------------------------------------------

    def _request(
        self,
        method: str,
        path: str,
        body: Any = None,
        query: Json | None = None,
        content_type: str = "application/json",
    ) -> Json:
        import urllib3

        url = f"{self._host}{path}" + (f"?{urlencode(query)}" if query else "")
        headers = dict(self._headers)
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = json.dumps(body).encode()
        try:
            response = self._pool.request(
                method,
                url,
                body=data,
                headers=headers,
                timeout=urllib3.Timeout(total=self._timeout),
                retries=False,
            )
        except urllib3.exceptions.HTTPError as e:
            raise self._unreachable(e) from e
        answer = _decoded(response.data)
        if response.status >= 300:
            raise refusal_of(response.status, answer)
        return answer

    def _path(
        self, resource: ResourceType, namespace: str | None, name: str = "", subresource: str = ""
    ) -> str:
        root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
        parts = [root]
        if resource.namespaced and namespace:
            parts.append(f"namespaces/{namespace}")
        parts.append(resource.plural)
        parts += [p for p in (name, subresource) if p]
        return "/".join(parts)

    # --- the protocol ---------------------------------------------------------------------------------------

    def get(self, kind: str, name: str, namespace: str | None = None) -> Json:
        """One object. ApiError 404."""
        return self._request("GET", self._path(resource_type(kind), namespace, name))

    def list(
        self,
        kind: str,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> tuple[list[Json], str]:
        """Objects (with kind and apiVersion), and the version to watch from."""
        resource = resource_type(kind)
        query = _selectors(label_selector, field_selector)
        found: list[Json] = []
        while True:
            answer = self._request("GET", self._path(resource, namespace), query={**query, "limit": 500})
            for item in answer.get("items") or []:
                found.append({"apiVersion": resource.api_version, "kind": resource.kind, **item})
            token = (answer.get("metadata") or {}).get("continue")
            if not token:
                return found, str((answer.get("metadata") or {}).get("resourceVersion", ""))
            query["continue"] = token

    def create(self, obj: Json, *, dry_run: bool = False) -> Json:
        """Create."""
        resource = resource_type(str(obj.get("kind")))
        query = {"fieldManager": self._manager, **({"dryRun": "All"} if dry_run else {})}
        namespace = (obj.get("metadata") or {}).get("namespace") or (
            "default" if resource.namespaced else None
        )
        return self._request("POST", self._path(resource, namespace), obj, query)

    def update(self, obj: Json, subresource: str | None = None) -> Json:
        """Replace. ApiError 409 when stale."""
        meta = obj["metadata"]
        path = self._path(resource_type(obj["kind"]), meta.get("namespace"), meta["name"], subresource or "")
        return self._request("PUT", path, obj, {"fieldManager": self._manager})

    def patch(
        self,
        kind: str,
        name: str,
        namespace: str | None,
        patch: Any,
        patch_type: str = "strategic",
        subresource: str | None = None,
    ) -> Json:
        """Change by a patch."""
        path = self._path(resource_type(kind), namespace, name, subresource or "")
        return self._request("PATCH", path, patch, {"fieldManager": self._manager}, _PATCH_TYPES[patch_type])

    def patch_status(self, kind: str, name: str, namespace: str | None, patch: Json) -> None:
        """Strategic merge patch of the status."""
        self.patch(kind, name, namespace, patch, "strategic", "status")

    def delete(
        self,
        kind: str,
        name: str,
        namespace: str | None = None,
        grace_period_seconds: int | None = None,
        preconditions: Json | None = None,
        propagation: str | None = None,
    ) -> None:
        """Delete, or begin to."""
        body: Json = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if grace_period_seconds is not None:
            body["gracePeriodSeconds"] = grace_period_seconds
        if preconditions:
            body["preconditions"] = preconditions
        if propagation:
            body["propagationPolicy"] = propagation
        self._request("DELETE", self._path(resource_type(kind), namespace, name), body)

    def bind(self, namespace: str, name: str, uid: str | None, node: str) -> None:
        """Assign a pod to a node. ApiError 404, 409."""
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, **({"uid": uid} if uid else {})},
            "target": {"kind": "Node", "name": node},
        }
        self._request("POST", self._path(resource_type("Pod"), namespace, name, "binding"), body)

    def evict(self, namespace: str, name: str, grace_period_seconds: int | None = None) -> None:
        """Delete a pod if its budget allows. ApiError 429."""
        body: Json = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
        }
        if grace_period_seconds is not None:
            body["deleteOptions"] = {"gracePeriodSeconds": grace_period_seconds}
        self._request("POST", self._path(resource_type("Pod"), namespace, name, "eviction"), body)

    def create_event(self, event: Json) -> None:
        """Store an `events.k8s.io/v1` event."""
        namespace = event["metadata"]["namespace"]
        self._request("POST", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", event)

    def stream(self, kind: str, since: str, stopped: threading.Event) -> Iterator[tuple[str, Json]]:
        """(type, object) of a watch, until the server ends it or `stopped` is set. ApiError 410 when too old."""
        import urllib3

        resource = resource_type(kind)
        query = {
            "watch": "1",
            "resourceVersion": since,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        url = f"{self._host}{self._path(resource, None)}?{urlencode(query)}"
        try:
            response = self._pool.request(
                "GET",
                url,
                headers=self._headers,
                preload_content=False,
                retries=False,
                timeout=urllib3.Timeout(connect=_TIMEOUT, read=_WATCH_SECONDS + 30),
            )
        except urllib3.exceptions.HTTPError as e:
            raise self._unreachable(e) from e
        try:
            if response.status >= 300:
                raise refusal_of(response.status, _decoded(response.data))
            pending = b""
            for chunk in response.stream(65536):
                if stopped.is_set():
                    return
                *lines, pending = (pending + chunk).split(b"\n")
                for line in lines:
                    if line.strip():
                        event = json.loads(line)
                        yield str(event.get("type")), event.get("object") or {}
        except urllib3.exceptions.HTTPError as e:
            raise self._unreachable(e) from e
        finally:
            with contextlib.suppress(Exception):
                response.close()


def connect(
    kubeconfig: str | None = None, *, in_cluster: bool = False, context: str | None = None
) -> LiveClient:
    """A client for the cluster of a kubeconfig, or of the pod this runs in. LabError when there is none."""
    from kubernetes import config
    from kubernetes.client import Configuration

    configuration = Configuration()
    # One connection a watch, and some for requests.
    configuration.connection_pool_maxsize = 64
    try:
        if in_cluster:
            config.load_incluster_config(client_configuration=configuration)
        else:
            config.load_kube_config(
                config_file=kubeconfig, context=context, client_configuration=configuration
            )
    except Exception as e:
        where = "inside a pod" if in_cluster else f"kubeconfig {kubeconfig or '(default)'}"
        raise LabError(f"{where}: {e}", hint="give --kubeconfig, or set KUBECONFIG") from e
    return LiveClient(configuration)


def _cause(error: BaseException) -> str:
    """What lies at the bottom of it, in words without addresses of objects or paths."""
    last = str(error)
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLCertVerificationError):
            return f"certificate verify failed: {seen.verify_message}"
        if isinstance(seen, OSError):
            last = seen.strerror or str(seen)
        reason = getattr(seen, "reason", None)
        seen = reason if isinstance(reason, BaseException) else seen.__cause__ or seen.__context__
    return last


def _selectors(labels: str | None, fields: str | None) -> Json:
    return {k: v for k, v in (("labelSelector", labels), ("fieldSelector", fields)) if v}


def _decoded(data: bytes) -> Json:
    try:
        found = json.loads(data) if data else {}
    except ValueError:
        return {"message": data[:200].decode("utf-8", "replace")}
    return found if isinstance(found, dict) else {}


def refusal_of(status: int, answer: Json) -> ApiError:
    """The ApiError that an answer, or a Status in a watch, stands for."""
    return ApiError(
        status, str(answer.get("reason") or "Unknown"), str(answer.get("message") or f"HTTP {status}")
    )
