"""`labkit lab`: prepare the learner's workspace and open JupyterLab at the first notebook."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from labkit.i18n import get_language, normalise_language, set_language, t

if TYPE_CHECKING:
    import typer

    from labkit.course.workspace import WorkspaceReport


def register(app: typer.Typer) -> None:
    """Add the sub-command."""
    import typer

    @app.command()
    def lab(
        lang: Annotated[
            str | None, typer.Option("--lang", help="en or zh; remembered in the workspace")
        ] = None,
        browser: Annotated[bool, typer.Option("--browser/--no-browser", help="open a browser window")] = True,
        port: Annotated[
            int | None,
            typer.Option(help="port of JupyterLab; default: the first free from 8888", min=1, max=65535),
        ] = None,
        workspace: Annotated[Path, typer.Option(help="the learner's folder")] = Path("workspace"),
        prepare_only: Annotated[
            bool, typer.Option("--prepare-only", help="prepare the workspace, start nothing")
        ] = False,
    ) -> None:
        """Open the notebooks. Your work in the workspace is never overwritten."""
        from labkit.course.jupyter import jupyter_command
        from labkit.course.workspace import build_workspace

        language = _language(lang, workspace)
        set_language(language)
        report = build_workspace(workspace, language)
        for line in summary(report):
            typer.echo(line)
        if prepare_only:
            return
        command, environment = jupyter_command(workspace, browser=browser, port=port, language=language)
        sys.stdout.flush()
        os.execve(command[0], command, environment)


def _language(asked: str | None, workspace: Path) -> str:
    from labkit.errors import InputError

    if asked is None:
        from labkit.course.workspace import workspace_language

        return workspace_language(workspace) or get_language()
    known = normalise_language(asked)
    if known is None:
        raise InputError("is neither en nor zh", field="--lang", value=asked)
    return known


def summary(report: WorkspaceReport) -> list[str]:
    """What happened to the workspace, in words."""
    lines = [t(f"Workspace: {report.path}", f"工作区：{report.path}")]
    for names, en, zh in (
        (report.added, "added", "新增"),
        (report.updated, "updated (you had not changed them)", "已更新（你没有改动过）"),
        (report.translated, "now in English", "已切换为中文"),
        (report.kept, "kept as you left them", "保留你的版本"),
        (report.beside, "new versions, beside yours", "新版本放在你的文件旁边"),
    ):
        if names:
            shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
            lines.append(f"  {t(en, zh)}: {len(names)} ({shown})")
    return lines
