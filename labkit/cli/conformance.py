"""`labkit conformance`: replays recorded decisions of the real scheduler and compares every field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from labkit.i18n import t

if TYPE_CHECKING:
    import typer

    from labkit.engine.conformance import Report


def register(app: typer.Typer) -> None:
    """Add the sub-command."""
    import typer

    @app.command()
    def conformance(
        paths: Annotated[list[Path], typer.Argument(help="*.jsonl or *.jsonl.gz files, or folders of them")],
        max_diffs: Annotated[int, typer.Option(help="differences shown per family", min=0)] = 5,
        output: Annotated[str, typer.Option("--output", "-o", help="text or json")] = "text",
    ) -> None:
        """Replay golden traces; exit 0 only when every scenario matches in every field, 2 for bad lines."""
        from labkit.engine.conformance import check
        from labkit.errors import LabError

        if output not in ("text", "json"):
            raise LabError(f"--output {output!r} is neither text nor json")
        report = check(paths)
        shown = _as_json(report, max_diffs) if output == "json" else _as_text(report, max_diffs)
        typer.echo(shown)
        for problem in report.problems:
            typer.echo(f"labkit: {problem.message}", err=True)
            if problem.hint:
                typer.echo(f"  {problem.hint}", err=True)
        raise typer.Exit(2 if report.problems else 0 if report.all_match else 1)


def _as_text(report: Report, max_diffs: int) -> str:
    lines = []
    for family in report.families:
        lines.append(f"{family.family}: {family.matched}/{family.total}")
        lines += [f"  {d}" for d in family.differences[:max_diffs]]
        more = len(family.differences) - max_diffs
        if more > 0:
            lines.append(t(f"  … and {more} more", f"  … 还有 {more} 处"))
    return "\n".join(lines)


def _as_json(report: Report, max_diffs: int) -> str:
    found = [
        {
            "family": f.family,
            "matched": f.matched,
            "total": f.total,
            "differences": [
                {"scenario": d.scenario, "pod": d.pod, "field": d.field, "expected": d.expected, "got": d.got}
                for d in f.differences[:max_diffs]
            ],
        }
        for f in report.families
    ]
    return json.dumps(found, ensure_ascii=False, indent=2, default=str)
