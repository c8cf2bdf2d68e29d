"""Label selectors, node selectors and tolerations select what Kubernetes selects (spec 10 §10.0.2, §10.3)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from labkit.objects.meta import LabelSelector, ObjectMeta
from labkit.objects.node import Node, Taint
from labkit.objects.pod import NodeSelector, NodeSelectorTerm, Pod, Toleration
from labkit.objects.selectors import (
    NodeSelectorMatcher,
    NodeSelectorTermMatcher,
    Requirement,
    SelectorError,
    compile_label_selector,
    find_untolerated_taint,
    parse_int64,
    required_node_affinity,
    selector_from_map,
    tolerates,
)

from tests import strategies


def label_selector(raw: Any) -> LabelSelector:
    return msgspec.convert(raw, LabelSelector)


def term(**raw: Any) -> NodeSelectorTermMatcher:
    return NodeSelectorTermMatcher(msgspec.convert(raw, NodeSelectorTerm))


def node(name: str = "n1", **labels: str) -> Node:
    return Node(metadata=ObjectMeta(name=name, labels=labels))


# --- requirements ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operator", "values", "label", "matches"),
    [
        ("In", ["a", "b"], "b", True),
        ("In", ["a"], "b", False),
        ("In", ["a"], None, False),
        ("In", [""], None, False),
        ("In", [""], "", True),
        ("NotIn", ["a"], "b", True),
        ("NotIn", ["a"], "a", False),
        ("NotIn", ["a"], None, True),
        ("Exists", [], "", True),
        ("Exists", [], None, False),
        ("DoesNotExist", [], "x", False),
        ("DoesNotExist", [], None, True),
        ("Gt", ["4"], "5", True),
        ("Gt", ["4"], "4", False),
        ("Gt", ["4"], "005", True),
        ("Gt", ["4"], None, False),
        ("Gt", ["4"], "5.0", False),
        ("Gt", ["4"], "0x9", False),
        ("Gt", ["4"], "1_0", False),
        ("Gt", ["4"], " 9", False),
        ("Gt", ["4"], "9223372036854775808", False),
        ("Lt", ["4"], "-9223372036854775808", True),
        ("Lt", ["4"], "-9223372036854775809", False),
        ("Lt", ["4"], "3", True),
        ("Lt", ["4"], "4", False),
        ("Lt", ["4"], "", False),
    ],
)
def test_requirement(operator: str, values: list[str], label: str | None, matches: bool) -> None:
    """Whether a label (None: absent) satisfies `key operator values`."""
    assert Requirement("k", operator, values).matches({} if label is None else {"k": label}) is matches


@pytest.mark.parametrize(
    ("key", "operator", "values", "messages"),
    [
        (
            "k",
            "In",
            [],
            ["p.values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"],
        ),
        (
            "k",
            "Exists",
            ["a", "b"],
            ['p.values: Invalid value: ["a","b"]: values set must be empty for exists and does not exist'],
        ),
        (
            "k",
            "Gt",
            ["1", "2"],
            [
                "p.values: Invalid value: [\"1\",\"2\"]: for 'Gt', 'Lt' operators, exactly one value is required"
            ],
        ),
        (
            "k",
            "Lt",
            ["x"],
            ["p.values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer"],
        ),
        (
            "k",
            "Equals",
            ["x"],
            [
                'p.operator: Unsupported value: "Equals": supported values: "In", "NotIn", "Exists", '
                '"DoesNotExist", "Gt", "Lt"'
            ],
        ),
    ],
)
def test_malformed_requirement(key: str, operator: str, values: list[str], messages: list[str]) -> None:
    """The API server's text for each thing that is wrong, with the path in front."""
    with pytest.raises(SelectorError) as caught:
        Requirement(key, operator, values, "p")
    assert list(caught.value.messages) == messages


def test_all_that_is_wrong_is_said_once() -> None:
    """A bad key and a bad value are two messages; together they stand in brackets."""
    with pytest.raises(SelectorError) as caught:
        Requirement("-k", "In", ["-1"])
    first, second = caught.value.messages
    assert first.startswith('key: Invalid value: "-k": name part must consist of alphanumeric characters')
    assert second.startswith('values[0][-k]: Invalid value: "-1": a valid label must be an empty string or')
    assert str(caught.value) == f"[{first}, {second}]"


@pytest.mark.parametrize(
    "key", ["", "/", "a/", "/a", "a/b/c", "A/b", "a_b/c", "-a", "a-", "a" * 64, "x" * 254 + "/a", "ü"]
)
def test_bad_label_keys(key: str) -> None:
    """Keys that no label can have."""
    with pytest.raises(SelectorError):
        Requirement(key, "Exists", [])


@pytest.mark.parametrize("key", ["a", "A.b_c-1", "example.com/A_b", "a" * 63, "kubernetes.io/hostname"])
def test_good_label_keys(key: str) -> None:
    """Keys that labels have."""
    assert Requirement(key, "Exists", []).matches({key: ""})


# --- label selectors ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "labels", "matches"),
    [
        (None, {}, False),
        (None, {"a": "1"}, False),
        ({}, {}, True),
        ({}, {"a": "1"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "1", "b": "2"}, True),
        ({"matchLabels": {"a": "1"}}, {"a": "2"}, False),
        ({"matchLabels": {"a": ""}}, {}, False),
        (
            {"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]},
            {"a": "1", "b": "2"},
            False,
        ),
        ({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["2"]}]}, {}, True),
    ],
)
def test_label_selector(raw: Any, labels: dict[str, str], matches: bool) -> None:
    """None selects nothing, an empty selector everything, else all requirements must hold."""
    selector = compile_label_selector(None if raw is None else label_selector(raw))
    assert selector.matches(labels) is matches


def test_what_counts_as_empty() -> None:
    """Only a selector that matches everything is empty; the one that matches nothing is not."""
    assert not compile_label_selector(None).is_empty
    assert compile_label_selector(LabelSelector()).is_empty
    assert selector_from_map(None).is_empty
    assert selector_from_map({}).is_empty
    assert not selector_from_map({"a": "b"}).is_empty


@pytest.mark.parametrize("operator", ["Gt", "Lt", "in", ""])
def test_label_selectors_know_four_operators(operator: str) -> None:
    """Operators of node selectors and unknown ones are refused, with this text."""
    raw = {"matchExpressions": [{"key": "a", "operator": operator, "values": ["1"]}]}
    with pytest.raises(SelectorError, match=f'^"{operator}" is not a valid label selector operator$'):
        compile_label_selector(label_selector(raw))


def test_plain_maps_are_not_validated() -> None:
    """`nodeSelector` and service selectors compare text, whatever it is; matchLabels must be valid."""
    assert selector_from_map({"-": "-"}).matches({"-": "-"})
    with pytest.raises(SelectorError):
        compile_label_selector(label_selector({"matchLabels": {"a": "-"}}))


@given(st.lists(strategies.requirements(), max_size=3), strategies.labels, strategies.labels)
def test_a_selector_is_all_its_requirements(
    raw: list[dict[str, Any]], equal: dict[str, str], labels: dict[str, str]
) -> None:
    """A selector matches exactly when each of its requirements does."""
    selector = compile_label_selector(label_selector({"matchExpressions": raw, "matchLabels": equal}))
    each = [Requirement(r["key"], r["operator"], r.get("values", [])).matches(labels) for r in raw]
    each += [labels.get(k) == v for k, v in equal.items()]
    assert selector.matches(labels) is all(each)


@given(strategies.keys, st.lists(strategies.values, min_size=1), strategies.labels)
def test_not_in_is_the_opposite_of_in(key: str, values: list[str], labels: dict[str, str]) -> None:
    """For every object exactly one of In and NotIn holds; so do Exists and DoesNotExist."""
    for one, other, given_values in (("In", "NotIn", values), ("Exists", "DoesNotExist", [])):
        answers = {Requirement(key, o, given_values).matches(labels) for o in (one, other)}
        assert answers == {True, False}


# --- node selectors -------------------------------------------------------------------------------------------

NAMED = {"key": "metadata.name", "operator": "In", "values": ["n1"]}


@pytest.mark.parametrize(
    ("raw", "name", "labels", "matches"),
    [
        ({}, "n1", {}, False),
        ({"matchExpressions": [{"key": "d", "operator": "Exists"}]}, "n1", {"d": ""}, True),
        ({"matchFields": [NAMED]}, "n1", {}, True),
        ({"matchFields": [NAMED]}, "n2", {}, False),
        ({"matchFields": [NAMED | {"operator": "NotIn"}]}, "n2", {}, True),
        ({"matchFields": [NAMED]}, "", {}, True),
        ({"matchFields": [{"key": "spec.x", "operator": "In", "values": [""]}]}, "n1", {}, True),
        ({"matchFields": [{"key": "spec.x", "operator": "In", "values": ["y"]}]}, "n1", {}, False),
        ({"matchFields": [NAMED | {"values": ["n1", "n2"]}]}, "n1", {}, False),
        ({"matchFields": [NAMED | {"operator": "Exists"}]}, "n1", {}, False),
        (
            {"matchFields": [NAMED], "matchExpressions": [{"key": "d", "operator": "Exists"}]},
            "n1",
            {},
            False,
        ),
        ({"matchExpressions": [{"key": "d", "operator": "Gt", "values": ["-1"]}]}, "n1", {"d": "5"}, False),
    ],
)
def test_node_selector_term(raw: dict[str, Any], name: str, labels: dict[str, str], matches: bool) -> None:
    """Expressions and fields must all hold; empty terms and terms that do not parse match nothing."""
    assert term(**raw).matches(node(name, **labels)) is matches


def test_errors_of_a_term_name_their_place() -> None:
    """Each broken expression and field is listed with its path inside the term."""
    broken = term(
        matchExpressions=[{"key": "a", "operator": "In"}, {"key": "b", "operator": "Foo"}],
        matchFields=[NAMED | {"operator": "Gt"}, NAMED | {"values": []}],
    )
    assert broken.error is not None
    assert list(broken.error.messages) == [
        "matchExpressions[0].values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        'matchExpressions[1].operator: Unsupported value: "Foo": supported values: "In", "NotIn", "Exists", '
        '"DoesNotExist", "Gt", "Lt"',
        'matchFields[0].operator: Unsupported value: "Gt": supported values: "In", "NotIn"',
        "matchFields[1].values: Invalid value: null: must have one element",
    ]


def matcher(*terms: dict[str, Any]) -> NodeSelectorMatcher:
    return NodeSelectorMatcher(msgspec.convert({"nodeSelectorTerms": list(terms)}, NodeSelector))


def test_terms_are_alternatives() -> None:
    """One matching term is enough, also beside a broken one; without terms nothing matches."""
    good: dict[str, Any] = {"matchFields": [NAMED]}
    broken = {"matchExpressions": [{"key": "a", "operator": "In"}]}
    assert matcher(broken, good).matches(node())
    assert not matcher(broken).matches(node())
    assert not matcher().matches(node())
    assert not matcher({}).matches(node())


def test_required_node_affinity_of_a_pod() -> None:
    """`nodeSelector` and the required affinity must both hold; a pod without either fits every node."""

    def pod(spec: dict[str, Any]) -> Pod:
        return msgspec.convert({"spec": spec}, Pod)

    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchFields": [NAMED]}]
            }
        }
    }
    both = required_node_affinity(pod({"nodeSelector": {"d": "ssd"}, "affinity": affinity}))
    assert both.matches(node("n1", d="ssd"))
    assert not both.matches(node("n1", d="hdd"))
    assert not both.matches(node("n2", d="ssd"))
    nothing = required_node_affinity(pod({"nodeSelector": {}}))
    assert nothing.is_empty
    assert nothing.matches(node())


def test_required_node_affinity_is_compiled_once() -> None:
    """The same pod object gives the same compiled affinity."""
    pod = Pod()
    assert required_node_affinity(pod) is required_node_affinity(pod)


@given(st.lists(strategies.requirements(numeric=True), min_size=1, max_size=3), strategies.labels)
def test_a_term_is_all_its_expressions(raw: list[dict[str, Any]], labels: dict[str, str]) -> None:
    """A term of expressions matches exactly when each of them does."""
    each = [Requirement(r["key"], r["operator"], r.get("values", [])).matches(labels) for r in raw]
    assert term(matchExpressions=raw).matches(node("n", **labels)) is all(each)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("5", 5),
        ("+5", 5),
        ("-0", 0),
        ("007", 7),
        ("", None),
        ("+", None),
        ("1e3", None),
        ("٣", None),
        ("9" * 50, None),
    ],
)
def test_integers_as_go_reads_them(text: str, number: int | None) -> None:
    """Optional sign, digits, at most 64 bits; anything else is no integer."""
    assert parse_int64(text) == number


# --- taints and tolerations -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("toleration", "taint", "tolerated", "with_comparison"),
    [
        ({"key": "a", "operator": "Exists"}, "a=x:NoSchedule", True, True),
        ({"operator": "Exists"}, "a=x:NoSchedule", True, True),
        ({"key": "a", "operator": "Exists", "effect": "NoExecute"}, "a=x:NoSchedule", False, False),
        ({"key": "b", "operator": "Exists"}, "a=x:NoSchedule", False, False),
        ({"key": "a", "value": "x"}, "a=x:NoSchedule", True, True),
        ({"key": "a", "operator": "Equal", "value": "y"}, "a=x:NoSchedule", False, False),
        ({"key": "a"}, "a=:NoSchedule", True, True),
        ({"value": "x"}, "a=x:NoSchedule", True, True),
        ({}, "a=:NoSchedule", True, True),
        ({"key": "a", "operator": "exists"}, "a=x:NoSchedule", False, False),
        # The taint stands on the left.
        ({"key": "a", "operator": "Lt", "value": "5"}, "a=4:NoSchedule", False, True),
        ({"key": "a", "operator": "Lt", "value": "5"}, "a=5:NoSchedule", False, False),
        ({"key": "a", "operator": "Gt", "value": "5"}, "a=6:NoSchedule", False, True),
        ({"key": "a", "operator": "Gt", "value": "-7"}, "a=-6:NoSchedule", False, True),
        ({"key": "a", "operator": "Lt", "value": "5"}, "a=04:NoSchedule", False, False),
        ({"key": "a", "operator": "Lt", "value": "+5"}, "a=4:NoSchedule", False, False),
        ({"key": "a", "operator": "Gt", "value": "-0"}, "a=4:NoSchedule", False, False),
        ({"key": "a", "operator": "Gt", "value": "1"}, "a=9223372036854775808:NoSchedule", False, False),
    ],
)
def test_tolerates(toleration: dict[str, str], taint: str, tolerated: bool, with_comparison: bool) -> None:
    """Without and with the gate for Lt and Gt."""
    key, _, rest = taint.partition("=")
    value, _, effect = rest.partition(":")
    t, x = msgspec.convert(toleration, Toleration), Taint(key=key, value=value, effect=effect)
    assert (tolerates(t, x), tolerates(t, x, comparison_operators=True)) == (tolerated, with_comparison)


@given(st.lists(strategies.taints(), max_size=4), st.lists(strategies.tolerations(), max_size=3))
def test_first_untolerated_taint(taints: list[Any], tolerations: list[Any]) -> None:
    """The first hard taint that none of the tolerations covers, or None."""
    xs = [msgspec.convert(t, Taint) for t in taints]
    ts = [msgspec.convert(t, Toleration) for t in tolerations]
    hard = [x for x in xs if x.effect != "PreferNoSchedule"]
    bad = [x for x in hard if not [t for t in ts if tolerates(t, x)]]
    assert find_untolerated_taint(xs, ts) == (bad[0] if bad else None)
