"""check.outcome: a workload is run, measured, and paid for."""

from __future__ import annotations

from labkit import check

PACK = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "scoringStrategy": {
                            "type": "MostAllocated",
                            "resources": [{"name": "cpu", "weight": 1}],
                        }
                    },
                }
            ],
            "plugins": {"score": {"enabled": [{"name": "NodeResourcesFit", "weight": 10}]}},
        }
    ],
}


class Raises:
    """A Score plugin with a fault."""

    def score(self, state: object, pod: object, node: object) -> int:
        """Divides by zero."""
        return 1 // 0


def test_the_same_seed_gives_the_same_workload_and_outcome() -> None:
    """Twice."""
    assert check.workload(7) == check.workload(7)
    assert check.measure(check.play(7)) == check.measure(check.play(7))


def test_packing_places_what_the_default_profile_leaves_waiting() -> None:
    """And is cheaper."""
    default, packed = check.measure(check.play(0)), check.measure(check.play(0, config=PACK))
    assert (default.placed, default.room) == (25, 0)
    assert (packed.placed, packed.pods) == (29, 29)
    assert packed.cost < default.cost


def test_a_plugin_that_raises_gets_nothing_and_its_own_line() -> None:
    """Not the lab's traceback."""
    report = check.outcome(PACK, [Raises], points=2, seeds=[0])
    assert report.score == 0
    assert "ZeroDivisionError" in report.text() or any("ZeroDivision" in c.detail for c in report.cases)
