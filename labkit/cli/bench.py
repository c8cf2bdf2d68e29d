"""`labkit bench`: how fast, on this machine."""

from __future__ import annotations

import json
import platform
from typing import TYPE_CHECKING, Annotated, Any

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
            raise LabError(f"--payload {unknown[0]!r} is none of {', '.join(PAYLOADS)}")
        import msgspec

        rows = run(payload or tuple(PAYLOADS), nodes or SIZES, verb or ("filter",), seconds)
        _show([msgspec.to_builtins(r) for r in rows], output)

    @group.command()
    def scheduler(
        workload: Annotated[
            str, typer.Option(help="basic, anti-affinity, affinity, spread, preemption, mixed")
        ] = "basic",
        nodes: Annotated[int, typer.Option(min=1)] = 500,
        pods: Annotated[int, typer.Option(min=1)] = 1000,
        output: Annotated[str, typer.Option("--output", "-o", help="table or json")] = "table",
    ) -> None:
        """The real engine with the default profile, queue and binding through the embedded store."""
        from labkit.cli._bench_scheduler import WORKLOADS, measure
        from labkit.errors import LabError

        if workload not in WORKLOADS:
            raise LabError(f"--workload {workload!r} is none of {', '.join(WORKLOADS)}")
        _show([measure(workload, nodes, pods)], output)

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


def _show(rows: list[dict[str, Any]], output: str) -> None:
    from labkit.engine.trace_text import table
    from labkit.errors import LabError

    if output == "json":
        print(json.dumps(rows, indent=2))
        return
    if output != "table":
        raise LabError(f"--output {output!r} is neither table nor json")
    header = list(rows[0])
    cells = [header, *[[f"{r[k]:g}" if isinstance(r[k], float) else str(r[k]) for k in header] for r in rows]]
    print(
        "\n".join(table(cells, numeric=[i for i, k in enumerate(header) if not isinstance(rows[0][k], str)]))
    )
    print(
        f"Python {platform.python_version()}, {platform.machine()}, {platform.processor() or 'unknown processor'}"
    )
