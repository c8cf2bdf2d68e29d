"""PreFilter, Filter with nominated pods, PostFilter: spec 01 §4.2 to §4.4, answer by answer."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.engine.framework import Framework
from labkit.framework.cycle_state import CycleState
from labkit.framework.results import NodeToStatus, PostFilterResult, PreFilterResult
from labkit.framework.status import Code, Status

from tests.engine.helpers import fake, framework_of, make_pod

U, UU = Status.unschedulable, Status.unresolvable


def only(*names: str) -> PreFilterResult:
    """A PreFilterResult with these nodes."""
    return PreFilterResult(set(names))


def pre_filter(*plugins: Any) -> tuple[PreFilterResult, Status | None, set[str], CycleState, Framework]:
    """Run PreFilter over three nodes."""
    framework, state = framework_of(*plugins), CycleState()
    result, status, restricting = framework.run_pre_filter(state, make_pod(), framework.snapshot.nodes)
    return result, status, restricting, state, framework


# --- PreFilter --------------------------------------------------------------------------------------------


def test_pre_filter_sees_pod_and_all_nodes() -> None:
    """Called once with the pod and every snapshot node."""
    plugin = fake("A", pre_filter=None)
    pre_filter(plugin)
    ((_, pod, nodes),) = plugin.calls
    assert pod.name == "p"
    assert [n.name for n in nodes] == ["a", "b", "c"]


def test_skip_joins_the_skip_set_and_its_result_is_ignored() -> None:
    """Skip -> the plugin's Filter is off, its node names do not count."""
    result, status, restricting, state, _ = pre_filter(fake("A", pre_filter=(only("a"), Status.skip())))
    assert (result.node_names, status, restricting) == (None, None, set())
    assert state.skip_filter_plugins == {"A"}


def test_skip_set_is_set_even_on_failure() -> None:
    """A skips, B fails -> A is still in the set."""
    *_, state, _ = pre_filter(fake("A", pre_filter=Status.skip()), fake("B", pre_filter=UU("no")))
    assert state.skip_filter_plugins == {"A"}


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        ([None, None], None),
        ([{"a", "b"}, None], {"a", "b"}),
        ([None, {"b"}], {"b"}),
        ([{"a", "b"}, {"b", "c"}], {"b"}),
    ],
)
def test_node_names_are_intersected(sets: list[set[str] | None], expected: set[str] | None) -> None:
    """all ∩ X = X."""
    plugins = [fake(f"P{i}", pre_filter=PreFilterResult(s)) for i, s in enumerate(sets)]
    result, status, restricting, *_ = pre_filter(*plugins)
    assert result.node_names == expected
    assert status is None
    assert restricting == {f"P{i}" for i, s in enumerate(sets) if s is not None}


def test_unresolvable_stops_and_is_attributed() -> None:
    """UU of A -> B is not run, no restricting plugins are returned."""
    later = fake("B", pre_filter=None)
    _, status, restricting, *_ = pre_filter(
        fake("R", pre_filter=only("a")), fake("A", pre_filter=UU("never")), later
    )
    assert status == UU("never", plugin="A")
    assert restricting == set()
    assert later.calls == []


def test_last_unschedulable_wins() -> None:
    """A: Unschedulable(a), B: Unschedulable(b) -> message b, rejector B (spec 01 §16.4)."""
    result, status, restricting, *_ = pre_filter(
        fake("A", pre_filter=U("a")), fake("B", pre_filter=U("b")), fake("R", pre_filter=only("a"))
    )
    assert status == U("b", plugin="B")
    assert (result.node_names, restricting) == ({"a"}, {"R"})


def test_unresolvable_after_unschedulable_wins() -> None:
    """A: Unschedulable, B: UU -> B alone."""
    _, status, *_ = pre_filter(fake("A", pre_filter=U("a")), fake("B", pre_filter=UU("b")))
    assert status == UU("b", plugin="B")


@pytest.mark.parametrize(
    "answer",
    [Status.as_error_of("boom"), Status.pending("boom"), Status.wait("boom")],
    ids=lambda s: s.code.label,
)
def test_error_pending_and_wait_are_errors(answer: Status) -> None:
    """Anything else stops with `running PreFilter plugin "A": boom`."""
    later = fake("B", pre_filter=None)
    _, status, restricting, *_ = pre_filter(fake("A", pre_filter=answer), later)
    assert status is not None
    assert status.code == Code.ERROR
    assert status.message == 'running PreFilter plugin "A": boom'
    assert (restricting, later.calls) == (set(), [])


def test_empty_set_of_one_plugin() -> None:
    """One restricting plugin that leaves nothing."""
    later = fake("B", pre_filter=None)
    _, status, restricting, *_ = pre_filter(fake("A", pre_filter=only()), later)
    assert status == UU("node(s) didn't satisfy plugin A")
    assert (restricting, later.calls) == ({"A"}, [])


def test_empty_intersection_names_all_sorted() -> None:
    """Two restricting plugins without a node in common."""
    _, status, restricting, *_ = pre_filter(fake("B", pre_filter=only("b")), fake("A", pre_filter=only("a")))
    assert status == UU("node(s) didn't satisfy plugin(s) [A B] simultaneously")
    assert restricting == {"A", "B"}


# --- AddPod / RemovePod -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "label"), [("add_pod", "AddPod"), ("remove_pod", "RemovePod")])
def test_extensions_in_order_first_failure_aborts(method: str, label: str) -> None:
    """Skipped plugins and those without the method are passed over; the text names the point."""
    skipped = fake("S", pre_filter=Status.skip(), **{method: Status.as_error_of("never called")})
    plain = fake("P", pre_filter=None)
    bad = fake("A", pre_filter=None, **{method: Status.as_error_of("boom")})
    after = fake("B", pre_filter=None, **{method: None})
    *_, state, framework = pre_filter(skipped, plain, bad, after)
    run = getattr(framework, f"run_pre_filter_{method}")
    from labkit.framework.node_info import pod_info

    after.calls.clear()
    status = run(state, make_pod(), pod_info(make_pod("q")), framework.snapshot.nodes[0])
    assert status.code == Code.ERROR
    assert status.message == f'running {label} on PreFilter plugin "A": boom'
    assert after.calls == []


# --- Filter -----------------------------------------------------------------------------------------------


def test_first_rejection_decides() -> None:
    """One plugin's reasons only, attributed by the framework."""
    later = fake("B", filter=U("other"))
    framework = framework_of(fake("A", filter=U("one", "two")), later)
    status = framework.run_filter(CycleState(), make_pod(), framework.snapshot.nodes[0])
    assert status == U("one", "two", plugin="A")
    assert later.calls == []


def test_skipped_plugins_do_not_filter() -> None:
    """The skip set of PreFilter holds."""
    framework, state = framework_of(fake("A", filter=U("no"))), CycleState()
    state.skip_filter_plugins = {"A"}
    assert framework.run_filter(state, make_pod(), framework.snapshot.nodes[0]) is None


@pytest.mark.parametrize("answer", [Status.as_error_of("boom"), Status.skip("boom"), Status.wait("boom")])
def test_other_filter_answers_are_errors(answer: Status) -> None:
    """`running "A" filter plugin: boom`."""
    framework = framework_of(fake("A", filter=answer))
    status = framework.run_filter(CycleState(), make_pod(), framework.snapshot.nodes[0])
    assert status is not None
    assert (status.code, status.message) == (Code.ERROR, 'running "A" filter plugin: boom')


def room_for(pods: int) -> Any:
    """A Filter plugin with room for so many pods a node."""
    return fake("Room", filter=lambda s, p, n: U("full") if len(n.pods) >= pods else None)


@pytest.mark.parametrize(
    ("priority", "passes", "calls"),
    [(50, False, 1), (100, False, 1), (200, True, 1)],
    ids=["lower", "equal", "higher"],
)
def test_nominated_pods_of_equal_or_higher_priority_count(priority: int, passes: bool, calls: int) -> None:
    """Room for one, a pod of priority 100 nominated: only a more important pod may take the place."""
    plugin = room_for(1)
    framework = framework_of(plugin, nominated={"a": [make_pod("nominated", priority=100)]})
    status = framework.run_filter_with_nominated_pods(
        CycleState(), make_pod(priority=priority), framework.snapshot.nodes[0]
    )
    assert (status is None) is passes
    assert len(plugin.calls) == calls


def test_two_passes_when_the_first_succeeds() -> None:
    """With nominated pods, then without: both must succeed; the real node stays as it was."""
    plugin = room_for(2)
    framework = framework_of(plugin, nominated={"a": [make_pod("nominated", priority=1)]})
    assert (
        framework.run_filter_with_nominated_pods(CycleState(), make_pod(), framework.snapshot.nodes[0])
        is None
    )
    assert [len(node.pods) for _, _, node in plugin.calls] == [1, 0]
    assert framework.snapshot.nodes[0].pods == []


def test_second_pass_alone_can_fail() -> None:
    """A plugin that wants company (as pod affinity does) must be content without the nominated pod, too."""
    plugin = fake("Company", filter=lambda s, p, n: None if n.pods else U("alone"))
    framework = framework_of(plugin, nominated={"a": [make_pod("nominated", priority=1)]})
    status = framework.run_filter_with_nominated_pods(CycleState(), make_pod(), framework.snapshot.nodes[0])
    assert status == U("alone", plugin="Company")


def test_the_pod_itself_is_no_rival() -> None:
    """A pod nominated to the node does not compete with itself."""
    plugin = room_for(1)
    framework = framework_of(plugin, nominated={"a": [make_pod(priority=0)]})
    assert (
        framework.run_filter_with_nominated_pods(CycleState(), make_pod(), framework.snapshot.nodes[0])
        is None
    )
    assert len(plugin.calls) == 1


def test_add_pod_works_on_a_clone_of_the_state() -> None:
    """AddPod of the first pass leaves the real state alone; its failure is an Error."""

    class Count:
        """State data with a deep clone."""

        def __init__(self, n: int = 0) -> None:
            self.n = n

        def clone(self) -> Count:
            """A copy."""
            return Count(self.n)

    def added(state: CycleState, *_: Any) -> None:
        state.read("count").n += 1

    framework = framework_of(
        fake("A", pre_filter=None, add_pod=added, filter=None), nominated={"a": [make_pod("q", priority=1)]}
    )
    state = CycleState()
    state.write("count", Count())
    assert framework.run_filter_with_nominated_pods(state, make_pod(), framework.snapshot.nodes[0]) is None
    assert state.read("count").n == 0
    broken = framework_of(
        fake("A", pre_filter=None, add_pod=Status.as_error_of("boom"), filter=None),
        nominated={"a": [make_pod("q", priority=1)]},
    )
    status = broken.run_filter_with_nominated_pods(state, make_pod(), broken.snapshot.nodes[0])
    assert status is not None
    assert status.message == 'running AddPod on PreFilter plugin "A": boom'


# --- PostFilter -------------------------------------------------------------------------------------------


def post_filter(*answers: Any) -> tuple[PostFilterResult | None, Status, list[Any]]:
    """Run PostFilter plugins P0, P1, ... with these answers."""
    plugins = [fake(f"P{i}", post_filter=a) for i, a in enumerate(answers)]
    result, status = framework_of(*plugins).run_post_filter(CycleState(), make_pod(), NodeToStatus())
    return result, status, [p.name for p in plugins if p.calls]


def test_post_filter_success_stops() -> None:
    """Success -> its result; later plugins are not called."""
    found = PostFilterResult("a")
    result, status, called = post_filter(U("one"), (found, Status.success()), U("never"))
    assert (result, status.code, status.message, called) == (found, Code.SUCCESS, "", ["P0", "P1"])


def test_post_filter_unresolvable_stops_with_its_result() -> None:
    """UU -> its result and status."""
    found = PostFilterResult("")
    result, status, called = post_filter((found, UU("give up")), U("never"))
    assert (result, status.code, status.message, called) == (
        found,
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        "give up",
        ["P0"],
    )


@pytest.mark.parametrize("answer", [Status.as_error_of("boom"), Status.skip("boom"), Status.wait("boom")])
def test_post_filter_error_keeps_its_text(answer: Status) -> None:
    """Error (or any other code) -> no result, the same text, nothing else is called."""
    result, status, called = post_filter((PostFilterResult("a"), answer), U("never"))
    assert (result, status.code, status.message, called) == (None, Code.ERROR, "boom", ["P0"])


def test_post_filter_collects_reasons_and_the_last_override() -> None:
    """Unschedulable and Pending go on; a no-op result is not remembered."""
    first, second, noop = PostFilterResult("a"), PostFilterResult("b"), PostFilterResult("", override=False)
    result, status, _ = post_filter(
        (first, U("one")), (second, Status.pending("two")), (noop, U("three")), U("four")
    )
    assert result is second
    assert (status.code, status.message) == (Code.UNSCHEDULABLE, "one, two, three, four")
