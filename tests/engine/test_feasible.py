"""Finding feasible nodes: spec 01 §5.2 to §5.4, and extenders' filter (spec 04 §6)."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.engine.cycle import Settings, schedule_pod
from labkit.engine.extender_api import FilterResult
from labkit.engine.feasible import Rotation, num_feasible_to_find
from labkit.framework.cycle_state import CycleState
from labkit.framework.results import PreFilterResult
from labkit.framework.status import Code, Status

from tests.engine.helpers import attempt, fake, framework_of, make_pod

U, UU = Status.unschedulable, Status.unresolvable


@pytest.mark.parametrize(
    ("nodes", "percentage", "expected"),
    [
        (99, 0, 99),
        (100, 0, 100),
        (200, 0, 100),
        (240, 0, 117),
        (250, 0, 120),
        (300, 0, 144),
        (500, 0, 230),
        (1000, 0, 420),
        (5000, 0, 500),
        (6000, 0, 300),
        (15000, 0, 750),
        (1000, 40, 400),
        (1000, 5, 100),
        (50, 10, 50),
        (1000, 100, 1000),
    ],
)
def test_num_feasible_to_find(nodes: int, percentage: int, expected: int) -> None:
    """The table of spec 01 §5.4."""
    assert num_feasible_to_find(nodes, percentage) == expected


def names(n: int) -> list[str]:
    """n000, n001, ..."""
    return [f"n{i:03d}" for i in range(n)]


def odd_only() -> Any:
    """Rejects the nodes with an odd number."""
    return fake("Odd", filter=lambda s, p, n: U("odd") if int(n.name[1:]) % 2 else None, score=0)


def test_the_search_stops_at_one_success_more_than_wanted() -> None:
    """400 nodes, 100 wanted, every second fits: 100 feasible, 100 rejected; the 101st success is not recorded."""
    settings = Settings(rotation=Rotation(0))
    framework = framework_of(odd_only(), nodes=names(400), percentage=25)
    result, _ = attempt(framework, settings=settings)
    assert (result.feasible, result.evaluated) == (100, 200)
    assert settings.rotation.next_start == 200


def test_rejections_before_the_extra_success_count() -> None:
    """Pass, then rejections up to the extra success: they are recorded and move the start (want = 100)."""
    plugin = fake("P", filter=lambda s, p, n: None if int(n.name[1:]) < 100 else U("late"), score=0)
    settings = Settings()
    result, trace = attempt(framework_of(plugin, nodes=names(150), percentage=10), settings=settings)
    assert result.feasible == 100
    assert (settings.rotation.next_start, len(trace.filter)) == (0, 150)


def test_the_next_search_starts_where_the_last_one_ended() -> None:
    """200 nodes, all fit, 100 wanted: second pod looks at the other half."""
    settings = Settings()
    framework = framework_of(fake("P", filter=None, score=0), nodes=names(200))
    first, _ = attempt(framework, settings=settings)
    second, _ = attempt(framework, settings=settings)
    third, _ = attempt(framework, settings=settings)
    assert [first.node, second.node, third.node] == ["n000", "n100", "n000"]


def test_small_clusters_never_rotate() -> None:
    """Fewer than 100 nodes: all are looked at, the start stays 0."""
    settings = Settings()
    framework = framework_of(odd_only(), nodes=names(7))
    for _ in range(3):
        attempt(framework, settings=settings)
    assert settings.rotation.next_start == 0


def test_restricted_candidates_rotate_over_all_nodes() -> None:
    """PreFilter leaves 2 of 5 nodes: the start moves by 2 modulo 5."""
    settings = Settings()
    framework = framework_of(
        fake("R", pre_filter=PreFilterResult({"n001", "n003"}), filter=None, score=0), nodes=names(5)
    )
    starts = []
    for _ in range(3):
        attempt(framework, settings=settings)
        starts.append(settings.rotation.next_start)
    assert starts == [2, 4, 1]


def test_one_is_enough_without_scoring() -> None:
    """No Score plugin and no extender that filters or prioritises: the first node that fits is taken."""
    plugin = fake("P", filter=lambda s, p, n: U("no") if n.name == "n000" else None)
    result, trace = attempt(framework_of(plugin, nodes=names(5)))
    assert (result.node, result.feasible) == ("n001", 1)
    assert "n003" not in trace.filter


def test_without_filter_plugins_the_wanted_number_is_taken_in_order() -> None:
    """No Filter plugin: nodes[(next + i) % n], nothing is recorded."""
    settings = Settings(rotation=Rotation(150))
    result, trace = attempt(framework_of(fake("S", score=0), nodes=names(200)), settings=settings)
    assert (result.node, result.feasible, trace.filter) == ("n150", 100, {})
    assert settings.rotation.next_start == 50


def test_names_that_do_not_exist_are_passed_over() -> None:
    """PreFilter names an unknown node: only the known one is a candidate."""
    framework = framework_of(fake("R", pre_filter=PreFilterResult({"a", "ghost"}), filter=None, score=0))
    result, _ = attempt(framework)
    assert result.node == "a"


def test_restriction_gives_the_other_nodes_their_reason() -> None:
    """The rest counts as `node(s) didn't satisfy plugin(s) [R1 R2]`; R1 and R2 are rejectors even so."""
    framework = framework_of(
        fake("R2", pre_filter=PreFilterResult({"a", "b"})),
        fake("R1", pre_filter=PreFilterResult({"a", "c"})),
        fake("F", filter=U("tainted")),
    )
    result, _ = attempt(framework)
    assert result.message == (
        "0/3 nodes are available: 1 tainted, 2 node(s) didn't satisfy plugin(s) [R1 R2]."
    )
    assert result.fit_error is not None
    assert result.fit_error.diagnosis.unschedulable_plugins == {"R1", "R2", "F"}


def test_pre_filter_rejection_runs_no_filter() -> None:
    """Its message is the whole reason; the absent status is the rejection itself."""
    later = fake("F", filter=None)
    result, _ = attempt(framework_of(fake("A", pre_filter=U("too much")), later))
    assert later.calls == []
    assert result.message == "0/3 nodes are available: too much."
    assert result.fit_error is not None
    diagnosis = result.fit_error.diagnosis
    assert diagnosis.unschedulable_plugins == {"A"}
    assert diagnosis.node_to_status["a"].code == Code.UNSCHEDULABLE


def test_pending_plugins_are_in_both_sets() -> None:
    """Filter says Pending: the plugin is remembered as rejector and as pending."""
    result, _ = attempt(framework_of(fake("A", filter=Status.pending("soon"))))
    assert result.fit_error is not None
    diagnosis = result.fit_error.diagnosis
    assert (diagnosis.unschedulable_plugins, diagnosis.pending_plugins) == ({"A"}, {"A"})


def test_filter_error_aborts_and_still_rotates() -> None:
    """a passes, b is rejected, c fails: an error, no FitError; two nodes were processed."""
    plugin = fake(
        "P", filter=lambda s, p, n: {"a": None, "b": U("no"), "c": Status.as_error_of("boom")}[n.name]
    )
    settings = Settings(rotation=Rotation(0))
    result, trace = attempt(framework_of(plugin, fake("S", score=0)), settings=settings)
    assert (result.message, result.fit_error) == ('running "P" filter plugin: boom', None)
    assert settings.rotation.next_start == 2
    assert trace.post_filter_status is None


# --- nominated node ---------------------------------------------------------------------------------------


def test_nominated_node_that_fits_is_the_only_one() -> None:
    """Filters are called once; no scoring, and the start does not move."""
    plugin = fake("P", filter=None, score=0)
    settings = Settings(rotation=Rotation(2))
    framework = framework_of(plugin)
    result = schedule_pod(framework, CycleState(), make_pod(nominated="b"), settings)
    assert (result.node, result.feasible, len(plugin.calls)) == ("b", 1, 1)
    assert settings.rotation.next_start == 2


def test_nominated_node_that_does_not_fit_costs_one_call_more() -> None:
    """1 + n calls, one entry (spec 01 §16.2)."""
    plugin = fake("P", filter=lambda s, p, n: U("no") if n.name == "b" else None)
    framework = framework_of(plugin, fake("S", score=0))
    result = schedule_pod(framework, CycleState(), make_pod(nominated="b"), Settings())
    assert (result.node, len(plugin.calls), result.evaluated) == ("a", 4, 3)


def test_nominated_node_ignores_the_restriction() -> None:
    """PreFilter allows only a; the nominated b passes Filter and is taken."""
    framework = framework_of(fake("R", pre_filter=PreFilterResult({"a"}), filter=None, score=0))
    result, _ = attempt(framework, make_pod(nominated="b"))
    assert result.node == "b"


@pytest.mark.parametrize("answer", [Status.as_error_of("boom"), "nonsense"])
def test_error_on_the_nominated_node_falls_through(answer: Any) -> None:
    """The full search then meets the same error."""
    plugin = fake("P", filter=lambda s, p, n: answer if n.name == "b" else None, score=0)
    result, _ = attempt(framework_of(plugin, nodes=("a",)), make_pod(nominated="ghost"))
    assert result.node == "a"
    result, _ = attempt(framework_of(plugin), make_pod(nominated="b"))
    assert result.status is not None
    assert result.status.code == Code.ERROR


# --- extenders --------------------------------------------------------------------------------------------


class Extender:
    """An extender whose answers are given; `seen` has the node names of each call."""

    def __init__(
        self, keep: Any = (), *, name: str = "http://ext", ignorable: bool = False, **more: Any
    ) -> None:
        self.name, self.ignorable, self.weight = name, ignorable, more.get("weight", 1)
        self.is_filter, self.is_prioritizer = more.get("filters", True), "scores" in more
        self.is_binder = self.supports_preemption = False
        self.interested = more.get("interested", True)
        self.keep, self.failed, self.never = keep, more.get("failed", {}), more.get("never", {})
        self.scores = more.get("scores")
        self.seen: list[list[str]] = []

    def is_interested(self, pod: Any) -> bool:
        """As configured."""
        return bool(self.interested)

    def filter(self, pod: Any, nodes: Any) -> FilterResult:
        """Keep the named nodes."""
        self.seen.append([n.name for n in nodes])
        if isinstance(self.keep, Exception):
            raise self.keep
        return FilterResult([n for n in nodes if n.name in self.keep], dict(self.failed), dict(self.never))

    def prioritize(self, pod: Any, nodes: Any) -> list[tuple[str, int]]:
        """The given scores."""
        self.seen.append([n.name for n in nodes])
        if isinstance(self.scores, Exception):
            raise self.scores
        return list(self.scores or ())


PASS = ("a", "b", "c")


def test_extenders_see_the_survivors_of_the_one_before() -> None:
    """In order, until nothing is left."""
    first, second, third = Extender("ab"), Extender(""), Extender("a")
    result, _ = attempt(framework_of(fake("P", filter=None, score=0), extenders=[first, second, third]))
    assert (first.seen, second.seen, third.seen) == ([["a", "b", "c"]], [["a", "b"]], [])
    assert result.fit_error is not None
    assert "Extender" in result.fit_error.diagnosis.unschedulable_plugins


def test_extender_reasons() -> None:
    """FailedNodes -> Unschedulable, FailedAndUnresolvableNodes -> UU and stronger; missing nodes have no reason."""
    extender = Extender("", failed={"a": "gpu full", "b": "gpu full"}, never={"b": "no gpu at all"})
    result, _ = attempt(framework_of(fake("P", filter=None, score=0), extenders=[extender]))
    assert result.message == "0/3 nodes are available: 1 gpu full, 1 no gpu at all."
    assert result.fit_error is not None
    codes = {n: s.code for n, s in result.fit_error.diagnosis.node_to_status.items()}
    assert codes == {"a": Code.UNSCHEDULABLE, "b": Code.UNSCHEDULABLE_AND_UNRESOLVABLE}


def test_extender_without_reasons() -> None:
    """Nothing after the colon."""
    result, _ = attempt(framework_of(fake("P", filter=None, score=0), extenders=[Extender("")]))
    assert result.message == "0/3 nodes are available:"


def test_no_extender_pseudo_plugin_when_nothing_was_removed() -> None:
    """All kept, the pod fits."""
    result, _ = attempt(framework_of(fake("P", filter=None, score=0), extenders=[Extender(PASS)]))
    assert result.node == "a"


def test_extender_error_is_raw_and_fatal_unless_ignorable() -> None:
    """Not ignorable: the raw text, an error. Ignorable: passed over."""
    plugin = fake("P", filter=None, score=0)
    result, _ = attempt(framework_of(plugin, extenders=[Extender(RuntimeError("code 500"))]))
    assert result.status is not None
    assert (result.status.code, result.message) == (Code.ERROR, "code 500")
    result, _ = attempt(
        framework_of(plugin, extenders=[Extender(RuntimeError("x"), ignorable=True), Extender("c")])
    )
    assert result.node == "c"


def test_extender_that_is_not_interested_or_does_not_filter() -> None:
    """Neither is asked."""
    idle = [Extender("", interested=False), Extender("", filters=False)]
    result, _ = attempt(framework_of(fake("P", filter=None, score=0), extenders=idle))
    assert (result.node, [e.seen for e in idle]) == ("a", [[], []])


def test_filtering_extender_switches_one_is_enough_off() -> None:
    """Without Score plugins, but with a filtering extender, all nodes are filtered."""
    extender = Extender("c")
    result, _ = attempt(framework_of(fake("P", filter=None), extenders=[extender]))
    assert (result.node, extender.seen) == ("c", [["a", "b", "c"]])


def test_prioritize_adds_score_times_weight_times_ten() -> None:
    """Plugin sums 1, 2, 3; weight 2; answers a 10, b 5, an unknown host, c missing."""
    extender = Extender(filters=False, weight=2, scores=[("a", 10), ("b", 5), ("zz", 9)])
    plugin = fake("P", score=lambda s, p, n: "abc".index(n.name) + 1)
    result, trace = attempt(framework_of(plugin, extenders=[extender]))
    assert result.node == "a"
    assert {n: s.total for n, s in trace.scores.items()} == {"a": 201, "b": 102, "c": 3}
    assert trace.scores["a"].extender == 200


def test_prioritize_errors_are_ignored_and_hosts_may_come_twice() -> None:
    """An error contributes nothing; a host named twice gets both; values are not clamped."""
    broken = Extender(filters=False, scores=RuntimeError("no"))
    twice = Extender(filters=False, scores=[("b", 3), ("b", 4), ("c", -100)])
    _, trace = attempt(framework_of(fake("P", score=0), extenders=[broken, twice]))
    assert {n: s.total for n, s in trace.scores.items()} == {"a": 0, "b": 70, "c": -1000}


def test_prioritize_is_not_called_for_one_node() -> None:
    """One node left: no scoring at all."""
    extender = Extender(filters=False, scores=[("a", 1)])
    attempt(framework_of(fake("P", filter=None, score=0), nodes=("a",), extenders=[extender]))
    assert extender.seen == []


def test_only_an_extender_scores() -> None:
    """No Score plugin, one prioritising extender: the plugin part is 0."""
    extender = Extender(filters=False, scores=[("b", 1)])
    result, trace = attempt(framework_of(fake("P", filter=None), extenders=[extender]))
    assert result.node == "b"
    assert trace.scores["b"].total == 10
