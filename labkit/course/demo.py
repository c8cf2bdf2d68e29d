"""A class of twelve, made up, with every kind of trouble: to see the whole way from release to marks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labkit.course.graded_cells import graded_cells, is_answer
from labkit.course.project import Course, init_course, release
from labkit.course.source import (
    build_language,
    modules,
    notebook_text,
    read_notebook,
    source_path,
    write_notebook,
)

#: student -> what is special about the submission
STUDENTS = {
    "ada": ("everything right", "全部正确"),
    "bo": ("right, in Chinese", "全部正确，中文版"),
    "chen": ("first exercise right, the others as released", "第一个练习正确，其余未作答"),
    "dana": ("nothing done", "什么都没做"),
    "eli": ("an endless loop", "死循环"),
    "fay": ("ends its process", "结束自己的进程"),
    "gus": ("the answer cell copied", "复制了作答单元"),
    "han": ("a cell with checks deleted", "删除了一个检查单元"),
    "ida": ("checks edited to pass", "修改检查使其通过"),
    "jo": ("file renamed by the browser", "文件被浏览器改名"),
    "kim": ("file cut short", "文件不完整"),
    "li": ("a warning on stderr in the answer", "作答中向 stderr 输出警告"),
}


def make_demo(root: Path, module: str | None = None, *, notebooks: Path | None = None) -> tuple[Course, str]:
    """A released course in `root` with twelve submissions. Raises LabError as `init_course` does."""
    names = modules(notebooks)
    name = source_path(module or next((m for m in names if m.startswith("03")), names[0]), notebooks).stem
    course = init_course(root, "en", course_id="demo")
    release(course, name, ["en", "zh"], root=notebooks)
    source = read_notebook(source_path(name, notebooks))
    for student in STUDENTS:
        language = "zh" if student == "bo" else "en"
        folder = course.root / "submitted" / student / name
        released = read_notebook(
            course.root / ("release" if language == "en" else "release-zh") / name / f"{name}.ipynb"
        )
        notebook = _SUBMIT.get(student, lambda n, _: n)(released, build_language(source, language))
        if student == "jo":
            write_notebook(notebook, folder / f"{name} (1).ipynb")
            continue
        write_notebook(notebook, folder / f"{name}.ipynb")
        if student == "kim":
            text = notebook_text(notebook)
            (folder / f"{name}.ipynb").write_text(text[: len(text) * 2 // 3], encoding="utf-8")
    return course, name


def solved(released: Any, source: Any, most: int = 99, before: str = "", after: str = "") -> Any:
    notebook = copy.deepcopy(released)
    answers = graded_cells(source)
    done = 0
    for cell in notebook.cells:
        id = (cell.metadata.get("nbgrader") or {}).get("grade_id")
        if id in answers and is_answer(answers[id]) and cell.cell_type == "code" and done < most:
            lines = [
                x
                for x in answers[id].source.split("\n")
                if "### BEGIN SOLUTION" not in x and "### END SOLUTION" not in x
            ]
            cell.source = "\n".join([*([before] if before else []), *lines, *([after] if after else [])])
            before = after = ""
            done += 1
    return notebook


def _first(notebook: Any, answer: bool) -> Any:
    for cell in notebook.cells:
        mark = cell.metadata.get("nbgrader") or {}
        if cell.cell_type == "code" and (
            mark.get("solution") if answer else mark.get("grade") and not mark.get("solution")
        ):
            return cell
    return notebook.cells[-1]


def _copied(released: Any, source: Any) -> Any:
    notebook = solved(released, source)
    cell = _first(notebook, True)
    twin = copy.deepcopy(cell)
    twin["id"] = "copy-of-it"
    notebook.cells.insert(notebook.cells.index(cell), twin)
    return notebook


def _deleted(released: Any, source: Any) -> Any:
    notebook = solved(released, source)
    notebook.cells.remove(_first(notebook, False))
    return notebook


def _edited(released: Any, source: Any) -> Any:
    notebook = copy.deepcopy(released)
    _first(notebook, False).source = "assert True"
    return notebook


_SUBMIT: dict[str, Callable[[Any, Any], Any]] = {
    "ada": solved,
    "bo": solved,
    "chen": lambda r, s: solved(r, s, most=1),
    "eli": lambda r, s: solved(r, s, after="while True:\n    pass"),
    "fay": lambda r, s: solved(r, s, after="import os\nos._exit(1)"),
    "gus": _copied,
    "han": _deleted,
    "ida": _edited,
    "jo": solved,
    "kim": solved,
    "li": lambda r, s: solved(r, s, before="import warnings\nwarnings.warn('careful')"),
}
