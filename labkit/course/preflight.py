"""Before grading: is this a submission of this module, and is it whole? What is safe to repair is repaired.

Nothing of the submission is executed. Messages are in the learner's language and say what to do.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from labkit.course.findings import Checked
from labkit.course.graded_cells import grade_id, graded_cells, quiz_cells
from labkit.course.outputs import encodable
from labkit.course.repair import repair
from labkit.course.source import build_language, read_notebook
from labkit.errors import InputError
from labkit.i18n import LANGUAGE_FILE, normalise_language

LARGEST_NOTEBOOK = 30_000_000


def check_folder(folder: Path, module: str, source: Any) -> Checked:
    """Check a submitted folder (or one notebook file) against the module's source notebook (one language)."""
    checked = Checked(module, _language_of(folder))
    path = _find(folder, checked, source)
    if path is None:
        return checked
    checked.path = path
    size = path.stat().st_size
    if size > LARGEST_NOTEBOOK:
        most = f"{LARGEST_NOTEBOOK // 1_000_000} MB"
        checked.note("huge", "fatal", name=path.name, size=size // 1_000_000, most=most)
        return checked
    notebook = _read(path, checked)
    if notebook is None:
        return checked
    _language_from(notebook, checked)
    if not _belongs(notebook, path, checked, source):
        return checked
    checked.notebook = repair(notebook, source, checked)
    beside = folder if folder.is_dir() else folder.parent
    if quiz_cells(source) and not (beside / "answers").is_dir():
        checked.note("answers", "flagged")
    return checked


def _find(folder: Path, checked: Checked, source: Any) -> Path | None:
    name = f"{checked.module}.ipynb"
    if folder.is_file():
        return folder
    if (folder / name).is_file() and not (folder / name).is_symlink():
        return folder / name
    found = [
        p
        for p in sorted(folder.rglob("*.ipynb"))
        if p.is_file()
        and not p.is_symlink()
        and not any(part.startswith(".") for part in p.relative_to(folder).parts)
    ]
    if not found:
        checked.note("nothing", "fatal", where=folder.name, name=name)
        return None
    best = max(found, key=lambda p: (_matches(p, source), p.name))
    checked.note("renamed", "repaired", found=best.name, name=name)
    return best


def _matches(path: Path, source: Any) -> int:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return 0
    return sum(f'"{id}"' in text for id in graded_cells(source))


def _read(path: Path, checked: Checked) -> Any:
    try:
        notebook = encodable(read_notebook(path))
        if not isinstance(notebook.get("cells"), list):
            raise InputError("it has no cells")
        for cell in notebook.cells:
            if not isinstance(cell.get("source"), str) or not isinstance(cell.get("metadata"), dict):
                raise InputError("a cell has no text")
            if cell.get("cell_type") not in ("code", "markdown", "raw"):
                raise InputError(f"a cell is of no known type: {str(cell.get('cell_type'))[:20]!r}")
    except (InputError, AttributeError, RecursionError) as e:
        why = str(getattr(e, "problem", e)).splitlines()[0].removeprefix("is not a notebook: ")[:120]
        checked.note("damaged", "fatal", name=path.name, why=why)
        return None
    return notebook


def _about(notebook: Any) -> dict[str, Any]:
    """What labkit wrote into the notebook's metadata."""
    found = notebook.metadata.get("labkit")
    return found if isinstance(found, dict) else {}


def _language_of(folder: Path) -> str:
    beside = folder.resolve() if folder.is_dir() else folder.resolve().parent
    for place in (beside, beside.parent):
        try:
            content = json.loads((place / LANGUAGE_FILE).read_text(encoding="utf-8"))
            return normalise_language(str(content["language"])) or "en"
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return "en"


def _language_from(notebook: Any, checked: Checked) -> None:
    said = _about(notebook).get("language")
    if isinstance(said, str):
        checked.language = normalise_language(said) or checked.language


def _belongs(notebook: Any, path: Path, checked: Checked, source: Any) -> bool:
    wanted = set(graded_cells(source)) | {c.get("id") for c in source.cells}
    here = {grade_id(c) for c in notebook.cells} | {c.get("id") for c in notebook.cells}
    if wanted & here:
        return True
    other = _about(notebook).get("module")
    if isinstance(other, str) and other != checked.module:
        checked.note("module", "fatal", name=path.name, other=other[:60], module=checked.module)
    else:
        checked.note("foreign", "fatal", name=path.name, module=checked.module)
    return False


def check_file(path: Path, module: str | None = None, *, root: Path | None = None) -> Checked:
    """What a learner runs before submitting: a notebook or a module's folder against the course's modules."""
    from labkit.course.source import modules, source_path

    if not path.exists():
        raise InputError("does not exist", file=str(path))
    name = module or _guess(path, modules(root))
    source = source_path(name, root)
    return check_folder(path, source.stem, build_language(read_notebook(source), "en"))


def _guess(path: Path, names: list[str]) -> str:
    for part in (path.stem, path.name, path.resolve().parent.name):
        for name in names:
            if part.startswith(name):
                return name
    try:
        said = _about(read_notebook(path)).get("module") if path.is_file() else None
    except InputError:
        said = None
    if said in names:
        return str(said)
    raise InputError(
        "belongs to no module that can be told", file=str(path), hint="name it: --module 03-resources"
    )
