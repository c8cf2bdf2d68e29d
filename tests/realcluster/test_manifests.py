"""Every manifest that we ship, and every teaching cluster, is accepted by the real kube-apiserver (strict, dry run)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from labkit.cluster.kind import kwok_nodes
from labkit.places import data_dir

from tests.realcluster.harness import kubectl

pytestmark = pytest.mark.realcluster

CLUSTERS = data_dir("clusters")
#: Not for the API server: kind's own format, and configurations of kube-scheduler.
OTHER_KINDS = {"Cluster", "KubeSchedulerConfiguration"}


def documents(path: Path) -> list[dict[str, Any]]:
    """The objects in a file."""
    return [d for d in yaml.safe_load_all(path.read_text(encoding="utf-8")) if d]


MANIFESTS = [
    p for p in sorted(CLUSTERS.rglob("*.yaml")) if not OTHER_KINDS & {d["kind"] for d in documents(p)}
]


def dry_run(control_plane: Any, path: Path) -> str:
    """What kubectl says to the file; fails with its complaint."""
    done = kubectl(
        "apply",
        "--dry-run=server",
        "--validate=strict",
        "-f",
        str(path),
        kubeconfig=control_plane.kubeconfig,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda p: str(p.relative_to(CLUSTERS)))
def test_manifest_is_accepted(real_control_plane: Any, path: Path) -> None:
    """No unknown field, no invalid value, nothing that admission refuses."""
    found = documents(path)
    for document in found:
        # A dry run leaves nothing behind that the next document could refer to.
        if document["kind"] in ("PriorityClass", "Namespace"):
            real_control_plane.api.create(document)
    assert dry_run(real_control_plane, path).count("(server dry run)") == len(found)


def test_kwok_nodes_are_accepted(real_control_plane: Any, tmp_path: Path) -> None:
    """The generated nodes too."""
    file = tmp_path / "nodes.yaml"
    file.write_text(yaml.safe_dump_all(kwok_nodes(3)))
    assert dry_run(real_control_plane, file).count("(server dry run)") == 3


def test_grading_jobs_are_accepted_where_pods_are_restricted(real_control_plane: Any, tmp_path: Path) -> None:
    """Secret and Job of a submission, through the official client, into the namespace of clusters/grading."""
    from labkit.course.cluster_box import NAMESPACE, LiveJobs, job, packed, secret
    from labkit.course.sandbox import Limits

    (tmp_path / "n.ipynb").write_text("{}")
    for document in documents(CLUSTERS / "grading" / "grading.yaml")[:1]:
        real_control_plane.api.create(document)
    jobs = LiveJobs(str(real_control_plane.kubeconfig))
    jobs.create("Secret", secret("grade-1", packed(tmp_path)))
    jobs.create("Job", job("grade-1", "n.ipynb", Limits(), "labkit-grading:latest"))
    template = real_control_plane.api.get("Job", "grade-1", NAMESPACE)["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": NAMESPACE}, **template}
    pod["metadata"] = {"name": "p", "namespace": NAMESPACE}
    assert real_control_plane.api.create(pod)["spec"]["containers"][0]["name"] == "run"
    assert jobs.status("grade-1") == {}
    assert jobs.pod("grade-1") is None
    jobs.delete("Job", "grade-1")
    jobs.delete("Secret", "grade-1")
    jobs.delete("Secret", "grade-1")
