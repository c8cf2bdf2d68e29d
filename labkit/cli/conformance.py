"""`labkit conformance`: replays recorded decisions of the real scheduler and compares every field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

if TYPE_CHECKING:
    import typer


def register(app: typer.Typer) -> None:
    """Add the sub-command."""
    import typer

    @app.command()
    def conformance(
        paths: Annotated[list[Path], typer.Argument(help="*.jsonl or *.jsonl.gz files, or folders of them")],
        max_diffs: Annotated[int, typer.Option(help="differences shown per family", min=0)] = 5,
        output: Annotated[str, typer.Option("--output", "-o", help="text or json")] = "text",
    ) -> None:
        """Replay golden traces; exit 0 only when every scenario matches in every field."""
        from labkit.engine.conformance import check
        from labkit.errors import LabError

        if output not in ("text", "json"):
            raise LabError(f"--output {output!r} is neither text nor json")
        results = check(paths)
        if output == "json":
            found = [
                {
                    "family": r.family,
                    "matched": r.matched,
                    "total": r.total,
                    "differences": [
                        {
                            "scenario": d.scenario,
                            "pod": d.pod,
                            "field": d.field,
                            "expected": d.expected,
                            "got": d.got,
                        }
                        for d in r.differences[:max_diffs]
                    ],
                }
                for r in results
            ]
            typer.echo(json.dumps(found, ensure_ascii=False, indent=2, default=str))
        else:
            for r in results:
                typer.echo(f"{r.family}: {r.matched}/{r.total}")
                for d in r.differences[:max_diffs]:
                    typer.echo(f"  {d}")
                if len(r.differences) > max_diffs:
                    typer.echo(f"  … and {len(r.differences) - max_diffs} more")
        raise typer.Exit(0 if all(r.all_match for r in results) else 1)
