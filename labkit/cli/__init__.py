"""The `labkit` command. Only the module of the sub-command that was typed is imported."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from labkit.i18n import normalise_language, set_language, t

#: Sub-command -> what it does, in both languages. The code is `register(app)`, or `main(args)`, in `labkit/cli/<name>.py`.
COMMANDS: dict[str, tuple[str, str]] = {
    "lab": ("open the notebooks in JupyterLab", "在 JupyterLab 中打开 notebook"),
    "simulate": ("where would these pods go, and why", "这些 Pod 会调度到哪里，为什么"),
    "scheduler": ("run the scheduler against a cluster", "对一个集群运行调度器"),
    "extender": (
        "serve plugins to kube-scheduler, or check an extender",
        "把插件作为 extender 提供给 kube-scheduler，或检查一个 extender",
    ),
    "apiserver": ("run the embedded cluster's API server", "运行内嵌集群的 API server"),
    "kind": ("create and prepare a kind cluster", "创建并准备 kind 集群"),
    "quiz": ("answer, check or export a question bank", "作答、检查或导出题库"),
    "course": ("release, collect, grade and report a course", "发布、收集、评分与课程报告"),
    "progress": ("what is done, and the next step", "已完成的内容与下一步"),
    "conformance": ("replay recorded decisions of kube-scheduler", "重放 kube-scheduler 的决策记录"),
    "bench": ("measure speed", "测量速度"),
    "doctor": ("what this machine has, and what each part is for", "检查这台机器具备什么、各有何用"),
}


def main(argv: Sequence[str] | None = None) -> None:
    """Run `labkit`. Ends with SystemExit: 0 done, 1 the answer is no, 2 input that cannot be used."""
    args = list(sys.argv[1:] if argv is None else argv)
    while args and (args[0] == "--lang" or args[0].startswith("--lang=")):
        args = _take_language(args)
    if not args or args[0] in ("--help", "-h", "help"):
        print(_help())
        raise SystemExit(0)
    if args[0] in ("--version", "-V"):
        from importlib.metadata import version

        print(f"labkit {version('labkit')}")
        raise SystemExit(0)
    if args[0] not in COMMANDS:
        import difflib

        near = difflib.get_close_matches(args[0], COMMANDS, n=1)
        advice = (
            t(f"Did you mean `labkit {near[0]}`?", f"您是想输入 `labkit {near[0]}` 吗？")
            if near
            else t("`labkit --help` lists the sub-commands.", "`labkit --help` 会列出所有子命令。")
        )
        _fail(t(f"There is no sub-command {args[0]!r}.", f"没有子命令 {args[0]!r}。"), advice)
    _run(args)


def _run(args: list[str]) -> None:
    import importlib

    name = args[0]
    module_name = f"labkit.cli.{name}"
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as e:
        if e.name == module_name:
            _fail(
                t(f"`labkit {name}` is not part of this installation.", f"此安装不包含 `labkit {name}`。"),
                t("Install labkit again from its source folder.", "请从源码目录重新安装 labkit。"),
            )
        _fail(
            t(
                f"`labkit {name}` needs the Python package {e.name!r}.",
                f"`labkit {name}` 需要 Python 包 {e.name!r}。",
            ),
            f"{sys.executable} -m pip install {str(e.name).split('.')[0]}",
        )
    from labkit.errors import LabError

    if hasattr(module, "main"):
        # Sub-commands that must start fast parse their own arguments.
        call = functools.partial(module.main, args[1:])
    else:
        call = functools.partial(_typer_app(module), args, prog_name="labkit")
    try:
        call()
    except LabError as e:
        _fail(*str(e).split("\n", 1))
    except OSError as e:
        if e.filename is None:
            raise
        _fail(f"{e.filename}: {e.strerror}")


def _typer_app(module: Any) -> Any:
    import typer

    app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)
    # With a callback typer keeps the sub-command's name as the first argument.
    app.callback()(lambda: None)
    # typer evaluates annotations with the module's globals, where `typer` is often a TYPE_CHECKING import.
    vars(module).setdefault("typer", typer)
    module.register(app)
    return app


def _take_language(args: list[str]) -> list[str]:
    if args[0] == "--lang":
        value, rest = (args[1], args[2:]) if len(args) > 1 else ("", [])
    else:
        value, rest = args[0].split("=", 1)[1], args[1:]
    if normalise_language(value) is None:
        _fail(f"--lang {value!r}: the language is en or zh", "labkit --lang zh lab")
    set_language(value)
    return rest


def _help() -> str:
    lines = [
        t("Usage: labkit [--lang en|zh] COMMAND ...", "用法：labkit [--lang en|zh] 命令 ..."),
        "",
        t(
            "The Kubernetes Scheduler Lab: see inside every scheduling decision, and change it.",
            "Kubernetes 调度器实验室：看清每一个调度决策，并动手改变它。",
        ),
        "",
        *(f"  {name:<12} {t(*texts)}" for name, texts in COMMANDS.items()),
        "",
        t("`labkit COMMAND --help` says more.", "`labkit 命令 --help` 查看详细说明。"),
    ]
    return "\n".join(lines)


def _fail(message: str, hint: str = "") -> NoReturn:
    print(f"labkit: {message}", file=sys.stderr)
    if hint:
        print(hint if hint.startswith("  ") else f"  {hint}", file=sys.stderr)
    raise SystemExit(2)
