"""How far a learner is: what the notebooks in the workspace and the answers beside them say. Nothing is run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from labkit.course.graded_cells import graded_cells, is_answer
from labkit.course.marks import cell_points
from labkit.course.source import modules, read_notebook
from labkit.course.strip import CODE_STUB
from labkit.errors import LabError
from labkit.quiz.answers import AnswerFile, Answers


@dataclass
class ModuleProgress:
    """One module: exercises by their last run, quiz answers by their last attempt."""

    name: str
    points: float = 0.0
    most: float = 0.0
    checks_passed: int = 0
    checks: int = 0
    answered: int = 0
    quiz_right: float = 0.0
    weak: list[str] = field(default_factory=list)
    problem: str = ""

    @property
    def started(self) -> bool:
        """Something was done."""
        return bool(self.points or self.answered or self.checks_passed)

    @property
    def done(self) -> bool:
        """Every check that a learner sees passes."""
        return self.checks > 0 and self.checks_passed == self.checks


def progress(workspace: Path) -> list[ModuleProgress]:
    """Progress of every module in the workspace. Raises LabError when it is none."""
    names = modules(workspace) if workspace.is_dir() else []
    if not names:
        raise LabError(
            f"{workspace} is no workspace", hint="`labkit lab` makes one; or name it with --workspace"
        )
    return [_module(workspace / name, name) for name in names]


def _module(folder: Path, name: str) -> ModuleProgress:
    found = ModuleProgress(name)
    try:
        notebook = read_notebook(folder / f"{name}.ipynb")
    except LabError as e:
        found.problem = e.message
        return found
    for id, cell in graded_cells(notebook).items():
        mark = cell.metadata["nbgrader"]
        if not mark.get("grade") or is_answer(cell) or cell.cell_type != "code":
            continue
        most = float(mark.get("points") or 0)
        if not cell.source.strip() or (not cell.outputs and cell.execution_count is None):
            points = 0.0
        else:
            points, _ = cell_points(cell.outputs, most)
        found.checks += 1
        found.checks_passed += points >= most
        found.points += points
        found.most += most
        if points < most and cell.execution_count is not None:
            found.weak.append(id)
    if any(CODE_STUB.splitlines()[0] in c.source for c in notebook.cells if c.cell_type == "code"):
        # A stub that was never filled cannot be done, whatever stale outputs say.
        found.checks_passed = min(found.checks_passed, max(found.checks - 1, 0))
    for file in sorted((folder / "answers").glob("*.json")):
        if ".damaged-" not in file.name:
            _quiz(found, Answers(file.stem, folder / "answers").read())
    return found


def _quiz(found: ModuleProgress, answers: AnswerFile) -> None:
    for question in dict.fromkeys(a.question for a in answers.attempts):
        last = answers.last(question)
        if last is None:
            continue
        found.answered += 1
        found.quiz_right += last.fraction or 0.0
        if last.fraction is not None and last.fraction < 1:
            found.weak.append(f"{answers.bank} {question}")


def next_step(all_: list[ModuleProgress]) -> ModuleProgress | None:
    """The first module that is not done; None when all are."""
    return next((m for m in all_ if not m.done), None)
