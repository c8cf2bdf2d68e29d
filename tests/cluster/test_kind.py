"""kind clusters without kind: the files that are written, the programs that are called, what is said when they lack."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from labkit.cluster.kind import (
    KindCluster,
    cluster_config,
    image_for,
    kind_folder,
    kwok_nodes,
    missing_programs,
    require_programs,
    scheduler_config,
    write_files,
)
from labkit.errors import InputError, LabError

WITH_EXTENDER = kind_folder() / "scheduler-config.yaml"


def test_the_cluster_has_three_zones_and_a_tainted_worker() -> None:
    """What the lessons rely on."""
    config = cluster_config()
    workers = config["nodes"][1:]
    assert {w["labels"]["topology.kubernetes.io/zone"] for w in workers} == {"a", "b", "c"}
    (tainted,) = [w for w in workers if "kubeadmConfigPatches" in w]
    patch = yaml.safe_load(tainted["kubeadmConfigPatches"][0])
    assert patch["nodeRegistration"]["taints"] == [
        {"key": "accelerator", "value": "gpu", "effect": "NoSchedule"}
    ]


def test_a_scheduler_configuration_is_mounted_into_the_static_pod(tmp_path: Path) -> None:
    """Host -> node -> pod, a folder all the way; kubeadm v1beta4 takes arguments as a list."""
    path = write_files(tmp_path, config=WITH_EXTENDER, extender_host="172.18.0.1")
    control_plane = yaml.safe_load(path.read_text())["nodes"][0]
    (mount,) = control_plane["extraMounts"]
    patch = yaml.safe_load(control_plane["kubeadmConfigPatches"][-1])
    (argument,) = patch["scheduler"]["extraArgs"]
    (volume,) = patch["scheduler"]["extraVolumes"]
    assert patch["apiVersion"] == "kubeadm.k8s.io/v1beta4"
    assert mount["containerPath"] == volume["hostPath"]
    assert argument == {"name": "config", "value": f"{volume['mountPath']}/config.yaml"}
    mounted = Path(mount["hostPath"]) / "config.yaml"
    assert yaml.safe_load(mounted.read_text())["extenders"][0]["urlPrefix"] == "http://172.18.0.1:8888"


def test_without_a_known_host_the_placeholder_is_refused() -> None:
    """Nothing is written that could not work."""
    with pytest.raises(InputError, match="--extender-host"):
        scheduler_config(WITH_EXTENDER, extender_host=None)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("kind: KubeSchedulerConfiguration\n", "clientConnection.kubeconfig"),
        ("profiles: [{plugins: {filter: {enabled: [{name: Nope}]}}}]\n", "Nope"),
        ("parallelism: 0\n", "parallelism"),
        ("nonsense: 1\n", "nonsense"),
    ],
)
def test_a_configuration_that_would_keep_kind_waiting_is_refused(
    tmp_path: Path, text: str, named: str
) -> None:
    """kube-scheduler's refusal is told before a cluster is made."""
    file = tmp_path / "c.yaml"
    head = "apiVersion: kubescheduler.config.k8s.io/v1\n"
    body = text if "kind:" in text else "kind: KubeSchedulerConfiguration\n" + text
    file.write_text(head + body)
    with pytest.raises(LabError, match=named):
        write_files(tmp_path / "out", config=file)
    assert not (tmp_path / "out" / "cluster.yaml").exists()


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("kind v0.33.0 go1.26.0 linux/amd64", "v1.36.4"),
        ("kind v0.32.0 go1.25.1 linux/amd64", "v1.36.1"),
        ("kind v0.31.0 go1.25.1 linux/amd64", None),
        ("", None),
    ],
)
def test_the_image_belongs_to_the_kind_release(version: str, expected: str | None) -> None:
    """Pinned by digest; a release without a 1.36 image takes its own default."""
    image = image_for(version)
    assert image is None if expected is None else expected in str(image) and "@sha256:" in str(image)


def test_kwok_nodes_keep_daemon_sets_and_other_pods_away() -> None:
    """Tainted, without the os label, spread over the zones."""
    nodes = kwok_nodes(4)
    assert [n["metadata"]["labels"]["topology.kubernetes.io/zone"] for n in nodes] == ["a", "b", "c", "a"]
    assert all("kubernetes.io/os" not in n["metadata"]["labels"] for n in nodes)
    assert all(n["spec"]["taints"][0]["key"] == "kwok.x-k8s.io/node" for n in nodes)


def test_what_is_missing_is_named_with_the_way_to_get_it() -> None:
    """Three lines on a bare machine, none on a complete one."""
    assert len(missing_programs(lambda _: None)) == 3
    assert missing_programs(lambda name: f"/bin/{name}") == []
    with pytest.raises(LabError, match=r"kind 0\.32(.|\n)*labkit apiserver"):
        require_programs(lambda name: None if name == "kind" else name)


class Programs:
    """Stands in for kind, docker and kubectl; keeps what was called."""

    def __init__(self, clusters: str = "", fails: str = "") -> None:
        self.called: list[str] = []
        self.clusters = clusters
        self.fails = fails

    def __call__(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        line = " ".join(command)
        self.called.append(line)
        answers = {
            "kind version": "kind v0.33.0 go1.26 linux/amd64",
            "kind get clusters": self.clusters,
        }
        answer = "fd00::1 172.20.0.1 " if "network inspect" in line else answers.get(line, "")
        code = 1 if self.fails and self.fails in line else 0
        return subprocess.CompletedProcess(command, code, answer, "")


def test_up_makes_the_cluster_and_deploys_the_scheduler(tmp_path: Path) -> None:
    """The order of the steps."""
    programs = Programs()
    KindCluster("lab", lambda _: None, programs).up(tmp_path, config=WITH_EXTENDER, kwok=2)
    steps = [c for c in programs.called if not c.startswith(("kind get", "kind version"))]
    assert "network inspect kind" in steps[0]
    assert steps[1] == f"kind create cluster --config {tmp_path / 'cluster.yaml'} --wait 120s"
    assert " build -t labkit:latest" in steps[2]
    assert steps[3] == "kind load docker-image labkit:latest --name lab"
    assert [s.rsplit("/", 1)[-1] for s in steps[4:]] == [
        "rbac.yaml",
        "scheduler.yaml",
        "kwok.yaml",
        "stage-fast.yaml",
        "kwok-nodes.yaml",
    ]
    assert all("--context kind-lab" in s for s in steps[4:])
    assert "172.20.0.1" in (tmp_path / "sched" / "config.yaml").read_text()


def test_up_again_leaves_the_cluster_alone(tmp_path: Path) -> None:
    """An existing cluster is not made anew."""
    programs = Programs(clusters="other\nlab\n")
    KindCluster("lab", lambda _: None, programs).up(tmp_path, scheduler=False)
    assert not any("create cluster" in c for c in programs.called)


def test_a_failing_step_is_named_with_advice(tmp_path: Path) -> None:
    """No traceback: the command, its status, and what to do."""
    with pytest.raises(LabError, match=r"docker-image|build(.|\n)*--no-scheduler"):
        KindCluster("lab", lambda _: None, Programs(fails=" build ")).up(tmp_path)


def test_down_deletes() -> None:
    """By name."""
    programs = Programs()
    KindCluster("lab", lambda _: None, programs).down()
    assert programs.called == ["kind delete cluster --name lab"]
