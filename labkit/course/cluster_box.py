"""The box on a Kubernetes cluster: each run of a submission is a Job of its own, marks are made here as ever.

The folder goes in as a Secret (a gzipped tar), what the runner reports comes back as the pod's log. The pod has no
network (clusters/grading/), no service account token, no writable root, and hard limits; it never sees the course.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import io
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from labkit.course.box import BoxResult, take_line
from labkit.course.sandbox import Limits
from labkit.errors import LabError
from labkit.i18n import t

NAMESPACE = "labkit-grading"
IMAGE = "labkit-grading:latest"
#: etcd takes objects of 1.5 MiB; base64 makes a third more of the tar.
LARGEST_TAR = 1_000_000
_CELLS = "/cells/cells.ipynb"
_LABEL = "labkit.grading/run"

Json = dict[str, Any]


class Jobs(Protocol):
    """What the grader needs of a cluster. `LiveJobs` is the real one."""

    def create(self, kind: str, manifest: Json) -> None:
        """Create a Secret or a Job. Raises LabError with the server's reason."""

    def status(self, name: str) -> Json:
        """`status` of the Job."""

    def pod(self, name: str) -> Json | None:
        """The Job's pod, when there is one."""

    def log(self, pod: str) -> bytes:
        """What the pod's container wrote to standard output so far."""

    def delete(self, kind: str, name: str) -> None:
        """Delete, with everything that belongs to it; what is gone already is no error."""


def packed(folder: Path) -> bytes:
    """`folder` as a gzipped tar, the same bytes for the same files. LabError when it is too large for a Secret."""
    raw = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as tar,
    ):
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            info = tarfile.TarInfo(str(path.relative_to(folder)))
            info.size, info.mode = path.stat().st_size, 0o644
            with path.open("rb") as file:
                tar.addfile(info, file)
    found = raw.getvalue()
    if len(found) > LARGEST_TAR:
        raise LabError(
            t(
                f"the submission is {len(found) / 1e6:.1f} MB packed; a cluster takes {LARGEST_TAR / 1e6:g} MB",
                f"提交打包后为 {len(found) / 1e6:.1f} MB，集群最多接受 {LARGEST_TAR / 1e6:g} MB",
            ),
            hint=t("grade it on this machine, without --on-cluster", "请在本机评分，不使用 --on-cluster"),
        )
    return found


def secret(name: str, tar: bytes) -> Json:
    """The Secret that carries a submission into its pod."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {_LABEL: name}},
        "type": "labkit.grading/submission",
        "data": {"work.tar.gz": base64.b64encode(tar).decode()},
    }


def job(name: str, notebook: str, limits: Limits, image: str) -> Json:
    """The Job that runs it once, with `limits` as the kernel and the kubelet enforce them."""
    room = f"{limits.disk_mb}Mi"
    secure = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    # Only this container sees the Secret; the other one gets the cells through `feeder`, which deletes the notebook
    # before anything of the submission runs.
    unpack = {
        "name": "unpack",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": [
            "/bin/sh",
            "-c",
            "python -c \"import tarfile; tarfile.open('/in/work.tar.gz').extractall('/box', filter='data')\""
            f' && mv "$0" {_CELLS}',
            notebook,
        ],
        "workingDir": "/box",
        "resources": {
            "requests": {"cpu": "100m", "memory": "64Mi"},
            "limits": {"cpu": "1", "memory": "256Mi", "ephemeral-storage": f"{4 * limits.disk_mb}Mi"},
        },
        "securityContext": secure,
        "volumeMounts": [
            {"name": "in", "mountPath": "/in", "readOnly": True},
            {"name": "box", "mountPath": "/box"},
            {"name": "cells", "mountPath": "/cells"},
        ],
    }
    container = {
        "name": "run",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-m", "labkit.course.feeder", _CELLS, str(limits.cell_seconds)],
        "workingDir": "/box",
        "env": [
            {"name": name_, "value": value}
            for name_, value in (
                ("HOME", "/box"),
                ("IPYTHONDIR", "/tmp/.ipython"),
                ("TMPDIR", "/tmp"),
                ("LANG", "C.UTF-8"),
                ("PYTHONHASHSEED", "0"),
                ("PYTHONDONTWRITEBYTECODE", "1"),
                ("OPENBLAS_NUM_THREADS", "1"),
                ("NBGRADER_EXECUTION", "autograde"),
            )
        ],
        "resources": {
            "requests": {"cpu": "500m", "memory": "256Mi"},
            "limits": {
                "cpu": "1",
                "memory": f"{limits.memory_mb}M",
                "ephemeral-storage": f"{4 * limits.disk_mb}Mi",
            },
        },
        "securityContext": secure,
        "volumeMounts": [
            {"name": "cells", "mountPath": "/cells"},
            {"name": "box", "mountPath": "/box"},
            {"name": "tmp", "mountPath": "/tmp"},
        ],
    }
    pod = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "runAsGroup": 65534,
            "fsGroup": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "initContainers": [unpack],
        "containers": [container],
        "volumes": [
            {"name": "in", "secret": {"secretName": name}},
            {"name": "box", "emptyDir": {"sizeLimit": room}},
            {"name": "cells", "emptyDir": {"sizeLimit": room}},
            {"name": "tmp", "emptyDir": {"sizeLimit": room}},
        ],
    }
    labels = {_LABEL: name}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": int(limits.wall_seconds),
            "ttlSecondsAfterFinished": 600,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


@dataclass
class ClusterBox:
    """Runs folders as Jobs; call it like `run_boxed`. `wait_seconds` is how long a Job may stay without a result
    beyond its own limit, for example because its pod finds no node."""

    jobs: Jobs
    image: str = IMAGE
    wait_seconds: float = 600
    poll_seconds: float = 1.0
    sleep: Callable[[float], None] = field(default=time.sleep)

    def __call__(
        self, folder: Path, notebook: str, limits: Limits, *, stop: Callable[[], bool] = lambda: False
    ) -> BoxResult:
        """One run. LabError when the cluster does not take it."""
        began = time.monotonic()
        tar = packed(folder)
        # Two runs of the same files must not share a name: a retry may overlap the deletion of the first.
        name = f"grade-{hashlib.sha256(tar).hexdigest()[:16]}-{time.monotonic_ns() % 10**9:09d}"
        try:
            self.jobs.create("Secret", secret(name, tar))
            self.jobs.create("Job", job(name, notebook, limits, self.image))
            result = self._wait(name, limits, stop)
        finally:
            for kind in ("Job", "Secret"):
                with contextlib.suppress(LabError):
                    self.jobs.delete(kind, name)
        result.seconds = time.monotonic() - began
        return result

    def _wait(self, name: str, limits: Limits, stop: Callable[[], bool]) -> BoxResult:
        left = limits.wall_seconds + self.wait_seconds
        while left > 0:
            if stop():
                return BoxResult(ended="stopped")
            status = self.jobs.status(name)
            if status.get("succeeded") or status.get("failed") or _condition(status, "Failed"):
                return self._result(name, status)
            self.sleep(self.poll_seconds)
            left -= self.poll_seconds
        raise LabError(
            t(
                f"the cluster gave no result within {limits.wall_seconds + self.wait_seconds:g} s",
                f"集群在 {limits.wall_seconds + self.wait_seconds:g} 秒内没有给出结果",
            )
            + _why_waiting(self.jobs.pod(name)),
            hint=f"kubectl -n {NAMESPACE} describe pods -l {_LABEL}={name}",
        )

    def _result(self, name: str, status: Json) -> BoxResult:
        result = BoxResult()
        pod = self.jobs.pod(name)
        if pod is not None:
            for line in self.jobs.log(pod["metadata"]["name"]).split(b"\n"):
                take_line(result, line)
        if not result.ended:
            result.ended = _end(status, pod)
        return result


def _end(status: Json, pod: Json | None) -> str:
    """Why a run that did not say it was done has ended."""
    failed = _condition(status, "Failed")
    if failed is not None and failed.get("reason") == "DeadlineExceeded":
        return "time"
    statuses = ((pod or {}).get("status") or {}).get("containerStatuses") or []
    for container in statuses:
        ended = (container.get("state") or {}).get("terminated") or {}
        if ended.get("reason") == "OOMKilled":
            return "memory"
    return "died"


def _condition(status: Json, kind: str) -> Json | None:
    found = (c for c in status.get("conditions") or [] if c["type"] == kind and c["status"] == "True")
    return next(found, None)


def _why_waiting(pod: Json | None) -> str:
    conditions = ((pod or {}).get("status") or {}).get("conditions") or []
    texts = [c["message"] for c in conditions if c.get("type") == "PodScheduled" and c.get("message")]
    return f": {texts[0]}" if texts else ""


class LiveJobs:
    """`Jobs` on the cluster of a kubeconfig, through the official client. LabError when it cannot be used."""

    def __init__(self, kubeconfig: str | None = None, *, context: str | None = None) -> None:
        from kubernetes import client, config

        configuration = client.Configuration()
        try:
            config.load_kube_config(
                config_file=kubeconfig, context=context, client_configuration=configuration
            )
        except Exception as e:
            raise LabError(
                f"kubeconfig {kubeconfig or '(default)'}: {e}", hint="give --kubeconfig, or set KUBECONFIG"
            ) from e
        self._api = client.ApiClient(configuration)
        self._core, self._batch = client.CoreV1Api(self._api), client.BatchV1Api(self._api)
        self._refused = client.exceptions.ApiException

    def _call(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except self._refused as e:
            hint = f"kubectl apply -f clusters/grading/ makes namespace {NAMESPACE}"
            raise LabError(f"the cluster refused: {_message(e)}", hint=hint) from e
        except Exception as e:
            raise LabError(f"the cluster cannot be reached: {type(e).__name__}: {e}") from e

    def create(self, kind: str, manifest: Json) -> None:
        """A Secret or a Job."""
        create = {
            "Secret": self._core.create_namespaced_secret,
            "Job": self._batch.create_namespaced_job,
        }[kind]
        self._call(create, NAMESPACE, manifest)

    def status(self, name: str) -> Json:
        """As plain JSON."""
        found = self._call(self._batch.read_namespaced_job, name, NAMESPACE)
        status: Json = self._api.sanitize_for_serialization(found.status) or {}
        return status

    def pod(self, name: str) -> Json | None:
        """The newest pod with the run's label."""
        found = self._call(self._core.list_namespaced_pod, NAMESPACE, label_selector=f"{_LABEL}={name}")
        pods: list[Json] = [self._api.sanitize_for_serialization(p) for p in found.items]
        return max(pods, key=lambda p: str(p["metadata"].get("creationTimestamp")), default=None)

    def log(self, pod: str) -> bytes:
        """Whole, as bytes."""
        answer = self._call(self._core.read_namespaced_pod_log, pod, NAMESPACE, _preload_content=False)
        return bytes(answer.data)

    def delete(self, kind: str, name: str) -> None:
        """With its pods."""
        delete = {
            "Secret": self._core.delete_namespaced_secret,
            "Job": self._batch.delete_namespaced_job,
        }[kind]
        try:
            delete(name, NAMESPACE, propagation_policy="Background")
        except self._refused as e:
            if e.status != 404:
                raise LabError(f"the cluster refused: {_message(e)}") from e
        except Exception as e:
            raise LabError(f"the cluster cannot be reached: {type(e).__name__}: {e}") from e


def _message(error: Any) -> str:
    import json

    try:
        return str(json.loads(error.body)["message"])
    except (ValueError, KeyError, TypeError):
        return f"{error.status} {error.reason}"
