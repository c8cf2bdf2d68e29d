"""The same kubectl commands against labkit's API server and the real one read the same."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from labkit.cluster.apiserver.server import ServerHandle

from .harness import RealControlPlane
from .kubectl_sessions import SESSIONS
from .transcripts import run

pytestmark = pytest.mark.realcluster


@pytest.mark.parametrize("session", SESSIONS)
def test_session_reads_the_same(
    session: str, real_control_plane: RealControlPlane, labkit_api_server: ServerHandle
) -> None:
    """Every command of the session -> the same output, errors and exit status, but for ages, ids and addresses."""
    with ThreadPoolExecutor(2) as pool:
        ours = pool.submit(run, SESSIONS[session], labkit_api_server.kubeconfig)
        real = pool.submit(run, SESSIONS[session], real_control_plane.kubeconfig)
    # One text, so that pytest's difference shows each deviating line under its command.
    assert "\n\n".join(ours.result()) == "\n\n".join(real.result())


def test_real_sessions_say_something(real_control_plane: RealControlPlane) -> None:
    """Against the real server the sessions succeed and fail where they are meant to: the comparison is not of noise."""
    transcript = run(SESSIONS["nodes"], real_control_plane.kubeconfig)
    assert (
        transcript[0] == "$ kubectl apply -f -\nnode/node-a created\nnode/node-b created\nnode/node-c created"
    )
    failed = [text.split("\n")[0] for text in transcript if text.endswith("exit 1")]
    assert failed == [
        "$ kubectl taint nodes node-a k=v:NoSchedule",
        "$ kubectl taint nodes node-a k-",
        "$ kubectl label node node-a disk=hdd",
    ]
