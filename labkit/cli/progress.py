"""`labkit progress`: what is done, and the next step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from labkit.i18n import get_language, set_language, t

if TYPE_CHECKING:
    import typer

    from labkit.course.progress import ModuleProgress


def register(app: typer.Typer) -> None:
    """Add the sub-command."""
    import typer

    @app.command()
    def progress(
        workspace: Annotated[Path, typer.Option(help="the learner's folder")] = Path("workspace"),
    ) -> None:
        """Show what is done, what was weak, and the next step."""
        from labkit.course.progress import next_step
        from labkit.course.progress import progress as read
        from labkit.course.workspace import workspace_language

        set_language(workspace_language(workspace) or get_language())
        found = read(workspace)
        for module in found:
            typer.echo(line(module))
        got, most = sum(m.points for m in found), sum(m.most for m in found)
        typer.echo(
            t(f"{got:g} of {most:g} points in the checks that you see", f"可见检查共得 {got:g} / {most:g} 分")
        )
        weak = [f"{m.name}: {', '.join(m.weak)}" for m in found if m.weak]
        if weak:
            typer.echo(t("Look again at:", "值得再看："))
            for one in weak:
                typer.echo(f"  {one}")
        step = next_step(found)
        if step is None:
            typer.echo(t("All modules are done.", "所有模块都已完成。"))
        else:
            typer.echo(t("Next: ", "下一步：") + f"{step.name}/{step.name}.ipynb")


def line(module: ModuleProgress) -> str:
    """One module in one line."""
    if module.problem:
        return f"! {module.name:<28} {module.problem}"
    glyph, word = (
        ("✓", t("done", "完成"))
        if module.done
        else ("◷", t("begun", "进行中"))
        if module.started
        else ("–", t("not begun", "未开始"))
    )
    quiz = (
        t(
            f", quiz {module.quiz_right:g} of {module.answered}",
            f"，测验 {module.quiz_right:g} / {module.answered}",
        )
        if module.answered
        else ""
    )
    return f"{glyph} {module.name:<28} {word:<10} {module.points:g}/{module.most:g}{quiz}"
