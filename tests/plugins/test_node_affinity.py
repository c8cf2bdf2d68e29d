"""NodeAffinity (spec 10 §10.4)."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.plugins.node_affinity import NodeAffinity

from tests.plugins.helpers import OK, filtered, make_node, make_pod, pre_filter, said, scored

UU = "UnschedulableAndUnresolvable"
POD = (UU, ["node(s) didn't match Pod's node affinity/selector"])
ENFORCED = (UU, ["node(s) didn't match scheduler-enforced node affinity"])


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def named(*names: str, operator: str = "In") -> dict[str, Any]:
    return {"matchFields": [expression("metadata.name", operator, *names)]}


def labelled(*expressions: dict[str, Any]) -> dict[str, Any]:
    return {"matchExpressions": list(expressions)}


def required(*terms: dict[str, Any], **spec: Any) -> Any:
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return make_pod(affinity={"nodeAffinity": affinity}, **spec)


def preferred(*terms: tuple[int, dict[str, Any]]) -> Any:
    given = [{"weight": w, "preference": t} for w, t in terms]
    return make_pod(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": given}})


SSD = labelled(expression("d", "In", "ssd"))


@pytest.mark.parametrize(
    ("pod", "code", "names"),
    [
        (make_pod(), "Skip", None),
        (make_pod(affinity={"nodeAffinity": {}}), "Skip", None),
        (make_pod(nodeSelector={}), "Success", None),
        (make_pod(nodeSelector={"a": "b"}), "Success", None),
        (required(), "Success", None),
        (required(SSD), "Success", None),
        (required(named("n1")), "Success", {"n1"}),
        (required(named("n1"), named("n2")), "Success", {"n1", "n2"}),
        (required(named("n1", "n2")), "Success", {"n1", "n2"}),
        (required(named("n1"), SSD), "Success", None),
        (required(named("n1", operator="NotIn")), "Success", None),
        (required(named("n1") | SSD), "Success", {"n1"}),
        (required({"matchFields": [named("n1")["matchFields"][0], named("n2")["matchFields"][0]]}), UU, None),
        (
            required(
                {"matchFields": [named("n1")["matchFields"][0], named("n2")["matchFields"][0]]}, named("n3")
            ),
            "Success",
            {"n3"},
        ),
    ],
)
def test_prefilter(pod: Any, code: str, names: set[str] | None) -> None:
    """Skip, or the node names that all terms agree on (None: any)."""
    _, found, status = pre_filter(NodeAffinity(), pod)
    assert said(status) == (code, ["pod affinity terms conflict"] if code == UU else [])
    assert found == names


def test_nothing_is_skipped_when_the_profile_requires_something() -> None:
    """With a required added affinity every pod is filtered."""
    plugin = NodeAffinity(
        {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [SSD]}}}
    )
    assert said(pre_filter(plugin, make_pod())[2]) == OK
    assert filtered(plugin, make_pod(), make_node(labels={"d": "ssd"})) == OK
    assert filtered(plugin, make_pod(), make_node(labels={"d": "hdd"})) == ENFORCED
    # The profile's requirement is looked at before the pod's.
    assert filtered(plugin, make_pod(nodeSelector={"x": "y"}), make_node()) == ENFORCED
    assert filtered(plugin, make_pod(nodeSelector={"x": "y"}), make_node(labels={"d": "ssd"})) == POD


@pytest.mark.parametrize(
    ("pod", "verdict"),
    [
        (make_pod(nodeSelector={"d": "ssd"}), OK),
        (make_pod(nodeSelector={"d": "hdd"}), POD),
        (make_pod(nodeSelector={"e": ""}), POD),
        (required(SSD, nodeSelector={"d": "ssd"}), OK),
        (required(SSD, nodeSelector={"d": "hdd"}), POD),
        (required(), POD),
        (required({}), POD),
        (required({}, SSD), OK),
        (required(labelled(expression("d", "NotIn", "ssd")), named("n1")), OK),
        (required(named("n1", "n2")), POD),
        (required(labelled(expression("z", "Gt", "-1"))), POD),
        (required(labelled(expression("z", "Gt", "4"), expression("z", "Lt", "6"))), OK),
        (required(labelled(expression("z", "Gt", "5"))), POD),
        (required(labelled(expression("gone", "NotIn", "x"))), OK),
        (required(labelled(expression("gone", "DoesNotExist"))), OK),
        (required(labelled(expression("gone", "Exists"))), POD),
        (required(labelled(expression("d", "In"))), POD),
    ],
)
def test_filter(pod: Any, verdict: Any) -> None:
    """The verdict on node n1 with labels d=ssd, z=5."""
    assert filtered(NodeAffinity(), pod, make_node("n1", labels={"d": "ssd", "z": "5"})) == verdict


NODES = [
    make_node("n1", labels={"d": "ssd", "n": "8"}),
    make_node("n2", labels={"d": "ssd", "n": "4"}),
    make_node("n3", labels={"n": "5"}),
    make_node("n4", labels={"n": "5.0"}),
]
EXAMPLE = preferred((80, SSD), (20, labelled(expression("n", "Gt", "4"))), (7, {}))


def test_recorded_example() -> None:
    """Sums of weights, then scaled by the highest; without the best node the others move up."""
    assert scored(NodeAffinity(), EXAMPLE, NODES) == ([100, 80, 20, 0], [100, 80, 20, 0])
    assert scored(NodeAffinity(), EXAMPLE, NODES[1:]) == ([80, 20, 0], [100, 25, 0])


@pytest.mark.parametrize(
    ("pod", "outcome"),
    [
        (make_pod(), ("Skip", [])),
        (required(SSD), ("Skip", [])),
        (preferred(), ([0], [0])),
        (preferred((0, labelled(expression("-", "In")))), ([0], [0])),
        (preferred((5, {})), ([0], [0])),
        (preferred((5, SSD), (3, SSD)), ([8], [100])),
        (
            preferred((1, SSD), (5, labelled(expression("d", "Gt", "x")))),
            (
                "Error",
                [
                    '[1].matchExpressions[0].values[0]: Invalid value: "x": '
                    "for 'Gt', 'Lt' operators, the value must be an integer"
                ],
            ),
        ),
    ],
)
def test_what_is_scored(pod: Any, outcome: Any) -> None:
    """Skip without preferences; weightless and empty terms count nothing; a term that does not parse is an error."""
    assert scored(NodeAffinity(), pod, NODES[:1]) == outcome


def test_added_preferences() -> None:
    """The profile's preferences add to every pod's, also to a pod that has none."""
    added = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": SSD}]}
    plugin = NodeAffinity({"addedAffinity": added})
    assert scored(plugin, make_pod(), NODES[1:3]) == ([5, 0], [100, 0])
    assert scored(plugin, EXAMPLE, NODES[1:3]) == ([85, 20], [100, 23])


def test_added_preferences_without_weight_are_scored_all_the_same() -> None:
    """The plugin is not skipped when the profile prefers something, even something that counts nothing."""
    added = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 0, "preference": SSD}]}
    assert scored(NodeAffinity({"addedAffinity": added}), make_pod(), NODES[:1]) == ([0], [0])


@pytest.mark.parametrize(
    "added",
    [
        {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [labelled(expression("a", "In"))]
            }
        },
        {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": labelled(expression("a", "In"))}
            ]
        },
    ],
)
def test_added_affinity_must_parse(added: Any) -> None:
    """A profile with a broken added affinity does not start."""
    with pytest.raises(
        ValueError, match=r"^parsing addedAffinity\.(required|preferred).*values set can't be empty"
    ):
        NodeAffinity({"addedAffinity": added})
