"""The real trio does what the rest of these tests rely on."""

from __future__ import annotations

import os

import pytest

from .harness import HarnessError, RealControlPlane, make_node, make_pod, make_priority_class, wait_for

pytestmark = pytest.mark.realcluster


def test_pod_gets_the_node_that_fits(real_control_plane: RealControlPlane) -> None:
    """2 CPUs wanted, nodes of 1 and 4 CPUs -> the big node, PodScheduled=True, event Scheduled."""
    api = real_control_plane.api
    api.create_all(make_node("small", cpu="1"), make_node("big", cpu="4"))
    real_control_plane.start_scheduler()
    api.create(make_pod("web", cpu="2", memory="64Mi"))

    assert wait_for(lambda: api.node_of("web"), 20, "web bound") == "big"
    assert api.condition("web")["status"] == "True"
    (event,) = wait_for(lambda: api.events("web", "Scheduled"), 10, "event Scheduled")
    assert event["note"] == "Successfully assigned default/web to big"


def test_pod_that_fits_nowhere_says_why(real_control_plane: RealControlPlane) -> None:
    """Three nodes, three reasons -> one message that counts them, in the condition and the event."""
    api = real_control_plane.api
    taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
    api.create_all(
        make_node("n1", cpu="2"), make_node("n2", taints=[taint]), make_node("n3", unschedulable=True)
    )
    api.create(make_pod("resident", cpu="1", nodeName="n1"))
    real_control_plane.start_scheduler()
    api.create(make_pod("big", cpu="2"))

    condition = wait_for(lambda: api.condition("big"), 20, "a PodScheduled condition")
    expected = (
        "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s), "
        "1 node(s) were unschedulable. no new claims to deallocate, preemption: 0/3 nodes are available: "
        "1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
    )
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"] == expected
    (event,) = wait_for(lambda: api.events("big", "FailedScheduling"), 10, "event FailedScheduling")
    assert event["note"] == expected


def test_important_pod_preempts(real_control_plane: RealControlPlane) -> None:
    """A full node, a pod of higher priority -> the low one goes with event Preempted, the high is bound."""
    api = real_control_plane.api
    api.create_all(
        make_priority_class("low", 10), make_priority_class("high", 1000), make_node("only", cpu="2")
    )
    real_control_plane.start_scheduler()
    api.create(make_pod("filler", cpu="2", priorityClassName="low"))
    wait_for(lambda: api.node_of("filler"), 20, "filler bound")
    api.create(make_pod("urgent", cpu="2", priorityClassName="high"))

    assert wait_for(lambda: api.node_of("urgent"), 20, "urgent bound") == "only"
    assert set(api.placements()) == {"urgent"}
    assert wait_for(lambda: api.events("filler", "Preempted"), 10, "event Preempted")


def test_scheduler_follows_its_configuration(real_control_plane: RealControlPlane) -> None:
    """MostAllocated under another scheduler name -> the fuller node; pods of other names are left alone."""
    api = real_control_plane.api
    strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
    profile = {
        "schedulerName": "packer",
        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}],
        "plugins": {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit"}]}},
    }
    api.create_all(make_node("empty", cpu="4"), make_node("fuller", cpu="4"))
    api.create(make_pod("resident", cpu="1", nodeName="fuller"))
    scheduler = real_control_plane.start_scheduler({"profiles": [profile]})
    api.create_all(make_pod("other", cpu="1"), make_pod("mine", cpu="1", scheduler="packer"))

    assert wait_for(lambda: api.node_of("mine"), 20, "mine bound") == "fuller"
    assert api.node_of("other") == ""
    assert "scheduler_schedule_attempts_total" in scheduler.get("/metrics")


def test_wrong_configuration_is_reported_with_the_log(real_control_plane: RealControlPlane) -> None:
    """An illegal value -> kube-scheduler ends, and the harness's error shows the validation message."""
    with pytest.raises(HarnessError, match="percentageOfNodesToScore") as caught:
        real_control_plane.start_scheduler({"percentageOfNodesToScore": 101})
    assert "ended with status 1" in str(caught.value)


def test_kubectl_and_reset(real_control_plane: RealControlPlane) -> None:
    """kubectl reaches the real server; reset leaves nothing of a test behind, and all that is the server's own."""
    api = real_control_plane.api
    api.create(make_node("n1"))
    real_control_plane.kubectl("create", "namespace", "team")
    real_control_plane.kubectl("-n", "team", "run", "p", "--image=i")
    real_control_plane.kubectl("create", "role", "reader", "--verb=get", "--resource=pods")
    real_control_plane.kubectl("create", "clusterrole", "reader", "--verb=get", "--resource=pods")
    real_control_plane.kubectl("create", "secret", "generic", "s")
    before = real_control_plane.kubectl("get", "clusterroles", "-o", "name").stdout.split()
    names = real_control_plane.kubectl("get", "nodes,pods", "-A", "-o", "name").stdout.split()
    assert names == ["node/n1", "pod/p"]
    real_control_plane.reset()
    assert api.list("Node") == api.list("Pod") == []
    assert real_control_plane.kubectl("get", "roles,secrets", "-o", "name").stdout == ""
    after = real_control_plane.kubectl("get", "clusterroles", "-o", "name").stdout.split()
    assert set(before) - set(after) == {"clusterrole.rbac.authorization.k8s.io/reader"}
    assert "team" not in {item["metadata"]["name"] for item in api.list("Namespace")}


def test_stop_ends_its_own_programs_only(real_control_plane: RealControlPlane) -> None:
    """Of two control planes one is stopped -> its children and directory are gone, the other lives on."""
    with RealControlPlane(real_control_plane.binaries, authorization="AlwaysAllow") as second:
        assert second.api.list("Pod") == []
        directory, pids = second.directory, second.pids()
        assert len(pids) == 2
    assert not directory.exists()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert real_control_plane.api.ready()
