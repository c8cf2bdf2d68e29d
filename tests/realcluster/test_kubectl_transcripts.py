"""The same kubectl commands against labkit's API server and the real one read the same."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from labkit.cluster.apiserver.server import ServerHandle

from .harness import RealControlPlane
from .kubectl_sessions import SESSIONS
from .kubectl_sessions_invalid import INVALID_SESSIONS
from .kubectl_sessions_more import MORE_SESSIONS
from .kubectl_sessions_sets import SETS_SESSIONS
from .kubectl_sessions_wide import WIDE_SESSIONS
from .transcripts import Step, run

pytestmark = pytest.mark.realcluster


ALL_SESSIONS = {**SESSIONS, **MORE_SESSIONS, **WIDE_SESSIONS, **INVALID_SESSIONS, **SETS_SESSIONS}


@pytest.mark.parametrize("session", ALL_SESSIONS)
def test_session_reads_the_same(
    session: str, real_control_plane: RealControlPlane, labkit_api_server: ServerHandle
) -> None:
    """Every command of the session -> the same output, errors and exit status, but for ages, ids and addresses."""
    with ThreadPoolExecutor(2) as pool:
        ours = pool.submit(run, ALL_SESSIONS[session], labkit_api_server.kubeconfig)
        real = pool.submit(run, ALL_SESSIONS[session], real_control_plane.kubeconfig)
    deviations = [pair for pair in zip(ours.result(), real.result(), strict=True) if pair[0] != pair[1]]
    assert "\n\n".join(pair[0] for pair in deviations) == "\n\n".join(pair[1] for pair in deviations)


def test_resources_are_described_as_the_real_ones(
    real_control_plane: RealControlPlane, labkit_api_server: ServerHandle
) -> None:
    """`api-resources -o wide` -> each of labkit's lines (names, group, verbs, categories) is one of the real server's."""
    step = [Step("api-resources -o wide")]
    ours, real = (
        run(step, kubeconfig)[0].splitlines()
        for kubeconfig in (labkit_api_server.kubeconfig, real_control_plane.kubeconfig)
    )
    assert len(ours) > 25
    assert [line for line in ours if line not in real] == []


@pytest.mark.parametrize(
    "path", ["pods", "pod.spec.affinity.podAffinity", "deployment.spec.replicas", "pc.value"]
)
def test_explain_knows_the_same_fields(
    path: str, real_control_plane: RealControlPlane, labkit_api_server: ServerHandle
) -> None:
    """`kubectl explain` -> the same headings, fields and types; the descriptions are each server's own."""

    def headings(kubeconfig: Path) -> list[str]:
        lines = run([Step(f"explain {path}")], kubeconfig)[0].splitlines()
        kept = ("KIND", "VERSION", "GROUP", "FIELD")
        return [line.strip() for line in lines if line.startswith(kept) or re.match(r"\s+\w+\s+<.+>", line)]

    ours, real = headings(labkit_api_server.kubeconfig), headings(real_control_plane.kubeconfig)
    assert ours == real
    assert len(ours) >= 3


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
