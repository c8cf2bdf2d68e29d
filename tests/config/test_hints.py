"""The common mistakes get one more line, in two languages."""

from __future__ import annotations

from typing import Any

import pytest
from labkit.config import ConfigError, check_config
from labkit.config.hints import hint_for

from tests.config.support import HERE, configuration, lines, profile


def error_of(source: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        check_config(source)
    return caught.value


@pytest.mark.parametrize(
    ("source", "word"),
    [
        (profile(extenders=[]), "top level"),
        (profile({"filter": {"enabled": [{"name": "NodeSelector"}]}}), "NodeAffinity"),
        (profile({"score": {"enabled": [{"name": "NodeResourcesLeastAllocated"}]}}), "scoringStrategy.type"),
        (profile({"filter": ["NodeName"]}), "enabled: [{name: NodeName}]"),
        (profile({"filter": {"enabled": ["NodeName"]}}), "- name: NodeName"),
        (configuration(extenders=[{"url": "http://x"}]), "urlPrefix"),
        (configuration(extenders=[{"httpTimeout": 5}]), '"5s"'),
        (configuration(leaderElection={"leaseDuration": "15"}), "unit"),
        ({"apiVersion": "v1", "kind": "Policy"}, "KubeSchedulerConfiguration"),
        (
            {"apiVersion": "kubescheduler.config.k8s.io/v1beta3", "kind": "KubeSchedulerConfiguration"},
            "only version",
        ),
        (configuration(featureGates={}), "--feature-gates"),
        (
            profile(None, {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"resources": []}}}),
            "LeastAllocated",
        ),
        (profile({"multiPoint": {"disabled": [{"name": "*"}]}}), "PrioritySort"),
        (configuration(profiles=[{}, {}]), "schedulerName"),
        ("a: 1\n\tb: 2\n", "spaces"),
    ],
)
def test_common_mistake(source: Any, word: str) -> None:
    """A common mistake -> a hint that names the remedy, and a Chinese one that is Chinese."""
    error = error_of(source)
    assert error.hint is not None
    assert word in error.hint
    chinese = error.hint_in("zh")
    assert chinese is not None
    assert any("\u4e00" <= char <= "\u9fff" for char in chinese)
    assert str(error).splitlines()[-1] == error.hint


def test_no_hint_where_the_text_says_it_all() -> None:
    """A plain range error needs no second line, and its text stays as it is."""
    error = error_of(configuration(parallelism=0))
    assert error.hint is None
    assert (
        str(error)
        == error.message
        == "parallelism: Invalid value: 0: should be an integer value greater than zero"
    )


def test_hints_never_change_the_message() -> None:
    """Recorded refusals: the message is kube-scheduler's alone, with or without a hint."""
    errors = [record["error"] for record in lines(HERE / "recorded.jsonl.gz") if "error" in record]
    hinted = [error for error in errors if hint_for(error)]
    assert 0 < len(hinted) < len(errors)
    assert all((hint_for(error, "zh") is None) == (hint_for(error) is None) for error in errors)
