"""The Impersonate headers: who may be whom, and what they may do then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from labkit.cluster.apiserver.auth import ADMIN, ANONYMOUS, User
from labkit.cluster.apiserver.impersonation import acting_user
from labkit.cluster.store import Store
from labkit.cluster.store_errors import ApiError

from tests.cluster.asgi import VIEWER, Api

PODS = "/api/v1/namespaces/default/pods"
REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
Headers = Sequence[tuple[str, str]]


@pytest.mark.parametrize(
    ("headers", "name", "groups"),
    [
        ([], "kubernetes-admin", ("system:masters", "system:authenticated")),
        ([("impersonate-user", "a")], "a", ("system:authenticated",)),
        (
            [("impersonate-user", "a"), ("impersonate-group", "x"), ("impersonate-group", "y")],
            "a",
            ("x", "y", "system:authenticated"),
        ),
        (
            [("impersonate-user", "a"), ("impersonate-group", "system:unauthenticated")],
            "a",
            ("system:unauthenticated",),
        ),
        ([("impersonate-user", "system:anonymous")], "system:anonymous", ("system:unauthenticated",)),
        (
            [("impersonate-user", "system:serviceaccount:ns:robot")],
            "system:serviceaccount:ns:robot",
            ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated"),
        ),
        (
            [("impersonate-user", "system:serviceaccount:ns:robot"), ("impersonate-group", "x")],
            "system:serviceaccount:ns:robot",
            ("x", "system:authenticated"),
        ),
        (
            [("impersonate-user", "system:serviceaccount:ns")],
            "system:serviceaccount:ns",
            ("system:authenticated",),
        ),
    ],
)
def test_an_administrator_may_be_anybody(headers: Headers, name: str, groups: tuple[str, ...]) -> None:
    """The name as given; groups as given, with those of a service account and of the login where none say otherwise."""
    found = acting_user(Store(), ADMIN, headers)
    assert (found.name, found.groups) == (name, groups)


def test_uid_and_extra_values_travel() -> None:
    """The key of an extra value is percent-encoded in its header."""
    headers = [("impersonate-user", "a"), ("impersonate-uid", "7")]
    headers += [("impersonate-extra-x%2fy", "1"), ("impersonate-extra-x%2fy", "2")]
    found = acting_user(Store(), ADMIN, headers)
    assert found.info() == {
        "username": "a",
        "groups": ["system:authenticated"],
        "uid": "7",
        "extra": {"x/y": ["1", "2"]},
    }


@pytest.mark.parametrize("header", ["impersonate-group", "impersonate-uid", "impersonate-extra-k"])
def test_somebody_must_be_named(header: str) -> None:
    """Groups and the like without a user -> 400."""
    with pytest.raises(ApiError) as e:
        acting_user(Store(), ADMIN, [(header, "x")])
    assert e.value.code == 400


@pytest.mark.parametrize("user", [ANONYMOUS, VIEWER, User("x", ("system:authenticated",))])
@pytest.mark.parametrize(
    ("headers", "resource"),
    [
        ([("impersonate-user", "kubernetes-admin")], "users"),
        ([("impersonate-user", "system:serviceaccount:ns:robot")], "serviceaccounts"),
        ([("impersonate-user", "me"), ("impersonate-group", "system:masters")], "groups"),
        ([("impersonate-user", "me"), ("impersonate-uid", "1")], "uids"),
        ([("impersonate-user", "me"), ("impersonate-extra-scopes", "all")], "userextras/scopes"),
    ],
)
def test_nobody_else_may_without_a_right(user: User, headers: Headers, resource: str) -> None:
    """Every single thing must be granted: with the right to be `me` alone, all else is still 403."""
    store = Store()
    rule = {"apiGroups": [""], "resources": ["users"], "resourceNames": ["me"], "verbs": ["impersonate"]}
    _grant(store, "ClusterRole", rule, user.name)
    with pytest.raises(ApiError) as e:
        acting_user(store, user, headers)
    assert e.value.code == 403
    assert f'cannot impersonate resource "{resource}"' in e.value.message
    assert acting_user(store, user, [("impersonate-user", "me")]).name == "me"


def _grant(store: Store, kind: str, rule: dict[str, Any], user: str) -> None:
    version = "rbac.authorization.k8s.io/v1"
    store.create({"apiVersion": version, "kind": kind, "metadata": {"name": "r"}, "rules": [rule]})
    store.create(
        {
            "apiVersion": version,
            "kind": f"{kind}Binding",
            "metadata": {"name": "r"},
            "roleRef": {"kind": kind, "name": "r"},
            "subjects": [{"kind": "User", "name": user}],
        }
    )


def test_over_http() -> None:
    """The headers decide what the request may do, whatever their case; nothing is done with the requester's rights."""
    api = Api()
    as_alice = [("Impersonate-User", "alice")]
    assert api.call("POST", REVIEW, {}, headers=as_alice).json["status"]["userInfo"]["username"] == "alice"
    refused = api.call("GET", PODS, headers=as_alice)
    assert refused.status == 403
    assert refused.json["message"] == (
        'pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "default"'
    )
    _grant(api.store, "Role", {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}, "alice")
    assert api.call("GET", PODS, headers=as_alice).status == 200
    assert api.call("DELETE", PODS, headers=as_alice).status == 403
    assert api.call("GET", PODS, headers=as_alice, token=None).status == 403
    assert api.call("GET", PODS, headers=as_alice, token="wrong").status == 401


def test_a_binding_to_a_lost_role_is_told() -> None:
    """A role that was deleted under its binding: the refusal names it."""
    api = Api()
    _grant(api.store, "Role", {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}, "alice")
    api.store.delete("Role", "r", "default")
    refused = api.call("GET", PODS, headers=[("Impersonate-User", "alice")])
    assert refused.json["message"].endswith(': RBAC: role.rbac.authorization.k8s.io "r" not found')
