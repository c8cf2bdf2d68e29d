"""Who asks, and may they: bearer tokens, client certificates, RBAC (spec 20 §2, §6)."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from labkit.cluster.store_errors import ApiError, unauthorized
from labkit.cluster.store_types import resource_type

if TYPE_CHECKING:
    from labkit.cluster.store import Store

MASTERS, AUTHENTICATED, UNAUTHENTICATED = "system:masters", "system:authenticated", "system:unauthenticated"
#: Paths that need no credentials: health and version.
PUBLIC = ("/healthz", "/livez", "/readyz", "/version")


@dataclass(frozen=True)
class User:
    """A requester."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, list[str]] = field(default_factory=dict, hash=False)

    def info(self) -> dict[str, Any]:
        """As `userInfo` in reviews."""
        found: dict[str, Any] = {"username": self.name, "groups": list(self.groups)}
        if self.uid:
            found["uid"] = self.uid
        if self.extra:
            found["extra"] = self.extra
        return found


ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))
ADMIN = User("kubernetes-admin", (MASTERS, AUTHENTICATED))


@dataclass(frozen=True)
class Attributes:
    """What is to be done with what."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class Authenticator:
    """Finds the user of a request from its token or its client certificate."""

    def __init__(self, tokens: dict[str, User], *, open_to_all: bool = False) -> None:
        self._tokens = tokens
        #: Plain HTTP on loopback: kubectl and kube-scheduler send no token there (spec 20 §2).
        self._open = open_to_all

    def user(self, headers: dict[str, str], certificate: dict[str, Any] | None) -> User:
        """The requester; anonymous without credentials. ApiError 401 for a token that is not known."""
        header = headers.get("authorization", "")
        scheme, _, token = header.partition(" ")
        if token and scheme.lower() == "bearer":
            for known, user in self._tokens.items():
                if hmac.compare_digest(known.encode(), token.strip().encode()):
                    return user
            raise unauthorized()
        if certificate and (found := _of_certificate(certificate)) is not None:
            return found
        return ADMIN if self._open else ANONYMOUS

    def of_token(self, token: str) -> User | None:
        """The user of a token, for TokenReview."""
        return next(
            (u for t, u in self._tokens.items() if hmac.compare_digest(t.encode(), token.encode())), None
        )


def _of_certificate(certificate: dict[str, Any]) -> User | None:
    name, groups = "", []
    for part in certificate.get("subject") or ():
        for key, value in part:
            if key == "commonName":
                name = value
            elif key == "organizationName":
                groups.append(value)
    return User(name, (*groups, AUTHENTICATED)) if name else None


def authorize(store: Store, user: User, wanted: Attributes) -> None:
    """ApiError 403 when the user may not."""
    if allowed(store, user, wanted):
        return
    if wanted.path:
        message = f'forbidden: User "{user.name}" cannot {wanted.verb} path "{wanted.path}"'
        raise ApiError(403, "Forbidden", message + _lost_roles(store, user, ""), {})
    what = wanted.resource + (f"/{wanted.subresource}" if wanted.subresource else "")
    where = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    full = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    about = f'{full} "{wanted.name}"' if wanted.name else full
    details = {"name": wanted.name} if wanted.name else {}
    if wanted.group:
        details["group"] = wanted.group
    raise ApiError(
        403,
        "Forbidden",
        f'{about} is forbidden: User "{user.name}" cannot {wanted.verb} resource "{what}" in API group '
        f'"{wanted.group}" {where}{_lost_roles(store, user, wanted.namespace)}',
        {**details, "kind": wanted.resource},
    )


def allowed(store: Store, user: User, wanted: Attributes) -> bool:
    """Whether RBAC lets the user do it; members of system:masters may do everything."""
    if MASTERS in user.groups:
        return True
    if wanted.path and wanted.verb == "get" and wanted.path.rstrip("/") in PUBLIC:
        return True
    if wanted.path and AUTHENTICATED in user.groups and wanted.verb == "get" and _is_discovery(wanted.path):
        return True
    if AUTHENTICATED in user.groups and wanted.resource.startswith("selfsubject"):
        return True
    return any(_permits(rule, wanted) for rule in rules_of(store, user, wanted.namespace))


def _is_discovery(path: str) -> bool:
    return path.split("/")[1] in ("api", "apis", "openapi", "version", "healthz", "livez", "readyz")


def rules_of(store: Store, user: User, namespace: str) -> Iterator[dict[str, Any]]:
    """The RBAC rules that hold for a user, cluster-wide and in a namespace."""
    for binding in _bindings(store, user, namespace):
        yield from _role_rules(store, binding)


def _bindings(store: Store, user: User, namespace: str) -> Iterator[dict[str, Any]]:
    bindings = list(store.objects(resource_type("ClusterRoleBinding")).values())
    if namespace:
        local = store.objects(resource_type("RoleBinding"))
        bindings += [b for key, b in local.items() if key.startswith(f"{namespace}/")]
    for binding in bindings:
        if any(_is_subject(s, user) for s in binding.get("subjects") or ()):
            yield binding


def _is_subject(subject: dict[str, Any], user: User) -> bool:
    kind, name = subject.get("kind"), subject.get("name")
    if kind == "User":
        return bool(name == user.name)
    if kind == "Group":
        return name in user.groups
    return bool(user.name == f"system:serviceaccount:{subject.get('namespace')}:{name}")


def _role_of(store: Store, binding: dict[str, Any]) -> dict[str, Any] | None:
    reference = binding.get("roleRef") or {}
    kind = reference.get("kind")
    if kind not in ("Role", "ClusterRole"):
        return None
    return store.peek(kind, str(reference.get("name") or ""), binding["metadata"].get("namespace"))


def _role_rules(store: Store, binding: dict[str, Any]) -> list[dict[str, Any]]:
    role = _role_of(store, binding)
    return list(role.get("rules") or ()) if role else []


def _lost_roles(store: Store, user: User, namespace: str) -> str:
    """Bindings of the user to roles that there are not, as an addition to the refusal."""
    lost = [
        f'{b["roleRef"]["kind"].lower()}.rbac.authorization.k8s.io "{b["roleRef"].get("name")}" not found'
        for b in _bindings(store, user, namespace)
        if (b.get("roleRef") or {}).get("kind") and _role_of(store, b) is None
    ]
    if not lost:
        return ""
    return f": RBAC: {lost[0]}" if len(lost) == 1 else f": RBAC: [{', '.join(lost)}]"


def _permits(rule: dict[str, Any], wanted: Attributes) -> bool:
    if not _in(wanted.verb, rule.get("verbs")):
        return False
    if wanted.path:
        paths = rule.get("nonResourceURLs") or ()
        return any(
            p in ("*", wanted.path) or (p.endswith("*") and wanted.path.startswith(p[:-1])) for p in paths
        )
    if not _in(wanted.group, rule.get("apiGroups")):
        return False
    full = f"{wanted.resource}/{wanted.subresource}" if wanted.subresource else wanted.resource
    resources = rule.get("resources") or ()
    if not (
        "*" in resources
        or full in resources
        or (wanted.subresource and f"*/{wanted.subresource}" in resources)
    ):
        return False
    names = rule.get("resourceNames")
    return not names or wanted.name in names


def _in(value: str, values: Any) -> bool:
    return value in (values or ()) or "*" in (values or ())
