"""The family `config-errors` of recorded traces: every refusal at the same stage with the same words."""

from __future__ import annotations

import pytest
from labkit.config import FeatureGates

from tests.config.support import HERE, answer, lines

SCENARIOS = lines(HERE.parent / "golden" / "config-errors.jsonl.gz")
RECORDED = lines(HERE / "recorded.jsonl.gz")


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario["name"] for scenario in SCENARIOS])
def test_golden_scenario(scenario: dict) -> None:
    """A refused configuration gives stage and text word for word; a valid one (it has `expect`) gives neither."""
    got = answer(scenario["config"], FeatureGates())
    assert got.get("stage") == scenario.get("configErrorStage")
    assert got.get("error") == scenario.get("configError")


def test_golden_family_has_both_kinds() -> None:
    """The file really holds refusals of every stage, and accepted configurations."""
    stages = {scenario.get("configErrorStage") for scenario in SCENARIOS}
    assert stages == {"load", "validate", "init", None}


def test_recorded_answers() -> None:
    """Over a thousand documents, odd YAML and JSON included: the answers of Kubernetes' own code, all of them.

    Compared are stage and text of a refusal; else the plugins of every profile at every point with their
    weights and, where it was recorded, the completed configuration.
    """
    assert len(RECORDED) > 1000
    wrong = []
    for number, record in enumerate(RECORDED, 1):
        got = answer(record["document"], FeatureGates.parse(record.get("featureGates")))
        for key in ("stage", "error", "points", "completed"):
            if key == "completed" and key not in record:
                continue
            if got.get(key) != record.get(key):
                wrong.append((number, key, record["document"], record.get(key), got.get(key)))
    assert not wrong, f"{len(wrong)} differ; the first: {wrong[0]}"
