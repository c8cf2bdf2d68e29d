"""Before grading: is this a submission of this module, and is it whole? What is safe to repair is repaired.

Nothing of the submission is executed. Messages are in the learner's language and say what to do.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labkit.course.source import build_language, read_notebook
from labkit.course.strip import strip
from labkit.errors import InputError
from labkit.i18n import LANGUAGE_FILE, Catalogue, language, normalise_language

LARGEST_NOTEBOOK = 30_000_000
#: Findings of these levels; a fatal one means that the submission cannot be graded.
LEVELS = ("repaired", "flagged", "fatal")

_SAY = Catalogue(
    {
        "nothing": (
            "There is no notebook in {where}. Submit {name}.",
            "{where} 里没有 notebook。请提交 {name}。",
        ),
        "renamed": ("{found} was taken for {name}.", "已把 {found} 当作 {name}。"),
        "huge": (
            "{name} has {size} MB, more than {most}. Clear the outputs (Edit > Clear Outputs of All Cells), save, submit again.",
            "{name} 有 {size} MB，超过 {most}。请清除输出（Edit > Clear Outputs of All Cells），保存后重新提交。",
        ),
        "damaged": (
            "{name} is damaged or cut short ({why}). Open it in JupyterLab, save it, submit again.",
            "{name} 已损坏或不完整（{why}）。请在 JupyterLab 中打开、保存后重新提交。",
        ),
        "module": (
            "{name} is a notebook of module {other}, not of {module}. Submit {module}.ipynb.",
            "{name} 是模块 {other} 的 notebook，不是 {module}。请提交 {module}.ipynb。",
        ),
        "foreign": (
            "{name} has none of the exercises of {module}. Submit {module}.ipynb from your workspace.",
            "{name} 中没有 {module} 的任何练习。请提交工作区里的 {module}.ipynb。",
        ),
        "metadata": (
            "Cell {id}: the mark that nbgrader needs was missing; put back.",
            "单元 {id}：缺少 nbgrader 标记，已恢复。",
        ),
        "copied": (
            "Cell {id} is there {n} times; the first one counts as the exercise, all of them run.",
            "单元 {id} 出现了 {n} 次；以第一个为准，全部都会运行。",
        ),
        "deleted-test": ("Cell {id} with checks was deleted; put back.", "检查单元 {id} 被删除，已恢复。"),
        "deleted-answer": (
            "Cell {id} for your answer was deleted; it counts as not answered unless another cell defines it.",
            "作答单元 {id} 被删除；除非其他单元有定义，否则视为未作答。",
        ),
        "edited-test": (
            "Cell {id} with checks was edited; the original one counts.",
            "检查单元 {id} 被修改；以原版为准。",
        ),
        "type": ("Cell {id} had become a {found} cell; put back.", "单元 {id} 变成了 {found} 单元，已恢复。"),
        "answers": (
            "The folder answers/ was not submitted; quiz questions get no points without it.",
            "没有提交 answers/ 文件夹；没有它，测验题不得分。",
        ),
    }
)


@dataclass(frozen=True)
class Finding:
    """Something about a submission. `kind` is stable, `text` is in the learner's language."""

    kind: str
    level: str
    text: str
    cell: str = ""


@dataclass
class Checked:
    """The repaired notebook (None when it cannot be graded) and what was found."""

    module: str
    language: str
    notebook: Any = None
    path: Path | None = None
    findings: list[Finding] = field(default_factory=list)

    @property
    def fatal(self) -> Finding | None:
        """Why it cannot be graded."""
        return next((f for f in self.findings if f.level == "fatal"), None)

    def note(self, kind: str, level: str, cell: str = "", **values: Any) -> None:
        """Remember a finding."""
        with language(self.language):
            self.findings.append(Finding(kind, level, _SAY(kind, id=cell, **values), cell))


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
        notebook = read_notebook(path)
        if not isinstance(notebook.get("cells"), list):
            raise InputError("it has no cells")
        for cell in notebook.cells:
            if not isinstance(cell.get("source"), str) or not isinstance(cell.get("metadata"), dict):
                raise InputError("a cell has no text")
    except (InputError, AttributeError, RecursionError) as e:
        why = str(getattr(e, "problem", e)).splitlines()[0].removeprefix("is not a notebook: ")[:120]
        checked.note("damaged", "fatal", name=path.name, why=why)
        return None
    return notebook


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
    said = (notebook.metadata.get("labkit") or {}).get("language")
    if isinstance(said, str):
        checked.language = normalise_language(said) or checked.language


def _belongs(notebook: Any, path: Path, checked: Checked, source: Any) -> bool:
    wanted = set(graded_cells(source)) | {c.get("id") for c in source.cells}
    here = {_grade_id(c) for c in notebook.cells} | {c.get("id") for c in notebook.cells}
    if wanted & here:
        return True
    other = (notebook.metadata.get("labkit") or {}).get("module")
    if isinstance(other, str) and other != checked.module:
        checked.note("module", "fatal", name=path.name, other=other[:60], module=checked.module)
    else:
        checked.note("foreign", "fatal", name=path.name, module=checked.module)
    return False


def graded_cells(source: Any) -> dict[str, Any]:
    """Cells of a notebook with an nbgrader mark, by grade id, in order."""
    return {_grade_id(c): c for c in source.cells if _grade_id(c)}


def _grade_id(cell: Any) -> str:
    mark = cell.metadata.get("nbgrader")
    value = mark.get("grade_id") if isinstance(mark, dict) else None
    return value if isinstance(value, str) else ""


def is_answer(cell: Any) -> bool:
    """A cell whose content is the learner's."""
    return bool(cell.metadata["nbgrader"].get("solution"))


def repair(notebook: Any, source: Any, checked: Checked) -> Any:
    """The learner's notebook with every graded cell of the source once, in place, and the source's own tests."""
    result = copy.deepcopy(notebook)
    wanted = graded_cells(source)
    released = graded_cells(strip(source))
    _put_back_marks(result, wanted, released, checked)
    _only_first_counts(result, wanted, checked)
    present = {_grade_id(c): c for c in result.cells if _grade_id(c) in wanted}
    for id, cell in present.items():
        original = wanted[id]
        if cell.cell_type != original.cell_type:
            checked.note("type", "repaired", id, found=str(cell.cell_type))
            _become(cell, original)
        if not is_answer(original):
            if cell.source not in (released[id].source, original.source):
                checked.note("edited-test", "flagged", id)
            cell.source = original.source
        cell.metadata["nbgrader"] = copy.deepcopy(released[id].metadata["nbgrader"])
    _put_back_cells(result, wanted, released, present, checked)
    for cell in result.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        if _grade_id(cell) and _grade_id(cell) not in wanted:
            cell.metadata.pop("nbgrader", None)
    return result


def _put_back_marks(result: Any, wanted: dict[str, Any], released: dict[str, Any], checked: Checked) -> None:
    """A cell that lost its mark is known by its id, a test cell also by its text."""
    here = {_grade_id(c) for c in result.cells}
    for id, original in wanted.items():
        if id in here:
            continue
        for cell in result.cells:
            same_id = cell.get("id") == original.get("id") and not _grade_id(cell)
            same_text = not is_answer(original) and cell.source == released[id].source and not _grade_id(cell)
            if same_id or same_text:
                cell.metadata["nbgrader"] = copy.deepcopy(released[id].metadata["nbgrader"])
                checked.note("metadata", "repaired", id)
                break


def _only_first_counts(result: Any, wanted: dict[str, Any], checked: Checked) -> None:
    seen: dict[str, int] = {}
    names: set[str] = set()
    for number, cell in enumerate(result.cells):
        id = _grade_id(cell)
        if id in wanted:
            seen[id] = seen.get(id, 0) + 1
            if seen[id] > 1:
                cell.metadata.pop("nbgrader", None)
        if not cell.get("id") or cell["id"] in names:
            cell["id"] = f"copy-{number}"
        names.add(cell["id"])
    for id, count in seen.items():
        if count > 1:
            checked.note("copied", "repaired", id, n=count)


def _become(cell: Any, original: Any) -> None:
    cell.cell_type = original.cell_type
    if original.cell_type == "code":
        cell.outputs, cell.execution_count = [], None
    else:
        cell.pop("outputs", None)
        cell.pop("execution_count", None)


def _put_back_cells(
    result: Any, wanted: dict[str, Any], released: dict[str, Any], present: dict[str, Any], checked: Checked
) -> None:
    before: Any = None
    for id, original in wanted.items():
        if id not in present:
            cell = copy.deepcopy(original)
            if is_answer(original):
                cell.source = released[id].source
                checked.note("deleted-answer", "flagged", id)
            else:
                checked.note("deleted-test", "repaired", id)
            cell.metadata["nbgrader"] = copy.deepcopy(released[id].metadata["nbgrader"])
            at = 0 if before is None else next(i for i, c in enumerate(result.cells) if c is before) + 1
            result.cells.insert(at, cell)
            present[id] = cell
        before = present[id]


def quiz_cells(source: Any) -> dict[str, tuple[str, list[str], float | None]]:
    """Graded cells that are marked from the answers file: grade id -> (bank, question ids, points).

    Such a cell ends in `score("part3", "8")` with plain arguments.
    """
    import ast

    found: dict[str, tuple[str, list[str], float | None]] = {}
    for id, cell in graded_cells(source).items():
        if cell.cell_type != "code" or not cell.metadata["nbgrader"].get("grade"):
            continue
        try:
            body = ast.parse(cell.source).body
        except SyntaxError:
            continue
        last = body[-1].value if body and isinstance(body[-1], ast.Expr) else None
        if (
            not isinstance(last, ast.Call)
            or getattr(last.func, "id", getattr(last.func, "attr", "")) != "score"
        ):
            continue
        try:
            args = [ast.literal_eval(a) for a in last.args]
            keywords = {k.arg: ast.literal_eval(k.value) for k in last.keywords}
        except ValueError:
            continue
        if args and all(isinstance(a, str | int) for a in args):
            found[id] = (str(args[0]), [str(a) for a in args[1:]], keywords.get("points"))
    return found


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
        said = read_notebook(path).metadata.get("labkit", {}).get("module") if path.is_file() else None
    except InputError:
        said = None
    if said in names:
        return str(said)
    raise InputError(
        "belongs to no module that can be told", file=str(path), hint="name it: --module 03-resources"
    )
