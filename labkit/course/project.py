"""An instructor's course folder: source/ in the course's language, release/ made by nbgrader, one gradebook.

Code cells, ids and points are the same in every language, so one gradebook serves all of them: `release/` has
the course's own language, `release-zh/` or `release-en/` the other one, and both are graded alike.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from labkit.course.quiz_points import with_quiz_points
from labkit.course.settings import Settings, changed, read_settings, write_settings
from labkit.course.source import (
    build_language,
    modules,
    read_notebook,
    source_path,
    source_problems,
    write_notebook,
)
from labkit.course.strip import CODE_STUB, TEXT_STUB, strip
from labkit.course.workspace import support_files
from labkit.errors import InputError, LabError
from labkit.i18n import LANGUAGE_FILE, LANGUAGES, t
from labkit.quiz.graded import COURSE_FILE, PRACTICE, banks_in, ship

CONFIG_FILE = "nbgrader_config.py"

CONFIG = '''"""nbgrader's configuration of this course. `labkit course` and `nbgrader` both read it."""

from pathlib import Path

c = get_config()  # noqa: F821
here = Path(__file__).resolve().parent if "__file__" in globals() else Path.cwd()

c.CourseDirectory.course_id = {course_id!r}
c.CourseDirectory.root = str(here)

# The usual exchange folder is not writable; this one is inside the course.
c.Exchange.root = str(here / "exchange")
c.Exchange.path_includes_course = True

# What learners see where the solution was, and where an answer in words goes.
c.ClearSolutions.code_stub = {{"python": {code_stub!r}}}
c.ClearSolutions.text_stub = {text_stub!r}

# A cell that runs longer than this is stopped and gets no points; the rest of the notebook is graded.
c.ExecutePreprocessor.timeout = 60
c.ExecutePreprocessor.interrupt_on_timeout = True
c.ExecutePreprocessor.allow_errors = True

# A deleted test cell comes back instead of silently losing its points.
c.OverwriteCells.add_missing_cells = True

# Report an edited test, but not that hidden tests are hidden.
c.Autograde.sanitize_preprocessors = [
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.DeduplicateIds",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "labkit.course.overwrite.OverwriteEditedCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]

# The learner's language and answers stay theirs.
c.Autograde.exclude_overwriting = {{
    folder.name: ["lab.json"] for folder in sorted((here / "source").glob("*")) if folder.is_dir()
}}
'''


@dataclass
class Course:
    """A course folder on disk."""

    root: Path
    settings: Settings

    @property
    def language(self) -> str:
        """The course's own language."""
        return self.settings.language

    @property
    def course_id(self) -> str:
        """nbgrader's id of the course."""
        return self.settings.course_id

    def modules(self) -> list[str]:
        """Modules that this course has a source of."""
        return modules(self.root / "source") if (self.root / "source").is_dir() else []


@dataclass
class Release:
    """What `release` made."""

    module: str
    folders: dict[str, Path] = field(default_factory=dict)
    students: list[str] = field(default_factory=list)


def open_course(root: Path) -> Course:
    """The course in `root`. Raises InputError when it is none."""
    return Course(root.resolve(), read_settings(root))


def init_course(
    root: Path,
    language: str = "en",
    *,
    course_id: str | None = None,
    quiz: str = PRACTICE,
    variants: bool = False,
) -> Course:
    """Make a course from all modules. An existing course keeps its configuration and gradebook."""
    if language not in LANGUAGES:
        raise InputError("is neither 'en' nor 'zh'", field="--lang", value=language)
    if (root / COURSE_FILE).exists():
        return open_course(root)
    if root.exists() and any(root.iterdir()):
        raise InputError("is not empty and not a course", file=str(root), hint="choose a new folder")
    settings = changed(
        root, Settings(course_id or _safe_id(root.resolve().name), language), quiz=quiz, variants=variants
    )
    course = Course(root.resolve(), settings)
    root.mkdir(parents=True, exist_ok=True)
    write_settings(root, settings)
    (root / CONFIG_FILE).write_text(
        CONFIG.format(course_id=course.course_id, code_stub=CODE_STUB, text_stub=TEXT_STUB), encoding="utf-8"
    )
    (root / ".gitignore").write_text(
        "release*/\nsubmitted/\nautograded/\nfeedback/\nreports/\nexchange/\n.labkit/\ngradebook.db*\n",
        encoding="utf-8",
    )
    for folder in ("source", "submitted", "exchange"):
        (root / folder).mkdir(exist_ok=True)
    return course


def _safe_id(name: str) -> str:
    kept = "".join(ch if ch.isalnum() or ch in "-_" else "-" for ch in name).strip("-")
    return kept or "scheduler-lab"


def put_source(course: Course, module: str, *, root: Path | None = None) -> str:
    """Write `source/<module>/` from the course's modules. Returns the full module name. Raises LabError."""
    path = source_path(module, root)
    name = path.stem
    notebook = read_notebook(path)
    problems = source_problems(notebook, name)
    if problems:
        raise LabError(problems[0], hint="\n  ".join(problems[1:]) or None)
    notebook = with_quiz_points(notebook, course.root, course.settings.terms)
    folder = course.root / "source" / name
    if folder.exists():
        shutil.rmtree(folder)
    write_notebook(build_language(notebook, course.language), folder / f"{name}.ipynb")
    for relative, file in support_files(path.parent, course.language).items():
        (folder / relative).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder / relative)
    _ship_quizzes(course, notebook, folder)
    return name


def _ship_quizzes(course: Course, notebook: Any, folder: Path) -> None:
    """What the quizzes of a notebook need beside it; being in `source/`, it is put back over a learner's own."""
    banks = banks_in(str(c.source) for c in notebook.cells if c.cell_type == "code")
    ship(banks, folder, course.root, course.settings.terms)


def release(
    course: Course,
    module: str,
    languages: list[str] | None = None,
    *,
    students: Iterable[str] = (),
    root: Path | None = None,
) -> Release:
    """Release a module: nbgrader's `generate_assignment` for the course's language, the same stripped cells
    for any other, and for each of `students` a folder that knows its learner, so that the numbers of its quizzes are
    that learner's. Raises LabError with nbgrader's own complaint when it refuses."""
    students = list(students)
    bad = [s for s in students if not s or "/" in s or "\\" in s or s.startswith(".")]
    if bad:
        raise InputError("cannot be a student's name", field="--student", value=bad[0])
    name = put_source(course, module, root=root)
    nbgrader(course, "generate_assignment", name, "--force", "--create")
    result = Release(name)
    source = with_quiz_points(read_notebook(source_path(name, root)), course.root, course.settings.terms)
    for language in languages or [course.language]:
        own = language == course.language
        folder = course.root / ("release" if own else f"release-{language}") / name
        if not own:
            if folder.exists():
                shutil.rmtree(folder)
            write_notebook(strip(build_language(source, language)), folder / f"{name}.ipynb")
            for relative, file in support_files(source_path(name, root).parent, language).items():
                (folder / relative).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, folder / relative)
            _ship_quizzes(course, source, folder)
        info = {"language": language, "module": name, "course": course.course_id}
        (folder / LANGUAGE_FILE).write_text(json.dumps(info) + "\n", encoding="utf-8")
        result.folders[language] = folder
    _release_to(course, result, students)
    return result


def _release_to(course: Course, result: Release, students: list[str]) -> None:
    """`release-to/<student>/<module>/`; in more than one language `<module>-zh/` beside it."""
    for student in students:
        for language, made in result.folders.items():
            name = result.module if language == course.language else f"{result.module}-{language}"
            folder = course.root / "release-to" / student / name
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(made, folder)
            info = json.loads((folder / LANGUAGE_FILE).read_text(encoding="utf-8"))
            (folder / LANGUAGE_FILE).write_text(
                json.dumps({**info, "student": student}, ensure_ascii=False) + "\n", encoding="utf-8"
            )
        result.students.append(student)


def nbgrader(course: Course, *arguments: str, timeout: float = 600) -> str:
    """Run an nbgrader command in the course. Returns what it logged; raises LabError when it fails."""
    environment = {
        **os.environ,
        "PYTHONWARNINGS": "ignore",
        "LABKIT_LANG": os.environ.get("LABKIT_LANG", course.language),
    }
    # The kernel must be this Python, also when the environment was not activated.
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", "")])
    try:
        run = subprocess.run(
            [sys.executable, "-m", "nbgrader", *arguments],
            cwd=course.root,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as e:
        raise LabError(f"nbgrader {arguments[0]} took longer than {timeout:g} s and was stopped") from e
    log = run.stdout + run.stderr
    if run.returncode != 0:
        wrong = [line for line in log.splitlines() if "ERROR" in line or "Error" in line]
        raise LabError(
            t(f"nbgrader {' '.join(arguments)} failed", f"nbgrader {' '.join(arguments)} 失败"),
            hint="\n  ".join(wrong[-4:] or log.splitlines()[-4:]),
        )
    return log
