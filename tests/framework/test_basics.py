"""Status, CycleState, the virtual clock, results and snapshot (spec 01 §1, §5.1, §7)."""

from __future__ import annotations

import pytest
from labkit.framework.clock import VirtualClock
from labkit.framework.cycle_state import CycleState, MissingStateError
from labkit.framework.node_info import NodeInfo
from labkit.framework.plugin import EXTENSION_POINTS, Plugin, plugin_name
from labkit.framework.results import Diagnosis, FitError, NodeToStatus, PreFilterResult, reason_histogram
from labkit.framework.snapshot import Snapshot
from labkit.framework.status import Code, Status, is_success
from labkit.objects.meta import ObjectMeta
from labkit.objects.node import Node

U, UU = Status.unschedulable, Status.unresolvable


@pytest.mark.parametrize(
    ("status", "label", "message", "rejected"),
    [
        (Status.success(), "Success", "", False),
        (U("a", "b"), "Unschedulable", "a, b", True),
        (UU("a"), "UnschedulableAndUnresolvable", "a", True),
        (Status.pending("p"), "Pending", "p", True),
        (Status.wait(), "Wait", "", False),
        (Status.skip(), "Skip", "", False),
        (Status.as_error_of(ValueError("boom")), "Error", "boom", False),
        (Status.as_error_of("text"), "Error", "text", False),
    ],
)
def test_status(status: Status, label: str, message: str, rejected: bool) -> None:
    """Code, joined reasons, and whether it rejects the pod."""
    assert (status.code.label, status.message, status.is_rejected) == (label, message, rejected)
    assert status.with_plugin("P").plugin == "P"


def test_no_status_is_success() -> None:
    """None is success."""
    assert [is_success(None), is_success(Status.success()), is_success(U())] == [True, True, False]


def test_cycle_state_reads_what_was_written() -> None:
    """Missing keys raise with kube-scheduler's text; clones share values that cannot clone themselves."""

    class Counted:
        def __init__(self, n: int) -> None:
            self.n = n

        def clone(self) -> Counted:
            return Counted(self.n)

    state = CycleState()
    state.write("a", Counted(1))
    state.write("b", shared := [1])
    copy = state.clone()
    copy.read("a").n = 2
    assert (state.read("a").n, copy.read("b") is shared) == (1, True)
    state.delete("a")
    state.delete("a")
    with pytest.raises(MissingStateError) as caught:
        state.read("a", "error reading")
    assert str(caught.value) == 'error reading "a" from cycleState: not found'
    assert state.get("a", 7) == 7


def test_virtual_time_stands_still_until_moved() -> None:
    """Timers fire in order of time, ties in order of creation, each at its own moment; cancelled ones never."""
    clock = VirtualClock(100.0)
    fired: list[tuple[str, float]] = []

    def note(name: str) -> None:
        fired.append((name, clock.now()))
        if name == "b":
            clock.call_at(clock.now() + 1, lambda: note("made later"))

    clock.call_at(103, lambda: note("c"))
    clock.call_at(101, lambda: note("a"))
    clock.call_at(101, lambda: note("b"))
    clock.call_at(102, lambda: note("never")).cancel()
    clock.call_at(50, lambda: note("overdue"))
    assert (clock.now(), fired, clock.next_timer()) == (100, [], 100)
    clock.advance(2.5)
    assert fired == [("overdue", 100), ("a", 101), ("b", 101), ("made later", 102)]
    assert (clock.now(), clock.next_timer()) == (102.5, 103)
    clock.advance_to(1)
    assert clock.now() == 102.5
    with pytest.raises(ValueError, match="forward"):
        clock.advance(-1)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (None, None, None),
        (None, {"a"}, {"a"}),
        ({"a", "b"}, {"b", "c"}, {"b"}),
        ({"a"}, {"b"}, set()),
        ({"a"}, None, {"a"}),
    ],
)
def test_prefilter_results_intersect(
    one: set[str] | None, other: set[str] | None, both: set[str] | None
) -> None:
    """All nodes (None) is neutral; the originals stay as they were."""
    first, second = PreFilterResult(one), PreFilterResult(other)
    assert (first.merge(second).node_names, first.node_names, second.node_names) == (both, one, other)
    assert first.merge(None).node_names == one


def test_fit_error_counts_reasons() -> None:
    """Reasons are counted over nodes and sorted as text; nodes without a status count with the absent one's."""
    statuses = NodeToStatus(UU("absent"))
    statuses.set("n1", U("Too many pods", "Insufficient cpu"))
    statuses.set("n2", U("Insufficient cpu"))
    text = "0/12 nodes are available: 1 Too many pods, 10 absent, 2 Insufficient cpu."
    assert str(FitError(12, Diagnosis(statuses))) == text
    assert str(FitError(12, Diagnosis(statuses, post_filter_message="more"))) == f"{text} more"
    assert str(FitError(3, Diagnosis(pre_filter_message="why"))) == "0/3 nodes are available: why."
    assert reason_histogram([], Status.success(), 0) == []


def test_statuses_of_all_nodes() -> None:
    """Every node has a status: its own, or the absent one."""
    snapshot = Snapshot(NodeInfo(Node(metadata=ObjectMeta(name=n))) for n in ("n1", "n2", "n3"))
    statuses = NodeToStatus()
    statuses.set("n2", U("x"))
    names = {code: [n.name for n in statuses.nodes_for_code(snapshot, code)] for code in Code}
    assert names[Code.UNSCHEDULABLE] == ["n2"]
    assert names[Code.UNSCHEDULABLE_AND_UNRESOLVABLE] == ["n1", "n3"]
    assert ("n1" in statuses, len(statuses), statuses["n1"].reasons) == (False, 1, ())
    with pytest.raises(KeyError, match="nodeinfo not found"):
        snapshot.get("n9")


def test_pending_plugins_are_rejectors_too() -> None:
    """A diagnosis remembers who rejected, and who said Pending."""
    diagnosis = Diagnosis()
    for status in (U("x", plugin="A"), Status.pending(plugin="B"), Status.skip(plugin="C"), U("nobody")):
        diagnosis.add_plugin_status(status)
    assert (diagnosis.unschedulable_plugins, diagnosis.pending_plugins) == ({"A", "B"}, {"B"})


def test_plugin_names() -> None:
    """A plugin is called by its `name`, else by its class; subclasses do not inherit a class name."""

    class Mine(Plugin):
        pass

    class Named(Mine):
        name = "Other"

    class Bare:
        pass

    class Sub(Named):
        pass

    assert [plugin_name(p) for p in (Mine, Mine(), Named(), Bare(), Sub)] == [
        "Mine",
        "Mine",
        "Other",
        "Bare",
        "Sub",
    ]
    assert list(EXTENSION_POINTS)[:2] == ["pre_enqueue", "queue_sort"]


def test_public_names_import() -> None:
    """Every name that the packages promise is there; others are not."""
    import labkit.framework
    import labkit.objects

    for package in (labkit.framework, labkit.objects):
        assert all(getattr(package, name) is not None for name in package.__all__)
        with pytest.raises(AttributeError):
            package.nothing_of_the_kind  # noqa: B018
