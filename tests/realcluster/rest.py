"""A small JSON client of the Kubernetes API: the same calls reach the real server and labkit's own."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3
import yaml

JSON = dict[str, Any]

_COLLECTIONS = {
    "Pod": ("api/v1", "pods", True),
    "Node": ("api/v1", "nodes", False),
    "Namespace": ("api/v1", "namespaces", False),
    "ConfigMap": ("api/v1", "configmaps", True),
    "Service": ("api/v1", "services", True),
    "PersistentVolume": ("api/v1", "persistentvolumes", False),
    "PersistentVolumeClaim": ("api/v1", "persistentvolumeclaims", True),
    "Event": ("apis/events.k8s.io/v1", "events", True),
    "Lease": ("apis/coordination.k8s.io/v1", "leases", True),
    "Deployment": ("apis/apps/v1", "deployments", True),
    "ReplicaSet": ("apis/apps/v1", "replicasets", True),
    "DaemonSet": ("apis/apps/v1", "daemonsets", True),
    "Job": ("apis/batch/v1", "jobs", True),
    "ResourceQuota": ("api/v1", "resourcequotas", True),
    "LimitRange": ("api/v1", "limitranges", True),
    "ServiceAccount": ("api/v1", "serviceaccounts", True),
    "StatefulSet": ("apis/apps/v1", "statefulsets", True),
    "PodDisruptionBudget": ("apis/policy/v1", "poddisruptionbudgets", True),
    "PriorityClass": ("apis/scheduling.k8s.io/v1", "priorityclasses", False),
    "StorageClass": ("apis/storage.k8s.io/v1", "storageclasses", False),
    "CSINode": ("apis/storage.k8s.io/v1", "csinodes", False),
    "ClusterRole": ("apis/rbac.authorization.k8s.io/v1", "clusterroles", False),
    "ClusterRoleBinding": ("apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", False),
}


@dataclass(frozen=True)
class Collection:
    """A resource as discovery names it."""

    root: str
    plural: str
    kind: str
    namespaced: bool

    def path(self, name: str = "", namespace: str | None = None) -> str:
        """URL path of all its objects (in all namespaces) or of one."""
        middle = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{self.root}{middle}/{self.plural}" + (f"/{name}" if name else "")


class ApiError(Exception):
    """An answer of 400 or above; ``code``, ``reason`` and ``body`` (the Status object) are kept."""

    def __init__(self, method: str, path: str, code: int, body: JSON) -> None:
        super().__init__(f"{method} {path}: {code} {body.get('reason', '')}: {body.get('message', '')}")
        self.code = code
        self.reason = str(body.get("reason", ""))
        self.body = body


class Api:
    """Kubernetes API through a kubeconfig file (current context; token, client certificate or neither)."""

    def __init__(self, kubeconfig: Path | str) -> None:
        config = yaml.safe_load(Path(kubeconfig).read_text())
        contexts = {entry["name"]: entry["context"] for entry in config["contexts"]}
        context = contexts[config["current-context"]]
        cluster = next(
            entry["cluster"] for entry in config["clusters"] if entry["name"] == context["cluster"]
        )
        user: JSON = next(
            (entry["user"] for entry in config.get("users") or [] if entry["name"] == context.get("user")), {}
        )
        self.server = str(cluster["server"]).rstrip("/")
        self._scratch = tempfile.TemporaryDirectory(prefix="realcluster-api-")
        self._headers = {"Accept": "application/json"}
        if token := user.get("token"):
            self._headers["Authorization"] = f"Bearer {token}"
        options: JSON = {}
        if self.server.startswith("https:"):
            options["ca_certs"] = self._file(cluster, "certificate-authority")
            if certificate := self._file(user, "client-certificate"):
                options.update(cert_file=certificate, key_file=self._file(user, "client-key"))
        self._pool = urllib3.PoolManager(maxsize=8, retries=False, timeout=urllib3.Timeout(30), **options)

    def _file(self, entry: JSON, field: str) -> str | None:
        if data := entry.get(f"{field}-data"):
            path = Path(self._scratch.name) / f"{field}.pem"
            path.write_bytes(base64.b64decode(data))
            return str(path)
        return entry.get(field)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str = "application/json",
        query: dict[str, str] | None = None,
    ) -> JSON:
        """One request, parsed. Raises ApiError from status 400 on, urllib3's HTTPError without an answer."""
        url = f"{self.server}/{path.lstrip('/')}" + (f"?{urlencode(query)}" if query else "")
        headers = self._headers if body is None else {**self._headers, "Content-Type": content_type}
        data = None if body is None else json.dumps(body).encode()
        answer = self._pool.request(method, url, body=data, headers=headers)
        try:
            parsed = json.loads(answer.data)
        except ValueError:
            parsed = {"message": answer.data.decode(errors="replace")}
        if answer.status >= 400:
            raise ApiError(method, path, answer.status, parsed)
        return parsed if isinstance(parsed, dict) else {"items": parsed}

    def ready(self, path: str = "readyz") -> bool:
        """Whether the server answers ``path`` with 200."""
        try:
            return bool(
                self._pool.request("GET", f"{self.server}/{path}", headers=self._headers).status == 200
            )
        except urllib3.exceptions.HTTPError:
            return False

    def collections(self) -> list[Collection]:
        """Everything that can be listed and deleted; events once, not in both of their groups."""
        versions = [g["preferredVersion"]["groupVersion"] for g in self.call("GET", "apis")["groups"]]
        found = []
        for root in ("api/v1", *(f"apis/{version}" for version in versions)):
            for one in self.call("GET", root)["resources"]:
                if {"list", "delete"} <= set(one["verbs"]) and (root, one["name"]) != ("api/v1", "events"):
                    found.append(Collection(root, one["name"], one["kind"], one["namespaced"]))
        return found

    def path(self, kind: str, name: str | None = None, namespace: str | None = "default") -> str:
        """URL path of a collection (all namespaces with ``namespace=None``) or of one object in it."""
        root, plural, namespaced = _COLLECTIONS[kind]
        middle = f"/namespaces/{namespace}" if namespaced and namespace else ""
        return f"{root}{middle}/{plural}" + (f"/{name}" if name else "")

    def create(self, manifest: JSON) -> JSON:
        """POST one object; the namespace is its own or ``default``."""
        return self.call("POST", self.path(manifest["kind"], namespace=_namespace(manifest)), manifest)

    def create_all(self, *manifests: JSON) -> Sequence[JSON]:
        """POST the objects one after another."""
        return [self.create(manifest) for manifest in manifests]

    def get(self, kind: str, name: str, namespace: str = "default") -> JSON:
        """One object."""
        return self.call("GET", self.path(kind, name, namespace))

    def list(self, kind: str, namespace: str | None = None, **query: str) -> list[JSON]:
        """All objects of a kind, in every namespace unless one is named; ``query``: fieldSelector, ..."""
        items = self.call("GET", self.path(kind, namespace=namespace), query=query).get("items") or []
        return [dict(item) for item in items]

    def patch(
        self, kind: str, name: str, body: Any, namespace: str = "default", subresource: str = ""
    ) -> JSON:
        """Strategic merge patch of an object or of its ``subresource``."""
        path = self.path(kind, name, namespace) + (f"/{subresource}" if subresource else "")
        return self.call("PATCH", path, body, "application/strategic-merge-patch+json")

    def delete(self, kind: str, name: str, namespace: str = "default", grace: int | None = 0) -> JSON:
        """Delete an object; by default at once, for nothing else ends a pod where no kubelet runs."""
        body: JSON = {"apiVersion": "v1", "kind": "DeleteOptions"}
        if grace is not None:
            body["gracePeriodSeconds"] = grace
        return self.call("DELETE", self.path(kind, name, namespace), body)

    def node_of(self, pod: str, namespace: str = "default") -> str:
        """``spec.nodeName`` of a pod, empty while it is not bound."""
        return str(self.get("Pod", pod, namespace)["spec"].get("nodeName", ""))

    def placements(self, namespace: str | None = None) -> dict[str, str]:
        """Pod name -> node name, empty for unbound pods."""
        return {
            pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in self.list("Pod", namespace)
        }

    def condition(self, pod: str, kind: str = "PodScheduled", namespace: str = "default") -> JSON:
        """The pod's condition of that type, ``{}`` when it has none."""
        conditions = self.get("Pod", pod, namespace).get("status", {}).get("conditions") or []
        return next((dict(entry) for entry in conditions if entry["type"] == kind), {})

    def events(self, pod: str, reason: str | None = None, namespace: str = "default") -> Sequence[JSON]:
        """Events (events.k8s.io/v1) about a pod, with that reason."""
        return [
            event
            for event in self.list("Event", namespace)
            if event.get("regarding", {}).get("name") == pod and reason in (None, event.get("reason"))
        ]


def _namespace(manifest: JSON) -> str:
    return str(manifest["metadata"].get("namespace", "default"))
