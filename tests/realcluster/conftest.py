"""Fixtures around the real control plane; README.md in this directory shows their use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .binaries import HOW_TO_GET_THEM, Binaries, find_binaries
from .harness import RealControlPlane, RealScheduler

if TYPE_CHECKING:
    from labkit.cluster.apiserver.server import ServerHandle


@pytest.fixture(scope="session")
def real_binaries() -> Binaries:
    """The real programs; skips, saying why, only where they can neither be found nor built."""
    found = find_binaries()
    if found is None:
        pytest.skip(HOW_TO_GET_THEM)
    return found


@pytest.fixture(scope="session")
def real_scheduler_binary(real_binaries: Binaries) -> Path:
    """Path of the real kube-scheduler."""
    return real_binaries.kube_scheduler


@pytest.fixture(scope="session")
def _control_plane_of_the_session(real_binaries: Binaries) -> Iterator[RealControlPlane]:
    with RealControlPlane(real_binaries) as control_plane:
        yield control_plane


@pytest.fixture
def real_control_plane(_control_plane_of_the_session: RealControlPlane) -> Iterator[RealControlPlane]:
    """etcd and kube-apiserver, one pair per session, emptied around each test; no scheduler runs."""
    _control_plane_of_the_session.reset()
    yield _control_plane_of_the_session
    _control_plane_of_the_session.reset()


@pytest.fixture
def start_real_scheduler(
    real_scheduler_binary: Path, tmp_path: Path
) -> Iterator[Callable[..., RealScheduler]]:
    """``start(kubeconfig, config=None, v=2, ...)``: kube-scheduler against any API server, for one test."""
    running: list[RealScheduler] = []

    def start(kubeconfig: Path | str, config: dict[str, Any] | None = None, **options: Any) -> RealScheduler:
        directory = tmp_path / f"kube-scheduler-{len(running)}"
        scheduler = RealScheduler.start(real_scheduler_binary, kubeconfig, directory, config, **options)
        running.append(scheduler)
        return scheduler

    yield start
    for scheduler in running:
        scheduler.stop()


@pytest.fixture
def labkit_api_server(tmp_path: Path) -> Iterator[ServerHandle]:
    """labkit's API server with an empty cluster, no controllers and no kubelet, as the real one here has none."""
    from labkit.cluster.apiserver import serve
    from labkit.cluster.store import Store

    store = Store()
    with serve(store, directory=tmp_path / "labkit-apiserver") as handle:
        yield handle
    store.close()
