"""Every KubeSchedulerConfiguration that we ship runs the real kube-scheduler, with its extender away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from labkit.places import data_dir

from .harness import RealControlPlane, make_node, make_pod, wait_for

pytestmark = pytest.mark.realcluster
CLUSTERS = data_dir("clusters")
CONFIGS = [
    p
    for p in sorted(CLUSTERS.rglob("*.yaml"))
    if "kind: KubeSchedulerConfiguration" in p.read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: str(p.relative_to(CLUSTERS)))
def test_the_real_scheduler_takes_it(real_control_plane: RealControlPlane, path: Path) -> None:
    """Strictly decoded and valid; while the extender is away pods run if it is `ignorable`, and are told if not."""
    config: dict[str, Any] = yaml.safe_load(
        path.read_text(encoding="utf-8").replace("EXTENDER_HOST", "127.0.0.1")
    )
    # The path inside of a kind node; the harness puts its own there.
    config.pop("clientConnection", None)
    config["leaderElection"] = {"leaderElect": False}
    api = real_control_plane.api
    api.create(make_node("n1"))
    real_control_plane.start_scheduler(config)
    api.create(make_pod("p"))
    if all(extender.get("ignorable") for extender in config["extenders"]):
        assert wait_for(lambda: api.node_of("p"), 30, "p bound") == "n1"
    else:
        condition = wait_for(lambda: api.condition("p"), 30, "p decided")
        assert (condition["status"], condition["reason"]) == ("False", "SchedulerError")
