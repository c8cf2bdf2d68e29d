"""The cycle from PreFilter to PostFilter and its texts: spec 01 §3, §4.17, §7."""

from __future__ import annotations

from typing import Any

from labkit.framework.results import PostFilterResult
from labkit.framework.status import Code, Status

from tests.engine.helpers import attempt, fake, framework_of, make_pod

U, UU = Status.unschedulable, Status.unresolvable


def reasons(**by_node: Any) -> Any:
    """A Filter plugin with these statuses by node."""
    return fake("F", filter=lambda s, p, n: by_node.get(n.name))


def test_no_nodes() -> None:
    """UU with its own text, no FitError, nothing runs, the nomination is cleared."""
    plugins = fake("A", pre_filter=None), fake("P", post_filter=U("x"))
    result, trace = attempt(framework_of(*plugins, nodes=()))
    assert result.status is not None
    assert (result.status.code, result.message) == (
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        "no nodes available to schedule pods",
    )
    assert (result.fit_error, result.nominated) == (None, "")
    assert [p.calls for p in plugins] == [[], []]
    assert trace.to_dict()["preFilter"] is None


def test_error_is_no_fit_error_and_clears_the_nomination() -> None:
    """PostFilter is not run."""
    post = fake("P", post_filter=U("x"))
    result, trace = attempt(framework_of(fake("A", pre_filter=Status.as_error_of("boom")), post))
    assert result.status is not None
    assert (result.status.code, result.message) == (Code.ERROR, 'running PreFilter plugin "A": boom')
    assert (result.fit_error, result.nominated, post.calls) == (None, "", [])
    assert (trace.message, trace.full_message) == (result.message, result.message)


def test_reasons_are_counted_and_sorted_as_text() -> None:
    """10 x before 2 y (spec 01 §16.5)."""
    nodes = [f"n{i:02d}" for i in range(12)]
    plugin = fake("F", filter=lambda s, p, n: U("y") if n.name in ("n00", "n01") else U("x"))
    result, _ = attempt(framework_of(plugin, nodes=nodes))
    assert result.message == "0/12 nodes are available: 10 x, 2 y."


def test_two_reasons_of_one_node_both_count() -> None:
    """Counts may exceed the number of nodes."""
    result, _ = attempt(framework_of(reasons(a=U("cpu", "memory"), b=U("cpu"), c=UU("never"))))
    assert result.message == "0/3 nodes are available: 1 memory, 1 never, 2 cpu."


def test_no_reasons_at_all() -> None:
    """Nothing after the colon."""
    result, _ = attempt(framework_of(reasons(a=U(), b=U(), c=U())))
    assert result.message == "0/3 nodes are available:"


def test_status_of_a_fit_error_is_always_unschedulable() -> None:
    """Whatever PostFilter answers."""
    for answer in (None, U("x"), UU("x"), Status.as_error_of("x")):
        result, _ = attempt(framework_of(reasons(a=UU(), b=UU(), c=UU()), fake("P", post_filter=answer)))
        assert result.status is not None
        assert result.status.code == Code.UNSCHEDULABLE
        assert result.fit_error is not None


def test_post_filter_message_is_appended_without_a_full_stop() -> None:
    """`message` is without it, `full_message` with it."""
    result, trace = attempt(
        framework_of(reasons(a=U("x"), b=U("x"), c=U("x")), fake("P", post_filter=U("no help")))
    )
    assert result.message == "0/3 nodes are available: 3 x. no help"
    assert (trace.message, trace.full_message) == ("0/3 nodes are available: 3 x.", result.message)


def test_nominating_info() -> None:
    """Override as the result says; no result leaves it alone; no PostFilter plugin or an error clears it."""
    no = reasons(a=U("x"), b=U("x"), c=U("x"))

    def nominated(answer: Any) -> str | None:
        return attempt(framework_of(no, fake("P", post_filter=answer)))[0].nominated

    assert nominated((PostFilterResult("b"), None)) == "b"
    assert nominated((PostFilterResult(""), U("no candidate"))) == ""
    assert nominated((None, U("not eligible"))) is None
    assert nominated((PostFilterResult("b"), Status.as_error_of("boom"))) is None
    assert nominated((PostFilterResult("", override=False), U("leave it"))) is None
    assert attempt(framework_of(no))[0].nominated == ""


def test_post_filter_gets_the_statuses() -> None:
    """Rejected nodes with their status; nodes that nobody looked at have the absent one."""
    post = fake("P", post_filter=U("x"))
    attempt(framework_of(reasons(a=U("x"), b=UU("y"), c=U("z")), post))
    ((_, _, statuses),) = post.calls
    assert {n: s.code for n, s in statuses.items()} == {
        "a": Code.UNSCHEDULABLE,
        "b": Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        "c": Code.UNSCHEDULABLE,
    }
    assert statuses["ghost"].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_trace_costs_nothing_when_off() -> None:
    """Without a trace each filter runs once a node; with one it runs again, alone, for the record."""
    from labkit.engine.cycle import Settings, schedule_pod
    from labkit.framework.cycle_state import CycleState

    plugin = fake("F", filter=None)
    framework = framework_of(plugin, fake("S", score=1))
    schedule_pod(framework, CycleState(), make_pod(), Settings())
    assert len(plugin.calls) == 3
    attempt(framework)
    assert len(plugin.calls) == 3 + 6


def test_same_input_same_decision() -> None:
    """Twice the same attempt: equal records."""

    def once() -> dict[str, Any]:
        score = fake("S", score=lambda s, p, n: len(n.name) * 7 % 5)
        return attempt(framework_of(score, nodes=[f"node-{'x' * (i % 4)}{i}" for i in range(40)]))[
            1
        ].to_dict()

    assert once() == once()
