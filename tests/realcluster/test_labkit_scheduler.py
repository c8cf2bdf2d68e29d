"""The lab's scheduler against the real kube-apiserver: binds, preempts, leads, survives its restart."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from labkit.cluster.live import connect
from labkit.cluster.live_scheduler import LiveScheduler
from labkit.config import load_config

from tests.realcluster.harness import make_node, make_pod, make_priority_class, wait_for

pytestmark = pytest.mark.realcluster


@contextmanager
def labkit_scheduler(control_plane: Any, identity: str = "labkit") -> Iterator[LiveScheduler]:
    """Our scheduler on a thread, with its own connection."""
    live = LiveScheduler(connect(str(control_plane.kubeconfig)), load_config(None), identity=identity)
    thread = threading.Thread(target=live.run, daemon=True)
    thread.start()
    try:
        yield live
    finally:
        live.stop()
        thread.join(20)
        assert not thread.is_alive()


def test_fifty_pods_are_bound_and_the_rest_told_why(real_control_plane: Any) -> None:
    """All that fit run; the others' condition has kube-scheduler's words; nothing is bound twice."""
    api = real_control_plane.api
    for i in range(3):
        api.create(make_node(f"n{i}", cpu="4"))
    for i in range(50):
        api.create(make_pod(f"p{i}", cpu="250m"))
    with labkit_scheduler(real_control_plane):
        wait_for(lambda: sum(map(bool, api.placements("default").values())) >= 48 or None, 40)
        waiting = [f"p{i}" for i in range(50) if not api.node_of(f"p{i}")]
        assert len(waiting) == 2
        message = wait_for(lambda: (api.condition(waiting[0]) or {}).get("message"), 20)
        assert message.startswith("0/3 nodes are available: 3 Insufficient cpu.")
        assert api.events("p0", "Scheduled")


def test_preempts_and_survives_a_restart(real_control_plane: Any) -> None:
    """A high-priority pod takes the place of a low one; a second scheduler goes on where the first stopped."""
    api = real_control_plane.api
    api.create(make_node("n1", cpu="2"))
    api.create(make_priority_class("high", 1000))
    api.create(make_pod("low", cpu="1500m"))
    with labkit_scheduler(real_control_plane, "first"):
        assert wait_for(lambda: api.node_of("low"), 20) == "n1"
    api.create(make_pod("urgent", cpu="1500m", priorityClassName="high"))
    with labkit_scheduler(real_control_plane, "second"):
        assert wait_for(lambda: api.node_of("urgent"), 40) == "n1"
        lease: Any = api.get("Lease", "kube-scheduler", "kube-system")
        assert lease["spec"]["holderIdentity"] == "second"
