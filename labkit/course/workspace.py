"""The learner's folder. Work is never overwritten: a file that the learner changed is theirs.

What was delivered is remembered in `.labkit/delivered.json` as hashes. On a later run a file that is still as
delivered follows the course; a changed one stays, and a new version from the course is put beside it as
`<name>.new.<suffix>`, once. Changing the language translates the prose in place, also in notebooks with work.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labkit.course.source import build_language, modules, notebook_text, read_notebook, write_notebook
from labkit.course.strip import strip
from labkit.errors import InputError, LabError
from labkit.i18n import LANGUAGE_FILE, LANGUAGES
from labkit.places import data_dir

_LOCAL = re.compile(r"^(?P<stem>.+)\.(?P<lang>en|zh)(?P<suffix>\.[a-z0-9]+)$")


@dataclass
class WorkspaceReport:
    """What a run did, as paths relative to the workspace."""

    path: Path
    language: str
    added: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    beside: list[str] = field(default_factory=list)
    translated: list[str] = field(default_factory=list)


def build_workspace(dest: Path, language: str, *, root: Path | None = None) -> WorkspaceReport:
    """Create or refresh the workspace `dest`. Raises LabError when `dest` cannot be written."""
    if language not in LANGUAGES:
        raise InputError("is neither 'en' nor 'zh'", field="language", value=language)
    root = root or data_dir("notebooks")
    if root.resolve() == dest.resolve():
        raise LabError(f"{dest} holds the source notebooks", hint="choose another folder with --workspace")
    report = WorkspaceReport(dest, language)
    try:
        (dest / ".labkit").mkdir(parents=True, exist_ok=True)
        delivered = _read_json(dest / ".labkit" / "delivered.json")
        before = workspace_language(dest) or language
        for relative, content in upstream_files(root, language).items():
            old = upstream_file(root, relative, before) if before != language else None
            _deliver(dest, relative, content, delivered, report, old)
        _write(
            dest / ".labkit" / "delivered.json",
            json.dumps(delivered, indent=1, sort_keys=True).encode() + b"\n",
        )
        _write(dest / LANGUAGE_FILE, json.dumps({"language": language}).encode() + b"\n")
    except OSError as e:
        raise LabError(
            f"{e.filename or dest}: {e.strerror}", hint="choose another folder with --workspace"
        ) from e
    return report


def workspace_language(dest: Path) -> str | None:
    """The language of an existing workspace."""
    language = _read_json(dest / LANGUAGE_FILE).get("language")
    return language if language in LANGUAGES else None


def upstream_files(root: Path, language: str) -> dict[str, bytes]:
    """Everything that a workspace gets, by relative path: stripped notebooks, their files, top-level texts."""
    found: dict[str, bytes] = {}
    for module in modules(root):
        source = root / module / f"{module}.ipynb"
        found[f"{module}/{module}.ipynb"] = learner_notebook(source, language)
        for name, path in support_files(root / module, language).items():
            found[f"{module}/{name}"] = path.read_bytes()
    for path in sorted(root.glob("*.md")):
        top = localised_name(path.name, language)
        if top:
            found[top] = path.read_bytes()
    return found


def upstream_file(root: Path, relative: str, language: str) -> bytes | None:
    """One of them, in another language; None when that language has no such file."""
    module = Path(relative).parts[0]
    if relative == f"{module}/{module}.ipynb":
        return learner_notebook(root / relative, language)
    return None


def learner_notebook(source: Path, language: str) -> bytes:
    """The stripped one-language notebook as bytes."""
    return notebook_text(strip(build_language(read_notebook(source), language))).encode()


def support_files(folder: Path, language: str) -> dict[str, Path]:
    """Files beside a source notebook, by the name that they get: `data.zh.yaml` is `data.yaml` in Chinese."""
    found = {}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        hidden = any(part.startswith(".") or part in ("answers", "__pycache__") for part in relative.parts)
        if path.is_file() and not hidden and path.suffix != ".ipynb" and path.name != LANGUAGE_FILE:
            name = localised_name(path.name, language)
            if name:
                found[str(relative.with_name(name))] = path
    return found


def localised_name(name: str, language: str) -> str | None:
    """The name under which a file is delivered, None when it belongs to the other language."""
    match = _LOCAL.match(name)
    if match is None:
        return name
    return match["stem"] + match["suffix"] if match["lang"] == language else None


def _deliver(
    dest: Path,
    relative: str,
    content: bytes,
    delivered: dict[str, str],
    report: WorkspaceReport,
    other: bytes | None,
) -> None:
    path = dest / relative
    new_hash = _hash(content)
    if not path.exists():
        _write(path, content)
        delivered[relative] = new_hash
        report.added.append(relative)
        return
    current = path.read_bytes()
    if _hash(current) == new_hash:
        delivered[relative] = new_hash
        return
    if _hash(current) == delivered.get(relative):
        _write(path, content)
        (report.updated if other is None else report.translated).append(relative)
        delivered[relative] = new_hash
        return
    report.kept.append(relative)
    if other is not None and path.suffix == ".ipynb":
        if _translate(path, other, content):
            report.translated.append(relative)
        if _hash(other) == delivered.get(relative):
            # Only the language changed, not the course: nothing to put beside.
            delivered[relative] = new_hash
            return
    if delivered.get(relative) != new_hash:
        beside = path.with_name(f"{path.stem}.new{path.suffix}")
        _write(beside, content)
        delivered[relative] = new_hash
        report.beside.append(str(beside.relative_to(dest)))


def _translate(path: Path, old: bytes, new: bytes) -> bool:
    """Exchange the prose cells that are as delivered; everything else in the notebook stays."""
    import nbformat

    notebook = read_notebook(path)
    was = _prose(nbformat.reads(old.decode(), as_version=4))
    now = _prose(nbformat.reads(new.decode(), as_version=4))
    changed = False
    for cell in notebook.cells:
        name = cell.get("id")
        if cell.cell_type == "markdown" and name in now and cell.source == was.get(name):
            cell.source = now[name]
            changed = True
    if changed:
        notebook.metadata["labkit"] = nbformat.reads(new.decode(), as_version=4).metadata["labkit"]
        write_notebook(notebook, path)
    return changed


def _prose(notebook: Any) -> dict[str, str]:
    return {
        c["id"]: c.source
        for c in notebook.cells
        if c.cell_type == "markdown" and "nbgrader" not in c.metadata
    }


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _write(path: Path, content: bytes) -> None:
    """All or nothing: a crash leaves the old file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.tmp{os.getpid()}")
    temporary.write_bytes(content)
    os.replace(temporary, path)
