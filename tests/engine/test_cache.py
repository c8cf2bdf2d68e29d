"""Cache and snapshot: spec 01 §5.1 and §9.1."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labkit.engine.cache import Cache
from labkit.framework.snapshot import Snapshot

from tests.engine.helpers import make_node, make_pod

ZONE = "topology.kubernetes.io/zone"


def zoned(name: str, zone: str = "", **labels: str) -> Any:
    """A node in a zone."""
    return make_node(name, labels={**({ZONE: zone} if zone else {}), **labels})


def filled(*nodes: Any) -> tuple[Cache, Snapshot]:
    """A cache with these nodes and its snapshot."""
    cache, snapshot = Cache(), Snapshot()
    for node in nodes:
        cache.add_node(node)
    cache.update_snapshot(snapshot)
    return cache, snapshot


def order(snapshot: Snapshot) -> str:
    """Node names in order."""
    return " ".join(n.name for n in snapshot.nodes)


def test_zones_take_turns() -> None:
    """z1=[a,b,c], z2=[d], z3=[e,f] -> a d e b f c."""
    nodes = [zoned(n, z) for n, z in zip("abcdef", ["z1"] * 3 + ["z2"] + ["z3"] * 2, strict=True)]
    assert order(filled(*nodes)[1]) == "a d e b f c"


def test_old_zone_label_wins_and_region_counts() -> None:
    """The deprecated label comes first; same zone name in two regions is two zones."""
    old, region = "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/region"
    _, snapshot = filled(
        zoned("a", "z1", **{old: "x"}),
        zoned("b", "z2", **{old: "x"}),
        zoned("c", "z1"),
        zoned("d", "z1", **{region: "r"}),
    )
    assert order(snapshot) == "a c d b"


def test_nodes_without_labels_are_one_zone() -> None:
    """The empty key."""
    assert order(filled(zoned("a"), zoned("b", "z"), zoned("c"))[1]) == "a b c"


def test_an_emptied_zone_comes_back_at_the_end() -> None:
    """Remove d, the only node of z2, and add it again."""
    cache, snapshot = filled(zoned("a", "z1"), zoned("d", "z2"), zoned("e", "z3"), zoned("b", "z1"))
    cache.remove_node("d")
    cache.update_snapshot(snapshot)
    assert order(snapshot) == "a e b"
    cache.add_node(zoned("d", "z2"))
    cache.update_snapshot(snapshot)
    assert order(snapshot) == "a e d b"


def test_a_relabel_takes_effect_with_the_next_node() -> None:
    """The order is only worked out anew when a node appears or disappears."""
    cache, snapshot = filled(zoned("a", "z1"), zoned("b", "z1"), zoned("c", "z2"))
    assert order(snapshot) == "a c b"
    cache.update_node(zoned("a", "z2"))
    cache.update_snapshot(snapshot)
    assert order(snapshot) == "a c b"
    assert snapshot.by_name["a"].node.labels[ZONE] == "z2"
    cache.add_node(zoned("e", "z3"))
    cache.update_snapshot(snapshot)
    assert order(snapshot) == "b c e a"


def test_ghosts_keep_their_pods_out_of_sight() -> None:
    """A node that is gone is in no snapshot; when it comes back its pods are still there."""
    cache, snapshot = filled(make_node("a"), make_node("b"))
    cache.add_pod(make_pod("p", node="a", cpu="1"))
    cache.remove_node("a")
    cache.update_snapshot(snapshot)
    assert order(snapshot) == "b"
    cache.add_node(make_node("a"))
    cache.update_snapshot(snapshot)
    assert order(snapshot) == "b a"
    assert snapshot.by_name["a"].requested.milli_cpu == 1000


def test_a_pod_may_come_before_its_node() -> None:
    """Its node is a ghost until then, and goes with its last pod."""
    cache, snapshot = filled()
    pod = make_pod("p", node="a", cpu="1")
    cache.add_pod(pod)
    cache.update_snapshot(snapshot)
    assert order(snapshot) == ""
    cache.remove_pod(pod)
    assert cache.nodes == {}


def test_assume_confirm_forget() -> None:
    """Assumed pods count at once; twice is an error; forget undoes it; a confirmed pod cannot be forgotten."""
    cache, _ = filled(make_node("a"), make_node("b"))
    pod = make_pod("p", node="a", cpu="1")
    cache.assume(pod)
    assert (cache.is_assumed(pod), cache.nodes["a"].requested.milli_cpu) == (True, 1000)
    with pytest.raises(ValueError, match="is in the cache, so can't be assumed"):
        cache.assume(pod)
    cache.forget(pod)
    assert (cache.is_assumed(pod), cache.nodes["a"].requested.milli_cpu) == (False, 0)
    cache.assume(pod)
    cache.add_pod(pod)
    assert not cache.is_assumed(pod)
    cache.forget(pod)
    assert cache.nodes["a"].requested.milli_cpu == 1000


def test_confirmed_on_another_node() -> None:
    """The other node gets it."""
    cache, _ = filled(make_node("a"), make_node("b"))
    cache.assume(make_pod("p", node="a", cpu="1"))
    cache.add_pod(make_pod("p", node="b", cpu="1"))
    assert [cache.nodes[n].requested.milli_cpu for n in "ab"] == [0, 1000]
    assert (cache.pod_count, cache.assumed_count) == (1, 0)


def test_image_states_count_nodes_and_keep_the_first_size() -> None:
    """Size as first reported, number of nodes that have the name, counted when the node was last copied."""

    def with_image(name: str, size: int) -> Any:
        return make_node(name, images=[{"names": ["app:v1"], "sizeBytes": size}])

    cache, snapshot = filled(with_image("a", 10), with_image("b", 20), make_node("c"))
    assert [n.image_states for n in snapshot.nodes] == [{"app:v1": (10, 2)}, {"app:v1": (10, 2)}, {}]
    cache.remove_node("b")
    cache.update_snapshot(snapshot)
    assert snapshot.by_name["a"].image_states == {"app:v1": (10, 2)}
    cache.add_pod(make_pod("p", node="a"))
    cache.update_snapshot(snapshot)
    assert snapshot.by_name["a"].image_states == {"app:v1": (10, 1)}


def test_only_what_changed_is_copied() -> None:
    """One pod added to a of three: the other infos are the same objects as before."""
    cache, snapshot = filled(make_node("a"), make_node("b"), make_node("c"))
    before = list(snapshot.nodes)
    cache.add_pod(make_pod("p", node="a", cpu="1"))
    cache.update_snapshot(snapshot)
    assert [x is y for x, y in zip(before, snapshot.nodes, strict=True)] == [False, True, True]
    assert (before[0].requested.milli_cpu, snapshot.nodes[0].requested.milli_cpu) == (0, 1000)


NAMES = st.sampled_from("abcd")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("node"), NAMES, st.sampled_from(["", "z1", "z2"])),
        st.tuples(st.just("gone"), NAMES, st.just("")),
        st.tuples(st.just("pod"), st.sampled_from("pqrs"), NAMES),
        st.tuples(st.just("delete"), st.sampled_from("pqrs"), st.just("")),
        st.tuples(st.just("look"), st.just(""), st.just("")),
    ),
    max_size=30,
)


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_incremental_snapshot_equals_a_new_one(steps: list[tuple[str, str, str]]) -> None:
    """Whatever happens in between, the snapshot has the nodes, pods, sums and sub-lists of a fresh one."""
    cache, snapshot = Cache(), Snapshot()
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "x"}]}}
    for what, name, more in steps:
        if what == "node":
            cache.add_node(zoned(name, more))
        elif what == "gone":
            cache.remove_node(name)
        elif what == "pod":
            extra = {"affinity": anti} if name in "pq" else {}
            cache.add_pod(make_pod(name, node=more, cpu="1", **extra))
        elif what == "delete":
            cache.remove_pod(make_pod(name))
        else:
            cache.update_snapshot(snapshot)
    cache.update_snapshot(snapshot)
    assert sorted(snapshot.by_name) == sorted(n for n, i in cache.nodes.items() if i.node is not None)
    for i, info in enumerate(snapshot.nodes):
        live = cache.nodes[info.name]
        assert (info.index, snapshot.by_name[info.name]) == (i, info)
        assert info.node is live.node
        assert info.requested == live.requested
        assert [p.pod.name for p in info.pods] == [p.pod.name for p in live.pods]
    assert snapshot.with_affinity == [n for n in snapshot.nodes if n.pods_with_affinity]
    assert snapshot.with_required_anti_affinity == [
        n for n in snapshot.nodes if n.pods_with_required_anti_affinity
    ]
