"""TaintToleration (spec 10 §10.3)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labkit.plugins.taint_toleration import TaintToleration

from tests import strategies
from tests.plugins.helpers import OK, filtered, handle, make_node, make_pod, scored

REJECTED = ("UnschedulableAndUnresolvable", ["node(s) had untolerated taint(s)"])
A = {"key": "a", "operator": "Exists", "effect": "NoSchedule"}


def tainted(name: str, *taints: str) -> Any:
    """`key=value:effect` each."""
    found = []
    for text in taints:
        pair, _, effect = text.partition(":")
        key, _, value = pair.partition("=")
        found.append({"key": key, "value": value, "effect": effect})
    return make_node(name, spec={"taints": found})


NODES = [
    tainted("n1"),
    tainted("n2", "a:PreferNoSchedule"),
    tainted("n3", "a:PreferNoSchedule", "b:PreferNoSchedule", "c:PreferNoSchedule"),
    tainted("n4", "a:NoSchedule"),
    tainted("n5", "z=v:NoExecute"),
]


def test_recorded_example_filter() -> None:
    """Of five nodes only the one with an untolerated NoExecute taint is out."""
    pod = make_pod(tolerations=[A])
    assert [filtered(TaintToleration(), pod, n) for n in NODES] == [OK, OK, OK, OK, REJECTED]


def test_recorded_example_scores() -> None:
    """Raw counts of untolerated PreferNoSchedule taints, and what they become: 100 less a truncated third."""
    assert scored(TaintToleration(), make_pod(tolerations=[A]), NODES[:4]) == (
        [0, 1, 3, 0],
        [100, 67, 0, 100],
    )


def test_no_soft_taints_anywhere() -> None:
    """Every node gets 100 when there is nothing to tell them apart."""
    assert scored(TaintToleration(), make_pod(), [NODES[0], NODES[3]]) == ([0, 0], [100, 100])


@pytest.mark.parametrize(
    ("toleration", "raw"),
    [
        ({"key": "a", "operator": "Exists"}, 1),
        ({"key": "a", "operator": "Exists", "effect": "PreferNoSchedule"}, 1),
        ({"key": "a", "operator": "Exists", "effect": "NoSchedule"}, 2),
        ({"operator": "Exists"}, 0),
        ({"key": "a", "operator": "Equal", "value": "1"}, 2),
    ],
)
def test_which_tolerations_count_for_scores(toleration: Any, raw: int) -> None:
    """Only tolerations of PreferNoSchedule, or of every effect."""
    node = tainted("n", "a:PreferNoSchedule", "b:PreferNoSchedule", "c:NoSchedule")
    assert scored(TaintToleration(), make_pod(tolerations=[toleration]), [node])[0] == [raw]


@pytest.mark.parametrize(("gate", "verdict"), [(False, REJECTED), (True, OK)])
def test_comparison_operators_need_their_gate(gate: bool, verdict: Any) -> None:
    """Gt and Lt tolerate nothing by default; with the gate the taint is on the left of the comparison."""
    plugin = TaintToleration(None, handle(gates={"TaintTolerationComparisonOperators": gate}))
    pod = make_pod(tolerations=[{"key": "a", "operator": "Gt", "value": "3"}])
    assert filtered(plugin, pod, tainted("n", "a=5:NoSchedule")) == verdict


@given(
    st.lists(st.lists(strategies.taints(), max_size=4), min_size=1, max_size=4),
    st.lists(strategies.tolerations(), max_size=3),
)
def test_fewer_taints_never_score_less(taints: list[list[Any]], tolerations: list[Any]) -> None:
    """Scores lie in 0..100, fall as the count rises, and the best node has 100 unless all counts are equal and positive."""
    nodes = [make_node(f"n{i}", spec={"taints": t}) for i, t in enumerate(taints)]
    raw, final = scored(TaintToleration(), make_pod(tolerations=tolerations), nodes)
    order = sorted(zip(raw, final, strict=True))
    assert [f for _, f in order] == sorted(final, reverse=True)
    assert all(0 <= f <= 100 for f in final)
    assert (max(final) == 100) == (min(raw) == 0)
    assert all((r == max(raw) > 0) == (f == 0) for r, f in zip(raw, final, strict=True))
