"""Grading as Kubernetes Jobs: what is handed to the cluster, and what its answers mean. A stand-in runs the Jobs here."""

from __future__ import annotations

import base64
import io
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from labkit.course.box import run_boxed
from labkit.course.cluster_box import LARGEST_TAR, ClusterBox, job, packed, secret
from labkit.course.sandbox import Limits
from labkit.course.source import build_language, write_notebook
from labkit.errors import LabError

from tests.course import sample

LIMITS = Limits(cell_seconds=5, wall_seconds=60)
Json = dict[str, Any]


class LocalJobs:
    """Takes Secrets and Jobs as a cluster does and runs the Job's notebook in a process; or tells a prepared end."""

    def __init__(self, folder: Path, *, status: Json | None = None, pod: Json | None = None) -> None:
        self.folder, self.objects, self.deleted = folder, {}, []
        self.objects: dict[str, Json] = {}
        self.deleted: list[str] = []
        self.prepared, self.prepared_pod = status, pod
        self.output = b""

    def create(self, kind: str, manifest: Json) -> None:
        """Keep it; a Job runs at once."""
        self.objects[kind] = manifest
        if kind != "Job" or self.prepared is not None:
            return
        tar = base64.b64decode(self.objects["Secret"]["data"]["work.tar.gz"])
        with tarfile.open(fileobj=io.BytesIO(tar)) as opened:
            opened.extractall(self.folder, filter="data")
        pod = manifest["spec"]["template"]["spec"]
        *_, notebook = pod["initContainers"][0]["command"]
        python, *command, _, seconds = pod["containers"][0]["command"]
        assert python == "python"
        done = subprocess.run(
            [sys.executable, *command, notebook, seconds],
            cwd=self.folder,
            capture_output=True,
            timeout=120,
            check=False,
        )
        self.output = done.stdout

    def status(self, name: str) -> Json:
        """Done, or as prepared."""
        return {"succeeded": 1} if self.prepared is None else self.prepared

    def pod(self, name: str) -> Json | None:
        """One pod."""
        return self.prepared_pod or {"metadata": {"name": "p"}}

    def log(self, pod: str) -> bytes:
        """The runner's lines."""
        return self.output

    def delete(self, kind: str, name: str) -> None:
        """Note it."""
        self.deleted.append(kind)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """The sample module with its solution, laid out as grading lays it out."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "numbers.txt").write_text("1 2 3")
    write_notebook(build_language(sample.notebook(), "en"), folder / f"{sample.NAME}.ipynb")
    return folder


def box(tmp_path: Path, **prepared: Any) -> tuple[ClusterBox, LocalJobs]:
    """A cluster box that never sleeps, and its cluster."""
    folder = tmp_path / "pod"
    folder.mkdir(exist_ok=True)
    jobs = LocalJobs(folder, **prepared)
    return ClusterBox(jobs, wait_seconds=5, sleep=lambda _: None), jobs


def test_a_job_reports_what_the_box_on_this_machine_reports(work: Path, tmp_path: Path) -> None:
    """The same outputs of the same cells: therefore the same marks. Nothing is left on the cluster."""
    cluster, jobs = box(tmp_path)
    there = cluster(work, f"{sample.NAME}.ipynb", LIMITS)
    here = run_boxed(work, f"{sample.NAME}.ipynb", LIMITS)
    assert there.ended == here.ended == "done"
    assert there.outputs == here.outputs
    assert jobs.deleted == ["Job", "Secret"]


@pytest.mark.parametrize(
    ("status", "pod", "ended"),
    [
        ({"failed": 1}, None, "died"),
        ({"conditions": [{"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}]}, None, "time"),
        (
            {"failed": 1},
            {
                "metadata": {"name": "p"},
                "status": {"containerStatuses": [{"state": {"terminated": {"reason": "OOMKilled"}}}]},
            },
            "memory",
        ),
    ],
)
def test_how_a_job_ended(work: Path, tmp_path: Path, status: Json, pod: Json | None, ended: str) -> None:
    """The cluster's words become the grader's."""
    cluster, _ = box(tmp_path, status=status, pod=pod)
    assert cluster(work, "n.ipynb", LIMITS).ended == ended


def test_a_pod_without_a_node_says_why(work: Path, tmp_path: Path) -> None:
    """The scheduler's own message is the reason, with the command to look closer."""
    waiting = {
        "metadata": {"name": "p"},
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "message": "0/3 nodes are available: 3 Insufficient cpu.",
                }
            ]
        },
    }
    cluster, jobs = box(tmp_path, status={"active": 1}, pod=waiting)
    with pytest.raises(LabError, match=r"3 Insufficient cpu(.|\n)*kubectl -n labkit-grading describe"):
        cluster(work, "n.ipynb", LIMITS)
    assert jobs.deleted == ["Job", "Secret"]


def test_stopping_the_grader_removes_the_job(work: Path, tmp_path: Path) -> None:
    """Nothing goes on running for nobody."""
    cluster, jobs = box(tmp_path, status={"active": 1})
    assert cluster(work, "n.ipynb", LIMITS, stop=lambda: True).ended == "stopped"
    assert jobs.deleted == ["Job", "Secret"]


def test_what_does_not_fit_into_a_secret_is_refused(tmp_path: Path) -> None:
    """With the size and the way out."""
    import random

    (tmp_path / "big.bin").write_bytes(random.Random(1).randbytes(LARGEST_TAR + 1))
    with pytest.raises(LabError, match="--on-cluster"):
        packed(tmp_path)


def test_the_same_files_pack_to_the_same_bytes(work: Path) -> None:
    """No times, no owners."""
    first = packed(work)
    (work / "numbers.txt").touch()
    assert packed(work) == first


def test_the_pod_is_closed() -> None:
    """No token, no rights, no writable root, every resource limited, one attempt only."""
    spec = job("grade-x", "n.ipynb", LIMITS, "image")["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    assert spec["backoffLimit"] == 0
    assert spec["activeDeadlineSeconds"] == 60
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert set(container["resources"]["limits"]) == {"cpu", "memory", "ephemeral-storage"}
    assert secret("grade-x", b"")["metadata"]["name"] == pod["volumes"][0]["secret"]["secretName"]
