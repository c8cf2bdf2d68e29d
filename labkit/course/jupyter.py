"""How JupyterLab is started for a learner: offline, quiet, at the first notebook, on the workspace only."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from labkit.course.source import modules
from labkit.course.strip import CODE_STUB


def jupyter_command(
    workspace: Path, *, browser: bool, port: int | None, language: str
) -> tuple[list[str], dict[str, str]]:
    """The command line and environment that open `workspace`. Writes JupyterLab's settings into `.labkit/`."""
    inside = workspace.resolve() / ".labkit"
    settings = {
        "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
        "@jupyterlab/notebook-extension:tracker": {"codeCellConfig": {"lineNumbers": False}},
    }
    if language == "zh":
        # Without the language pack JupyterLab stays English and says nothing.
        settings["@jupyterlab/translation-extension:plugin"] = {"locale": "zh_CN"}
    _write(inside / "settings" / "overrides.json", json.dumps(settings, indent=1))
    # The instructor's parts of nbgrader; Validate and the menu stay.
    instructor = ("create-assignment", "formgrader", "course-list", "assignment-list")
    _write(
        inside / "settings" / "page_config.json",
        json.dumps(
            {"disabledExtensions": {f"@jupyter/nbgrader:{part}": True for part in instructor}}, indent=1
        ),
    )
    _write(inside / "config" / "nbgrader_config.py", _NBGRADER.format(root=str(inside), stub=CODE_STUB))
    first = first_notebook(workspace)
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        f"--ServerApp.root_dir={workspace.resolve()}",
        f"--LabApp.app_settings_dir={inside / 'settings'}",
        f"--LabApp.workspaces_dir={inside / 'workspaces'}",
        "--LabApp.news_url=",
        "--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
        f"--LabApp.default_url=/lab/tree/{first}" if first else "--LabApp.default_url=/lab",
        f"--ServerApp.open_browser={browser}",
    ]
    if port is not None:
        command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--ServerApp.allow_root=True")
    environment = dict(os.environ)
    environment["LABKIT_LANG"] = language
    environment["JUPYTER_CONFIG_PATH"] = os.pathsep.join(
        p for p in (str(inside / "config"), environment.get("JUPYTER_CONFIG_PATH")) if p
    )
    # Programs installed beside this Python, such as kubectl, are found in notebooks and terminals.
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", "")])
    return command, environment


def first_notebook(workspace: Path) -> str | None:
    """The notebook to open, relative to the workspace."""
    names = modules(workspace)
    return f"{names[0]}/{names[0]}.ipynb" if names else None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


_NBGRADER = '''"""For the Validate button; the course's own configuration is the instructor's."""

c = get_config()  # noqa: F821
c.CourseDirectory.root = {root!r}
c.Exchange.root = {root!r}
c.ClearSolutions.code_stub = {{"python": {stub!r}}}'''
