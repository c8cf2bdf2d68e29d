"""The course's other plugins in a lab: approval, licences, room for important pods, scores, affinity, node name."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.framework.status import Status
from labkit.plugins.course import (
    ApprovalPermit,
    CustomBalancedAllocation,
    CustomInterPodAffinity,
    CustomNodeResourcesFit,
    CustomPostFilter,
    LicencePreBind,
    NodeName,
    all_plugins,
)
from labkit.plugins.course.licence_pre_bind import LicenceServer

from tests.engine.world import Scripted, World
from tests.plugins.helpers import filtered, info, make_node, make_pod, requesting, said, scored

# --- ApprovalPermit -----------------------------------------------------------------------------------------


def asking() -> tuple[World, ApprovalPermit]:
    """A pod that needs approval, held on node a."""
    plugin = ApprovalPermit()
    w = World(plugins=[plugin])
    w.node()
    w.pod(labels={"approval": "required"})
    w.lab.run()
    return w, plugin


def test_approval_binds_the_pod() -> None:
    """Held with its node -> approved -> bound."""
    w, plugin = asking()
    assert plugin.waiting() == {"default/p": "a"}
    plugin.approve("default/p")
    w.lab.run()
    assert w.where() == "node a"
    assert plugin.waiting() == {}


def test_denial_tells_why_and_frees_the_room() -> None:
    """Denied -> the reason in the condition, nothing assumed, and no second attempt by itself."""
    w, plugin = asking()
    plugin.deny("default/p", "freeze until Monday")
    w.lab.run()
    assert w.condition() == ("False", "Unschedulable", "0/1 nodes are available: 1 freeze until Monday.")
    assert w.assumed == 0
    w.lab.advance(1000)
    assert plugin.waiting() == {}
    assert "freeze until Monday" in str(w.condition())


def test_a_denied_pod_can_be_approved_later() -> None:
    """Denied, then approved -> bound."""
    w, plugin = asking()
    plugin.deny("default/p")
    w.lab.run()
    plugin.approve("default/p")
    w.lab.run()
    assert w.where() == "node a"


def test_silence_is_a_no() -> None:
    """600 s without a word -> rejected, room free; approval after that -> bound."""
    w, plugin = asking()
    w.lab.advance(599)
    assert w.assumed == 1
    w.lab.advance(1)
    assert (w.assumed, plugin.waiting()) == (0, {})
    assert "after waiting 10m0s at plugin ApprovalPermit" in str(w.condition())
    plugin.approve("default/p")
    w.lab.run()
    assert w.where() == "node a"


def test_decisions_about_strangers_are_errors() -> None:
    """A pod that never asked -> KeyError that names it."""
    _, plugin = asking()
    for decide in (plugin.approve, plugin.deny):
        with pytest.raises(KeyError, match="default/x"):
            decide("default/x")


def test_unmarked_pods_need_no_approval() -> None:
    """No label -> bound."""
    w = World(plugins=[ApprovalPermit()])
    w.node()
    w.pod()
    w.lab.run()
    assert w.where() == "node a"


def test_a_pod_deleted_while_it_waits_leaves_nothing() -> None:
    """Deleted -> not waiting, nothing assumed; the next one asks anew."""
    w, plugin = asking()
    w.delete("p")
    assert (plugin.waiting(), w.assumed) == ({}, 0)
    w.pod(labels={"approval": "required"})
    w.lab.run()
    assert plugin.waiting() == {"default/p": "a"}


# --- LicencePreBind -----------------------------------------------------------------------------------------


def licensed(total: int, *others: Any) -> tuple[World, LicenceServer]:
    """A node, and a server with so many licences."""
    server = LicenceServer(total)
    w = World(plugins=[LicencePreBind({"server": server}), *others])
    w.node(cpu="4")
    return w, server


def test_pods_get_licences_until_there_are_none() -> None:
    """Two licences, three pods -> two run, the third says why; one ends -> the third runs."""
    w, server = licensed(2)
    for name in "abc":
        w.pod(name, labels={"licence": "simulator"})
    w.lab.run()
    assert (w.where("a"), w.where("b"), server.free) == ("node a", "node a", 0)
    assert "no licence is free" in str(w.condition("c"))
    w.lab.advance(20)
    w.delete("a")
    w.lab.run()
    assert (w.where("c"), server.free) == ("node a", 0)


def test_a_failed_binding_gives_the_licence_back() -> None:
    """Bind fails after PreBind -> Unreserve returns the licence."""
    w, server = licensed(1, Scripted("Broken", bind=Status.as_error_of("no route")))
    w.pod(labels={"licence": "simulator"})
    w.step()
    assert (w.where(), server.free) == ("error_backoff", 1)


def test_a_held_pod_counts_on_its_licence() -> None:
    """One licence; a is held by Permit and has only booked -> b is told that none is free; a times out -> b runs."""
    hold = Scripted("Hold", permit=lambda s, pod, n: (Status.wait(), 30.0) if pod.name == "a" else None)
    w, server = licensed(1, hold)
    for name in "ab":
        w.pod(name, labels={"licence": "simulator"})
    w.lab.run()
    assert (w.where("a"), server.free) == ("in_flight", 1)
    assert "no licence is free" in str(w.condition("b"))
    w.lab.advance(30)
    assert (w.where("b"), server.free) == ("node a", 0)


def test_a_server_that_fails_makes_the_pod_try_again() -> None:
    """The server refuses once -> error and back-off; then it gives -> bound."""
    w, server = licensed(1)
    server.take("somebody else")
    server.total, real = 2, server.take
    refused: list[str] = []

    def take(holder: str) -> None:
        if not refused:
            refused.append(holder)
            raise RuntimeError("the licence server is down")
        real(holder)

    server.take = take  # type: ignore[method-assign]
    w.pod(labels={"licence": "simulator"})
    w.step()
    assert w.condition() == (
        "False",
        "SchedulerError",
        'running PreBind plugin "LicencePreBind": the licence server is down',
    )
    w.lab.advance(3)
    assert w.where() == "node a"


def test_unreserve_may_come_twice() -> None:
    """Giving back what one does not have -> nothing happens."""
    server = LicenceServer(1)
    plugin = LicencePreBind({"server": server})
    pod = make_pod(labels={"licence": "x"})
    plugin.reserve(None, pod, "a")  # type: ignore[arg-type]
    plugin.pre_bind(None, pod, "a")  # type: ignore[arg-type]
    for _ in range(2):
        plugin.unreserve(None, pod, "a")  # type: ignore[arg-type]
    assert (server.free, plugin._booked) == (1, set())


def test_pods_without_the_label_do_no_work_at_pre_bind() -> None:
    """No label -> PreBindPreFlight Skip, bound."""
    w, server = licensed(0)
    w.pod()
    w.lab.run()
    assert (w.where(), server.holders) == ("node a", set())


# --- CustomPostFilter ---------------------------------------------------------------------------------------


def crowded(*pods: tuple[str, str, str, str]) -> World:
    """Nodes a and b of two CPUs with (name, node, cpu, priority) on them, and CustomPostFilter only."""
    w = World(plugins=[CustomPostFilter()])
    w.lab.plugins.disable("DefaultPreemption")
    w.node("a"), w.node("b")
    for name, node, cpu, priority in pods:
        w.pod(name, cpu=cpu, priority=priority, nodeName=node)
    return w


def test_only_as_many_as_needed_go() -> None:
    """a holds two low pods of 1 CPU, b is full of high ones; 1 CPU wanted -> one victim, nominated to a, then bound."""
    w = crowded(("l1", "a", "1", "low"), ("l2", "a", "1", "low"), ("h", "b", "2", "higher"))
    w.pod(priority="high")
    w.step()
    assert sum(w.raw(n) is None for n in ("l1", "l2")) == 1
    w.lab.run()
    w.lab.advance(15)
    assert w.where() == "node a"


def test_the_least_important_victim_is_taken() -> None:
    """a: priority 0, b: low -> b's pod goes."""
    w = crowded(("zero", "a", "2", ""), ("low", "b", "2", "low"))
    w.pod(priority="high", cpu="2")
    w.step()
    assert (w.where("zero"), w.where("low")) == ("node a", None)


@pytest.mark.parametrize("priority", ["", "high"])
def test_equals_and_betters_stay(priority: str) -> None:
    """Everybody is at least as important -> nobody goes, and the message says so."""
    w = crowded(("x", "a", "2", "high"), ("y", "b", "2", "higher"))
    w.pod(priority=priority)
    w.step()
    assert "deleting pods of lower priority would not help" in str(w.condition())
    assert (w.where("x"), w.where("y")) == ("node a", "node b")


def test_a_node_that_is_wrong_for_another_reason_is_left_alone() -> None:
    """The pod selects b; only a has low pods -> nobody goes."""
    w = crowded(("l", "a", "2", "low"), ("h", "b", "2", "higher"))
    w.node("b", labels={"disk": "ssd"})
    w.pod(priority="high", nodeSelector={"disk": "ssd"})
    w.step()
    assert w.where("l") == "node a"


def test_nobody_else_is_deleted_while_victims_leave() -> None:
    """The victim has 30 s of grace; tried again -> the message, and b's pod stays."""
    w = World(plugins=[CustomPostFilter()])
    w.lab.plugins.disable("DefaultPreemption")
    w.node("a"), w.node("b")
    for name in "ab":
        w.pod(f"v{name}", cpu="2", priority="low", nodeName=name, terminationGracePeriodSeconds=30)
    w.pod(priority="high", cpu="2")
    w.step()
    w.lab.scheduler.queue.activate([w.info().pod])
    w.step()
    left = [n for n in ("va", "vb") if not w.raw(n)["metadata"].get("deletionTimestamp")]
    assert len(left) == 1
    assert "pods are leaving" in str(w.condition())
    w.lab.advance(31)
    assert str(w.where()).startswith("node ")


# --- scores and fit -----------------------------------------------------------------------------------------


def sized(cpu: str = "10", memory: str = "10Gi", pods: str = "110", **more: str) -> Any:
    """A node with these amounts."""
    return make_node(allocatable={"cpu": cpu, "memory": memory, "pods": pods, **more})


@pytest.mark.parametrize(
    ("cpu", "memory", "score"),
    [("6", "6Gi", 100), ("9", "1Gi", 60), ("10", "0", 50), ("5", "0", 75)],
)
def test_balance_is_a_hundred_minus_the_deviation(cpu: str, memory: str, score: int) -> None:
    """Shares of CPU and memory after the pod -> score."""
    pod = requesting({"cpu": cpu, "memory": memory})
    assert scored(CustomBalancedAllocation(), pod, [sized()])[0] == [score]


def test_balance_counts_what_is_there_and_skips_what_the_node_lacks() -> None:
    """A pod there changes the share; a resource that the node does not have is left out."""
    there = info(sized(), requesting({"cpu": "8"}))
    raw, _ = scored(CustomBalancedAllocation(), requesting({"cpu": "1", "memory": "9Gi"}), [there])
    assert raw == [100]
    weights = CustomBalancedAllocation({"resourceWeights": {"cpu": 1, "example.com/gpu": 1}})
    assert scored(weights, requesting({"cpu": "5"}), [sized()])[0] == [100]


def test_balance_has_no_opinion_on_pods_without_requests() -> None:
    """No requests -> Skip."""
    assert scored(CustomBalancedAllocation(), make_pod(), [sized()]) == ("Skip", [])


@pytest.mark.parametrize(
    ("requests", "there", "verdict"),
    [
        ({"cpu": "2"}, {"cpu": "8"}, ("Success", [])),
        ({"cpu": "3"}, {"cpu": "8"}, ("Unschedulable", ["Insufficient cpu"])),
        ({"cpu": "11"}, {}, ("UnschedulableAndUnresolvable", ["Insufficient cpu"])),
        (
            {"cpu": "3", "memory": "3Gi"},
            {"cpu": "8", "memory": "8Gi"},
            ("Unschedulable", ["Insufficient cpu", "Insufficient memory"]),
        ),
        ({"example.com/gpu": "1"}, {}, ("UnschedulableAndUnresolvable", ["Insufficient example.com/gpu"])),
        ({"memory": "1Gi"}, {"cpu": "12"}, ("Success", [])),
    ],
)
def test_fit_compares_requests_with_what_is_left(requests: Any, there: Any, verdict: Any) -> None:
    """Request and what is there on a node of 10 CPUs and 10Gi -> verdict with all reasons."""
    node = info(sized(), requesting(there))
    assert filtered(CustomNodeResourcesFit(), requesting(requests), node) == verdict


def test_fit_counts_pods() -> None:
    """One place, taken -> `Too many pods`; a node without places -> unresolvable."""
    assert filtered(CustomNodeResourcesFit(), make_pod(), info(sized(pods="1"), make_pod("q"))) == (
        "Unschedulable",
        ["Too many pods"],
    )
    assert (
        filtered(CustomNodeResourcesFit(), make_pod(), sized(pods="0"))[0] == "UnschedulableAndUnresolvable"
    )


def test_fit_scores_the_free_share() -> None:
    """5 of 10 CPUs and 0.2 of 10Gi taken -> (50 + 98) / 2 = 74; weights shift it."""
    pod = requesting({"cpu": "5", "memory": "200Mi"})
    assert scored(CustomNodeResourcesFit(), pod, [sized()])[0] == [74]
    only_cpu = CustomNodeResourcesFit({"resourceWeights": {"cpu": 1}})
    assert scored(only_cpu, pod, [sized()])[0] == [50]


@pytest.mark.parametrize(
    ("name", "verdict"), [("", "Success"), ("n", "Success"), ("m", "UnschedulableAndUnresolvable")]
)
def test_node_name(name: str, verdict: str) -> None:
    """spec.nodeName against node n -> verdict."""
    pod = make_pod(nodeName=name) if name else make_pod()
    assert said(NodeName().filter(None, pod, info(make_node())))[0] == verdict  # type: ignore[arg-type]


# --- CustomInterPodAffinity ---------------------------------------------------------------------------------


def term(key: str = "zone", **labels: str) -> Any:
    """Pods with these labels, in the topology of `key`."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def required(kind: str, *terms: Any) -> Any:
    """spec.affinity with required terms."""
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def preferred(kind: str, weight: int, one: Any) -> Any:
    """spec.affinity with one preferred term."""
    return {
        kind: {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": one}]
        }
    }


def zones(plugin: Any = None) -> World:
    """Nodes a1 and a2 in zone a, b1 in zone b; the plugin in place of InterPodAffinity."""
    w = World(plugins=[plugin or CustomInterPodAffinity()])
    w.lab.plugins.disable("InterPodAffinity")
    for name in ("a1", "a2", "b1"):
        w.node(name, cpu="8", labels={"zone": name[0], "kubernetes.io/hostname": name})
    return w


def zone_of(w: World, name: str) -> str:
    """The zone in which a pod runs, or its queue."""
    where = str(w.where(name))
    return where.removeprefix("node ")[0] if where.startswith("node ") else where


def test_together_means_the_same_zone_and_not_the_same_node() -> None:
    """A friend on b1 -> zone b; without the label on any node the pod stays out."""
    w = zones()
    w.pod("friend", labels={"app": "web"}, nodeName="b1")
    w.pod("p", affinity=required("podAffinity", term(app="web")))
    w.pod("q", affinity=required("podAffinity", term("rack", app="web")))
    w.lab.run()
    assert zone_of(w, "p") == "b"
    assert "node(s) didn't match pod affinity rules" in str(w.condition("q"))


def test_the_first_of_its_kind_may_go_anywhere() -> None:
    """Wants its like, finds none, is one itself -> placed; the second -> the same zone."""
    w = zones()
    for name in ("p", "q"):
        w.pod(name, labels={"app": "web"}, affinity=required("podAffinity", term(app="web")))
        w.lab.run()
    assert zone_of(w, "p") == zone_of(w, "q") in ("a", "b")


def test_a_newcomer_who_matches_nothing_waits_for_friends() -> None:
    """Wants app=web, is none, and there is none -> rejected; one comes -> placed next to it."""
    w = zones()
    w.pod("p", affinity=required("podAffinity", term(app="web")))
    w.lab.run()
    assert w.where("p") == "unschedulable"
    w.lab.advance(5)
    w.pod("friend", labels={"app": "web"}, nodeName="a1")
    w.lab.run()
    assert zone_of(w, "p") == "a"


def test_anti_affinity_works_both_ways() -> None:
    """Loner in zone a wants no app=web near; a web pod -> zone b. A web pod there, a new loner -> elsewhere."""
    w = zones()
    w.pod("loner", nodeName="a1", affinity=required("podAntiAffinity", term(app="web")))
    w.pod("web", labels={"app": "web"})
    w.lab.run()
    assert zone_of(w, "web") == "b"
    w.pod("second", affinity=required("podAntiAffinity", term(app="web")))
    w.lab.run()
    assert zone_of(w, "second") == "a"
    w.pod("other", labels={"app": "web"}, nodeSelector={"zone": "a"})
    w.lab.run()
    assert "node(s) didn't satisfy existing pods anti-affinity rules" in str(w.condition("other"))


def test_preferences_draw_and_push() -> None:
    """Prefers app=web -> its zone; prefers not -> the other; scores between 0 and 100."""
    w = zones()
    w.pod("web", labels={"app": "web"}, nodeName="b1")
    w.pod("near", affinity=preferred("podAffinity", 50, term(app="web")))
    w.pod("far", affinity=preferred("podAntiAffinity", 50, term(app="web")))
    w.lab.run()
    assert zone_of(w, "near") == "b"
    assert zone_of(w, "far") == "a"


def test_preemption_hears_of_anti_affinity() -> None:
    """One zone; a low pod that a high newcomer cannot stand -> preempted, although there is room for both."""
    w = World(plugins=[CustomInterPodAffinity()])
    w.lab.plugins.disable("InterPodAffinity")
    w.node("a1", cpu="8", labels={"zone": "a"})
    w.pod("low", labels={"app": "web"}, priority="low", nodeName="a1")
    w.pod("p", priority="high", affinity=required("podAntiAffinity", term(app="web")))
    w.lab.run()
    w.lab.advance(15)
    assert (w.where("low"), w.where("p")) == (None, "node a1")


# --- all ----------------------------------------------------------------------------------------------------


def test_every_course_plugin_can_be_named_in_a_configuration() -> None:
    """Each class, enabled by name at every point it serves -> the lab runs with it."""
    for cls in all_plugins():
        config: Any = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": cls.__name__}]}}}],
        }
        if cls.__name__ == "Coscheduling":
            config["profiles"][0]["plugins"]["queueSort"] = {
                "enabled": [{"name": "Coscheduling"}],
                "disabled": [{"name": "*"}],
            }
        w = World(config=config, plugins=[cls])
        w.node()
        w.pod()
        w.lab.run()
        assert w.where() == "node a", cls.__name__
