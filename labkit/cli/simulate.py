"""`labkit simulate`: where would these pods go, and why."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from labkit.i18n import t

if TYPE_CHECKING:
    from labkit.config import SchedulerConfig
    from labkit.engine.manifests import Manifests

FORMATS = ("table", "json", "yaml")


def parser() -> argparse.ArgumentParser:
    """The options. argparse, because importing typer takes longer than a whole simulation."""
    p = argparse.ArgumentParser(
        prog="labkit simulate",
        description=t(
            "Show for each pending pod where it goes and why. Reads what `kubectl get nodes,pods -A -o yaml` prints.",
            "显示每个待调度的 Pod 会去哪里、为什么。读取 `kubectl get nodes,pods -A -o yaml` 的输出。",
        ),
        epilog=t(
            "Exit 0 when all input could be used, also when pods stay pending; 2 when some input was wrong "
            "(the rest is simulated all the same).",
            "输入全部可用时退出码为 0（即使有 Pod 无法调度）；有输入错误时为 2（其余部分照常模拟）。",
        ),
    )
    add = p.add_argument
    add(
        "-f",
        "--filename",
        action="append",
        required=True,
        metavar="FILE",
        nargs="+",
        help=t(
            "YAML or JSON file, folder, or - for stdin; repeatable",
            "YAML 或 JSON 文件、文件夹，或 - 表示标准输入；可重复",
        ),
    )
    add(
        "--config",
        metavar="FILE",
        help=t("KubeSchedulerConfiguration file", "KubeSchedulerConfiguration 文件"),
    )
    add("-o", "--output", choices=FORMATS, default="table", help=t("output format", "输出格式"))
    add(
        "--seed",
        type=int,
        metavar="N",
        help=t(
            "pick among equal nodes at random, as a real cluster's timing does",
            "在得分相同的节点中随机选择，如同真实集群中的先后差异",
        ),
    )
    add("--feature-gates", metavar="A=true,B=false", help=t("feature gates", "特性开关"))
    return p


def main(args: list[str]) -> None:
    """Run the sub-command. SystemExit 2 when some input was wrong."""
    from labkit.engine.manifests import read_manifests

    given = parser().parse_args(args)
    config = _config(given.config, given.feature_gates)
    sources = [source for names in given.filename for name in names for source in _read(name)]
    manifests = read_manifests(sources)
    _run(manifests, config, given.output, given.seed, given.feature_gates)
    if manifests.problems:
        raise SystemExit(2)


def _run(
    manifests: Manifests, config: SchedulerConfig, output: str, seed: int | None, feature_gates: str | None
) -> None:
    from labkit.cli._simulate_output import as_dict, as_table
    from labkit.config import FeatureGates
    from labkit.engine.simulation import Simulation

    if config.extenders:
        manifests.notes.append(
            t(
                "the extenders of the configuration are not called by simulate",
                "simulate 不会调用配置中的 extender",
            )
        )
    outcome = Simulation(manifests, config, gates=FeatureGates.parse(feature_gates), seed=seed).run()
    if output == "table":
        print(as_table(manifests, outcome))
    elif output == "json":
        import json

        print(json.dumps(as_dict(manifests, outcome), ensure_ascii=False, indent=2))
    else:
        import yaml

        print(yaml.safe_dump(as_dict(manifests, outcome), sort_keys=False, allow_unicode=True), end="")
    for problem in manifests.problems:
        print(f"labkit: {problem.message}", file=sys.stderr)
        if problem.hint:
            print(f"  {problem.hint}", file=sys.stderr)


def _read(name: str) -> list[tuple[str, str]]:
    if name == "-":
        return [("<stdin>", _decoded("<stdin>", sys.stdin.buffer.read()))]
    path = Path(name)
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.suffix in (".yaml", ".yml", ".json"))
        return [(str(p), _decoded(str(p), p.read_bytes())) for p in files]
    return [(name, _decoded(name, path.read_bytes()))]


def _decoded(name: str, data: bytes) -> str:
    from labkit.errors import InputError

    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as e:
        raise InputError(
            t(f"byte {e.start} is not UTF-8 text", f"第 {e.start} 个字节不是 UTF-8 文本"),
            file=name,
            hint=t("give a YAML or JSON file", "请给出 YAML 或 JSON 文件"),
        ) from None


def _config(name: str | None, feature_gates: str | None) -> SchedulerConfig:
    from labkit.config import FeatureGates, load_config

    gates = FeatureGates.parse(feature_gates)
    if name is None:
        return load_config(None, gates=gates)
    return load_config(Path(name).read_bytes(), gates=gates, name=name)
