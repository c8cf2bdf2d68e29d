"""Grading a class: every submission in a box of its own, marks into nbgrader's gradebook, one writer.

A submission that cannot be graded gets a reason, never a zero, and never stops the next one. Each finished one
is recorded before the next is saved, so a killed run goes on where it ended.
"""

from __future__ import annotations

import functools
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from labkit.course.box import BoxResult, require_posix, run_boxed
from labkit.course.feeder import DEFINED, defined_builtins
from labkit.course.findings import Checked
from labkit.course.gradebook import Book, BusyError
from labkit.course.late import submitted_at
from labkit.course.ledger import FAILED, GRADED, Ledger, Record, hash_of
from labkit.course.marks import NOT_RUN, Marks, mark_notebook, quiz_marks
from labkit.course.outputs import encodable, harmless, make_inert
from labkit.course.preflight import check_folder
from labkit.course.project import Course
from labkit.course.sandbox import Limits, isolation
from labkit.course.source import notebook_text, read_notebook, write_notebook
from labkit.errors import InputError, LabError
from labkit.i18n import LANGUAGE_FILE, language, t
from labkit.quiz.graded import COURSE_FILE, OWN_BANKS

#: How often a notebook is run again without the cell that ended its process.
RETRIES = 2
LARGEST_FILES_MB = 40

ENDED = {
    "died": ("the process ended in this cell", "进程在此单元结束"),
    "memory": ("this cell used too much memory", "此单元占用内存过多"),
    "processes": ("this cell started too many processes", "此单元启动了过多进程"),
    "output": ("this cell wrote too much", "此单元输出过多"),
    "files": ("this cell made too many files", "此单元创建了过多文件"),
    "stuck": ("this cell did not end and could not be interrupted", "此单元没有结束，也无法中断"),
    "time": ("the time for the whole notebook was up", "整个 notebook 的运行时间已到"),
}


@dataclass
class Summary:
    """What a run did."""

    module: str
    graded: int = 0
    failed: int = 0
    skipped: int = 0
    differences: list[str] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)


@dataclass
class _Job:
    student: str
    folder: Path
    submission: str
    checked: Checked | None = None
    notebook: Any = None
    text: str = ""
    marks: Marks | None = None
    result: BoxResult | None = None
    reason: str = ""
    quiz_problem: str = ""
    #: Nothing was written: --resume takes it up again.
    unsaved: bool = False


def grade(
    course: Course,
    module: str,
    *,
    students: Iterable[str] | None = None,
    jobs: int = 2,
    limits: Limits | None = None,
    resume: bool = False,
    progress: Callable[[Record], None] = lambda _: None,
    box: Callable[..., BoxResult] | None = None,
) -> Summary:
    """Grade all submissions of a module, on this machine or where `box` runs them (`cluster_box.ClusterBox`).

    Raises LabError when the course is not ready or another run is going on.
    """
    require_posix()
    source_file = course.root / "source" / module / f"{module}.ipynb"
    if not source_file.is_file():
        raise InputError(
            "has not been released", field="MODULE", value=module, hint=f"labkit course release {module}"
        )
    ledger = Ledger(course.root)
    with ledger.lock():
        grader = _Grader(course, module, limits or Limits(), ledger, box)
        return grader.run(_submissions(course, module, students), jobs, resume, progress)


def _submissions(course: Course, module: str, students: Iterable[str] | None) -> list[Path]:
    root = course.root / "submitted"
    found = sorted(p for p in root.glob(f"*/{module}") if p.is_dir() and not p.is_symlink())
    if students is not None:
        wanted = set(students)
        missing = wanted - {p.parent.name for p in found}
        if missing:
            raise InputError(
                f"no submission of {module}", field="--student", value=", ".join(sorted(missing))
            )
        found = [p for p in found if p.parent.name in wanted]
    return found


class _Grader:
    def __init__(
        self,
        course: Course,
        module: str,
        limits: Limits,
        ledger: Ledger,
        box: Callable[..., BoxResult] | None,
    ) -> None:
        self.course, self.module, self.limits, self.ledger = course, module, limits, ledger
        self.source_folder = course.root / "source" / module
        self.source = read_notebook(self.source_folder / f"{module}.ipynb")
        self.late = course.settings.late_policy(module)
        # A corrected key or another policy makes new marks.
        self.source_hash = hash_of(self.source_folder, course.root / COURSE_FILE, course.root / OWN_BANKS)
        self.version = version("labkit")
        self.run_boxed = box or functools.partial(run_boxed, hide=[course.root])
        self.box = isolation() if box is None else "kubernetes"
        self.book = Book(course, module)
        self.summary = Summary(module)
        self._stopping = False

    def run(
        self, folders: list[Path], jobs: int, resume: bool, progress: Callable[[Record], None]
    ) -> Summary:
        """Prepare and run in `jobs` threads; save in this one."""
        todo = [self._job(f) for f in folders]
        if resume:
            before = len(todo)
            todo = [j for j in todo if not self._is_done(j)]
            self.summary.skipped = before - len(todo)
        self.ledger.audit(
            "grade", module=self.module, submissions=len(todo), version=self.version, box=self.box
        )
        waiting = iter(todo)
        running: set[Future[_Job]] = set()
        with ThreadPoolExecutor(max_workers=max(jobs, 1)) as pool:
            try:
                while True:
                    while len(running) < max(jobs, 1) + 1 and (job := next(waiting, None)) is not None:
                        running.add(pool.submit(self._work, job))
                    if not running:
                        break
                    done, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in sorted(done, key=lambda f: f.result().student):
                        progress(self._save(future.result()))
            finally:
                self._stopping = True
                self.book.close()
        self.summary.records.sort(key=lambda r: r.student)
        return self.summary

    def _job(self, folder: Path) -> _Job:
        student = str(encodable(folder.parent.name))
        if student != folder.parent.name:
            why = t("the folder's name is not UTF-8; rename it", "文件夹名不是 UTF-8，请改名")
            return _Job(student, folder, "", reason=why)
        try:
            return _Job(student, folder, hash_of(folder))
        except OSError as e:
            return _Job(student, folder, "", reason=f"{e.filename}: {e.strerror}")

    def _is_done(self, job: _Job) -> bool:
        record = self.ledger.read(self.module, job.student)
        key = (job.submission, self.source_hash, self.version)
        return record is not None and (record.submission, record.source, record.version) == key

    # --- in a thread, one submission --------------------------------------------------------------------------

    def _work(self, job: _Job) -> _Job:
        """Never raises: whatever happens to this submission is its reason."""
        try:
            if not job.reason:
                self._check_and_run(job)
        except Exception as e:
            job.reason = f"{type(e).__name__}: {e}"
        return job

    def _check_and_run(self, job: _Job) -> None:
        checked = check_folder(job.folder, self.module, self.source)
        job.checked = checked
        if checked.fatal is not None:
            job.reason = checked.fatal.text
            return
        with tempfile.TemporaryDirectory(prefix="labkit-grade-") as temporary:
            work = Path(temporary)
            self._lay_out(job, checked, work)
            job.notebook = checked.notebook
            job.result = self._run_with_retries(job, work)
            if job.result.ended == "stopped":
                job.reason = "stopped"
                return
            quizzes = quiz_marks(
                self.source, job.folder, job.student, self.course.root, language=checked.language
            )
            job.quiz_problem = quizzes.problem
        with language(checked.language):
            self._fill(job.notebook, job.result)
        job.marks = mark_notebook(job.notebook, quizzes)
        make_inert(job.notebook, self.source)
        job.text = notebook_text(job.notebook)

    def _lay_out(self, job: _Job, checked: Checked, work: Path) -> None:
        """The learner's files that are small and plain, then the course's own over them."""
        room = LARGEST_FILES_MB * 1_000_000
        for path in sorted(job.folder.rglob("*")):
            if path.is_symlink() or not path.is_file() or path.suffix == ".ipynb":
                continue
            room -= path.stat().st_size
            if room < 0:
                break
            target = work / path.relative_to(job.folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        for path in sorted(self.source_folder.rglob("*")):
            if path.is_file() and path.suffix != ".ipynb":
                target = work / path.relative_to(self.source_folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
        (work / LANGUAGE_FILE).write_text(json.dumps({"language": checked.language}), encoding="utf-8")
        about = checked.notebook.metadata.get("labkit")
        code = (c.source for c in self.source.cells if c.cell_type == "code")
        checked.notebook.metadata["labkit"] = {
            **(about if isinstance(about, dict) else {}),
            DEFINED: defined_builtins(code),
        }
        write_notebook(checked.notebook, work / f"{self.module}.ipynb")

    def _run_with_retries(self, job: _Job, work: Path) -> BoxResult:
        """A cell that ends the process costs its own points, not the whole notebook's."""
        blamed: dict[int, str] = {}
        code = [i for i, c in enumerate(job.notebook.cells) if c.cell_type == "code"]
        for attempt in range(RETRIES + 1):
            result = self.run_boxed(work, f"{self.module}.ipynb", self.limits, stop=lambda: self._stopping)
            left = [i for i in code if i not in result.outputs]
            if result.ended in ("done", "time", "stopped") or not left or attempt == RETRIES:
                break
            blamed[left[0]] = result.ended
            shorter = read_notebook(work / f"{self.module}.ipynb")
            shorter.cells[left[0]].source = ""
            write_notebook(shorter, work / f"{self.module}.ipynb")
        with language(job.checked.language if job.checked else "en"):
            for index, why in blamed.items():
                result.outputs[index] = [_not_run(t(*ENDED.get(why, ENDED["died"])))]
        if blamed and result.ended == "done":
            result.ended = next(iter(blamed.values()))
        return result

    @staticmethod
    def _fill(notebook: Any, result: BoxResult) -> None:
        from nbformat import from_dict

        why = t(*ENDED.get(result.ended, ("it was not run", "没有运行")))
        number = 0
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type != "code":
                continue
            number += 1
            outputs = result.outputs.get(index)
            cell.execution_count = number if outputs is not None else None
            cell.outputs = [
                from_dict(harmless(o)) for o in (outputs if outputs is not None else [_not_run(why)])
            ]

    # --- in the main thread -----------------------------------------------------------------------------------

    def _save(self, job: _Job) -> Record:
        record = self._record(job)
        old = self.ledger.read(self.module, job.student)
        if record.status == GRADED and job.marks is not None:
            try:
                self.book.save(job.student, job.notebook, job.marks, record, submitted_at(job.folder))
            except BusyError as e:
                record.status, record.reason, job.unsaved = FAILED, f"{e.message}; {e.hint}", True
            except LabError as e:
                record.status, record.reason = FAILED, e.message
            except Exception as e:
                # Whatever it is about this one, the others get their marks.
                record.status, record.reason = FAILED, f"{type(e).__name__}: {e}"
            else:
                target = self.course.root / "autograded" / job.student / self.module
                shutil.rmtree(target, ignore_errors=True)
                target.mkdir(parents=True)
                (target / f"{self.module}.ipynb").write_text(job.text, encoding="utf-8")
        if old is not None and (old.status, old.marks, old.late) != (
            record.status,
            record.marks,
            record.late,
        ):
            record.before = {"status": old.status, "score": old.score, "marks": old.marks}
            self.summary.differences.append(
                f"{job.student}: {old.score if old.status == GRADED else old.status} -> "
                f"{record.score if record.status == GRADED else record.status}"
            )
        if not job.unsaved and job.reason != "stopped":
            self.ledger.write(record)
            self.ledger.audit(
                record.status,
                module=self.module,
                student=job.student,
                score=record.score,
                reason=record.reason,
                submission=record.submission,
                source=record.source,
                before=record.before,
            )
        self.summary.records.append(record)
        self.summary.graded += record.status == GRADED
        self.summary.failed += record.status == FAILED
        return record

    def _record(self, job: _Job) -> Record:
        record = Record(job.student, self.module, FAILED if job.reason else GRADED, reason=job.reason)
        record.submission, record.source, record.version, record.box = (
            job.submission,
            self.source_hash,
            self.version,
            self.box,
        )
        if job.checked is not None:
            record.language = job.checked.language
            record.findings = [
                {"kind": f.kind, "level": f.level, "text": f.text, "cell": f.cell}
                for f in job.checked.findings
            ]
        if job.result is not None:
            record.changed, record.ended = sorted(set(job.result.changed)), job.result.ended
        if job.marks is not None:
            record.marks, record.most = job.marks.as_dict(), job.marks.most
            record.maxima = {c.id: c.most for c in job.marks.cells}
            record.notes = {c.id: c.note for c in job.marks.cells if c.note}
            if job.quiz_problem:
                record.notes["quiz"] = job.quiz_problem
            when = submitted_at(job.folder)
            if when is None and self.late.due_for(job.student) is not None:
                record.notes["late"] = t("when it was handed in is not known", "提交时间未知")
            record.late = self.late.penalty(job.marks.score, job.student, when)
            record.score = round(job.marks.score - record.late, 4)
        return record


def _not_run(why: str) -> dict[str, Any]:
    return {"output_type": "error", "ename": NOT_RUN, "evalue": why, "traceback": [f"{NOT_RUN}: {why}"]}
