"""The source notebook of a module: `notebooks/<NN-name>/<NN-name>.ipynb`, both languages in one file.

A prose cell exists twice, `<id>-en` tagged `lang-en` and `<id>-zh` tagged `lang-zh`; code cells are shared.
Outputs in the file are the English ones; those that differ in Chinese are in the cell's metadata
`outputs-zh`, so that both languages can be compared by nbval. `build_language` picks one language and gives
cells with the same ids in both.
"""

from __future__ import annotations

import copy
import logging
import re
import warnings
from pathlib import Path
from typing import Any

from labkit.errors import InputError
from labkit.i18n import LANGUAGES
from labkit.places import data_dir

MODULE_NAME = re.compile(r"^\d\d-[a-z0-9-]+$")
GRADE_ID = re.compile(r"^[a-zA-Z0-9_\-]{1,60}$")
OUTPUTS_ZH = "outputs-zh"
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def modules(root: Path | None = None) -> list[str]:
    """Names of all modules, in order."""
    root = root or data_dir("notebooks")
    return sorted(
        p.name for p in root.iterdir() if MODULE_NAME.match(p.name) and (p / f"{p.name}.ipynb").is_file()
    )


def source_path(module: str, root: Path | None = None) -> Path:
    """The source notebook of `module`; a unique start such as "03" is enough. Raises InputError."""
    root = root or data_dir("notebooks")
    names = modules(root)
    found = [n for n in names if n == module] or [n for n in names if n.startswith(module)]
    if len(found) != 1:
        raise InputError(
            "names no module" if not found else "names more than one module",
            field="MODULE",
            value=module,
            hint="modules: " + ", ".join(found or names),
        )
    return root / found[0] / f"{found[0]}.ipynb"


def read_notebook(path: Path) -> Any:
    """A notebook in format 4.5 or later. Raises InputError naming the file when it is not one."""
    import nbformat

    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as e:
        raise InputError("is not UTF-8 text", file=str(path), hint="save it again from JupyterLab") from e
    # nbformat also logs what it raises, quoting the file.
    logging.getLogger("traitlets").addFilter(_not_about_schemas)
    try:
        with warnings.catch_warnings():
            # Repeated or missing cell ids are mended by nbformat; learners' copies have them.
            warnings.simplefilter("ignore")
            return nbformat.reads(text, as_version=4)
    except Exception as e:
        why = (
            "it is not valid JSON"
            if isinstance(e, nbformat.reader.NotJSONError)
            else (str(e).splitlines() or [type(e).__name__])[0][:120]
        )
        raise InputError(
            f"is not a notebook: {why}",
            file=str(path),
            hint="the file is damaged or cut short; save it again from JupyterLab",
        ) from e


def _not_about_schemas(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith("Notebook JSON is invalid")


def write_notebook(notebook: Any, path: Path) -> None:
    """Write so that the same notebook always gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(notebook_text(notebook), encoding="utf-8")


def notebook_text(notebook: Any) -> str:
    """The notebook as JSON text, ending in a newline."""
    import nbformat

    text: str = nbformat.writes(notebook, version=nbformat.NO_CONVERT)
    return text.rstrip("\n") + "\n"


def cell_language(cell: Any) -> str | None:
    """ "en", "zh", or None for a shared cell."""
    tags = cell.get("metadata", {}).get("tags", [])
    return next((lang for lang in LANGUAGES if f"lang-{lang}" in tags), None)


def base_id(cell: Any) -> str:
    """The id that a cell has in both languages."""
    lang = cell_language(cell)
    name = str(cell.get("id", ""))
    return name.removesuffix(f"-{lang}") if lang else name


def build_language(source: Any, language: str, *, outputs: bool = False) -> Any:
    """One language of a source notebook; the same input always gives the same output.

    `outputs=True` keeps the recorded outputs (for nbval); a learner's copy has none, they are to be predicted.
    """
    if language not in LANGUAGES:
        raise InputError("is neither 'en' nor 'zh'", field="language", value=language)
    notebook = copy.deepcopy(source)
    notebook.cells = [c for c in notebook.cells if cell_language(c) in (None, language)]
    for cell in notebook.cells:
        cell["id"] = base_id(cell)
        tags = [tag for tag in cell.metadata.get("tags", []) if not tag.startswith("lang-")]
        cell.metadata.pop("tags", None)
        if tags:
            cell.metadata["tags"] = tags
        translated = cell.metadata.pop(OUTPUTS_ZH, None)
        if cell.cell_type == "code":
            kept = (
                (translated if language == "zh" and translated is not None else cell.outputs)
                if outputs
                else []
            )
            cell.outputs = kept
            cell.execution_count = cell.execution_count if outputs else None
    notebook.metadata = type(notebook.metadata)(
        kernelspec=dict(KERNEL),
        language_info={"name": "python"},
        labkit={**notebook.metadata.get("labkit", {}), "language": language},
    )
    return notebook


def source_problems(notebook: Any, name: str) -> list[str]:
    """What is wrong with a source notebook, one line each; empty when nothing is."""
    found: list[str] = []
    cells = {lang: [c for c in notebook.cells if cell_language(c) in (None, lang)] for lang in LANGUAGES}
    ids = {lang: [base_id(c) for c in cells[lang]] for lang in LANGUAGES}
    if ids["en"] != ids["zh"]:
        odd = sorted(set(ids["en"]) ^ set(ids["zh"]))
        found.append(f"{name}: cells differ between languages: {', '.join(odd) or 'their order'}")
    for lang in LANGUAGES:
        twice = sorted({i for i in ids[lang] if ids[lang].count(i) > 1})
        if twice:
            found.append(f"{name}: cell ids used twice: {', '.join(twice)}")
    english = {base_id(c): c for c in cells["en"]}
    for cell in cells["zh"]:
        other = english.get(base_id(cell))
        if other is not None and _heading_levels(cell) != _heading_levels(other):
            found.append(f"{name}: cell {base_id(cell)}: headings differ between languages")
    if not cells["en"] or not str(cells["en"][0].source).startswith("# "):
        found.append(f"{name}: the first cell must begin with a level-1 heading")
    for cell in notebook.cells:
        found += [f"{name}: cell {cell.get('id')}: {problem}" for problem in _cell_problems(cell)]
    return found


def _cell_problems(cell: Any) -> list[str]:
    found = []
    if cell.cell_type == "markdown" and cell_language(cell) is None and "nbgrader" not in cell.metadata:
        found.append("prose without a language tag (lang-en or lang-zh)")
    if cell.cell_type == "code" and cell_language(cell) is not None:
        found.append("code cells are shared and must have no language tag")
    graded = cell.metadata.get("nbgrader")
    if graded is None:
        return found
    if cell_language(cell) is not None:
        found.append("a graded cell must serve both languages: no language tag")
    if graded.get("schema_version") != 3:
        found.append("nbgrader.schema_version must be 3")
    if not GRADE_ID.match(str(graded.get("grade_id", ""))):
        found.append("nbgrader.grade_id must be 1 to 60 of a-z A-Z 0-9 _ -")
    if graded.get("grade") and not isinstance(graded.get("points"), int | float):
        found.append("a graded cell needs nbgrader.points")
    if graded.get("grade") and not graded.get("solution") and not graded.get("locked"):
        found.append("a test cell must be locked")
    if graded.get("solution") and cell.cell_type == "code":
        begins, ends = cell.source.count("### BEGIN SOLUTION"), cell.source.count("### END SOLUTION")
        if begins == 0 or begins != ends:
            found.append("a solution cell needs ### BEGIN SOLUTION and ### END SOLUTION in pairs")
    return found


def _heading_levels(cell: Any) -> list[int]:
    if cell.cell_type != "markdown":
        return []
    levels, fenced = [], False
    for line in str(cell.source).splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        match = None if fenced else re.match(r"(#{1,6}) ", line)
        if match:
            levels.append(len(match.group(1)))
    return levels
