"""`labkit apiserver --controllers --scheduler` as a process, and clients that know nothing of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.workloads import Json, node, template, workload

KUBECTL = Path(sys.executable).parent / "kubectl"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster with three nodes; its kubeconfig."""
    place = tmp_path_factory.mktemp("cluster")
    kubeconfig = place / "kubeconfig"
    labkit = str(Path(sys.executable).parent / "labkit")
    command = [labkit, "apiserver", "--port", "0", "--controllers", "--scheduler"]
    with (place / "log").open("w+") as log:
        process = subprocess.Popen(
            [*command, "--kubeconfig", str(kubeconfig)], stdout=log, stderr=subprocess.STDOUT
        )
        try:
            deadline = time.monotonic() + 60
            while "export KUBECONFIG" not in (place / "log").read_text():
                assert process.poll() is None, (place / "log").read_text()
                assert time.monotonic() < deadline, (place / "log").read_text()
                time.sleep(0.1)
            yield kubeconfig
        finally:
            process.terminate()
            process.wait(timeout=20)
        told = (place / "log").read_text()
    assert process.returncode == 0, told
    assert re.search(r"Traceback|Exception", told) is None, told


@pytest.fixture(scope="module")
def kubectl(cluster: Path) -> Callable[..., str]:
    """Run kubectl; AssertionError with its words when it fails."""
    if not KUBECTL.exists():
        pytest.skip("kubectl is not installed")

    def run(*command: str, objects: list[Json] | None = None) -> str:
        stdin = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}) if objects else None
        done = subprocess.run(
            [str(KUBECTL), *command],
            input=stdin,
            capture_output=True,
            text=True,
            env={**os.environ, "KUBECONFIG": str(cluster), "HOME": str(cluster.parent)},
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    run("apply", "-f", "-", objects=[node(f"n{i}") for i in range(3)])
    run("wait", "--for=condition=Ready", "node", "--all", "--timeout=30s")
    return run


def _pods(kubectl: Callable[..., str], app: str) -> list[Any]:
    found: list[Any] = json.loads(kubectl("get", "pods", "-l", f"app={app}", "-o", "json"))["items"]
    return found


def test_a_deployment_runs_rolls_and_goes(kubectl: Callable[..., str]) -> None:
    """apply, rollout status, set image, undo, scale, delete: as on any cluster."""
    kubectl("apply", "-f", "-", objects=[workload("Deployment")])
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    pods = _pods(kubectl, "web")
    assert [p["status"]["phase"] for p in pods] == ["Running"] * 3
    assert {p["spec"]["nodeName"] for p in pods} == {"n0", "n1", "n2"}
    kubectl("set", "image", "deployment/web", "c=web:2")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    history = kubectl("rollout", "history", "deployment/web").splitlines()
    assert [line.split()[0] for line in history[2:]] == ["1", "2"]
    kubectl("rollout", "undo", "deployment/web")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=60s")
    assert kubectl("get", "deployment", "web", "-o", "jsonpath={..image}") == "web:1"
    kubectl("scale", "deployment/web", "--replicas=1")
    kubectl("wait", "--for=jsonpath={.status.replicas}=1", "deployment/web", "--timeout=60s")
    kubectl("delete", "deployment", "web", "--cascade=foreground", "--timeout=60s")
    assert kubectl("get", "replicasets", "-o", "name") == ""


def test_a_stateful_set_with_volumes(kubectl: Callable[..., str]) -> None:
    """rollout status ends; each pod has a claim of its own that the provisioner bound."""
    storage = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "late"},
        "provisioner": "disk.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "storageClassName": "late",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    sets = workload("StatefulSet", 2, "db", serviceName="db", volumeClaimTemplates=[claim])
    kubectl("apply", "-f", "-", objects=[storage, sets])
    told = kubectl("rollout", "status", "sts/db", "--timeout=90s")
    assert "partitioned roll out complete: 2 new pods have been updated" in told
    assert [p["metadata"]["name"] for p in _pods(kubectl, "db")] == ["db-0", "db-1"]
    phases = kubectl("get", "pvc", "-o", "jsonpath={.items[*].status.phase}")
    assert phases == "Bound Bound"
    kubectl("delete", "sts", "db")
    kubectl("wait", "--for=delete", "pod/db-0", "pod/db-1", "--timeout=60s")


def test_a_daemon_set_rolls_and_stays_when_a_node_is_drained(kubectl: Callable[..., str]) -> None:
    """rollout status, undo of an added field, drain with --ignore-daemonsets."""
    grace: Json = {"terminationGracePeriodSeconds": 0}
    agent = workload("DaemonSet", name="agent", pod=grace)
    del agent["spec"]["replicas"]
    kubectl("apply", "-f", "-", objects=[agent])
    assert "successfully rolled out" in kubectl("rollout", "status", "ds/agent", "--timeout=60s")
    assert sorted(p["spec"]["nodeName"] for p in _pods(kubectl, "agent")) == ["n0", "n1", "n2"]
    agent["spec"]["template"] = template("web:2", "agent", hostNetwork=True, **grace)
    kubectl("apply", "-f", "-", objects=[agent])
    assert "successfully rolled out" in kubectl("rollout", "status", "ds/agent", "--timeout=60s")
    assert "web:1" in kubectl("rollout", "history", "ds/agent", "--revision=1")
    kubectl("rollout", "undo", "ds/agent")
    assert "successfully rolled out" in kubectl("rollout", "status", "ds/agent", "--timeout=60s")
    pods = _pods(kubectl, "agent")
    assert {p["spec"]["containers"][0]["image"] for p in pods} == {"web:1"}
    assert not any(p["spec"].get("hostNetwork") for p in pods)
    kubectl("drain", "n0", "--ignore-daemonsets", "--force", "--timeout=60s", "--pod-selector=app=agent")
    kubectl("uncordon", "n0")
    assert {p["metadata"]["uid"] for p in _pods(kubectl, "agent")} == {p["metadata"]["uid"] for p in pods}
    kubectl("delete", "ds", "agent", "--timeout=60s")


def test_a_job_completes(kubectl: Callable[..., str]) -> None:
    """kubectl wait for condition complete."""
    pod = template(restartPolicy="Never")
    pod["metadata"]["annotations"] = {"lab.kubernetes.io/run-seconds": "0.5"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "work", "namespace": "default"},
        "spec": {"completions": 2, "parallelism": 2, "template": pod},
    }
    kubectl("apply", "-f", "-", objects=[job])
    assert "condition met" in kubectl("wait", "--for=condition=complete", "job/work", "--timeout=60s")
    assert kubectl("get", "job", "work", "-o", "jsonpath={.status.succeeded}") == "2"


def test_a_drained_node_is_empty(kubectl: Callable[..., str]) -> None:
    """Evicted pods are replaced elsewhere; the machine that dies is NotReady."""
    spec = {"terminationGracePeriodSeconds": 1}
    kubectl("apply", "-f", "-", objects=[workload("Deployment", 3, "app", pod=spec)])
    kubectl("rollout", "status", "deployment/app", "--timeout=60s")
    kubectl("drain", "n0", "--force", "--timeout=60s", "--pod-selector=app=app")
    kubectl("rollout", "status", "deployment/app", "--timeout=60s")
    assert {p["spec"]["nodeName"] for p in _pods(kubectl, "app")} == {"n1", "n2"}
    kubectl("uncordon", "n0")
    kubectl("annotate", "node", "n0", "lab.kubernetes.io/kubelet=stopped")
    kubectl("wait", "--for=condition=Ready=Unknown", "node/n0", "--timeout=90s")
    taints = kubectl("get", "node", "n0", "-o", "jsonpath={.spec.taints[*].key}").split()
    assert set(taints) == {"node.kubernetes.io/unreachable"}
    kubectl("annotate", "node", "n0", "lab.kubernetes.io/kubelet-")
    kubectl("wait", "--for=condition=Ready", "node/n0", "--timeout=30s")


def test_the_python_client(cluster: Path) -> None:
    """A Deployment of three replicas from the official Python client: all Running."""
    kubernetes = pytest.importorskip("kubernetes")
    client = kubernetes.config.new_client_from_config(str(cluster))
    core = kubernetes.client.CoreV1Api(client)
    for name in ("m0", "m1"):
        core.create_node(node(name))
    kubernetes.client.AppsV1Api(client).create_namespaced_deployment(
        "default", workload("Deployment", name="py")
    )
    deadline = time.monotonic() + 60
    phases: list[str] = []
    while phases != ["Running"] * 3 and time.monotonic() < deadline:
        time.sleep(0.2)
        pods = core.list_namespaced_pod("default", label_selector="app=py").items
        phases = [p.status.phase for p in pods]
    assert phases == ["Running"] * 3
