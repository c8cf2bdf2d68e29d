"""`labkit simulate`: where would these pods go, and why."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from labkit.i18n import t

if TYPE_CHECKING:
    import typer

    from labkit.config import SchedulerConfig
    from labkit.engine.manifests import Manifests

FORMATS = ("table", "json", "yaml")


def register(app: typer.Typer) -> None:
    """Add the sub-command."""
    import typer

    @app.command()
    def simulate(
        filename: Annotated[
            list[str],
            typer.Option("--filename", "-f", help="YAML or JSON file, folder, or - for stdin; repeatable"),
        ],
        config: Annotated[
            str | None, typer.Option("--config", help="KubeSchedulerConfiguration file")
        ] = None,
        output: Annotated[str, typer.Option("--output", "-o", help="table, json or yaml")] = "table",
        seed: Annotated[
            int | None, typer.Option(help="pick among equal nodes at random, as a real cluster's timing does")
        ] = None,
        feature_gates: Annotated[
            str | None, typer.Option("--feature-gates", help="Name=true,Other=false")
        ] = None,
    ) -> None:
        """Show for each pending pod where it goes and why.

        Reads what `kubectl get nodes,pods -A -o yaml` prints. Exit 0 when everything could be used, also when
        pods stay pending; 2 when some input was wrong (the rest is simulated all the same).
        """
        from labkit.engine.manifests import read_manifests
        from labkit.errors import LabError

        if output not in FORMATS:
            raise LabError(
                t(f"--output {output!r} is not a format", f"--output {output!r} 不是一种输出格式"),
                hint=f"-o {'|'.join(FORMATS)}",
            )
        sources = [source for name in filename for source in _read(name)]
        manifests = read_manifests(sources)
        _run(manifests, _config(config, feature_gates), output, seed, feature_gates)
        if manifests.problems:
            raise typer.Exit(2)


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
