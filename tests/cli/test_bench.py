"""`labkit bench`: what is measured is what was meant; how fast it was is nobody's business here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from labkit.cli import main
from labkit.cli._bench_workloads import WORKLOADS, initial_pods
from labkit.i18n import get_language, set_language


def bench(capsys: pytest.CaptureFixture[str], *args: str) -> list[dict[str, Any]]:
    """The rows of a run."""
    with pytest.raises(SystemExit) as end:
        main(["bench", *args, "--output", "json"])
    assert end.value.code == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_workload_binds_its_pods(capsys: pytest.CaptureFixture[str], workload: str) -> None:
    """All measured pods are bound; without --pods there are as many as upstream has."""
    (row,) = bench(capsys, "scheduler", "--workload", workload, "--nodes", "70", "--pods", "14")
    warm = 1 if workload == "preemption" else 0
    assert (row["workload"], row["nodes"], row["pods"]) == (workload, 70, 14 - warm)
    assert row["pods_per_second"] > 0
    assert row["p50_ms"] <= row["p90_ms"] <= row["p99_ms"]
    assert "Python" in row["machine"]


def test_numbers_of_pods_follow_upstream() -> None:
    """Initial and measured pods at 500 and 5000 nodes."""
    counts = {
        name: (w.initial(500), w.pods(500), w.initial(5000), w.pods(5000)) for name, w in WORKLOADS.items()
    }
    assert counts == {
        "basic": (500, 1000, 1000, 10_000),
        "anti-affinity": (100, 400, 1000, 1000),
        "affinity": (500, 1000, 5000, 1000),
        "spread": (1000, 1000, 5000, 2000),
        "preemption": (2000, 500, 20_000, 5000),
        "preemption-async": (2000, 500, 20_000, 5000),
        "mixed": (1000, 1000, 10_000, 1000),
    }


def test_mixed_has_all_kinds_in_turn() -> None:
    """One after the other, equally many."""
    names = [p["metadata"]["labels"].get("color", "") for p in initial_pods(WORKLOADS["mixed"], 50)]
    assert names == [c for c in ("", "blue", "green", "red", "yellow") for _ in range(20)]


def test_preemptors_take_the_place_of_three(capsys: pytest.CaptureFixture[str]) -> None:
    """Each of the nodes is full of four pods; as many preemptors as nodes find room."""
    (row,) = bench(capsys, "scheduler", "--workload", "preemption", "--nodes", "12")
    assert row["pods"] == 11


def test_lab_measures(capsys: pytest.CaptureFixture[str]) -> None:
    """Traces, what-ifs and memory, on clusters that are small."""
    rows = bench(capsys, "lab", "--nodes", "10", "--pods", "5")
    assert [r["what"] for r in rows] == ["trace", "what-if", "memory"]


@pytest.fixture
def language() -> Iterator[None]:
    """The language as it was, afterwards."""
    before = get_language()
    yield
    set_language(before)


@pytest.mark.usefixtures("language")
def test_unknown_names_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    """In both languages, with what there is."""
    for language, said in (("en", "is none of basic"), ("zh", "不是以下之一：basic")):
        with pytest.raises(SystemExit) as end:
            main(["--lang", language, "bench", "scheduler", "--workload", "fast"])
        assert end.value.code == 2
        assert said in capsys.readouterr().err
