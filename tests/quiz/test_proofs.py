"""Proofs that banks call: what the engine answers, for inputs beside those in the banks too."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.quiz.bank import bank_names, evidence_of, find_bank
from labkit.quiz.proofs import PROOFS


def test_every_proof_is_used_and_every_call_exists() -> None:
    """No bank calls a proof that is not there; no proof lies idle."""
    called = {e.call for name in bank_names() for _, _, e in evidence_of(find_bank(name)) if e.call}
    assert called <= set(PROOFS)
    assert set(PROOFS) - called == {"extension_points"}


@pytest.mark.parametrize(
    ("name", "args", "result"),
    [
        ("calls_in_order", {"nodes": 1}, ["pre_enqueue", "pre_filter", "filter", "reserve"]),
        ("calls_in_order", {"pod_cpu": 9}, ["pre_enqueue", "pre_filter", "post_filter"]),
        ("popped", {"pods": {"a": 0, "b": 10, "c": 0, "d": 10}}, ["b", "d", "a", "c"]),
    ],
)
def test_order_of_calls_and_pods(name: str, args: dict[str, Any], result: list[str]) -> None:
    """One node: no scoring. No node: PostFilter. The queue: priority first, then age."""
    assert PROOFS[name](**args)[: len(result)] == result


@pytest.mark.parametrize(
    ("name", "args", "result"),
    [
        ("retried", {"change": "pod labelled"}, 0),
        ("back_off", {"failures": 0}, 0),
        ("back_off", {"failures": 3}, 4),
        ("back_off", {"failures": 50}, 10),
        ("permit_timeout", {"asked": 899}, 899),
        ("permit_timeout", {"asked": 901}, 900),
        ("nodes_to_find", {"nodes": 99}, 99),
        ("nodes_to_find", {"nodes": 1000}, 420),
        ("nodes_to_find", {"nodes": 1000, "percentage": 5}, 100),
        ("config_weight", {"plugin": "NoSuch", "plugins": {}}, 0),
        ("kubelet_answer", {}, "Running"),
        ("leaders", {"leases": []}, 0),
        ("gate", {"name": "NodeDeclaredFeatures"}, True),
        ("extender_members", {"verb": "filter"}, ["NodeNames", "Nodes", "Pod"]),
        ("api_fills", {"spec": {"containers": [{"name": "a", "image": "a"}]}, "field": "priority"}, 0),
        ("score_answer", {"points": 0}, {"placed": True, "message": ""}),
        ("pre_filter_answer", {"answer": "unschedulable"}, {"calls": ["pre_filter"], "placed": False}),
    ],
)
def test_single_facts(name: str, args: dict[str, Any], result: Any) -> None:
    """Boundary values of what the banks claim."""
    assert PROOFS[name](**args) == result


def test_an_unknown_change_is_a_mistake_of_the_bank() -> None:
    """`check` turns it into a difference that names the arguments."""
    from labkit.quiz.evidence import check
    from labkit.quiz.model import Evidence, Text

    evidence = Evidence(Text("x", "x"), call="retried", args={"change": "rain"}, result=0)
    assert "does not take these arguments: no such change: rain" in check(evidence).differences[0]
