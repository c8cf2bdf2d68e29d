"""Acting as somebody else: the Impersonate headers of `kubectl --as`, each allowed for by RBAC (spec 20 §2)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import unquote

from labkit.cluster.apiserver.auth import (
    ANONYMOUS,
    AUTHENTICATED,
    UNAUTHENTICATED,
    Attributes,
    User,
    authorize,
)
from labkit.cluster.store_errors import bad_request

if TYPE_CHECKING:
    from labkit.cluster.store import Store

_USER, _GROUP, _UID, _EXTRA = (
    "impersonate-user",
    "impersonate-group",
    "impersonate-uid",
    "impersonate-extra-",
)
_SERVICE_ACCOUNT = "system:serviceaccount:"
_REVIEWED = "authentication.k8s.io"


def acting_user(store: Store, requester: User, headers: Iterable[tuple[str, str]]) -> User:
    """Whom the request acts as: the requester, unless its headers name somebody else.

    `headers` are all of them, in lower case, repeated ones too. ApiError 403 when RBAC does not let the requester be
    that user, or have that group, uid or extra value; 400 for groups and the like without a user.
    """
    name, uid, groups = "", "", []
    extra: dict[str, list[str]] = {}
    for header, value in headers:
        if header == _USER:
            name = name or value
        elif header == _GROUP:
            groups.append(value)
        elif header == _UID:
            uid = uid or value
        elif header.startswith(_EXTRA):
            extra.setdefault(unquote(header.removeprefix(_EXTRA)), []).append(value)
    if not name:
        if groups or uid or extra:
            raise bad_request("requested a group, a uid or an extra value without impersonating a user")
        return requester
    account = _service_account(name)
    if account is None:
        asked = [Attributes("impersonate", resource="users", name=name)]
    else:
        asked = [Attributes("impersonate", resource="serviceaccounts", namespace=account[0], name=account[1])]
    asked += [Attributes("impersonate", resource="groups", name=group) for group in groups]
    asked += [
        Attributes("impersonate", _REVIEWED, "userextras", key, name=value)
        for key, values in extra.items()
        for value in values
    ]
    if uid:
        asked.append(Attributes("impersonate", _REVIEWED, "uids", name=uid))
    for wanted in asked:
        authorize(store, requester, wanted)
    if account is not None and not groups:
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{account[0]}"]
    return User(name, _with_login(name, groups), uid, extra)


def _service_account(name: str) -> tuple[str, str] | None:
    if not name.startswith(_SERVICE_ACCOUNT):
        return None
    namespace, _, account = name.removeprefix(_SERVICE_ACCOUNT).partition(":")
    return (namespace, account) if namespace and account and ":" not in account else None


def _with_login(name: str, groups: list[str]) -> tuple[str, ...]:
    """The group that says whether the user is logged in is added where it is left out."""
    if name == ANONYMOUS.name:
        return tuple(groups) if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    said = AUTHENTICATED in groups or UNAUTHENTICATED in groups
    return tuple(groups) if said else (*groups, AUTHENTICATED)
