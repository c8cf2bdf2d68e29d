"""Reviews: who am I, may I; answered, never stored (spec 20 §4.2)."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

from labkit.cluster.apiserver.auth import MASTERS, Attributes, Authenticator, User, allowed, rules_of
from labkit.cluster.store_errors import bad_request, not_found
from labkit.cluster.store_times import format_time
from labkit.cluster.store_types import resource_type

if TYPE_CHECKING:
    from labkit.cluster.apiserver.requests import Target
    from labkit.cluster.store import Store

Json = dict[str, Any]


def answer(store: Store, authenticator: Authenticator, user: User, body: Json) -> Json:
    """The review with its status."""
    kind = body["kind"]
    spec = body.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    if kind == "SelfSubjectReview":
        return {**body, "status": {"userInfo": user.info()}}
    if kind == "SelfSubjectRulesReview":
        return {**body, "status": _rules(store, user, str(spec.get("namespace") or "default"))}
    if kind == "TokenReview":
        found = authenticator.of_token(str(spec.get("token") or ""))
        status: Json = {"authenticated": True, "user": found.info()} if found else {"user": {}}
        return {**body, "status": status}
    subject = user
    if kind in ("SubjectAccessReview", "LocalSubjectAccessReview"):
        groups = spec.get("groups")
        if not spec.get("user") and not groups:
            raise bad_request("spec.user: Required value: at least one of user or group must be specified")
        subject = User(str(spec.get("user") or ""), tuple(str(g) for g in groups or ()))
    permitted = allowed(store, subject, _attributes(spec))
    return {**body, "status": {"allowed": permitted, **({} if permitted else {"reason": ""})}}


def _attributes(spec: Json) -> Attributes:
    path = spec.get("nonResourceAttributes")
    if isinstance(path, dict):
        return Attributes(str(path.get("verb") or ""), path=str(path.get("path") or ""))
    found = spec.get("resourceAttributes")
    if not isinstance(found, dict):
        raise bad_request(
            "spec.resourceAttributes: Required value: one of nonResourceAttributes or resourceAttributes is required"
        )
    keys = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Attributes(**{k: str(found.get(k) or "") for k in keys})


def _rules(store: Store, user: User, namespace: str) -> Json:
    if MASTERS in user.groups:
        everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
        paths = {"verbs": ["*"], "nonResourceURLs": ["*"]}
        return {"resourceRules": [everything], "nonResourceRules": [paths], "incomplete": False}
    rules = list(rules_of(store, user, namespace))
    return {
        "resourceRules": [r for r in rules if r.get("resources")],
        "nonResourceRules": [r for r in rules if r.get("nonResourceURLs")],
        "incomplete": False,
    }


def token_request(store: Store, target: Target, body: Json) -> Json:
    """A token for a service account. It opens nothing: nobody runs in a simulated pod who could use it."""
    name, namespace = target.name or "", target.namespace or "default"
    account = store.peek("ServiceAccount", name, namespace)
    if account is None:
        raise not_found(resource_type("ServiceAccount"), name)
    spec = body.get("spec") if isinstance(body.get("spec"), dict) else {}
    seconds = (spec or {}).get("expirationSeconds")
    seconds = seconds if isinstance(seconds, int) else 3600
    digest = hashlib.sha256(f"{account['metadata']['uid']}/{store.now_text()}".encode()).digest()
    token = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    expires = format_time(store.clock.now() + seconds)
    return {
        **body,
        "metadata": {**body["metadata"], "name": name, "namespace": namespace},
        "spec": {
            "audiences": ["https://kubernetes.default.svc"],
            **(spec or {}),
            "expirationSeconds": seconds,
        },
        "status": {"token": token, "expirationTimestamp": expires},
    }
