"""`labkit bench`: how fast, on this machine."""

from __future__ import annotations

import itertools
import json
import os
import platform
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

from labkit.i18n import t

if TYPE_CHECKING:
    import typer


def register(app: typer.Typer) -> None:
    """Add the sub-commands."""
    import typer

    group = typer.Typer(no_args_is_help=True, help="Measure speed.")
    app.add_typer(group, name="bench")

    @group.callback()
    def callback() -> None:
        """Measure speed."""

    @group.command()
    def extender(
        output: Annotated[str, typer.Option("--output", "-o", help="table or json")] = "table",
        payload: Annotated[list[str] | None, typer.Option(help="names, lean, full; repeatable")] = None,
        nodes: Annotated[list[int] | None, typer.Option(help="nodes in a request; repeatable")] = None,
        verb: Annotated[list[str] | None, typer.Option(help="filter, prioritize; repeatable")] = None,
        seconds: Annotated[float, typer.Option(help="time for each row", min=0.1)] = 2.0,
    ) -> None:
        """The extender server over HTTP, with a per-node Python filter."""
        from labkit.errors import LabError
        from labkit.extender.bench import PAYLOADS, SIZES, run

        unknown = [p for p in payload or () if p not in PAYLOADS]
        if unknown:
            raise LabError(_none_of("--payload", unknown[0], PAYLOADS))
        import msgspec

        rows = run(payload or tuple(PAYLOADS), nodes or SIZES, verb or ("filter",), seconds)
        _show([msgspec.to_builtins(r) for r in rows], output)

    @group.command()
    def scheduler(
        workload: Annotated[
            list[str] | None,
            typer.Option(
                help="basic, anti-affinity, affinity, spread, preemption, preemption-async, mixed; repeatable"
            ),
        ] = None,
        nodes: Annotated[list[int] | None, typer.Option(help="repeatable; default 500", min=1)] = None,
        pods: Annotated[
            int | None, typer.Option(help="measured pods; default: as many as upstream's benchmark", min=1)
        ] = None,
        rounds: Annotated[
            int, typer.Option(help="each in a process of its own; the best is shown", min=1)
        ] = 1,
        output: Annotated[str, typer.Option("--output", "-o", help="table or json")] = "table",
    ) -> None:
        """The real engine with the default profile, queue and binding through the embedded store."""
        from labkit.cli._bench_scheduler import best_of
        from labkit.cli._bench_workloads import WORKLOADS
        from labkit.errors import LabError

        names = workload or ["basic"]
        for name in names:
            if name not in WORKLOADS:
                raise LabError(_none_of("--workload", name, WORKLOADS))
        _show([best_of(rounds, name, n, pods) for name in names for n in nodes or [500]], output)

    @group.command()
    def lab(
        what: Annotated[
            list[str] | None, typer.Option(help="trace, what-if, memory; repeatable; default: all")
        ] = None,
        nodes: Annotated[
            int | None, typer.Option(help="default: 100 for trace, 1000 for what-if, 5000 for memory", min=1)
        ] = None,
        pods: Annotated[
            int | None, typer.Option(help="default: 200 for trace and what-if, 30000 for memory", min=1)
        ] = None,
        output: Annotated[str, typer.Option("--output", "-o", help="table or json")] = "table",
    ) -> None:
        """What traces cost, how long a what-if takes, how much memory a cluster takes."""
        from labkit.cli._bench_lab import MEASURES
        from labkit.errors import LabError

        rows = []
        for one in what or MEASURES:
            if one not in MEASURES:
                raise LabError(_none_of("--what", one, MEASURES))
            measure, usual_nodes, usual_pods = MEASURES[one]
            rows.append(measure(nodes or usual_nodes, pods or usual_pods))
        _show(rows, output)

    @group.command()
    def start(
        rounds: Annotated[int, typer.Option(help="runs of each", min=1)] = 10,
        cluster: Annotated[
            bool, typer.Option("--cluster", help="API server and scheduler as processes instead")
        ] = False,
        output: Annotated[str, typer.Option("--output", "-o", help="table or json")] = "table",
    ) -> None:
        """Imports, the command, the first decision; with --cluster: until the first pod is bound."""
        from labkit.cli._bench_start import cluster_start, start_up

        _show(cluster_start(rounds) if cluster else start_up(rounds), output)

    @group.command()
    def widgets(
        nodes: Annotated[
            list[int] | None, typer.Option(help="nodes of the cluster; repeatable", min=1)
        ] = None,
        rounds: Annotated[int, typer.Option(help="times each control is moved", min=1)] = 5,
        output: Annotated[str, typer.Option("--output", "-o", help="table or json")] = "table",
    ) -> None:
        """From a control to the new view, for each widget; without the browser's part."""
        from labkit.cli._bench_widgets import TARGETS, measure

        _show([row for n in nodes or TARGETS for row in measure(n, rounds)], output)


def _none_of(option: str, value: str, known: Iterable[str]) -> str:
    names = ", ".join(known)
    return t(f"{option} {value!r} is none of {names}", f"{option} {value!r} 不是以下之一：{names}")


def _show(rows: list[dict[str, Any]], output: str) -> None:
    from labkit.engine.trace_text import table
    from labkit.errors import LabError

    if output == "json":
        print(json.dumps([{**row, "machine": machine()} for row in rows], indent=2))
        return
    if output != "table":
        raise LabError(_none_of("--output", output, ("table", "json")))
    for columns, alike in itertools.groupby(rows, key=tuple):
        found = list(alike)
        cells = [[f"{r[k]:g}" if isinstance(r[k], float) else str(r[k]) for k in columns] for r in found]
        numeric = [i for i, k in enumerate(columns) if not isinstance(found[0][k], str)]
        print("\n".join(table([columns, *cells], numeric=numeric)))
    print(machine())


def machine() -> str:
    """Processor, number of CPUs, and the versions that matter for speed."""
    from importlib.metadata import version

    versions = " ".join(f"{name} {version(name)}" for name in ("labkit", "numpy", "msgspec"))
    return f"{_processor()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, {versions}"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            found = next((line.partition(":")[2].strip() for line in f if line.startswith("model name")), "")
    except OSError:
        found = platform.processor()
    return found or platform.machine()
