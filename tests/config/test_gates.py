"""Feature gates: the text of `--feature-gates` -> what is on."""

from __future__ import annotations

import pytest
from labkit.config import FeatureGates, GateError
from labkit.errors import InputError


def test_defaults() -> None:
    """Beta and GA gates are on, alpha ones off."""
    gates = FeatureGates()
    assert gates.enabled("SchedulerPopFromBackoffQ")
    assert gates.enabled("NodeDeclaredFeatures")
    assert not gates.enabled("GangScheduling")
    assert not gates.enabled("SchedulerAsyncAPICalls")


@pytest.mark.parametrize(
    ("text", "name", "on"),
    [
        ("SchedulerAsyncPreemption=false", "SchedulerAsyncPreemption", False),
        ("GenericWorkload=true, GangScheduling=T", "GangScheduling", True),
        ("AllAlpha=true", "TaintTolerationComparisonOperators", True),
        ("AllBeta=false", "OpportunisticBatching", False),
        ("AllBeta=false", "SchedulerQueueingHints", True),
        ("AllAlpha=true,VolumeLimitScaling=false", "VolumeLimitScaling", False),
        ("", "OpportunisticBatching", True),
    ],
)
def test_parse(text: str, name: str, on: bool) -> None:
    """Text -> the gate."""
    assert FeatureGates.parse(text).enabled(name) is on


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Foo=true", "unrecognized feature gate: Foo"),
        ("GangScheduling", "missing bool value for GangScheduling"),
        (
            "GangScheduling=maybe",
            'invalid value of GangScheduling=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax',
        ),
        (
            "DynamicResourceAllocation=false",
            "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true",
        ),
        (
            "GangScheduling=true",
            "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
        ),
        (
            "PodLevelResources=false,NodeDeclaredFeatures=false",
            "InPlacePodLevelResourcesVerticalScaling is enabled, but depends on features that are disabled: "
            "[NodeDeclaredFeatures PodLevelResources]",
        ),
    ],
)
def test_refused(text: str, message: str) -> None:
    """Text -> the words of kube-scheduler."""
    with pytest.raises(GateError) as caught:
        FeatureGates.parse(text)
    assert caught.value.message == message
    assert isinstance(caught.value, InputError)


def test_unknown_gate_suggests_the_right_one() -> None:
    """A misspelt gate gets a suggestion."""
    with pytest.raises(GateError) as caught:
        FeatureGates.parse("GangSheduling=true")
    assert caught.value.hint == "Did you mean GangScheduling?"


def test_missing_requirement_says_what_to_add() -> None:
    """The hint of a missing requirement is what to write."""
    with pytest.raises(GateError) as caught:
        FeatureGates({"GangScheduling": True})
    assert caught.value.hint == "Also set GenericWorkload=true."
    assert FeatureGates({"GangScheduling": True, "GenericWorkload": True}).enabled("GangScheduling")
