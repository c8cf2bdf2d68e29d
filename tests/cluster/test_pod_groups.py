"""PodGroup and Workload in the store: kept, validated in the API server's words, not announced (spec 15 §1, §2)."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.cluster.store import Store
from labkit.cluster.store_errors import ApiError
from labkit.cluster.store_types import COSCHEDULING_POD_GROUP, GROUP_VERSIONS


def group(policy: Any, version: str = "scheduling.k8s.io/v1alpha2", **spec: Any) -> Any:
    """A PodGroup g."""
    if policy is not None:
        spec["schedulingPolicy"] = policy
    return {
        "apiVersion": version,
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": spec,
    }


def pod(**spec: Any) -> Any:
    """A pod p."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


@pytest.mark.parametrize(
    ("policy", "text"),
    [
        ({"gang": {"minCount": 0}}, "spec.schedulingPolicy.gang.minCount: Required value"),
        ({}, 'spec.schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`'),
        (
            {"basic": {}, "gang": {"minCount": 1}},
            'spec.schedulingPolicy: Invalid value: "{basic, gang}": must specify exactly one of: `basic`, `gang`',
        ),
    ],
)
def test_bad_policies_are_refused_in_the_api_server_s_words(policy: Any, text: str) -> None:
    """Policy -> 422 with this text."""
    with pytest.raises(ApiError) as e:
        Store().create(group(policy))
    assert e.value.code == 422
    assert text in str(e.value)


def test_the_spec_of_a_group_cannot_be_changed() -> None:
    """minCount 2 to 3 -> 422."""
    store = Store()
    store.create(group({"gang": {"minCount": 2}}))
    with pytest.raises(ApiError) as e:
        store.patch(
            "PodGroup", "g", "default", {"spec": {"schedulingPolicy": {"gang": {"minCount": 3}}}}, "merge"
        )
    assert "spec.schedulingPolicy: Invalid value: null: field is immutable" in str(e.value)


def test_both_kinds_of_pod_group_live_side_by_side() -> None:
    """Same name in both groups -> two objects."""
    store = Store()
    store.create(group({"basic": {}}))
    store.create(group(None, "scheduling.x-k8s.io/v1alpha1", minMember=3))
    assert store.get("PodGroup", "g", "default")["spec"]["schedulingPolicy"] == {"basic": {}}
    assert store.get(COSCHEDULING_POD_GROUP, "g", "default")["spec"]["minMember"] == 3


def test_the_out_of_tree_group_needs_members() -> None:
    """minMember 0 -> 422."""
    with pytest.raises(ApiError):
        Store().create(group(None, "scheduling.x-k8s.io/v1alpha1", minMember=0))


def test_pods_keep_their_group_only_with_the_gate() -> None:
    """`spec.schedulingGroup` is dropped by default, kept with `pod_groups`; an empty one is refused."""
    given = {"schedulingGroup": {"podGroupName": "g"}}
    assert "schedulingGroup" not in Store().create(pod(**given))["spec"]
    store = Store(pod_groups=True)
    assert store.create(pod(**given))["spec"]["schedulingGroup"] == {"podGroupName": "g"}
    with pytest.raises(ApiError) as e:
        Store(pod_groups=True).create(pod(schedulingGroup={}))
    assert (
        "spec.schedulingGroup.podGroupName: Invalid value: null: must specify one of: `podGroupName`"
        in str(e.value)
    )


def test_discovery_does_not_announce_them() -> None:
    """A server with default settings lists only scheduling.k8s.io/v1."""
    assert [v for g, v in GROUP_VERSIONS if g.startswith("scheduling.")] == ["v1"]


def test_a_workload_needs_a_template() -> None:
    """No podGroupTemplates -> 422."""
    with pytest.raises(ApiError) as e:
        Store().create(
            {
                "apiVersion": "scheduling.k8s.io/v1alpha2",
                "kind": "Workload",
                "metadata": {"name": "w", "namespace": "default"},
                "spec": {"podGroupTemplates": []},
            }
        )
    assert "spec.podGroupTemplates: Required value" in str(e.value)
